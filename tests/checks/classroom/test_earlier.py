"""What a learner has from before chapters had new numbers: copies, solved exercises and predictions.

earlier/cells.txt has the ids of the code cells of each chapter as it was; earlier/progress.json is the progress
file of a learner who had solved all exercises, and answered some questions.
"""

import shutil
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("cloudpickle")
from nbformat.v4 import new_code_cell, new_notebook  # noqa: E402

from flashlib import checks, earlier  # noqa: E402
from flashlib.chapters import NOTEBOOKS  # noqa: E402
from flashlib.checks.classroom import class_table, course  # noqa: E402
from flashlib.checks.classroom.earlier_copies import renumbered  # noqa: E402
from flashlib.checks.engine import prediction, progress_file  # noqa: E402

FOLDER = Path(__file__).with_name("earlier")
LINES = (FOLDER / "cells.txt").read_text(encoding="utf-8").splitlines()
CELLS = {slug: ids.split() for slug, ids in (line.split(": ") for line in LINES)}


def notebook(ids, source="1 + 1"):
    return new_notebook(cells=[new_code_cell(source, id=cell_id) for cell_id in ids])


def test_the_table_has_every_earlier_chapter():
    assert [was.slug for was in earlier.EARLIER_CHAPTERS] == list(CELLS)


def test_every_name_in_the_table_is_that_of_a_chapter():
    assert {name for was in earlier.EARLIER_CHAPTERS for name in was.now} <= {c.name for c in NOTEBOOKS}


@pytest.mark.parametrize("slug", CELLS)
def test_the_table_says_where_the_cells_of_an_earlier_chapter_are(slug):
    was = earlier.called(slug)
    found = {part.slug for part in course.parts(notebook(CELLS[slug]))}
    assert {was.first.slug} <= found <= {c.slug for c in was.chapters()}
    cells = {chapter.slug: chapter.cells.keys() for chapter in course.chapters()}
    rest = set(CELLS[slug]) - cells[was.first.slug]
    for chapter in was.chapters():
        assert chapter == was.first or not cells[chapter.slug] or cells[chapter.slug] & rest, chapter.slug


def test_copies_are_found_by_their_cells_and_only_where_the_name_says_another_number(tmp_path):
    for slug, ids in CELLS.items():
        nbformat.write(notebook(ids), tmp_path / f"{slug}.ipynb")
    nbformat.write(notebook(CELLS["05_one_pass"]), tmp_path / "05_one_pass_2026-11-20_10-00-00.ipynb")
    nbformat.write(notebook(CELLS["05_one_pass"]), tmp_path / "04_one_pass_2026-11-29_10-00-00.ipynb")
    nbformat.write(notebook(["of-mine"]), tmp_path / "07_mine.ipynb")
    (tmp_path / "08_broken.ipynb").write_text("{")
    found = renumbered(course.FOLDER, tmp_path)
    today = {c.slug for c in NOTEBOOKS}
    assert found.keys() == {f"{slug}.ipynb" for slug in CELLS if slug not in today} | {
        "05_one_pass_2026-11-20_10-00-00.ipynb"
    }
    assert found["05_one_pass.ipynb"] == ["04_one_pass"]
    assert found["02_safe_softmax.ipynb"] == ["01_softmax", "03_online_softmax"]


def stored(name):
    return next(chapter for chapter in course.chapters() if chapter.slug.endswith(name))


def of_two(first=5, second=7):
    """Return the first cells of two chapters as one notebook, with the chapters."""
    parts = [stored("one_pass"), stored("counting_bytes")]
    cells = [c for part, n in zip(parts, (first, second), strict=True) for c in list(part.cells.values())[:n]]
    return new_notebook(cells=[new_code_cell(cell.source, id=cell.id) for cell in cells]), parts


