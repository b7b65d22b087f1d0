"""The loop with K and V outside: its state is in HBM between the tiles of a row block."""

from collections.abc import Callable

from flashlib.checks.chapters.tiling.exercises import LOOP
from flashlib.checks.engine import Known, Verdict, exercise
from flashlib.checks.harness import loops


@exercise(title="The loop with K and V outside", minutes=35, difficulty="hard", program=LOOP)
def fa1(answer: Callable, known: Known) -> Verdict:
    return loops.examine(answer, "fa1", known)
