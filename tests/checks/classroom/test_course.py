"""Which cells of a learner's notebook are compared with the course: the matching, without running any."""

import copy
import re
import uuid
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
from nbformat.v4 import new_code_cell, new_notebook, new_output  # noqa: E402

from flashlib.checks.classroom import course  # noqa: E402
from flashlib.checks.classroom.course import CellKind  # noqa: E402
from flashlib.checks.engine.verdict import MIME, Outcome, Verdict  # noqa: E402
from tools import workspace  # noqa: E402

LEAST = 4  # code cells, by which a notebook is still known when some of them are gone
PATHS = [
    path
    for path in sorted(course.FOLDER.glob("*.ipynb"))
    if sum(cell.cell_type == "code" for cell in nbformat.read(path, as_version=4).cells) >= LEAST
]


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """Return all chapters as `make lab` copies them: {slug: notebook}."""
    folder = tmp_path_factory.mktemp("workspace")
    workspace.copy(course.FOLDER, folder)
    return {path.stem: nbformat.read(path, as_version=4) for path in folder.glob("*.ipynb")}


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def mine(request, copies):
    """Return a copy of a chapter that a test may change."""
    return copy.deepcopy(copies[request.param.stem])


def test_only_a_page_or_two_have_few_cells():
    assert len(PATHS) >= 23


def test_every_cell_of_a_copy_is_found(mine, request):
    (chapter,) = parts = course.parts(mine)
    assert chapter.slug == request.node.callspec.params["mine"].stem
    code = [cell for cell in mine.cells if cell.cell_type == "code"]
    assert {cell.id for cell in code} == set(chapter.cells), "ids are lost in a copy"
    kinds = [course.kind(cell, parts) for cell in code]
    assert not {CellKind.OWN, CellKind.CHANGED} & set(kinds)
    compared = sum(k == CellKind.COMPARED for k in kinds)
    said = course.remarks(mine, parts)
    assert said[0] == f"{compared} of {len(code)} cells compared with {chapter.slug}" and compared
    assert not any(word in sentence for sentence in said for word in ("changed", "gone", "earlier")), said


def test_the_solved_notebook_is_expected_to_show_the_same(mine):
    """Except for its answers and what plays them, so that a learner's cells are compared, solved or not."""
    (chapter,) = parts = course.parts(mine)
    answers = [
        chapter.solved[id]
        for id, cell in chapter.cells.items()
        if id in chapter.solved and chapter.solved[id].source != cell.source
    ]
    written = {name for cell in answers for name in re.findall(r"^def (\w+)\(", cell.source, re.MULTILINE)}
    for cell in mine.cells:
        if cell.get("id") in chapter.solved:
            depends = course.kind(cell, parts) == CellKind.DEPENDS
            plays = written & set(re.findall(r"\w+", cell.source))
            assert not depends or plays, f"{cell.id} shows other things once it is solved"


def test_changed_added_and_deleted_cells_are_listed(mine):
    parts = course.parts(mine)
    for cell in mine.cells:
        if cell.cell_type == "code":
            kind = course.kind(cell, parts)
            cell.source += "\n# mine"
            expected = kind if kind in (CellKind.QUESTION, CellKind.STUB) else CellKind.CHANGED
            assert course.kind(cell, parts) == expected, cell.source
    mine.cells.append(new_code_cell("1 + 1", id="of-mine"))
    gone = next(cell for cell in mine.cells if cell.cell_type == "code")
    mine.cells.remove(gone)
    last = sum(cell.cell_type == "code" for cell in mine.cells) - 1
    said = course.remarks(mine, parts)
    assert said[0].startswith("0 of ")
    changed = next(s for s in said if s.startswith("changed: not compared"))
    for cell in mine.cells:
        if cell.cell_type == "code" and course.kind(cell, parts) == CellKind.CHANGED:
            assert course.cell_name(mine, cell) in changed
    assert f"gone from it, or new in the course: {gone.id}" in said
    assert f"your own: run, not compared: Cell {last} (of-mine)" in said


def test_a_cell_converted_to_text_is_listed_as_changed(mine):
    parts = course.parts(mine)
    cell = next(c for c in mine.cells if course.kind(c, parts) == CellKind.COMPARED)
    cell.cell_type = "markdown"
    assert f"changed: not compared: a text ({cell.id})" in course.remarks(mine, parts)


def test_an_outdated_copy_is_reported(mine):
    mine.metadata["flashlib"]["made_from"] = "another"
    assert "earlier version" in course.remarks(mine, course.parts(mine))[1]