def test_cells_of_several_chapters_are_all_compared():
    nb, parts = of_two()
    assert course.parts(nb) == parts
    kinds = [course.kind(cell, parts) for cell in nb.cells]
    assert kinds == [course.kind(cell, parts[:1]) for cell in nb.cells[:5]] + [
        course.kind(cell, parts[1:]) for cell in nb.cells[5:]
    ]
    assert not {course.CellKind.OWN, course.CellKind.CHANGED} & set(kinds)
    counts = [sum(k == course.CellKind.COMPARED for k in some) for some in (kinds[:5], kinds[5:])]
    sizes = [len(part.cells) for part in parts]
    assert all(counts) and course.remarks(nb, parts)[0] == ", ".join(
        f"{n} of {size} cells compared with {part.slug}"
        for n, size, part in zip(counts, sizes, parts, strict=True)
    )


def test_cells_of_several_chapters_are_found_by_their_sources_too():
    nb, parts = of_two()
    before = [cell.id for cell in nb.cells]
    for n, cell in enumerate(nb.cells):
        cell.id = str(n)
    assert course.restore_ids(nb) == len(before) and [cell.id for cell in nb.cells] == before


def test_an_id_that_two_chapters_have_is_that_of_the_chapter_with_the_source():
    nb, (one_pass, counting) = of_two()
    (same,) = one_pass.cells.keys() & counting.cells.keys()
    for chapter in (one_pass, counting):
        cell = new_code_cell(chapter.cells[same].source, id=same)
        assert course.home(cell, [one_pass, counting]) == course.home(cell, [counting, one_pass]) == chapter
    assert course.parts(notebook([*one_pass.cells])) == [one_pass], "one id in common is no part"


@pytest.fixture
def learner(tmp_path, monkeypatch):
    """Move to the workspace of a learner from before; return its folder."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    shutil.copy(FOLDER / "progress.json", workspace)
    monkeypatch.delenv(progress_file.VARIABLE, raising=False)
    monkeypatch.chdir(workspace)
    return workspace


def test_solved_exercises_still_count(learner):
    solved, problem = progress_file.solved()
    assert not problem and solved.keys() <= checks.EXERCISES.keys() | earlier.GONE.keys()
    counted = len(solved.keys() & checks.EXERCISES.keys())
    assert repr(checks.progress()).startswith(f"{counted} of {len(checks.EXERCISES)} exercises solved")


def test_predictions_are_still_on_their_cards(learner):
    given = {name: parts for name, parts in progress_file.predicted().items() if name in prediction.questions()}
    assert given, "all of these questions are gone: make the file anew"
    for name, parts in given.items():
        assert checks.predict(name).given == parts


def test_an_exercise_that_went_says_where_it_is(monkeypatch, tmp_path):
    monkeypatch.setitem(earlier.GONE, "invented", "merge")
    verdict = checks.invented(lambda x: x, seed=3)
    assert verdict.outcome == "not checked" and "checks.merge, in 03_online_softmax" in verdict.sentence
    nb = notebook(["a"], "def my_invented(x):\n    return x")
    nb.cells[0].metadata["tags"] = ["stub:invented"]
    nbformat.write(nb, tmp_path / "mine.ipynb")
    ((row,),) = class_table.run(tmp_path)
    assert row.exercise == "invented" and "checks.merge" in row.sentence
    assert all(name not in checks.EXERCISES and now in checks.EXERCISES for name, now in earlier.GONE.items())


def test_a_name_that_never_was_is_no_attribute():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = checks.nothing


def test_what_became_of_an_earlier_chapter_is_said():
    said = "Chapter {0} is Tiling now; One pass, which was {0}, is 04."
    assert earlier.renamed("05") == said.format("05")
    assert earlier.renamed("05_one_pass") == "05_one_pass is 04_one_pass now."
    assert earlier.renamed("safe_softmax") == "safe_softmax is 01_softmax and 03_online_softmax now."
    assert earlier.renamed("06").endswith("First steps in Triton now; Tiling, which was 06, is 05 and 08.")
    for same in ("03", "03_online_softmax", "16", "one_pass", "tiling", "05_tiling", "99", ""):
        assert earlier.renamed(same) == "", same
