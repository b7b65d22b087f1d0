"""Every right answer is accepted, and every wrong one is rejected with the mistake that must be named."""

import contextlib
import functools
import inspect
import io
import re
import signal
import warnings
from collections import defaultdict

import pytest

pytest.importorskip("cloudpickle")

from flashlib import checks  # noqa: E402
from flashlib.chapters import chapter  # noqa: E402
from flashlib.checks.engine import (  # noqa: E402
    compiling,
    diagnosis,
    examination,
    exercises,
    mistake_tables,
    random_cases,
    solutions,
)
from flashlib.checks.harness import loops  # noqa: E402
from flashlib.learner import process  # noqa: E402
from tests.checks import answers  # noqa: E402

SEED = 4711  # of the cases that are drawn, the same in every test
EXERCISES = [
    e
    for e in checks.EXERCISES.values()
    if not (e.obstacles() or (e.triton and chapter(e.chapter).obstacles(more=True)))
]


@pytest.fixture(autouse=True)
def kernels():
    """Import `flashlib.kernels` before Triton, which an answer may import."""
    if any(exercise.triton for exercise in EXERCISES):
        import flashlib.kernels  # noqa: F401


SHARED, EXPLAINED, RIGHT = 1, 1, 1  # answers that are kernels or programs, in the short tests


@functools.cache
def wrong(name, amount) -> list:
    """Return wrong answers to an exercise: "few" are the first of each mistake, "all" the rest of them.

    If answers are interpreted or played, "few" are those with mistakes that the harness itself finds and that no
    earlier exercise has, SHARED of those that others have too, and EXPLAINED of mistakes that are edits or that
    any check finds: to explain one of these, many known mistakes are run.
    """
    of_it = [answer for answer in answers.wrong() if answer.exercise == name]
    few = _first_of_each(name)
    if is_run(checks.EXERCISES[name]):
        sentences = _found(name)
        found = [answer for answer in few if answer.mistake in sentences]
        new = [answer for answer in found if _where_found()[answer.mistake, sentences[answer.mistake]] == name]
        shared, explained = ([x for x in these if x not in those] for these, those in ((found, new), (few, found)))
        few = new + _spread(shared, SHARED) + _spread(explained, EXPLAINED)
    return few if amount == "few" else [answer for answer in of_it if answer not in few]


def _first_of_each(name):
    of_it = [answer for answer in reversed(answers.wrong()) if answer.exercise == name]
    return list({answer.mistake: answer for answer in of_it}.values())


def _found(name):
    """Return {mistake that the harness of an exercise finds: its sentence}."""
    anywhere = mistake_tables.tables()["any"]
    mistakes = checks.EXERCISES[name].known.mistakes()
    return {one.id: one.sentence for one in mistakes if not (one.ways or one.id in anywhere)}


@functools.cache
def _where_found():
    """Return {(mistake that a harness finds, its sentence): the first exercise with such a wrong answer}."""
    first = {}
    for exercise in filter(is_run, EXERCISES):
        found = _found(exercise.name)
        for answer in _first_of_each(exercise.name):
            if answer.mistake in found:
                first.setdefault((answer.mistake, found[answer.mistake]), exercise.name)
    return first


