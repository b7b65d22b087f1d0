"""`python -m flashlib.checks.mistakes`: the known mistakes of a chapter as diffs."""

import subprocess
import sys

import pytest

pytest.importorskip("cloudpickle")
from flashlib.checks import EXERCISES, mistakes  # noqa: E402
from flashlib.checks.engine import mistake_tables  # noqa: E402
from tests.checks.each_case import each_case  # noqa: E402


@pytest.mark.parametrize("text", ["5", "05", "05_tiling", "tiling", "Tiling"])
def test_a_chapter_is_known_by_number_slug_and_name(text):
    assert mistakes.chapter_of(text).slug == "05_tiling"


@pytest.mark.parametrize("text", ["0", "99", "tile", ""])
def test_an_unknown_chapter_is_refused_with_a_list_of_those_known(text):
    with pytest.raises(ValueError, match="there is no chapter .* with exercises; .* 05 tiling, 06"):
        mistakes.chapter_of(text)


@each_case(EXERCISES.values(), lambda exercise: exercise.name)
def test_each_row_is_described_and_each_way_shown_as_a_diff(exercise):
    lines = list(mistakes.description(exercise))
    ways = [way for row in mistakes.tables()[exercise.known.table].values() for way in row.ways]
    assert sum(line.startswith("--- ") for line in lines) == len(ways)
    for row in mistakes.tables()[exercise.known.table].values():
        assert any(line.startswith(row.id) and line.endswith(row.sentence) for line in lines)


def test_a_way_that_is_not_an_edit_is_named_with_its_row(monkeypatch):
    row = mistake_tables.Mistake("never", "it is never made", ("y = 1",))
    monkeypatch.setattr(mistakes, "tables", lambda: {"scores_for": {"never": row}})
    with pytest.raises(ValueError, match=r"^\[scores_for\] never: 'y = 1' must replace one line"):
        list(mistakes.description(EXERCISES["scores_for"]))


def test_it_is_a_command():
    def run(*arguments):
        command = [sys.executable, "-m", "flashlib.checks.mistakes", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    done = run("softmax")
    assert done.returncode == 0 and "==== scores_for: Softmax backwards" in done.stdout
    assert "-    return np.log(p)\n+    return -np.log(p)\n" in done.stdout
    wrong = run("abacus")
    assert wrong.returncode == 1 and "there is no chapter 'abacus' with exercises" in wrong.stderr
