"""The order in which row blocks under a causal mask are worked on."""

from collections.abc import Callable

from flashlib.checks.engine import Known, Verdict, exercise
from flashlib.checks.harness import sizes

PROBLEMS = (1, 1, 3), (2, 1, 2), (1, 2, 3), (3, 2, 1), (2, 2, 2), (3, 2, 2), (2, 3, 3), (4, 3, 2), (2, 5, 2)


@exercise(title="The longest rows first", minutes=15, difficulty="medium", optional=True)
def block_order(answer: Callable, known: Known) -> Verdict:
    """All tiles of PROBLEMS: row blocks of a head, heads of a section, sections."""
    fixed = [
        f"{tile} {T_r} {section}" for T_r, section, n in PROBLEMS for tile in range(T_r * section * n)
    ]  # fmt: skip

    def right(tile, T_r, section):
        starts = range(0, tile + 1, section)  # at least as many sections as can be needed
        blocks = ((h + n, i) for h in starts for i in reversed(range(T_r)) for n in range(section))
        return next(block for at, block in enumerate(blocks) if at == tile)

    def draw(rng):
        return map(int, rng.integers((0, 1, 1), (400, 9, 7)))

    return sizes.examine_whole(answer, sizes.cases(right, ",".join(fixed), draw), known, ("head", "i"))
