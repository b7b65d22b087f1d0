"""Gaps in checks: for each exercise and each kind of gap, wrong answers that test for it, or why none can exist.

`tests/checks/answers/<slug>/gaps.txt` has a section for each exercise and a line for each kind below. A line names
mistakes that a wrong answer in the tests makes (`rows: not_rescaled, one_row_spoils`), or says why the exercise
cannot have such a gap (`rows: never: the answer takes one row`). `test_answers.py` tests the answers; those of the
kind `seed` are refused here without the drawn cases.
"""

import contextlib
import functools
import re
from pathlib import Path

import pytest

pytest.importorskip("cloudpickle")

from flashlib.chapters import chapter  # noqa: E402
from flashlib.checks.engine import compiling, examination, random_cases  # noqa: E402
from flashlib.checks.engine.exercises import EXERCISES  # noqa: E402
from flashlib.checks.harness import loops  # noqa: E402
from flashlib.learner import process  # noqa: E402
from tests.checks import answers  # noqa: E402
from tests.checks.each_case import each_case  # noqa: E402
from tests.checks.test_answers import call_here  # noqa: E402

KINDS = {
    "rows": "rows, heads or sequences that differ from each other within one case",
    "zero": "0 as the value of an optional number",
    "bound": "equality at a bound",
    "sizes": "sizes beyond those that are drawn: more ranks, a wider head, fewer rows than ranks",
    "nice": "numbers so nice that a lower precision is exact",
    "nan": "nan or inf where the text speaks of them",
    "small": "small numbers taken for zero, or a State for empty",
    "seed": "a mistake that only some seeds of the drawn cases show",
    "text": "a rule of the text: order, kinds of numbers, what may be stored or called",
}
SECTION = re.compile(r"(?m)^\[(\w+)\]\n")
NEVER = re.compile(r"never: .{10,}")


@functools.cache
def tables():
    """Return {exercise: {kind: its line}}."""
    found = {}
    for path in sorted(Path(answers.FOLDER).glob("*/gaps*.txt")):
        _, *sections = SECTION.split(path.read_text(encoding="utf-8"))
        for name, text in zip(sections[::2], sections[1::2], strict=True):
            assert name not in found, f"{name} has two sections"
            lines = [line.partition(": ") for line in text.splitlines() if line]
            found[name] = {kind: what for kind, _, what in lines}
    return found


def test_the_tables_are_those_of_the_exercises():
    assert sorted(tables()) == sorted(EXERCISES)


@each_case(EXERCISES, str)
def test_each_kind_of_gap_is_filled_or_cannot_occur(name):
    table = tables().get(name, {})
    assert list(table) == list(KINDS), f"gaps.txt of {name} needs these lines, in this order"
    known = {answer.mistake for answer in answers.wrong() if answer.exercise == name}
    for kind, what in table.items():
        if not NEVER.fullmatch(what):
            missing = set(what.split(", ")) - known
            assert not missing, f"{name}, {kind}: no wrong answer of the tests makes the mistake {missing}"


class Refused(Exception):
    """Raised when an answer is wrong in a case."""


@pytest.fixture
def no_draws(monkeypatch):
    """Let checks run only fixed cases, in this process, and end at the first wrong one.

    Going on and naming the mistake would take most of their time.
    """
    find_problem = examination.find_problem

    def refuse(*arguments):
        if find_problem(*arguments):
            raise Refused

    monkeypatch.setattr(examination, "find_problem", refuse)
    monkeypatch.setattr(random_cases, "cases", lambda make, count=3: [])
    monkeypatch.setattr(compiling, "noting", contextlib.nullcontext)
    monkeypatch.setattr(process, "call", call_here)
    for module in (examination, loops):
        monkeypatch.setattr(module, "diagnose", lambda *_: None)


@pytest.mark.usefixtures("no_draws", "searches", "rings")
@pytest.mark.parametrize("name", EXERCISES)
def test_fixed_cases_refuse_what_only_some_seeds_would_show(name):
    exercise, line = EXERCISES[name], tables().get(name, {}).get("seed", "")
    of_triton = chapter(exercise.chapter).obstacles(more=True) if exercise.triton else []
    if obstacles := exercise.obstacles() or of_triton:
        pytest.skip(str(obstacles))
    if exercise.triton:
        import flashlib.kernels  # noqa: F401  before triton
    ids = set() if NEVER.fullmatch(line) else set(line.split(", "))
    for answer in answers.wrong():
        if answer.exercise == name and answer.mistake in ids:
            with contextlib.suppress(Refused):
                verdict = exercise(answer.program.function, seed=1)
                said = f"{answer.mistake} ({answer.words}) is refused by drawn cases alone"
                assert verdict.outcome == "wrong", said
