"""Calculations: sizes come in, and a number comes out."""

import inspect
from ast import literal_eval
from dataclasses import replace
from functools import wraps

import numpy as np

from flashlib.checks import drawn
from flashlib.checks.examine import Case, Finding, Measured, examine
from flashlib.checks.values import same
from flashlib.checks.verdict import Verdict

UNNAMED = "value", "nothing_returned"


def cases(right, fixed, draw=None, count=3) -> list[Case]:
    """Return the Case of each row of sizes, "1 1 2, 2 3 2", and of `count` more, each drawn by draw(rng).

    right: takes the sizes, returns what is expected; its parameters name them.
    """
    rows = [tuple(map(literal_eval, row.split())) for row in fixed.split(",")]
    names = inspect.signature(right).parameters

    def case(sizes):
        sizes = tuple(n.item() if isinstance(n, np.generic) else n for n in sizes)
        words = ", ".join(f"{name} = {n}" for name, n in zip(names, sizes, strict=True))
        return Case(words, sizes, right(*sizes))

    more = drawn.cases(lambda rng: case(draw(rng)), count) if draw else []
    return [case(sizes) for sizes in rows] + more


def whole(answer, right):
    """Return an answer that must give whole numbers: a float of the right value is found."""

    @wraps(answer)
    def run(*sizes):
        result = answer(*sizes)
        inexact = isinstance(result, float | np.floating | np.ndarray) and np.asarray(result).dtype.kind == "f"
        return Measured(result, Finding("float") if inexact and same(result, right(*sizes), 1e-9) else None)

    return run


def examine_whole(answer, cases, known, outputs, bools=False) -> Verdict:
    """Return the Verdict on an answer that must give several whole numbers: floats of the right values are found.

    bools: whether bools are found too; else True is 1, as in Python.
    """
    right = {case.arguments: case.expected for case in cases}

    @wraps(answer)
    def run(*arguments):
        result = answer(*arguments)
        if not isinstance(result, tuple | list) or not same(tuple(result), right[arguments], 1e-9):
            return result
        kinds = {np.asarray(x).dtype.kind for x in result}
        found = Finding("float") if "f" in kinds else Finding("bool") if bools and "b" in kinds else None
        return Measured(result, found)

    return examine(run, cases, known, outputs=outputs)


def examine_search(answer, right, cases, large, known) -> Verdict:
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
    found = max((case.expected for case in cases if case not in failed), default=0)
    least = min(case.expected for case in failed)
    results = (given.get(case.arguments) for case in failed)
    ends = {x if isinstance(x, int | float | np.number) else None for x in results}
    if least > found > 0 and (ends == {None} or len(ends) == 1 and found <= max(ends) < least):
        return known.wrong("ends_early", *verdict.details)
    return verdict
