"""What limits six launches that were timed: right is what calls for a move that gains in the record."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps

from flashlib.checks.engine import Case, Finding, Known, Verdict, examine, exercise
from flashlib.checks.engine.value_text import show
from flashlib.language.phrases import and_list

LIMITS = "HBM", "programs", "loads", "registers", "shared memory"
ENOUGH = 1.03  # of the speed before: less may be chance
# {launch: {limit: TFLOP/s after its move}}; None: the launch as it is. A test compares with the record.
SPEEDS: dict[str, dict[str | None, float]] = {
    "A": {None: 222.3, "HBM": 339.6},
    "B": {None: 24.4, "programs": 408.1},
    "C": {None: 345.6, "loads": 433.4, "shared memory": 305.4},
    "D": {None: 253.2, "shared memory": 366.3},
    "E": {None: 288.6, "registers": 330.9},
    "F": {None: 351.1, "shared memory": 474.0},
}


def gain(launch: str, limit: str | None) -> float:
    """Return how many times as fast a launch is after the move; 0 for a move that was not timed."""
    speeds = SPEEDS[launch]
    return speeds.get(limit, 0.0) / speeds[None]


def largest(launch: str) -> str:
    """Return the limit whose move gains the most."""
    return max(filter(None, SPEEDS[launch]), key=lambda limit: gain(launch, limit))


@exercise(title="Name the limit", minutes=20, difficulty="medium")
def name_the_limit(answer: Callable, known: Known) -> Verdict:
    """Each launch after the one before it, so that a mistake in one of them is named."""
    named: dict[str, str] = {}

    @wraps(answer)
    def judged(launch):
        limit = answer(launch)
        if limit is None:  # as where a return is missing
            return None
        if not (isinstance(limit, str) and limit in LIMITS):
            raise Finding("unnamed", given=show(limit), launch=launch)
        named[launch] = limit
        return largest(launch) if gain(launch, limit) >= ENOUGH else limit

    verdict = examine(judged, [[Case(f"launch {letter}", (letter,), largest(letter))] for letter in SPEEDS], known)
    if not verdict.right:  # what is expected would be the answer
        return replace(verdict, details=_move(*list(named.items())[-1]) if named else ())
    gains = and_list(f"{letter} x {gain(letter, named[letter]):.2f}" for letter in SPEEDS)
    return replace(verdict, sentence=f"in the record the moves gain: {gains}")


def _move(launch, limit):
    """Return what the record says of a wrong answer, as details of a verdict."""
    after = f"x {gain(launch, limit):.2f}" if gain(launch, limit) else "this move was not timed"
    return ("launch", launch), ("given", show(limit)), ("in the record", after)
