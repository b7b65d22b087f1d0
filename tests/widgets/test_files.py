"""What a page gets of each widget is the text of its files, and nothing of it asks the network."""

import pytest

pytest.importorskip("anywidget")

from flashlib.widgets import widget
from tools.lint_widgets import CLASSES

SVG = "http://www.w3.org/2000/svg"


@pytest.mark.parametrize(("attribute", "suffix"), [("_script", ".js"), ("_css", ".css")])
def test_every_file_is_in_a_page_and_the_shared_ones_in_all(attribute, suffix):
    texts = [str(getattr(cls, attribute)) for cls in CLASSES]
    apart = {"saved.js", "import.js"}  # of a page without a kernel; what imports the scripts
    files = [path for path in widget.FOLDER.rglob(f"*{suffix}") if path.name not in apart]
    assert len(files) > 10
    for path in files:
        holding = sum(path.read_text(encoding="utf-8") in text for text in texts)
        assert holding == len(CLASSES) if path.parent.name == "shared" else holding, path
    assert all("http" not in text.replace(SVG, "") for text in texts)
