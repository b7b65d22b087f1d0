"""Rung 8: tiles loaded and stored through tensor descriptors, by TMA on Hopper and later GPUs, not by pointers.

A descriptor holds the address, shape and strides of a whole tensor. TMA computes a tile's addresses by itself,
fills rows past the end with zeros and leaves them out of a store: the threads keep no pointers in registers.

The compiler waits for each load before its first use. K_j and V_j are loaded together, so a step waits once. To
measure the gain, common_wait=False loads V_j where it is needed, after the softmax, and every step waits twice.
"""

import math

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from flashlib.kernels.ladder import launch
from flashlib.types import Attention

LOG2_E = tl.constexpr(math.log2(math.e))


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool = False, scale: float | None = None,
    B_r: int = 64, B_c: int = 64, num_warps: int = 4, num_stages: int = 1, common_wait: bool = True,
) -> Attention:  # fmt: skip
    """Return Attention(O, lse); see `ladder.launch`. Source: FlashAttention-2, Algorithm 1."""
    options: dict = {"B_r": B_r, "B_c": B_c, "num_warps": num_warps, "num_stages": num_stages}
    options["switches"] = {"COMMON_WAIT": common_wait}
    return launch(_flash_descriptors, Q, K, V, causal=causal, scale=scale, describe=_describe, **options)


def _describe(X, rows):
    """Return a descriptor of X, (B, H, N, d), as (B * H, N, d), for tiles of `rows` rows of one head."""
    if X.numel() == 0:
        X = X.new_empty(1, 1, 1, X.shape[-1])  # TMA cannot describe an empty tensor; nothing of it is read
    X = X.flatten(0, 1)
    return TensorDescriptor(X, X.shape, X.stride(), [1, rows, X.shape[-1]])


@triton.jit
def _flash_descriptors(
    Q, K, V, O, Lse_ptr, N_q, N_k, scale,  # Q, K, V, O: tensor descriptors
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, CAUSAL: tl.constexpr,
    COMMON_WAIT: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0)
    head = tl.program_id(1)
    offs_m = i * B_R + tl.arange(0, B_R)
    q = Q.load([head, i * B_R, 0]).reshape(B_R, D)
    m = tl.full((B_R,), -float("inf"), tl.float32)
    l = tl.zeros((B_R,), tl.float32)
    O_acc = tl.zeros((B_R, D), tl.float32)

    past = N_k - N_q  # keys before the first query's own
    seen_by_all = tl.minimum(i * B_R + past + 1, N_k) if CAUSAL else N_k
    seen_by_any = tl.minimum((i + 1) * B_R + past, N_k) if CAUSAL else N_k
    full = tl.maximum(seen_by_all, 0) // B_C * B_C
    last_visible = offs_m + past
    m, l, O_acc = _stream(
        q, K, V, m, l, O_acc, 0, full, last_visible,
        head, N_k, scale * LOG2_E, D, B_C, False, CAUSAL, COMMON_WAIT,
    )  # fmt: skip
    m, l, O_acc = _stream(
        q, K, V, m, l, O_acc, full, seen_by_any, last_visible,
        head, N_k, scale * LOG2_E, D, B_C, True, CAUSAL, COMMON_WAIT,
    )  # fmt: skip

    divisor = tl.where(l == 0.0, 1.0, l)  # a row that saw no key: O = 0, lse = -inf
    O.store([head, i * B_R, 0], (O_acc / divisor[:, None]).to(O.dtype).reshape(1, B_R, D))
    lse = (m + tl.log2(divisor)) / LOG2_E
    tl.store(Lse_ptr + head.to(tl.int64) * N_q + offs_m, lse, mask=offs_m < N_q)


@triton.jit
def _stream(
    q, K, V, m, l, O_acc, start_k, end_k, last_visible, head, N_k, scale_log2e,
    D: tl.constexpr, B_C: tl.constexpr, MASKED: tl.constexpr, CAUSAL: tl.constexpr,
    COMMON_WAIT: tl.constexpr,
):  # fmt: skip
    """Update m, l and O_acc of a row block with keys start_k to end_k; row r sees keys up to last_visible[r]."""
    for start in range(start_k, end_k, B_C):
        k = K.load([head, start, 0]).reshape(B_C, D)
        if COMMON_WAIT:
            v = V.load([head, start, 0]).reshape(B_C, D)
        S = tl.dot(q, k.T, input_precision="ieee")  # (B_R, B_C), not scaled yet
        if MASKED:
            offs_n = start + tl.arange(0, B_C)
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
        if not COMMON_WAIT:
            v = V.load([head, start, 0]).reshape(B_C, D)
        O_acc = alpha[:, None] * O_acc + tl.dot(P.to(v.dtype), v, input_precision="ieee")
    return m, l, O_acc
