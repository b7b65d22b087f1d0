"""The calculations of this chapter: phases of a ring, registers of a thread, the order of row blocks."""

from collections.abc import Callable

from flashlib.checks.engine import Known, Verdict, exercise
from flashlib.checks.harness import sizes

# ---- phases of a ring


@exercise(title="Slot and phases of a tile", minutes=5, difficulty="easy")
def ring_phase(answer: Callable, known: Known) -> Verdict:
    fixed = """
        0 2, 1 2, 2 2, 3 2, 4 2, 5 2, 6 2, 0 1, 1 1, 2 1, 3 1, 0 3, 1 3, 2 3, 3 3, 4 3, 5 3, 6 3, 7 3, 8 3, 9 3,
        3 4, 4 4, 5 4, 8 4, 11 4, 12 4, 4 5, 9 5, 10 5, 14 5, 15 5, 1001 7
    """

    def right(g, stages):
        tiles = [(n, slot) for n in range(g // stages + 1) for slot in range(stages)]
        n, slot = tiles[g]
        return slot, int(n % 2 == 1), int(n % 2 == 0)

    def draw(rng):
        return map(int, rng.integers((0, 1), (300, 9)))

    cases = sizes.cases(right, fixed, draw)
    return sizes.examine_whole(answer, cases, known, ("slot", "full", "empty"), bools=True)


# ---- registers of a consumer


@exercise(title="Registers of a consumer (optional)", minutes=10, difficulty="medium")
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


# ---- the order of row blocks

PROBLEMS = (1, 1, 3), (2, 1, 2), (1, 2, 3), (3, 2, 1), (2, 2, 2), (3, 2, 2), (2, 3, 3), (4, 3, 2), (2, 5, 2)


@exercise(title="The longest rows first", minutes=10, difficulty="medium")
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
