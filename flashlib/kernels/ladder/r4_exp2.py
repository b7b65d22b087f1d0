"""Rung 4: scores in base 2, with log2(e) and the scale folded into one factor; the hardware has exp2, not exp."""

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
    """Return Attention(O, lse); see `ladder.launch`. Source: FlashAttention-2, Algorithm 1."""
    options: dict = {"B_r": B_r, "B_c": B_c, "num_warps": num_warps, "num_stages": num_stages}
    return launch(_flash_exp2, Q, K, V, causal=causal, scale=scale, **options)


@triton.jit
def _flash_exp2(
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

    scale_log2e = scale * LOG2_E
    for start in range(0, N_k, B_C):
        offs_n = start + tl.arange(0, B_C)
        cols = (head * N_k + offs_n[:, None]) * D + offs_d[None, :]  # (B_C, D)
        k = tl.load(K_ptr + cols, mask=offs_n[:, None] < N_k, other=0.0)
        v = tl.load(V_ptr + cols, mask=offs_n[:, None] < N_k, other=0.0)
        S = tl.dot(q, k.T, input_precision="ieee")  # (B_R, B_C), not scaled yet
        visible = (offs_n < N_k)[None, :]
        if CAUSAL:
            visible &= offs_n[None, :] <= offs_m[:, None] + N_k - N_q
        S = tl.where(visible, S, -float("inf"))
        m_old = m
        m = tl.maximum(m_old, tl.max(S, axis=1) * scale_log2e)
        shift = tl.where(m == -float("inf"), 0.0, m)  # -inf - (-inf) would be nan
        alpha = tl.exp2(m_old - shift)
        P = tl.exp2(S * scale_log2e - shift[:, None])
        l = alpha * l + tl.sum(P, axis=1)
        O_acc = alpha[:, None] * O_acc + tl.dot(P.to(v.dtype), v, input_precision="ieee")

    divisor = tl.where(l == 0.0, 1.0, l)  # a row that saw no key: O = 0, lse = -inf
    O = O_acc / divisor[:, None]
    tl.store(O_ptr + rows, O.to(O_ptr.dtype.element_ty), mask=offs_m[:, None] < N_q)
    lse = (m + tl.log2(divisor)) / LOG2_E
    tl.store(Lse_ptr + head * N_q + offs_m, lse, mask=offs_m < N_q)
