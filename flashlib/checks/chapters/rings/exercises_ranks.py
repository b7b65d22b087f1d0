"""The exercises on programs: what a rank sends, receives and computes, forward and backward."""

from collections.abc import Callable

from flashlib.checks.engine import Known, Verdict, exercise, solutions
from flashlib.checks.harness import ranks
from flashlib.checks.harness.ranks import RankSizes

FORWARD = ranks.RankTask(backward=False, timed=True, blocks=2)


@exercise(
    title="A rank's program", minutes=55, difficulty="hard", program=solutions.program("ring_rank"),
    model=FORWARD.model,
)  # fmt: skip
def ring_rank(answer: Callable, known: Known) -> Verdict:
    problems = [
        RankSizes(2, 4, "contiguous", False), RankSizes(2, 8, "zigzag", True),
        RankSizes(3, 6, "contiguous", False, large=True), RankSizes(3, 9, "contiguous", True),
        RankSizes(4, 16, "zigzag", True), RankSizes(4, 13, "striped", True), RankSizes(7, 14, "contiguous", False),
    ]  # fmt: skip
    return ranks.examine(answer, problems, known, FORWARD)


BACKWARD = ranks.RankTask(backward=True, timed=False, blocks=2.5)  # K and V twice, dK and dV three times


@exercise(
    title="Gradients that travel", minutes=40, difficulty="hard", program=solutions.program("ring_gradients"),
    model=BACKWARD.model,
)  # fmt: skip
def ring_gradients(answer: Callable, known: Known) -> Verdict:
    problems = [
        RankSizes(2, 4, "contiguous", False), RankSizes(2, 8, "zigzag", True),
        RankSizes(3, 6, "contiguous", False),
        RankSizes(3, 9, "contiguous", True), RankSizes(4, 16, "zigzag", True), RankSizes(4, 13, "striped", True),
        RankSizes(7, 7, "contiguous", False),
    ]  # fmt: skip
    return ranks.examine(answer, problems, known, BACKWARD)
