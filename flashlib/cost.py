"""Closed forms for one head: operations, bytes between HBM and SRAM, bytes of SRAM, the shortest possible time.

Sizes are counts of rows and columns; dtype is a name ("float16", "bfloat16", "float32", "float64"), or a
dtype of NumPy or torch. As in the code whose work is counted, `m`, `l` and `lse` are fp32, or fp64 for float64.
Every function raises TypeError or ValueError for a size that is negative or not a whole number, and for another
dtype. mask: one of flashlib.masks; combined with causal, the scores that both see. Changes of scores by the mask
are not counted. V has K's shape.
"""

from typing import NamedTuple

import numpy as np

from flashlib import masks
from flashlib.gpus import GPU
from flashlib.inputs import check_block_sizes, check_causal, check_counts
from flashlib.types import DType, Traffic

ITEMSIZE = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}


def flops(N_q: int, N_k: int, d: int, *, causal: bool = False) -> int:
    """Return the FLOPs of the two matrix products, 4 N_q N_k d; half of that if causal.

    Source: the convention of the FlashAttention-2 paper, section 4.1, which counts a causal mask as exactly
    half and leaves out softmax and rescaling.
    """
    N_q, N_k, d = _sizes(N_q, N_k, d, causal)
    return 4 * N_q * N_k * d // (2 if causal else 1)


def backward_flops(N_q: int, N_k: int, d: int, *, causal: bool = False) -> int:
    """Return the FLOPs of the backward pass by convention: five matrix products, 2.5 times the forward's two.

    Source: FlashAttention-2, section 4.1. Additional work, such as recomputing P, is not counted.
    """
    return flops(N_q, N_k, d, causal=causal) * 5 // 2


class Work(NamedTuple):
    """Operations on numbers, counted one by one as the code performs them.

    matmul: multiplications and additions of the two matrix products. exp: exponentials and logarithms.
    other: everything else, such as scaling, maxima, sums, rescaling and divisions. A maximum or a sum over n
    numbers counts n. The guards against -inf - (-inf) and division by 0 are not counted.
    """

    matmul: int
    exp: int
    other: int

    @property
    def total(self) -> int:
        return sum(self)


def standard_work(N_q: int, N_k: int, d: int) -> Work:
    """Return the operations of `naive.attention`, the same if causal, as all of S is computed.

    Each score is scaled, compared, shifted, exponentiated, summed and divided. lse is computed once per row.
    """
    N_q, N_k, d = _sizes(N_q, N_k, d)
    scores = N_q * N_k
    return Work(matmul=4 * scores * d, exp=scores + N_q, other=5 * scores + N_q)


def fa1_work(
    N_q: int, N_k: int, d: int, *, B_r: int, B_c: int, causal: bool = False, mask: masks.Mask | None = None
) -> Work:
    """Return the operations of `tiled.attention(order="fa1")`.

    Like `fa2_work`, but each tile also scales its Q_i, multiplies O by the old l and divides it by the new one.
    Source: FlashAttention (2022), Algorithm 1, lines 9-13.
    """
    rows, tiles, keys = _computed(N_q, N_k, B_r, B_c, causal, mask)
    scores, visits = int(rows @ keys), int(rows @ tiles)  # visits: rows, a row once for each of its tiles
    N_q, N_k, d = _sizes(N_q, N_k, d)
    return Work(
        matmul=4 * scores * d,
        exp=scores + visits + N_q,
        other=3 * scores + visits * (5 * d + 4) + N_q,
    )


