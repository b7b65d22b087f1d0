"""Rung 5: tiles that no row sees are skipped, and only tiles cut by the mask or by the end of K are masked."""

import math

import torch
import triton
import triton.language as tl

from flashlib.kernels.ladder import launch
from flashlib.types import Attention

LOG2_E = tl.constexpr(math.log2(math.e))


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool = False, scale: float | None = None,
    B_r: int = 64, B_c: int = 64, num_warps: int = 4, num_stages: int = 1,
) -> Attention:  # fmt: skip
    """Return Attention(O, lse); see `ladder.launch`. Source: FlashAttention-2, section 3.1 (causal masking)."""
    options: dict = {"B_r": B_r, "B_c": B_c, "num_warps": num_warps, "num_stages": num_stages}
    return launch(_flash_causal, Q, K, V, causal=causal, scale=scale, **options)


@triton.jit
def _flash_causal(
    Q_ptr, K_ptr, V_ptr, O_ptr, Lse_ptr, N_q, N_k, scale,
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    offs_m = i * B_R + tl.arange(0, B_R)
    offs_d = tl.arange(0, D)
    rows = (head * N_q + offs_m[:, None]) * D + offs_d[None, :]  # (B_R, D)
    q = tl.load(Q_ptr + rows, mask=offs_m[:, None] < N_q, other=0.0)
    m = tl.full((B_R,), -float("inf"), tl.float32)
    l = tl.zeros((B_R,), tl.float32)
    O_acc = tl.zeros((B_R, D), tl.float32)

    K_ptr += head * N_k * D
    V_ptr += head * N_k * D
    past = N_k - N_q  # keys before the first query's own
    seen_by_all = tl.minimum(i * B_R + past + 1, N_k) if CAUSAL else N_k
    seen_by_any = tl.minimum((i + 1) * B_R + past, N_k) if CAUSAL else N_k
    full = tl.maximum(seen_by_all, 0) // B_C * B_C
    last_visible = offs_m + past
    m, l, O_acc = _stream(
        q, K_ptr, V_ptr, m, l, O_acc, 0, full, last_visible,
        N_k, scale * LOG2_E, D, B_C, False, CAUSAL,
    )  # fmt: skip
    m, l, O_acc = _stream(
        q, K_ptr, V_ptr, m, l, O_acc, full, seen_by_any, last_visible,
        N_k, scale * LOG2_E, D, B_C, True, CAUSAL,
    )  # fmt: skip

    divisor = tl.where(l == 0.0, 1.0, l)  # a row that saw no key: O = 0, lse = -inf
    O = O_acc / divisor[:, None]
    tl.store(O_ptr + rows, O.to(O_ptr.dtype.element_ty), mask=offs_m[:, None] < N_q)
    lse = (m + tl.log2(divisor)) / LOG2_E
    tl.store(Lse_ptr + head * N_q + offs_m, lse, mask=offs_m < N_q)


@triton.jit
def _stream(
    q, K_ptr, V_ptr, m, l, O_acc, start_k, end_k, last_visible, N_k, scale_log2e,
    D: tl.constexpr, B_C: tl.constexpr, MASKED: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Update m, l and O_acc of a row block with keys start_k to end_k; row r sees keys up to last_visible[r]."""
    offs_d = tl.arange(0, D)
    for start in range(start_k, end_k, B_C):
        offs_n = start + tl.arange(0, B_C)
        cols = offs_n[:, None] * D + offs_d[None, :]  # (B_C, D)
        inside = (offs_n < N_k)[:, None] if MASKED else None
        k = tl.load(K_ptr + cols, mask=inside, other=0.0 if MASKED else None)
        v = tl.load(V_ptr + cols, mask=inside, other=0.0 if MASKED else None)
        S = tl.dot(q, k.T, input_precision="ieee")  # (B_R, B_C), not scaled yet
        if MASKED:
            visible = (offs_n < N_k)[None, :]
            if CAUSAL:
                visible &= offs_n[None, :] <= last_visible[:, None]
            S = tl.where(visible, S, -float("inf"))
        m_old = m
        m = tl.maximum(m_old, tl.max(S, axis=1) * scale_log2e)
        shift = tl.where(m == -float("inf"), 0.0, m)  # -inf - (-inf) would be nan
        alpha = tl.exp2(m_old - shift)
        P = tl.exp2(S * scale_log2e - shift[:, None])
        l = alpha * l + tl.sum(P, axis=1)
        O_acc = alpha[:, None] * O_acc + tl.dot(P.to(v.dtype), v, input_precision="ieee")
    return m, l, O_acc
