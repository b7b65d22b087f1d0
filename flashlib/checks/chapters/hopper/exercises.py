"""The calculation of the chapter: registers of a consumer's thread."""

from collections.abc import Callable

from flashlib.checks.engine import Known, Verdict, exercise
from flashlib.checks.harness import sizes


@exercise(title="Registers of a consumer", minutes=15, difficulty="medium", optional=True)
def register_budget(answer: Callable, known: Known) -> Verdict:
    fixed = """
        2 24 128 128, 1 24 128 128, 1 40 64 16, 3 24 64 128, 2 24 128 64, 2 40 64 64, 4 24 128 128,
        4 56 64 32, 5 24 128 80, 5 40 256 48, 6 24 80 16, 6 56 16 96, 7 24 64 64, 7 32 256 128,
        3 40 112 176, 3 56 96 64, 4 32 48 48
    """

    def right(consumers, producer, d, B_c):
        launch = max(n for n in range(0, 512, 8) if 128 * (consumers + 1) * n <= 65536)
        free = (consumers + 1) * launch - producer
        given = max(n for n in range(0, 512, 8) if consumers * n <= free)
        return given, d // 2 + 3 * B_c // 4

    def draw(rng):
        consumers, producer = int(rng.integers(1, 8)), int(rng.choice([24, 32, 40, 56]))
        d, B_c = (16 * int(n) for n in rng.integers(1, 17, 2))
        return consumers, producer, d, B_c

    return sizes.examine_whole(answer, sizes.cases(right, fixed, draw), known, ("given", "needed"))
