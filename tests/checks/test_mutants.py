"""Every solution is accepted, and every wrong answer rejected with the diagnosis that it must get."""

from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("cloudpickle")

from flashlib import checks  # noqa: E402
from flashlib.checks import solutions  # noqa: E402
from flashlib.checks.mutants import all_mutants  # noqa: E402

if find_spec("triton"):
    import flashlib.kernels  # noqa: F401

MUTANTS = [m for m in all_mutants() if find_spec("triton") or not checks.EXERCISES[m.exercise].triton]
EXERCISES = [e for e in checks.EXERCISES.values() if find_spec("triton") or not e.triton]


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_the_solution_is_right(exercise, matrix):
    verdict = exercise(solutions.solution(exercise.name))
    assert verdict.outcome == "right", f"\n{verdict}"
    matrix.accepted(exercise)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.exercise}-{m.name.replace(' ', '_')}")
def test_a_wrong_answer_is_named(mutant, matrix):
    verdict = checks.EXERCISES[mutant.exercise](mutant.function)
    assert verdict.outcome == "wrong", f"accepted as {verdict.outcome}:\n{mutant.source}"
    assert mutant.diagnosis in verdict.sentence, f"named otherwise:\n{verdict}\n\n{mutant.source}"
    matrix.rejected(mutant)


def test_the_readme_shows_the_totals():
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert f"{len(checks.EXERCISES)} exercises, {len(all_mutants())} wrong answers" in text


def test_wrong_answers_are_many_and_different():
    by_exercise = defaultdict(set)
    for mutant in all_mutants():
        by_exercise[mutant.exercise].add(mutant.source)
        assert mutant.source != solutions.text(mutant.exercise)
    assert sum(map(len, by_exercise.values())) == len(all_mutants()) >= 60
    few = {name: len(by_exercise[name]) for name in checks.EXERCISES if len(by_exercise[name]) < 5}
    assert not few, "each exercise has five wrong answers or more"
