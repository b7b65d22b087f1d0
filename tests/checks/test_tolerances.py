"""Tolerances separate rounding from slips: right answers in any style are well within, wrong ones well outside."""

import contextlib
import io
import warnings

import numpy as np
import pytest

pytest.importorskip("cloudpickle")

from flashlib import checks  # noqa: E402
from flashlib.checks.engine import cases, examination, solutions  # noqa: E402
from flashlib.learner import process  # noqa: E402
from tests.checks import answers  # noqa: E402
from tests.checks.test_answers import right as right_answers  # noqa: E402

ROOM = 0.5  # the share of a tolerance that right answers may use
ROUNDED = (
    "astype(np.float16)",
    "astype(np.float32)",
    "float16",
    "1e-8",
    "1e-9",
    "1e-10",
    "1e-12",
)  # of small slips
NUMPY = [e for e in checks.EXERCISES.values() if not (e.triton or e.obstacles())]


@pytest.fixture
def used(monkeypatch):
    """Return a function that returns the largest share of the tolerance that an answer's results use."""
    shares = []
    compare = cases.same

    def same(given, expected, tolerance, size=0.0):
        y = np.asarray(expected, np.float64)
        x = np.asarray(given, np.float64)
        finite = np.isfinite(y)
        largest = max(np.abs(y[finite]).max(initial=0), size, 1e-300)
        if x.shape == y.shape and 0 < tolerance < 1e-2:
            with np.errstate(all="ignore"):
                equal = (x == y) | (np.isnan(x) & np.isnan(y))
                apart = np.where(finite, np.abs(x - y) / (tolerance * largest), np.where(equal, 0, np.inf))
            shares.append(np.nan_to_num(apart, nan=np.inf, posinf=np.inf).max(initial=0))
        return compare(given, expected, tolerance, size)

    def call(function, *arguments, limit):  # noqa: ARG001
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
            return function(*arguments), ""

    def share(exercise, program):
        shares.clear()
        exercise(program.function, seed=4711)
        return max(shares, default=0.0)

    monkeypatch.setattr(cases, "same", same)
    monkeypatch.setattr(examination, "diagnose", lambda *_: None)  # the name of the mistake does not matter here
    monkeypatch.setattr(process, "call", call)
    return share


@pytest.mark.usefixtures("rings")
@pytest.mark.parametrize("amount", ["few", "all"])
@pytest.mark.parametrize("exercise", NUMPY, ids=lambda e: e.name)
def test_right_answers_lie_inside_and_small_slips_outside(exercise, amount, used):
    programs = [solutions.program(exercise.name)]
    programs += [answer.program for answer in right_answers(exercise.name, amount)]
    right = max(used(exercise, program) for program in programs)
    slips = [a for a in answers.wrong() if a.exercise == exercise.name and any(x in a.source for x in ROUNDED)]
    slips = slips if amount == "all" else slips[-2:]
    outside = {a.words: found for a in slips if (found := used(exercise, a.program))}
    smallest = min(outside, key=outside.get) if outside else ""
    said = f"{exercise.name}: right answers use {right:.2g} of the tolerance"
    said += f", the smallest slip {outside[smallest]:.3g} times it ({smallest[:60]})" if outside else ""
    print(said)
    assert right <= ROOM, said
    assert not outside or outside[smallest] > 1 / ROOM, said
