"""Every solution is accepted, and every wrong answer rejected with the diagnosis that it must get."""

import contextlib
import io
import signal
import warnings
from collections import defaultdict
from pathlib import Path

import pytest

pytest.importorskip("cloudpickle")

from flashlib import checks  # noqa: E402
from flashlib.chapters import chapter  # noqa: E402
from flashlib.checks import process, solutions  # noqa: E402
from flashlib.checks.mutants import all_mutants  # noqa: E402

EXERCISES = [e for e in checks.EXERCISES.values() if not chapter(e.chapter).obstacles()]
MUTANTS = [m for m in all_mutants() if checks.EXERCISES[m.exercise] in EXERCISES]

if any(exercise.triton for exercise in EXERCISES):
    import flashlib.kernels  # noqa: F401


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_the_solution_is_right(exercise, record_property):
    verdict = exercise(solutions.solution(exercise.name))
    assert verdict.outcome == "right", f"\n{verdict}"
    record_property("solution accepted", exercise.name)


def call_here(function, *arguments, limit):
    """Do what `process.call` does, in this process; what kills it or cannot be interrupted is not for this."""

    def end(*_):
        raise process.NotEnded(f"did not end within {limit:g} seconds", "")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, limit)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), warnings.catch_warnings(action="ignore"):
            return function(*arguments), printed.getvalue()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def here(mutant, monkeypatch):
    """Let the check run in this process: a process for each would take most of the time of all tests.

    Solutions, kernels, which may read memory that is not their own, and what does not end have one, as an answer
    of a learner has.
    """
    alone = checks.EXERCISES[mutant.exercise].triton or mutant.diagnosis == "did not end"
    if hasattr(signal, "SIGALRM") and not alone:
        monkeypatch.setattr(process, "call", call_here)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.exercise}-{m.name.replace(' ', '_')}")
def test_a_wrong_answer_is_named(mutant, here, record_property):
    verdict = checks.EXERCISES[mutant.exercise](mutant.function)
    assert verdict.outcome == "wrong", f"accepted as {verdict.outcome}:\n{mutant.source}"
    assert mutant.diagnosis in verdict.sentence, f"named otherwise:\n{verdict}\n\n{mutant.source}"
    record_property("wrong answer named", (mutant.exercise, mutant.name))


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
