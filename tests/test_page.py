"""The page of a chapter, its errors, and the pictures that stand for widgets where nothing can play.

tests/browser/test_saved_page.py plays such a page.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")
pytest.importorskip("nbconvert")

import nbformat

from flashlib import widgets
from tools import notebooks, page

ROOT = Path(__file__).resolve().parents[1]
CLASSES = "|".join(widgets.__all__)
MADE = re.compile(rf"\b({CLASSES})(\.\w+)?\(")  # FlashPlayer(...) or FlashPlayer.from_steps(...)
LOADED = re.compile(
    r"<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=[\"'](?!data:)([^\"']*)|\bimport\b[^;\n]*?//"
)


def cells_with_widgets():
    for path in notebooks.chapters(ROOT / "notebooks"):
        for cell in notebooks.read(path).cells:
            if cell.cell_type == "code" and MADE.search(cell.source):
                yield pytest.param(cell, id=f"{path.stem}-{cell.id}")


def is_widget(output):
    return re.match(rf"({CLASSES})\(", output.get("data", {}).get("text/plain", ""))


CELLS = [*cells_with_widgets()]


def test_there_are_cells_with_widgets():
    assert CELLS


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_that_made_a_widget_stores_a_picture_of_it(cell):
    """GitHub shows the picture, and nbval compares the text."""
    shown = [output for output in cell.outputs if is_widget(output)]
    assert shown, "no output of this cell is the text of a widget: does it end in the widget?"
    for output in shown:
        assert output.data["image/png"].startswith("iVBORw0KGgo"), "the first bytes of a PNG"


@pytest.fixture
def notebook(tmp_path):
    """A function that writes a notebook of the given cells and returns its path."""

    def write(*cells):
        path = tmp_path / "small.ipynb"
        nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
        nbformat.write(nb, path)
        return path

    return write


def assert_plays(html):
    """The page has the widget's state, view and picture, and loads saved.js and nothing else."""
    assert [match[1] for match in LOADED.finditer(html.split("<body")[0])] == ["saved.js"]
    kinds = [f'<script type="application/vnd.jupyter.widget-{kind}+json">' for kind in ("state", "view")]
    for part in (*kinds, 'src="data:image/png;base64,iVBOR', 'alt="FlashPlayer('):
        assert html.count(part) == 1, part


def test_page_has_what_plays_and_asks_for_nothing_else(notebook, tmp_path):
    path = notebook("from flashlib.widgets import FlashPlayer\nFlashPlayer()")
    before = path.read_bytes()
    saved = page.save(path, tmp_path / "pages")
    assert saved == tmp_path / "pages" / "small.html"
    assert_plays(saved.read_text(encoding="utf-8"))
    assert (tmp_path / "pages" / "saved.js").read_bytes() == page.PLAYER.read_bytes()
    assert path.read_bytes() == before, "the notebook stays as it is"


@pytest.mark.process
def test_nbconvert_alone_makes_the_same_page(notebook, tmp_path):
    """The command in the docstring of tools/page.py."""
    path = notebook("from flashlib.widgets import FlashPlayer\nFlashPlayer()")
    command = f"{sys.executable} -m nbconvert --execute --to html --template tools/saved_page --output-dir"
    subprocess.run([*command.split(), tmp_path, path], cwd=ROOT, check=True, capture_output=True)
    assert_plays((tmp_path / "small.html").read_text(encoding="utf-8"))


@pytest.mark.process
def test_a_cell_that_raises_is_named_and_nothing_is_saved(notebook, tmp_path):
    with pytest.raises(RuntimeError, match=r"^cell 1 \(\w+\) raised ZeroDivisionError: division by zero$"):
        page.save(notebook("1", "1 / 0"), tmp_path / "pages")
    assert not (tmp_path / "pages").exists()


def test_a_cell_that_is_to_raise_is_no_error():
    error = nbformat.v4.new_output("error", ename="ValueError", evalue="no", traceback=[])
    cell = nbformat.v4.new_code_cell("x", outputs=[error], metadata={"tags": ["raises-exception"]})
    assert page.first_error(nbformat.v4.new_notebook(cells=[cell])) is None
    after = nbformat.v4.new_code_cell("y", outputs=[error])
    assert page.first_error(nbformat.v4.new_notebook(cells=[cell, after])).startswith("cell 1 ")


@pytest.mark.parametrize("chapter, said", [("", "No chapter was given"), ("77", "There is no notebook '77'")])
def test_a_chapter_that_is_not_there_is_said_in_a_sentence(monkeypatch, chapter, said):
    monkeypatch.setattr(sys, "argv", ["page", chapter])
    with pytest.raises(SystemExit, match=said):
        page.main()
