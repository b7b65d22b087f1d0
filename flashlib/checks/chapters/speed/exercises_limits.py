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
    "A": {None: 228.6, "HBM": 339.8},
    "B": {None: 24.3, "programs": 408.5},
    "C": {None: 386.3, "loads": 423.6, "registers": 265.9, "shared memory": 361.5},
    "D": {None: 251.7, "loads": 249.2, "registers": 187.8, "shared memory": 366.3},
    "E": {None: 292.6, "registers": 466.6, "shared memory": 274.9},
    "F": {None: 349.2, "loads": 443.0, "registers": 244.5, "shared memory": 405.1},
}


def gain(launch: str, limit: str | None) -> float:
    """Return how many times as fast a launch is after the move; 0 for a move that was not timed."""
    speeds = SPEEDS[launch]
    return speeds.get(limit, 0.0) / speeds[None]


def largest(launch: str) -> str:
    """Return the limit whose move gains the most."""
    return max(filter(None, SPEEDS[launch]), key=lambda limit: gain(launch, limit))


@exercise(title="Name the limit", minutes=25, difficulty="medium")
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
        wrong = [move for move in named.items() if gain(*move) < ENOUGH]
        return replace(verdict, details=_move(*wrong[-1]) if wrong else ())
    gains = and_list(f"{letter} x {gain(letter, named[letter]):.2f}" for letter in SPEEDS)
    better = and_list(
        f"{letter} x {gain(letter, largest(letter)):.2f}" for letter in SPEEDS if named[letter] != largest(letter)
    )
    sentence = f"in the record the moves gain: {gains}"
    return replace(verdict, sentence=f"{sentence}; another move gains more: {better}" if better else sentence)


def _move(launch, limit):
    """Return what the record says of a wrong answer, as details of a verdict."""
    after = f"x {gain(launch, limit):.2f}" if gain(launch, limit) else "this move does not apply, or does not fit"
    return ("launch", launch), ("given", show(limit)), ("in the record", after)
