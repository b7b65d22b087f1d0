"""Calculations: sizes come in, and a number comes out."""

import inspect
import sys
from ast import literal_eval
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np

from flashlib.checks.engine import Case, Finding, Known, Measured, Verdict, examine, random_cases
from flashlib.checks.engine.values import same

UNNAMED = "value", "nothing_returned"


def cases(
    right: Callable, fixed: str, draw: Callable[[np.random.Generator], tuple] | None = None, count: int = 3
) -> list[Case]:
    """Return the Case of each row of sizes, "1 1 2, 2 3 2", and of `count` more, each drawn by draw(rng).

    right: takes the sizes, returns what is expected; its parameters name them.
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


def whole(answer: Callable, right: Callable, bools: bool = False) -> Callable:
    """Return an answer that must give whole numbers: floats of the right values are found.

    right: takes the same arguments and returns what is expected, a tuple if it is several numbers or arrays; then
    an array of so many numbers will do too. bools: whether bools are found too; else True is 1, as in Python.
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
    """Return the Finding of floats or bools that are right but for their kind, or None."""
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
    """Return the Verdict on an answer that must give several whole numbers; see `whole`."""
    right = {case.arguments: case.expected for case in cases}
    run = whole(answer, lambda *arguments: right[arguments], bools)
    return examine(run, cases, known, outputs=outputs)


def in_closed_form(answer: Callable, steps: int = 2000) -> Callable:
    """Return an answer to sizes that are huge; raises Finding "not_closed" if it looks at what they count.

    steps: how many lines it may run, and those of what it calls.
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
        except (MemoryError, OverflowError, ValueError):  # so NumPy, of an array of such a size
            raise Finding("not_closed") from None
        finally:
            sys.settrace(before)

    return run


def examine_search(
    answer: Callable, right: Callable, cases: Sequence[Case], large: Sequence[Case], known: Known
) -> Verdict:
    """Return the Verdict on an answer that may search for a whole number, and may end too early.

    large: Cases of large results, in which no other mistake is looked for.
    """
    given = {}

    @wraps(answer)
    def kept(*sizes):
        given[sizes] = answer(*sizes)
        return given[sizes]

    verdict = examine(whole(kept, right), cases, known)
    if verdict.right:
        last = examine(whole(answer, right), large, replace(known, program=None))
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
