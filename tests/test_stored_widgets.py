"""The pictures that are shown in place of widgets where nothing can play."""

import re
from pathlib import Path

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

from flashlib import widgets
from tools import notebooks

ROOT = Path(__file__).resolve().parents[1]
CLASSES = "|".join(widgets.__all__)
UNSOLVED = "is not solved yet"  # what a widget says of a learner's kernel that is not written
MADE = re.compile(rf"\b({CLASSES})(\.\w+)?\(")  # FlashPlayer(...) or FlashPlayer.from_steps(...)


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
    """GitHub shows the picture, and nbval compares the text. There is none of a kernel that is not written yet."""
    shown = [output for output in cell.outputs if is_widget(output)]
    assert shown, "no output of this cell is the text of a widget: does it end in the widget?"
    for output in shown:
        if UNSOLVED not in output.data["text/plain"]:
            assert output.data["image/png"].startswith("iVBORw0KGgo"), "the first bytes of a PNG"
