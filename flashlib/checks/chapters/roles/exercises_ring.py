"""The calculation of Roles: the slot and the phases of a tile in a ring."""

from collections.abc import Callable

from flashlib.checks.engine import Known, Verdict, exercise
from flashlib.checks.harness import sizes


@exercise(title="Slot and phases of a tile", minutes=10, difficulty="easy")
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