def fa2_work(
    N_q: int, N_k: int, d: int, *, B_r: int, B_c: int, causal: bool = False, mask: masks.Mask | None = None
) -> Work:
    """Return the operations of `tiled.attention(order="fa2")`: those of the computed tiles, including rescaling.

    Each score is compared, shifted, exponentiated and summed. Each row of a tile gets a new m and an alpha, and
    rescales l and the d numbers of O_acc before adding to them. Each row of Q is scaled, divided and gets an lse.
    Source: FlashAttention-2, Algorithm 1, lines 8-13, and section 3.1.1 on operations outside matrix products.
    """
    rows, tiles, keys = _computed(N_q, N_k, B_r, B_c, causal, mask)
    scores, visits = int(rows @ keys), int(rows @ tiles)  # visits: rows, a row once for each of its tiles
    N_q, N_k, d = _sizes(N_q, N_k, d)
    return Work(
        matmul=4 * scores * d,
        exp=scores + visits + N_q,
        other=3 * scores + visits * (2 * d + 4) + N_q * (2 * d + 1),
    )


def standard_traffic(N_q: int, N_k: int, d: int, *, dtype: DType) -> Traffic:
    """Return the bytes that `naive.attention` moves: Theta(N d + N^2), the same if causal, as all of S is stored.

    Six trips: read Q, K, write S; read S, write P (and lse); read P, V, write O.
    Source: FlashAttention (2022), Algorithm 0 and Theorem 2.
    """
    N_q, N_k, d = _sizes(N_q, N_k, d)
    size, acc = itemsizes(dtype)
    S = N_q * N_k * size
    return Traffic(
        read=(N_q + N_k) * d * size + S + S + N_k * d * size,
        written=S + S + N_q * acc + N_q * d * size,
    )


def fa1_traffic(
    N_q: int,
    N_k: int,
    d: int,
    *,
    B_r: int,
    B_c: int,
    dtype: DType,
    causal: bool = False,
    mask: masks.Mask | None = None,
) -> Traffic:
    """Return the bytes that `tiled.attention(order="fa1")` moves: about 3 N_q d T_c items without a mask.

    K and V are read once. Each computed tile reads Q_i, O_i, m_i, l_i and writes O_i, m_i, l_i. O, m and l are
    initialised first; at the end lse is computed from m and l. Source: FlashAttention (2022), Algorithm 1 and
    Theorem 2.
    """
    rows, tiles, keys = _computed(N_q, N_k, B_r, B_c, causal, mask)
    N_q, N_k, d = _sizes(N_q, N_k, d)
    size, acc = itemsizes(dtype)
    visits = int(rows @ tiles)  # rows of Q loaded, over all tiles
    return Traffic(
        read=2 * N_k * d * size + visits * (2 * d * size + 2 * acc) + 2 * N_q * acc,
        written=N_q * (d * size + 2 * acc) + visits * (d * size + 2 * acc) + N_q * acc,
    )


def fa2_traffic(
    N_q: int,
    N_k: int,
    d: int,
    *,
    B_r: int,
    B_c: int,
    dtype: DType,
    causal: bool = False,
    mask: masks.Mask | None = None,
) -> Traffic:
    """Return the bytes that `tiled.attention(order="fa2")` moves: about 2 N_k d T_r items without a mask.

    Q is read and O and lse are written once. Each row block reads the K_j and V_j of the tiles it computes.
    Source: FlashAttention-2, Algorithm 1.
    """
    rows, tiles, keys = _computed(N_q, N_k, B_r, B_c, causal, mask)
    N_q, N_k, d = _sizes(N_q, N_k, d)
    size, acc = itemsizes(dtype)
    visits = int(keys.sum())  # rows of K loaded, over all row blocks
    return Traffic(read=N_q * d * size + visits * 2 * d * size, written=N_q * (d * size + acc))


def standard_backward_traffic(N_q: int, N_k: int, d: int, *, dtype: DType) -> Traffic:
    """Return the bytes that `naive.backward` moves, the same if causal: Theta(N d + N^2).

    P and dS are written and read twice, dP is written and read; each pass reads its other operands and writes its
    gradient. Source: FlashAttention (2022), Algorithm 3 and Theorem 5; here P is recomputed from lse.
    """
    N_q, N_k, d = _sizes(N_q, N_k, d)
    size, acc = itemsizes(dtype)
    S, q, k = (n * size for n in (N_q * N_k, N_q * d, N_k * d))
    return Traffic(
        read=(q + k + N_q * acc) + (S + q) + (q + k) + (2 * q + 2 * S) + (S + k) + (S + q),
        written=S + k + S + S + q + k,
    )


