"""Exercises that calculate a number from sizes."""

import inspect
import sys
from ast import literal_eval
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np

from flashlib.checks.engine import Case, Finding, Known, Measured, Verdict, examine, random_cases
from flashlib.checks.engine.equality import same

UNNAMED = "value", "nothing_returned"


def cases(
    right: Callable, fixed: str, draw: Callable[[np.random.Generator], tuple] | None = None, count: int = 3
) -> list[Case]:
    """Return a Case for each row of sizes, "1 1 2, 2 3 2", and `count` more, each drawn by draw(rng).

    right: takes the sizes, and returns the expected result; its parameters name them.
    """
    names = inspect.signature(right).parameters

    def case(sizes):
        sizes = tuple(n.item() if isinstance(n, np.generic) else n for n in sizes)
        words = ", ".join(f"{name} = {n}" for name, n in zip(names, sizes, strict=True))
        return Case(words, sizes, right(*sizes))

    more = random_cases.cases(lambda rng: case(draw(rng)), count) if draw else []
    return [case(sizes) for sizes in rows(fixed)] + more


def rows(text: str) -> list[tuple]:
    """Return the rows of sizes in a text, "1 1 2, 2 3 2"."""
    return [tuple(map(literal_eval, row.split())) for row in text.split(",")]


def whole_numbers(answer: Callable, right: Callable, bools: bool = False) -> Callable:
    """Return an answer that must return whole numbers; floats with the right values are reported.

    right: takes the same arguments and returns the expected result, a tuple for several numbers or arrays; for
    several numbers an array is accepted too. bools: whether to report bools too; otherwise True is 1, as in
    Python.
    """

    @wraps(answer)
    def run(*arguments):
        expected = right(*arguments)
        result = answer(*arguments)
        if isinstance(expected, tuple) and isinstance(result, np.ndarray) and result.ndim == 1:
            result = tuple(result)
        return Measured(result, _inexact(result, expected, bools))

    return run


def _inexact(result, expected, bools):
    """Return a Finding if floats or bools are right except for their type, else None."""
    if isinstance(expected, tuple) != isinstance(result, tuple | list):
        return None
    given, expected = (result, expected) if isinstance(expected, tuple) else ((result,), (expected,))
    if len(given) != len(expected) or not all(same(x, y, 1e-9) for x, y in zip(given, expected, strict=True)):
        return None
    kinds = {X.dtype.kind for X in map(np.asarray, given) if X.size}
    return Finding("float") if "f" in kinds else Finding("bool") if bools and "b" in kinds else None


def examine_whole(
    answer: Callable, cases: Sequence[Case], known: Known, outputs: Sequence[str], bools: bool = False
) -> Verdict:
    """Return the Verdict on an answer that must return several whole numbers; see `whole_numbers`."""
    right = {case.arguments: case.expected for case in cases}
    run = whole_numbers(answer, lambda *arguments: right[arguments], bools)
    return examine(run, cases, known, outputs=outputs)


def in_closed_form(answer: Callable, steps: int = 2000) -> Callable:
    """Return an answer to be called with huge sizes; it raises Finding "not_closed" if it counts one by one.

    steps: how many lines may run, including those of functions that it calls.
    """

    @wraps(answer)
    def run(*sizes):
        taken = 0

        def step(frame, event, argument):
            nonlocal taken
            taken += 1
            if taken > steps:
                raise Finding("not_closed")
            return step

        before = sys.gettrace()
        sys.settrace(step)
        try:
            return answer(*sizes)
        except (MemoryError, OverflowError, ValueError):  # NumPy's errors for an array of such a size
            raise Finding("not_closed") from None
        finally:
            sys.settrace(before)

    return run


def examine_search(
    answer: Callable, right: Callable, cases: Sequence[Case], large: Sequence[Case], known: Known
) -> Verdict:
    """Return the Verdict on an answer that may search for a whole number, and may stop too early.

    large: Cases with large results, in which no other mistake is tried.
    """
    given = {}

    @wraps(answer)
    def kept(*sizes):
        given[sizes] = answer(*sizes)
        return given[sizes]

    verdict = examine(whole_numbers(kept, right), cases, known)
    if verdict.right:
        last = examine(whole_numbers(answer, right), large, replace(known, program=None))
        if last.mistake in UNNAMED:
            return known.wrong("ends_early", *last.details)
        return last if last.mistake else verdict
    if verdict.mistake not in UNNAMED:
        return verdict
    failed = [case for case in cases if not same(given.get(case.arguments), case.expected, 1e-9)]
    found: Any = max((case.expected for case in cases if case not in failed), default=0)
    least = min(case.expected for case in failed)
    results = (given.get(case.arguments) for case in failed)
    ends: Any = {x if isinstance(x, int | float | np.number) else None for x in results}
    if least > found > 0 and (ends == {None} or len(ends) == 1 and found <= max(ends) < least):
        return known.wrong("ends_early", *verdict.details)
    return verdict