def code_of(nb):
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def numbered(nb):
    """As nbstripout leaves it by default."""
    for n, cell in enumerate(nb.cells):
        cell.id = str(n)


def through_text(nb):
    """As it comes back from jupytext, through a file of Python: blanks at the ends of lines are gone too."""
    for cell in code_of(nb):
        cell.id, cell.metadata = uuid.uuid4().hex[:8], {}
        cell.source = course.stripped(cell.source)


def without_ids(nb):
    """As in the format before 4.5."""
    for cell in nb.cells:
        del cell["id"]


def pasted(nb):
    """Every second cell, as in a notebook in which they were cut and pasted."""
    for cell in code_of(nb)[::2]:
        cell.id = uuid.uuid4().hex[:8]


@pytest.mark.parametrize("lose", [numbered, through_text, without_ids, pasted])
def test_cells_that_have_lost_their_ids_are_found_by_their_sources(mine, lose):
    parts, before = course.parts(mine), [cell.id for cell in code_of(mine)]
    kinds = [course.kind(cell, parts) for cell in code_of(mine)]
    lose(mine)
    assert course.restore_ids(mine) == len(before[::2] if lose is pasted else before)
    assert [cell.id for cell in code_of(mine)] == before
    assert course.parts(mine) == parts
    assert [course.kind(cell, parts) for cell in code_of(mine)] == kinds
    assert course.restore_ids(mine) == 0, "all are there"


@pytest.mark.parametrize("lose", [numbered, through_text])
def test_changed_added_and_deleted_cells_are_found_without_ids_too(mine, lose):
    parts, code = course.parts(mine), code_of(mine)
    changed, added = code[1], new_code_cell("print('mine')", id="of-mine")
    gone = code[-1]
    changed.source += "\nprint('changed')"
    names = {id(cell): cell.id for cell in code}
    mine.cells.insert(0, added)
    mine.cells.remove(gone)
    lose(mine)
    course.restore_ids(mine)
    assert course.kind(added, parts) == CellKind.OWN
    assert [cell.id for cell in code[:-1]] == [names[id(cell)] for cell in code[:-1]]
    assert course.kind(changed, parts) in (CellKind.CHANGED, CellKind.STUB, CellKind.QUESTION)
    assert gone.id not in {cell.get("id") for cell in mine.cells}


def test_a_copied_and_a_replacing_cell_are_the_learners_own(mine):
    parts = course.parts(mine)
    first, second = code_of(mine)[:2]
    again, instead = new_code_cell(first.source, id="of-mine"), new_code_cell("1 + 1", id="of-mine-too")
    mine.cells[mine.cells.index(second)] = instead
    assert course.restore_ids(mine) == 0 and course.kind(instead, parts) == CellKind.OWN
    mine.cells.append(again)
    assert course.restore_ids(mine) == 0 and course.kind(again, parts) == CellKind.OWN


@pytest.mark.parametrize(
    "sources", [[], ["1 + 1"], ["import numpy as np", "x = 5", "import matplotlib.pyplot as plt"]]
)
def test_a_notebook_with_only_the_same_imports_is_not_of_the_course(sources):
    nb = new_notebook(cells=[new_code_cell(source) for source in sources])
    assert course.restore_ids(nb) == 0 and course.parts(nb) == []


def test_a_notebook_from_elsewhere_is_reported():
    nb = new_notebook(cells=[new_code_cell("1 + 1")])
    assert course.parts(nb) == []
    (said,) = course.remarks(nb, [])
    assert "not of the course" in said and "nothing to compare" in said


def test_the_error_for_missing_course_notebooks_says_how_to_install(tmp_path):
    with pytest.raises(FileNotFoundError, match="pip install -e"):
        course.chapters(Path(tmp_path))


def shown(exercise, outcome):
    data = Verdict(exercise, outcome, "the sentence")._repr_mimebundle_()
    assert MIME in data
    return course.passing([new_output("execute_result", data)])[0].data


def test_an_exercise_passes_if_it_is_right_or_not_solved():
    passes = shown("merge", Outcome.RIGHT)
    for outcome in Outcome:
        same = shown("merge", outcome) == passes
        assert same == (outcome in (Outcome.RIGHT, Outcome.NOT_SOLVED)), outcome
        assert same or "the sentence" in shown("merge", outcome)["text/plain"], "what the check says is lost"
    assert shown("online_step", Outcome.RIGHT) != passes, "the verdict on another exercise"