def fa2_backward_traffic(
    N_q: int,
    N_k: int,
    d: int,
    *,
    B_r: int,
    B_c: int,
    dtype: DType,
    causal: bool = False,
    mask: masks.Mask | None = None,
) -> Traffic:
    """Return the bytes that `tiled.backward` moves: about 2 N_q d T_c + 2 N_k d T_r items without a mask.

    delta reads O and dO. For dK and dV, K and V are read once, and each tile reads Q_i, dO_i, lse and delta. For
    dQ, Q, dO, lse and delta are read once, and each tile reads K_j and V_j. Each gradient is written once.
    """
    rows, tiles, keys = _computed(N_q, N_k, B_r, B_c, causal, mask)
    N_q, N_k, d = _sizes(N_q, N_k, d)
    size, acc = itemsizes(dtype)
    q_visits = int(rows @ tiles)  # rows of Q loaded for dK and dV, over all tiles
    k_visits = int(keys.sum())  # rows of K loaded for dQ, over all row blocks
    row = 2 * d * size + 2 * acc  # of Q, dO, lse and delta
    return Traffic(
        read=2 * N_q * d * size + (2 * N_k * d * size + q_visits * row) + (N_q * row + k_visits * 2 * d * size),
        written=N_q * acc + 2 * N_k * d * size + N_q * d * size,
    )


def tiles_per_row_block(
    N_q: int, N_k: int, *, B_r: int, B_c: int, causal: bool = False, mask: masks.Mask | None = None
) -> np.ndarray:
    """Return how many tiles of S each row block computes, an array of ceil(N_q / B_r) whole numbers.

    Under a causal mask the last row of block i sees the first min((i + 1) B_r, N_q) + N_k - N_q keys; tiles beyond
    them are skipped.
    """
    return _computed(N_q, N_k, B_r, B_c, causal, mask)[1]


