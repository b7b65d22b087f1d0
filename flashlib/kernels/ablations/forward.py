"""Rung 5 of the ladder with a switch that takes back each of FlashAttention-2's three ideas, to measure its gain.

    late_division  O is divided by l once, at the end; otherwise in every step, as in the first FlashAttention:
                   B_R x D more operations outside the matrix products, on slower units
    parallel_rows  one program for each row block; otherwise one for each head, which walks over all row blocks, as
                   in the first FlashAttention: too few to fill a GPU when B * H is below its multiprocessors
    split_rows     the warps of a program split a tile by rows; otherwise by keys, as in the first FlashAttention

The compiler gives each warp some rows of a product's result. So without split_rows S is computed transposed,
K_j Q_i^T: a warp then has some keys of every row. Maximum and sum cross warps, and P goes to all of them, as each
needs all keys for its part of O^T: both through shared memory and behind a barrier. With split_rows a warp needs
nothing from another. On Hopper, with 4 warps, this holds for every tile. For older GPUs the compiler splits the
longer axis of the second product's result: keys here if B_r <= d, rows in rung 5 if B_r >= d. So compare there
with B_r = d.

With all switches on it is rung 5. `python -m flashlib.bench.ladder` times it without each.
"""

import math

import torch
import triton
import triton.language as tl

from flashlib.kernels.ladder import launch
from flashlib.types import Attention

LOG2_E = tl.constexpr(math.log2(math.e))


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool = False, scale: float | None = None,
    B_r: int = 64, B_c: int = 64, num_warps: int = 4, num_stages: int = 1, late_division: bool = True,
    parallel_rows: bool = True, split_rows: bool = True,
) -> Attention:  # fmt: skip
    """Return Attention(O, lse); see `ladder.launch`.

    Source: FlashAttention, Algorithm 1, line 12; FlashAttention-2, sections 3.2 and 3.3.
    """
    options: dict = {"B_r": B_r, "B_c": B_c, "num_warps": num_warps, "num_stages": num_stages}
    switches = {"LATE_DIVISION": late_division, "PARALLEL_ROWS": parallel_rows, "SPLIT_ROWS": split_rows}
    options |= {"parallel_rows": parallel_rows, "switches": switches}
    return launch(_flash, Q, K, V, causal=causal, scale=scale, **options)


@triton.jit
def _flash(
    Q_ptr, K_ptr, V_ptr, O_ptr, Lse_ptr, N_q, N_k, scale,
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, CAUSAL: tl.constexpr,
    LATE_DIVISION: tl.constexpr, PARALLEL_ROWS: tl.constexpr, SPLIT_ROWS: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1).to(tl.int64)
    if PARALLEL_ROWS:
        _row_block(
            tl.program_id(0), head, Q_ptr, K_ptr, V_ptr, O_ptr, Lse_ptr, N_q, N_k, scale,
            D, B_R, B_C, CAUSAL, LATE_DIVISION, SPLIT_ROWS,
        )  # fmt: skip
    else:
        for i in range(0, tl.cdiv(N_q, B_R)):
            _row_block(
                i, head, Q_ptr, K_ptr, V_ptr, O_ptr, Lse_ptr, N_q, N_k, scale,
                D, B_R, B_C, CAUSAL, LATE_DIVISION, SPLIT_ROWS,
            )  # fmt: skip


