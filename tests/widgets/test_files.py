"""A page gets the text of each widget's files, and none of it uses the network."""

import re
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("anywidget")

from flashlib import widgets
from flashlib.widgets import modules, widget
from flashlib.widgets.compiler_lab import CompilerLab
from flashlib.widgets.prediction_card.prediction_card import PredictionCard

CLASSES = [CompilerLab, PredictionCard, *(getattr(widgets, name) for name in widgets.__all__)]
SITE = Path(__file__).resolve().parents[2] / "web" / "static" / "site.css"
SVG = "http://www.w3.org/2000/svg"
APART = {"import.js", "types.js"}  # imports the scripts, has no code of a widget


def test_every_style_sheet_is_in_a_page_and_the_shared_ones_in_all():
    files = list(widget.FOLDER.rglob("*.css"))
    assert len(files) > 10
    for path in files:
        holding = sum(path.read_text(encoding="utf-8") in cls._css for cls in CLASSES)
        assert holding == len(CLASSES) if path.parent.name == "shared" else holding, path


def test_every_module_is_in_a_page():
    files = [path for path in widget.FOLDER.rglob("*.js") if path.name not in APART]
    assert len(files) > 50
    for path in files:
        text = modules.plain(path.read_text(encoding="utf-8"))
        assert any(text in cls._script for cls in CLASSES), path


def test_every_exported_name_is_imported():
    texts = [path.read_text(encoding="utf-8") for path in widget.FOLDER.rglob("*.js")]
    exported = {name for text in texts for export, name in modules.DECLARED.findall(text) if export}
    lists = [names for text in texts for names, _ in modules.IMPORT.findall(text)]
    imported = {name for names in lists for name in re.findall(r"\w+", names)}
    assert exported - imported == set()


def test_nothing_uses_the_network():
    assert all("http" not in (cls._script + str(cls._css)).replace(SVG, "") for cls in CLASSES)


def test_a_column_of_numbers_grows_with_the_number():
    """A fixed width cuts off the longest one, such as 2.776e-16; the first column of .flash-words has prose."""
    columns = [
        (path.name, found)
        for path in widget.FOLDER.rglob("*.css")
        for found in re.findall(r"grid-template-columns:([^;]*)", path.read_text(encoding="utf-8"))
    ]
    assert len(columns) > 20
    fixed = [(name, c.strip()) for name, c in columns if re.search(r"\d\s*ch\b", re.sub(r"minmax\(.*?\)", "", c))]
    assert fixed == [("stepped.css", "15ch 1fr")], "give it minmax(Nch, max-content)"


def test_few_rules_repeat_a_body():
    """Equal looks share a rule, across widgets in shared/grouped_rules.css."""
    bodies = []
    for path in [*widget.FOLDER.rglob("*.css"), SITE]:
        text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        bodies += [" ".join(body.split()) for body in re.findall(r"\{([^{}]*)\}", text)]
    again = Counter(bodies) - Counter(set(bodies))
    assert len(bodies) > 1000
    assert again.total() <= 0.1 * len(bodies), again.most_common(10)


def test_style_sheets_have_one_byte_letters():
    """One wider letter makes the browser keep two bytes for each, of every widget that was ever shown."""
    wide = {path.name for path in widget.FOLDER.rglob("*.css") if max(path.read_text(encoding="utf-8")) > "\xff"}
    assert not wide, "write the letter as in \\2715, or in ASCII"