def computed_tiles(
    N_q: int, N_k: int, *, B_r: int, B_c: int, causal: bool = False, mask: masks.Mask | None = None
) -> np.ndarray:
    """Return which tiles of S are computed, (T_r, T_c) of bool: those in which any score is seen."""
    N_q, N_k, _ = _sizes(N_q, N_k, 1, causal)
    B_r, B_c = _block_sizes(B_r=B_r, B_c=B_c)
    asked = masks.resolve(mask, causal, N_q, N_k)
    computed = np.zeros((-(-N_q // B_r), -(-N_k // B_c)), bool)
    if asked.keys is not None:
        return _of_intervals(asked.keys, B_r, B_c, computed.shape)
    for i, row in enumerate(computed):
        rows = slice(i * B_r, min((i + 1) * B_r, N_q))
        if N_k:
            row[:] = np.logical_or.reduceat(asked.seen(rows, slice(0, N_k)).any(axis=0), np.arange(0, N_k, B_c))
    return computed


def intensity(flops: float, traffic: Traffic) -> float:
    """Return the FLOPs per byte moved; infinite if no byte is moved."""
    return flops / traffic.total if traffic.total else float("inf")


def roofline_seconds(flops: float, traffic: Traffic, gpu: GPU) -> float:
    """Return the time for the FLOPs or for the bytes, whichever is longer.

    No kernel that moves these bytes to and from HBM can be faster. The FLOPs are taken at the GPU's fp16 peak with
    fp32 accumulation, the bytes at its bandwidth. Source: Williams, Waterman and Patterson, Roofline (2009).
    """
    return max(flops / gpu.fp16, traffic.total / gpu.bandwidth)


def sram_bytes(B_r: int, B_c: int, d: int, dtype: DType) -> int:
    """Return the bytes that a step holds on chip: Q_i, K_j, V_j in dtype; O_acc, S_ij, m and l accumulated.

    P_ij replaces S_ij.
    """
    B_r, B_c, d = _block_sizes(B_r=B_r, B_c=B_c, d=d)
    size, acc = itemsizes(dtype)
    return (B_r + 2 * B_c) * d * size + (B_r * d + B_r * B_c + 2 * B_r) * acc


def largest_B_r(capacity: int, *, B_c: int, d: int, dtype: DType) -> int:
    """Return the largest B_r whose `sram_bytes` fit in `capacity` bytes; 0 if not even one row fits."""
    check_counts(capacity=capacity)
    B_c, d = _block_sizes(B_c=B_c, d=d)
    size, acc = itemsizes(dtype)
    keys, row = 2 * B_c * d * size, d * size + (d + B_c + 2) * acc
    return max(0, (int(capacity) - keys) // row)


def itemsizes(dtype: DType) -> tuple[int, int]:
    """Return the bytes of one item in dtype, and in the accumulator's dtype."""
    name = str(getattr(dtype, "__name__", dtype)).removeprefix("torch.")
    if name not in ITEMSIZE:
        raise ValueError(f"dtype is {dtype!r}; accepted are {', '.join(ITEMSIZE)}")
    return ITEMSIZE[name], max(4, ITEMSIZE[name])


def _computed(N_q, N_k, B_r, B_c, causal, mask):
    """Return, for each row block, its number of rows, of computed tiles and of keys in these tiles."""
    N_q, N_k, _ = _sizes(N_q, N_k, 1, causal)
    B_r, B_c = _block_sizes(B_r=B_r, B_c=B_c)
    starts = np.arange(0, N_q, B_r)
    rows = np.minimum(starts + B_r, N_q) - starts
    if mask is None:  # in closed form, for rows of any length
        seen = np.clip(starts + rows + N_k - N_q, 0, N_k) if causal else np.full(len(rows), N_k)
        tiles = -(-seen // B_c)
        return rows, tiles, np.minimum(tiles * B_c, N_k)
    asked = masks.resolve(mask, causal, N_q, N_k)
    if asked.keys is not None and not asked.gaps:
        first, end = _interval(asked.keys, N_q, N_k, B_r, B_c)
        return rows, end - first, np.minimum(end * B_c, N_k) - np.minimum(first * B_c, N_k)
    computed = computed_tiles(N_q, N_k, B_r=B_r, B_c=B_c, causal=causal, mask=mask)
    starts = np.arange(0, N_k, B_c)
    return rows, computed.sum(axis=1), computed @ (np.minimum(starts + B_c, N_k) - starts)


def _interval(keys, N_q, N_k, B_r, B_c):
    """Return the first tile that each row block computes, and that after its last; keys: each row's interval."""
    starts = np.arange(0, N_q, B_r)
    first, end = keys[0][starts], keys[1][np.minimum(starts + B_r, N_q) - 1]
    return first // B_c, np.where(end > first, -(-end // B_c), first // B_c)


def _of_intervals(keys, B_r, B_c, shape):
    """Return which tiles are computed, as an array of this shape; keys: the interval of each row."""
    (first, end), (T_r, T_c) = keys, shape
    begun = np.zeros((T_r, T_c + 1), int)  # rows that begin at this tile, less those that ended before it
    some = np.flatnonzero(first < end)
    np.add.at(begun, (some // B_r, first[some] // B_c), 1)
    np.add.at(begun, (some // B_r, -(-end[some] // B_c)), -1)
    return begun.cumsum(axis=1)[:, :T_c] > 0


def _sizes(N_q, N_k, d, causal=False):
    """Return the sizes as Python integers, which do not overflow; raise if one is invalid."""
    check_counts(N_q=N_q, N_k=N_k)
    check_counts(d=d, at_least=1)
    check_causal(causal)
    return int(N_q), int(N_k), int(d)


def _block_sizes(**sizes):
    """Return the block sizes as Python integers, which do not overflow; raise if one is invalid."""
    check_block_sizes(**sizes)
    return tuple(map(int, sizes.values()))
