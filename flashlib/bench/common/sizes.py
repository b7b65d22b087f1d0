"""The sizes of the main tables: 16384 tokens, and heads that are 2048 wide together."""

import itertools

from flashlib.bench.common.problem import Size

TOKENS, WIDTH = 16384, 2048
LENGTHS = (1024, 4096, 16384)
QUICK = 4096


def usual_size(d: int, causal: bool, N: int) -> Size:
    """Return the size of the tables with this d and N: as many heads and sequences as make up WIDTH and TOKENS."""
    return Size(TOKENS // N, WIDTH // d, WIDTH // d, N, d, causal)


SIZES = [usual_size(*size) for size in itertools.product((64, 128), (False, True), LENGTHS)]
MORE = [
    Size(TOKENS // QUICK, H_q, H_k, QUICK, d, causal)
    for (d, H_q, H_k), causal in itertools.product(
        ((80, 26, 26), (96, 21, 21), (256, 8, 8), (128, 32, 8)), (False, True)
    )
]