def _spread(answers, most):
    """Return `most` of the answers, evenly spaced."""
    n = min(most, len(answers))
    return [answers[k * len(answers) // n] for k in range(n)]


def right(name, amount="every") -> list:
    """Return right answers to an exercise.

    "few" are RIGHT of the answers if they are interpreted or played, else all of them; "all" are the rest.
    """
    of_it = [answer for answer in answers.right() if answer.exercise == name]
    if amount == "every":
        return of_it
    few = _spread(of_it, RIGHT) if is_run(checks.EXERCISES[name]) else of_it
    return few if amount == "few" else [answer for answer in of_it if answer not in few]


def is_run(exercise):
    """Return whether answers are interpreted or played."""
    is_kernel = "jit" in solutions.program(exercise.name).source
    return is_kernel or inspect.isgeneratorfunction(solutions.solution(exercise.name))


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_the_solution_is_right(exercise, record_property):
    verdict = exercise(solutions.solution(exercise.name))
    assert verdict.outcome == "right" and not verdict.details, f"\n{verdict}"
    record_property("right answers accepted", (exercise.name, 1))


def call_here(function, *arguments, limit):
    """Do what `process.call` does, in this process; not for code that kills it or cannot be interrupted."""

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
    """If a row effectively sees one key, dP and delta cancel, and only rounding errors are left."""
    monkeypatch.setattr(process, "call", call_here)
    for program in [solutions.program(name), *(answer.program for answer in right(name))]:
        for seed in seeds:
            verdict = checks.EXERCISES[name](program.function, seed=seed)
            assert verdict.outcome == "right", f"seed {seed}\n{verdict}\n\n{program.source}"


def verdict_here(answer, monkeypatch, compiled=False):
    """Return the verdict of a check in this process: starting processes would take most of the time of the tests.

    compiled: whether to compile a right answer too. Solutions run in a separate process, like a learner's answer,
    as do answers that do not end.
    """
    with monkeypatch.context() as patch:
        patch.setattr(compiling, "_explained", False)
        if not compiled:
            patch.setattr(compiling, "noting", contextlib.nullcontext)
        if answer.mistake == "not_ended":
            patch.setattr(exercises, "LIMIT", 1)
        if hasattr(signal, "SIGPROF") and answer.mistake != "not_ended":
            patch.setattr(process, "call", call_here)
        return checks.EXERCISES[answer.exercise](answer.program.function, seed=SEED)


def report(failed):
    return "\n\n".join(f"{said}:\n{verdict}\n{answer.source}" for answer, verdict, said in failed)


@pytest.mark.parametrize("amount", ["few", "all"])
@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_right_answers_in_another_style_are_accepted(
    exercise, amount, short_searches, rings, monkeypatch, record_property
):
    verdicts = [(answer, verdict_here(answer, monkeypatch)) for answer in right(exercise.name, amount)]
    failed = [(a, v, f"{a.words!r} was found {v.outcome}") for a, v in verdicts if v.outcome != "right"]
    assert not failed, report(failed)
    record_property("right answers accepted", (exercise.name, len(verdicts)))


@pytest.mark.parametrize("amount", ["all"])  # the short test: solutions are compiled when checked
@pytest.mark.parametrize("exercise", [e for e in EXERCISES if e.triton], ids=lambda e: e.name)
def test_right_kernels_in_another_style_are_compiled(exercise, amount, monkeypatch):
    verdicts = [(answer, verdict_here(answer, monkeypatch, compiled=True)) for answer in right(exercise.name)]
    failed = [(a, v, f"{a.words!r} was not compiled") for a, v in verdicts if not v.right or v.details]
    assert not failed, report(failed)


def looks_right(details):
    """Return whether the given and the expected results are shown as the same text."""
    return details.get("given", "") == details.get("expected") and "first at" not in details


@pytest.mark.parametrize("amount", ["few", "all"])
@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_wrong_answers_are_named(exercise, amount, guesses, searches, rings, monkeypatch, record_property):
    if exercise.triton:
        from flashlib import kernels

        if not kernels.INTERPRETED:
            pytest.skip("kernels are compiled here, and much is seen only in the interpreter: TRITON_INTERPRET=1")
        if amount == "few":
            # a random input may rarely give a mistake another name: the long tests look for those
            monkeypatch.setattr(random_cases, "new_seed", lambda: 4711)
            # answers with one mistake are not searched for two; those with two take the time they need
            if not any(" and " in answer.mistake for answer in wrong(exercise.name, amount)):
                monkeypatch.setattr(diagnosis, "TIME_LIMIT", 0)
    failed, named = [], []
    for answer in wrong(exercise.name, amount):
        verdict = verdict_here(answer, monkeypatch)
        if verdict.outcome != "wrong" or verdict.mistake != answer.mistake:
            said = f"{answer.mistake} ({answer.words}) was found {verdict.outcome} {verdict.mistake or ''}"
            failed.append((answer, verdict, said))
        elif answer.mistake != "dtype" and looks_right(dict(verdict.details)):
            failed.append((answer, verdict, f"of {answer.words!r} what is expected and what is given look alike"))
        elif (lines := len(repr(verdict).splitlines())) > examination.LINES:
            failed.append((answer, verdict, f"{answer.words!r} is told in {lines} lines, more than a page shows"))
        named.append(answer.mistake)
    assert not failed, report(failed)
    record_property("wrong answers named", (exercise.name, named))


PLAIN = [e for e in EXERCISES if not e.triton and not inspect.isgeneratorfunction(solutions.solution(e.name))]


@pytest.mark.parametrize("exercise", PLAIN, ids=lambda e: e.name)
def test_arguments_have_the_names_of_the_text_whatever_the_answer_calls_them(exercise, monkeypatch):
    def answer(*arguments):  # noqa: ARG001
        return None

    monkeypatch.setattr(process, "call", call_here)
    for module in (examination, loops):
        monkeypatch.setattr(module, "diagnose", lambda *_: None)  # no known mistake returns None
    input = dict(exercise(answer, seed=SEED).details).get("input", "")
    named = re.findall(r"^(\w+) = ", input, re.MULTILINE)
    assert named == list(inspect.signature(solutions.solution(exercise.name)).parameters)


def test_there_are_many_wrong_answers_and_none_is_right():
    by_exercise, accepted = defaultdict(set), {(answer.exercise, answer.source) for answer in answers.right()}
    for answer in answers.wrong():
        by_exercise[answer.exercise].add(answer.source)
        assert answer.source != solutions.program(answer.exercise).source
        assert (answer.exercise, answer.source) not in accepted, f"{answer.mistake}: {answer.words}"
    few = {name: len(by_exercise[name]) for name in checks.EXERCISES if len(by_exercise[name]) < 5}
    assert not few, "each exercise has five wrong answers or more"
    assert {answer.exercise for answer in answers.right()} == set(checks.EXERCISES), "each has a right one too"
