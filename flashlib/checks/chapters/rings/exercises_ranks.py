"""The exercises of chapter 16 on programs: what a rank sends, receives and computes, forward and backward."""

from collections.abc import Callable

from flashlib.checks.engine import Known, Verdict, exercise, solutions
from flashlib.checks.harness import ranks
from flashlib.checks.harness.ranks import Problem

FORWARD = ranks.Task(backward=False, timed=True, blocks=2)


@exercise(
    title="A rank's program", minutes=25, difficulty="hard", program=solutions.program("ring_rank"),
    model=FORWARD.model,
)  # fmt: skip
def ring_rank(answer: Callable, known: Known) -> Verdict:
    problems = [
        Problem(2, 4, "contiguous", False), Problem(2, 8, "zigzag", True),
        Problem(3, 6, "contiguous", False, large=True), Problem(3, 9, "contiguous", True),
        Problem(4, 16, "zigzag", True), Problem(4, 13, "striped", True), Problem(7, 14, "contiguous", False),
    ]  # fmt: skip
    return ranks.examine(answer, problems, known, FORWARD)


BACKWARD = ranks.Task(backward=True, timed=False, blocks=2.5)  # K and V twice, dK and dV three times


@exercise(
    title="Gradients that travel", minutes=25, difficulty="hard", program=solutions.program("ring_gradients"),
    model=BACKWARD.model,
)  # fmt: skip
def ring_gradients(answer: Callable, known: Known) -> Verdict:
    problems = [
        Problem(2, 4, "contiguous", False), Problem(2, 8, "zigzag", True), Problem(3, 6, "contiguous", False),
        Problem(3, 9, "contiguous", True), Problem(4, 16, "zigzag", True), Problem(4, 13, "striped", True),
        Problem(7, 7, "contiguous", False),
    ]  # fmt: skip
    return ranks.examine(answer, problems, known, BACKWARD)
