"""Every right answer is accepted, and every wrong one rejected with the mistake named that it must be."""

import contextlib
import io
import signal
import warnings
from collections import Counter, defaultdict
from pathlib import Path

import pytest

pytest.importorskip("cloudpickle")

from flashlib import checks  # noqa: E402
from flashlib.chapters import chapter  # noqa: E402
from flashlib.checks.engine import process, solutions  # noqa: E402
from tests.checks import answers  # noqa: E402

SEED = 4711  # of the cases that are drawn, in tests the same every time
EXERCISES = [e for e in checks.EXERCISES.values() if not chapter(e.chapter).obstacles()]


def _of_these(found):
    return [a for a in found if checks.EXERCISES[a.exercise] in EXERCISES]


def _name(answer):
    return "-".join(filter(None, (answer.exercise, answer.mistake, answer.words))).replace(" ", "_")


WRONG, RIGHT = _of_these(answers.wrong()), _of_these(answers.right())

if any(exercise.triton for exercise in EXERCISES):
    import flashlib.kernels


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_the_solution_is_right(exercise, record_property):
    verdict = exercise(solutions.solution(exercise.name))
    assert verdict.outcome == "right", f"\n{verdict}"
    record_property("right answer accepted", exercise.name)


def call_here(function, *arguments, limit):
    """Do what `process.call` does, in this process; not for what kills it or cannot be interrupted."""

    def end(*_):
        raise process.NotEnded(f"did not end within {limit:g} seconds", "")

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, limit)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), warnings.catch_warnings(action="ignore"):
            return function(*arguments), printed.getvalue()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.mark.parametrize(("name", "seeds"), [("capped_gradient", (2685, 3253, 5565, 8199, 9748))])
def test_a_drawn_gradient_of_almost_0_is_right(name, seeds, monkeypatch):
    """Where a row in effect sees one key, dP and delta cancel, and what is left is rounding."""
    monkeypatch.setattr(process, "call", call_here)
    for answer in [solutions.program(name), *(a.program for a in RIGHT if a.exercise == name)]:
        for seed in seeds:
            verdict = checks.EXERCISES[name](answer.function, seed=seed)
            assert verdict.outcome == "right", f"seed {seed}\n{verdict}\n\n{answer.source}"


@pytest.fixture
def here(answer, monkeypatch):
    """Let the check run in this process: a process for each would take most of the time of all tests.

    Solutions get one, as a learner's answer does, and so do answers that do not end, and a kernel that is called
    without a grid: the interpreter, once it has run, no longer minds that.
    """
    if hasattr(signal, "SIGPROF") and answer.mistake not in ("not_ended", "no_grid"):
        monkeypatch.setattr(process, "call", call_here)


@pytest.mark.parametrize("answer", RIGHT, ids=_name)
def test_a_right_answer_in_another_style_is_accepted(answer, here, record_property):
    verdict = checks.EXERCISES[answer.exercise](answer.program.function, seed=SEED)
    assert verdict.outcome == "right", f"\n{verdict}\n\n{answer.source}"
    record_property("right answer accepted", answer.exercise)


@pytest.mark.parametrize("answer", WRONG, ids=_name)
def test_a_wrong_answer_is_named(answer, here, record_property):
    if checks.EXERCISES[answer.exercise].triton and not flashlib.kernels.INTERPRETED:
        pytest.skip("kernels are compiled here, and much is seen only in the interpreter: set TRITON_INTERPRET=1")
    verdict = checks.EXERCISES[answer.exercise](answer.program.function, seed=SEED)
    assert verdict.outcome == "wrong", f"accepted as {verdict.outcome}:\n{answer.source}"
    assert verdict.mistake == answer.mistake, f"named {verdict.mistake}:\n{verdict}\n\n{answer.source}"
    record_property("wrong answer named", (answer.exercise, answer.mistake))


def test_the_readme_shows_the_totals():
    text = " ".join((Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8").split())
    assert f"{len(checks.EXERCISES)} exercises, {len(answers.wrong())} wrong answers" in text
    assert f"{len(answers.right())} right answers" in text
    number = Counter(answer.origin for answer in answers.wrong())
    assert f"{number['table']} are made from the tables of known mistakes" in text
    assert f"{number['terms']} by the same tables in kernels" in text
    assert f"{number['edit']} are other edits of a solution, and {number['written']} are written out" in text


def test_contributing_shows_the_totals():
    origins = Counter(answer.origin for answer in answers.wrong())
    table, terms, edit, written = (origins[name] for name in ("table", "terms", "edit", "written"))
    said = (
        f"There are {len(checks.EXERCISES)} exercises, {len(answers.wrong())} wrong answers, each rejected with "
        f"its mistake named, and {len(answers.right())} right answers in other styles, each accepted. "
        f"Of the wrong ones, {table} are made from the tables of known mistakes and {terms} by the same tables "
        f"in kernels; {edit} are other edits of a solution, and {written} are written out."
    )
    text = " ".join((Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    assert said in text, f"write in CONTRIBUTING.md: {said}"


def test_wrong_answers_are_many_and_none_is_a_solution():
    by_exercise = defaultdict(set)
    for answer in answers.wrong():
        by_exercise[answer.exercise].add(answer.source)
        assert answer.source != solutions.text(answer.exercise)
    few = {name: len(by_exercise[name]) for name in checks.EXERCISES if len(by_exercise[name]) < 5}
    assert not few, "each exercise has five wrong answers or more"
