"""In a learner's copy no number that a card asks for can be read below it, in a text or in open code."""

import math
import re
from pathlib import Path

import pytest

pytest.importorskip("nbformat")

from flashlib.checks.engine.prediction import questions  # noqa: E402
from tests.checks.each_case import each_case
from tools import notebooks, workspace  # noqa: E402

IN_SIGHT = 650  # pixels below a card
LINE, CODE_LINE, HEADING, GAP, BAR = 21, 17, 45, 14, 26  # pixels, as in JupyterLab
WIDTH = 100  # characters of a line of prose
FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)
ELSEWHERE = {"lab_best": "256", "equal_terms": "16384"}  # a head dimension, and how many terms there are
CHAPTERS = notebooks.chapters(Path(__file__).resolve().parents[1] / "notebooks")


def is_folded(cell):
    return cell.metadata.get("jupyter", {}).get("source_hidden", False)


def height(cell):
    """Return the approximate height of a cell, in pixels."""
    if cell.cell_type == "code":
        return BAR if is_folded(cell) else CODE_LINE * (cell.source.count("\n") + 1) + GAP
    total = 0
    for block in re.split(r"\n\s*\n", FOLDED.sub("x", cell.source)):
        lines = block.count("\n") + 1 if re.match(r"\s*(\||```|-|\$\$)", block) else math.ceil(len(block) / WIDTH)
        total += HEADING if block.startswith("#") else LINE * lines + GAP
    return total


def in_sight(cells):
    """Yield the text of the cells that is visible together with the cell before them."""
    room = IN_SIGHT
    for cell in cells:
        if not is_folded(cell):
            yield FOLDED.sub("", cell.source)
        room -= height(cell)
        if room < 0:
            return


def written(right):
    """Return the ways to write the numbers of a right answer that have three digits or more."""
    values = right.values() if isinstance(right, dict) else [right]
    numbers = [x for value in values for x in (value if isinstance(value, tuple) else [value])]
    finite = [x for x in numbers if type(x) in (int, float) and math.isfinite(x)]
    ways = {form for x in finite for form in (str(x), f"{x:.4g}", f"{x:.3g}", f"{x:.2f}")}
    return {form for form in ways if len(re.sub(r"\D", "", form)) >= 3}


def given_away(nb):
    """Yield (question, number) if a number that a card asks for is visible below it."""
    cells = workspace.folded(workspace.without_outputs(nb)).cells
    for k, cell in enumerate(cells):
        if cell.cell_type == "code" and (asked := re.match(r'checks\.predict\("(\w+)"\)', cell.source)):
            text = "\n".join(in_sight(cells[k + 1 :]))
            for number in written(questions()[asked[1]].answer()) - {ELSEWHERE.get(asked[1])}:
                if re.search(rf"(?<![\w.]){re.escape(number)}(?![\w.]*\d)", text):
                    yield asked[1], number


@each_case(CHAPTERS, lambda path: path.stem)
def test_no_answer_is_visible_below_its_question(path):
    assert list(given_away(notebooks.read(path))) == []


@each_case(CHAPTERS, lambda path: path.stem)
def test_folded_code_begins_with_a_comment(path):
    """JupyterLab shows the first line of a folded cell, which says what the cell is and gives nothing away."""
    cells = [cell for cell in notebooks.read(path).cells if "folded" in notebooks.tags(cell)]
    leaks = [f"{cell.id}: {cell.source.splitlines()[0]}" for cell in cells if not cell.source.startswith("# ")]
    assert not leaks, f"the first line of folded code is in sight: begin with a comment on what it is: {leaks}"


def test_an_answer_in_sight_is_found():
    path = next(path for path in CHAPTERS if path.stem.endswith("_attention"))
    nb = notebooks.read(path)
    at = next(k for k, cell in enumerate(nb.cells) if cell.source == 'checks.predict("size_of_S")')
    (number, *_) = sorted(written(questions()["size_of_S"].answer()))
    nb.cells[at + 1].source += f"\n# {number}" if nb.cells[at + 1].cell_type == "code" else f"\n\nIt is {number}."
    nb.cells[at + 1].metadata["tags"] = []
    assert ("size_of_S", number) in list(given_away(nb))
