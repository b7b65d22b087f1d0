"""Time rung 8 of the ladder beside a kernel whose warps get roles from Triton's compiler, and the L2 cache by TMA.

    python -m flashlib.bench.warp_specialised --out notebooks/data/h200_warp_specialised.json

Sizes, verification and rows as in `flashlib.bench.ladder`, here of the part "roles": rung 8 with the options that
were ever the fastest, `kernels.ablations.warp_specialised` with roles and without them, and the tuned kernel. The
rows of the part "ceiling" are the L2 cache, read by warps and copied from by TMA.
"""

import itertools
from collections.abc import Iterable

from flashlib.bench import ladder
from flashlib.bench.common import harness, records

TILES = [{"B_r": 128, "B_c": B_c, "num_stages": n} for B_c, n in ((64, 2), (64, 3), (128, 2), (128, 3))]
SMALL = [ladder.SMALL | {"B_c": B_c, "num_stages": n} for B_c, n in ((64, 3), (128, 2))]


def alone(problem: ladder.LadderProblem, tried: list[dict]) -> list[dict]:
    """Return options without roles: eight warps for 128 rows, four for 64."""
    return [tile | {"num_warps": 8} for tile in TILES] + SMALL


def with_roles(problem: ladder.LadderProblem, tried: list[dict]) -> list[dict]:
    """Return options with roles: the compiler adds eight warps to these four."""
    return [tile | {"num_warps": 4} for tile in TILES]


SPECIALISED = ladder.kernel("ablations.warp_specialised")
PLAIN = ladder.kernel("ablations.warp_specialised", warp_specialize=False)
RUNGS = [
    ladder.Rung("r8_descriptors", "tensor descriptors, no roles", ladder.R8, alone, ladder.tiled),
    ladder.Rung("warp_specialised", "roles from the compiler", SPECIALISED, with_roles, ladder.tiled),
    ladder.Rung("without_warp_specialize", "the same kernel without roles", PLAIN, alone, ladder.tiled),
    ladder.RUNGS[-1],
]


def measure(ds: Iterable[int] = ladder.DS, notes: records.Notes | None = None) -> list[dict]:
    """Return all rows: the L2 cache, and for each size the four kernels."""
    rows = [ladder.memory("l2_read"), ladder.memory("l2_copy")]
    for row in rows:
        ladder.say_limit(row)
    harness.say("TFLOP/s with B_r B_c num_stages num_warps; * the best of a kernel")
    for d, causal in itertools.product(ds, (False, True)):
        with harness.stopwatch(f"d = {d}, causal = {causal}"):
            problem = ladder.LadderProblem(ladder.TOKENS // ladder.N, ladder.WIDTH // d, ladder.N, d, causal)
            rows += ladder.climb(problem, RUNGS, "roles", notes)
    return rows


if __name__ == "__main__":
    ladder.main("warp_specialised", __doc__, measure)
