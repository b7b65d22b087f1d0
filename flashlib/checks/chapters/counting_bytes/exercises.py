"""The exercises of this chapter: compute a number of bytes or of rows from sizes."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from flashlib import cost
from flashlib.checks.engine import Known, ProgramText, Verdict, examine, exercise, written
from flashlib.checks.harness import sizes

# X is as large as Q, and as O; keys are the rows of K read, over all row blocks. Mistakes: shared/bytes.txt.
ROW_BLOCKS = """
    T_r = -(-N_q // B_r)
    keys = T_r * N_k
"""
BYTES = """
    X = N_q * d * itemsize
    Q = X
    KV = 2 * keys * d * itemsize
    O = X
    lse = 4 * N_q
    total = Q + KV + O + lse
"""


def program_of(*texts: str) -> ProgramText:
    """Return the program with these pieces of text, which may call `cost`."""
    return ProgramText("".join(texts).strip(), {"cost": cost})


def _dtype(itemsize):
    return f"float{8 * itemsize}"


def _itemsize(rng):
    return rng.choice([2, 4])


# ---- bytes moved, without a mask

SIZES = """
    1 1 1 1 2, 2 2 1 1 2, 2 3 1 2 4, 4 3 2 2 2, 5 3 2 2 4, 3 7 5 4 2, 11 7 3 4 4, 7 2 3 4 2,
    64 200 16 48 2, 20001 1 1 20000 2, 4096 4096 64 64 2, 1000 3000 128 80 4, 16384 16384 128 64 2
"""

FA2 = "def my_fa2_bytes(N_q, N_k, d, B_r, itemsize):", ROW_BLOCKS, BYTES, "    return total"


def fa2_moved(N_q: int, N_k: int, d: int, B_r: int, itemsize: int) -> int:
    """Return the bytes that FA2 moves without a mask."""
    return cost.fa2_traffic(N_q, N_k, d, B_r=B_r, B_c=1, dtype=_dtype(itemsize)).total


def any_sizes(rng: Any) -> tuple:
    """Return sizes N_q, N_k, d and B_r, and an item's size, at random."""
    return *rng.integers(1, 300, size=4), _itemsize(rng)


@exercise(title="What FlashAttention-2 moves", minutes=20, difficulty="easy", program=program_of(*FA2))
def fa2_bytes(answer: Callable, known: Known) -> Verdict:
    return examine(sizes.whole_numbers(answer, fa2_moved), sizes.cases(fa2_moved, SIZES, any_sizes), known)


# ---- bytes moved, under a causal mask

# ends: where each row block ends. seen: the number of keys that its last row sees, which is the same.
CAUSAL = """
def my_causal_bytes(N, d, B_r, B_c, itemsize):
    N_q, N_k = N, N
    T_r = -(-N_q // B_r)
    ends = [min((i + 1) * B_r, N_q) for i in range(T_r)]
    seen = ends
    tiles = [-(-n // B_c) for n in seen]
    keys = sum(min(n * B_c, N_k) for n in tiles)
"""


@exercise(
    title="Bytes under a causal mask",
    minutes=30,
    difficulty="hard",
    optional=True,
    program=program_of(CAUSAL, BYTES, "    return total"),
)
def causal_bytes(answer: Callable, known: Known) -> Verdict:
    fixed = """
        4 1 2 2 2, 2 1 1 1 2, 1 1 1 1 2, 4 3 1 2 2, 6 2 2 3 4, 7 2 3 2 2, 7 5 2 5 4, 5 3 8 2 2,
        5 3 2 8 2, 2001 1 2000 2000 2, 96 16 32 16 2, 100 16 16 48 4, 1000 64 128 48 2
    """

    def right(N, d, B_r, B_c, itemsize):
        return cost.fa2_traffic(N, N, d, B_r=B_r, B_c=B_c, dtype=_dtype(itemsize), causal=True).total

    def draw(rng):
        return *rng.integers(1, (300, 300, 90, 90)), _itemsize(rng)

    return examine(sizes.whole_numbers(answer, right), sizes.cases(right, fixed, draw), known)


# ---- where tiling pays

SEARCH = """


def my_break_even(N, d, itemsize):
    limit = cost.standard_traffic(N, N, d, dtype=f"float{8 * itemsize}").total
    tried = range(1, N + 1)
    pays = (B_r for B_r in tried if moved(N, N, d, B_r, itemsize) < limit)
    found = next(pays, None)
    return found
"""


@exercise(
    title="Where tiling pays",
    minutes=20,
    difficulty="medium",
    program=program_of(FA2[0].replace("my_fa2_bytes", "moved"), *FA2[1:], SEARCH),
)
def break_even(answer: Callable, known: Known) -> Verdict:
    fixed = """
        3 3 2, 3 3 4, 2 3 2, 1 1 2, 5 3 4, 4 8 2, 5 9 4, 8 2 4, 9 7 2, 20 24 4, 40 3 2, 30 100 2,
        100 48 4, 150 200 2, 250 75 2, 260 300 4
    """

    def right(N, d, itemsize):
        row_blocks = (2 * N + d - 1) // d  # the most that pay: fewer than 1 + 2 N / d
        return -(-N // row_blocks)

    def draw(rng):
        return *rng.integers(1, 300, size=2), _itemsize(rng)

    @wraps(answer)
    def found(*sizes):
        try:
            return answer(*sizes)
        except StopIteration:  # of next, if no size is found
            return None

    large = sizes.cases(right, "800 1000 2, 3000 2000 4, 9000 20000 2")
    return sizes.examine_search(found, right, sizes.cases(right, fixed, draw), large, known)


# ---- the largest row block that fits


@exercise(
    title="The largest row block that fits", minutes=20, difficulty="medium", program=partial(written, cost=cost)
)
def largest_tile(answer: Callable, known: Known) -> Verdict:  # the first fit to the byte, or are one byte short
    fixed = """
        22 1 1 2, 21 1 1 2, 126 2 3 2, 191 3 2 4, 0 4 8 2, 1000 5 4 2, 1024 16 16 4, 16384 64 64 2,
        49152 64 64 2, 101376 32 128 4, 232448 16 16 2, 204800 2 1 2
    """

    def right(capacity, B_c, d, itemsize):
        return cost.largest_B_r(capacity, B_c=B_c, d=d, dtype=_dtype(itemsize))

    def draw(rng):
        B_r, B_c, d = rng.integers(1, 200, size=3)
        itemsize = _itemsize(rng)
        return cost.sram_bytes(B_r, B_c, d, _dtype(itemsize)) - rng.choice([0, 1, d]), B_c, d, itemsize

    large = sizes.cases(right, f"{100 * 1024} 1 1 2, {800 * 1024} 1 1 4")
    return sizes.examine_search(answer, right, sizes.cases(right, fixed, draw), large, known)