@triton.jit
def _row_block(
    i, head, Q_ptr, K_ptr, V_ptr, O_ptr, Lse_ptr, N_q, N_k, scale,
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, CAUSAL: tl.constexpr,
    LATE_DIVISION: tl.constexpr, SPLIT_ROWS: tl.constexpr,
):  # fmt: skip
    """Write O and lse of row block i of a head."""
    EACH_ROW: tl.constexpr = 1 if SPLIT_ROWS else 0  # the axis that a number of each row is spread over
    offs_m = i * B_R + tl.arange(0, B_R)
    offs_d = tl.arange(0, D)
    rows = (head * N_q + offs_m[:, None]) * D + offs_d[None, :]  # (B_R, D)
    q = tl.load(Q_ptr + rows, mask=offs_m[:, None] < N_q, other=0.0)
    m = tl.full((B_R,), -float("inf"), tl.float32)
    l = tl.zeros((B_R,), tl.float32)
    O_acc = tl.zeros((B_R, D) if SPLIT_ROWS else (D, B_R), tl.float32)

    K_ptr += head * N_k * D
    V_ptr += head * N_k * D
    past = N_k - N_q  # keys before the first query's own
    seen_by_all = tl.minimum(i * B_R + past + 1, N_k) if CAUSAL else N_k
    seen_by_any = tl.minimum((i + 1) * B_R + past, N_k) if CAUSAL else N_k
    full = tl.maximum(seen_by_all, 0) // B_C * B_C
    last_visible = offs_m + past
    m, l, O_acc = _stream(
        q, K_ptr, V_ptr, m, l, O_acc, 0, full, last_visible,
        N_k, scale * LOG2_E, D, B_C, False, CAUSAL, LATE_DIVISION, SPLIT_ROWS,
    )  # fmt: skip
    m, l, O_acc = _stream(
        q, K_ptr, V_ptr, m, l, O_acc, full, seen_by_any, last_visible,
        N_k, scale * LOG2_E, D, B_C, True, CAUSAL, LATE_DIVISION, SPLIT_ROWS,
    )  # fmt: skip

    O = O_acc / tl.expand_dims(_divisor(l), EACH_ROW) if LATE_DIVISION else O_acc
    O = O if SPLIT_ROWS else O.T  # (B_R, D)
    tl.store(O_ptr + rows, O.to(O_ptr.dtype.element_ty), mask=offs_m[:, None] < N_q)
    lse = (m + tl.log2(_divisor(l))) / LOG2_E
    tl.store(Lse_ptr + head * N_q + offs_m, lse, mask=offs_m < N_q)


@triton.jit
def _divisor(l):
    """Return l, but 1 for a row that saw no key: O = 0, lse = -inf."""
    return tl.where(l == 0.0, 1.0, l)


@triton.jit
def _stream(
    q, K_ptr, V_ptr, m, l, O_acc, start_k, end_k, last_visible, N_k, scale_log2e,
    D: tl.constexpr, B_C: tl.constexpr, MASKED: tl.constexpr, CAUSAL: tl.constexpr,
    LATE_DIVISION: tl.constexpr, SPLIT_ROWS: tl.constexpr,
):  # fmt: skip
    """Update m, l and O_acc of a row block with keys start_k to end_k; row r sees keys up to last_visible[r]."""
    EACH_ROW: tl.constexpr = 1 if SPLIT_ROWS else 0
    offs_d = tl.arange(0, D)
    for start in range(start_k, end_k, B_C):
        offs_n = start + tl.arange(0, B_C)
        cols = offs_n[:, None] * D + offs_d[None, :]  # (B_C, D)
        inside = (offs_n < N_k)[:, None] if MASKED else None
        k = tl.load(K_ptr + cols, mask=inside, other=0.0 if MASKED else None)
        v = tl.load(V_ptr + cols, mask=inside, other=0.0 if MASKED else None)
        left, right = (q, k.T) if SPLIT_ROWS else (k, q.T)
        S = tl.dot(left, right, input_precision="ieee")  # (B_R, B_C) or transposed, so P; not scaled yet
        if MASKED:
            keys = tl.expand_dims(offs_n, 1 - EACH_ROW)
            visible = keys < N_k
            if CAUSAL:
                visible &= keys <= tl.expand_dims(last_visible, EACH_ROW)
            S = tl.where(visible, S, -float("inf"))
        m_old = m
        m = tl.maximum(m_old, tl.max(S, axis=EACH_ROW) * scale_log2e)
        shift = tl.where(m == -float("inf"), 0.0, m)  # -inf - (-inf) would be nan
        alpha = tl.exp2(m_old - shift)
        P = tl.exp2(S * scale_log2e - tl.expand_dims(shift, EACH_ROW))
        l_old = l
        l = alpha * l_old + tl.sum(P, axis=EACH_ROW)
        weights = P.to(v.dtype)
        left, right = (weights, v) if SPLIT_ROWS else (v.T, weights)
        if LATE_DIVISION:
            O_acc = tl.expand_dims(alpha, EACH_ROW) * O_acc + tl.dot(left, right, input_precision="ieee")
        else:
            inverse = 1.0 / _divisor(l)  # one division a row, not one a number of O
            PV = tl.dot(left, right, input_precision="ieee")
            O_acc = (tl.expand_dims(l_old * alpha, EACH_ROW) * O_acc + PV) * tl.expand_dims(inverse, EACH_ROW)
    return m, l, O_acc
