"""Solutions of this chapter."""

# ruff: noqa: I001
import math

import flashlib.kernels  # noqa: F401  before triton
import torch
import triton
import triton.language as tl

from flashlib.kernels.ladder import r5_causal


# exercise: inner_loop
@triton.jit
def my_inner_loop(q, k, v, m, l, O_acc, visible, scale):
    S = tl.dot(q, k.T, input_precision="ieee") * scale  # (B_R, B_C)
    S = tl.where(visible, S, -float("inf"))
    m_old = m
    m = tl.maximum(m_old, tl.max(S, axis=1))
    shift = tl.where(m == -float("inf"), 0.0, m)  # -inf - (-inf) would be nan
    alpha = tl.exp(m_old - shift)
    P = tl.exp(S - shift[:, None])
    l = alpha * l + tl.sum(P, axis=1)
    O_acc = alpha[:, None] * O_acc + tl.dot(P.to(v.dtype), v, input_precision="ieee")
    return m, l, O_acc


# exercise: causal_split
@triton.jit
def my_causal_split(i, N_q, N_k, B_R: tl.constexpr, B_C: tl.constexpr):
    past = N_k - N_q  # keys before the first query's own
    seen_by_all = tl.minimum(i * B_R + past + 1, N_k)
    seen_by_any = tl.minimum((i + 1) * B_R + past, N_k)
    full = tl.maximum(seen_by_all, 0) // B_C * B_C
    return full, seen_by_any


# exercise: padded
def my_padded(Q, K, V):
    d = Q.shape[-1]
    padded = max(16, triton.next_power_of_2(d))
    Q, K, V = (torch.nn.functional.pad(X, (0, padded - d)) for X in (Q, K, V))
    return r5_causal.attention(Q, K, V, scale=1 / math.sqrt(d)).O[..., :d]


# exercise: alibi
@triton.jit
def alibi_kernel(
    Q_ptr, K_ptr, V_ptr, O_ptr, N_q, N_k, scale, slope,  # slope is new
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
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

    for start in range(0, N_k, B_C):
        offs_n = start + tl.arange(0, B_C)
        cols = (head * N_k + offs_n[:, None]) * D + offs_d[None, :]  # (B_C, D)
        k = tl.load(K_ptr + cols, mask=offs_n[:, None] < N_k, other=0.0)
        v = tl.load(V_ptr + cols, mask=offs_n[:, None] < N_k, other=0.0)
        S = tl.dot(q, k.T, input_precision="ieee") * scale  # (B_R, B_C)
        distance = offs_m[:, None] + N_k - N_q - offs_n[None, :]  # new
        S = tl.where((distance >= 0) & (offs_n < N_k)[None, :], S - slope * distance, -float("inf"))
        m_old = m
        m = tl.maximum(m_old, tl.max(S, axis=1))
        shift = tl.where(m == -float("inf"), 0.0, m)  # -inf - (-inf) would be nan
        alpha = tl.exp(m_old - shift)
        P = tl.exp(S - shift[:, None])
        l = alpha * l + tl.sum(P, axis=1)
        O_acc = alpha[:, None] * O_acc + tl.dot(P.to(v.dtype), v, input_precision="ieee")

    O = O_acc / tl.where(l == 0.0, 1.0, l)[:, None]  # a row that saw no key: O = 0
    tl.store(O_ptr + rows, O.to(O_ptr.dtype.element_ty), mask=offs_m[:, None] < N_q)


def my_alibi(Q, K, V, slope, B_R=16, B_C=16):
    Q, K, V = Q.contiguous(), K.contiguous(), V.contiguous()
    B, H, N_q, d = Q.shape
    N_k = K.shape[2]
    O = torch.empty_like(Q)
    grid = (triton.cdiv(N_q, B_R), B * H)
    alibi_kernel[grid](Q, K, V, O, N_q, N_k, 1 / math.sqrt(d), slope, D=d, B_R=B_R, B_C=B_C)
    return O


# exercise: attention
@triton.jit
def attention_kernel(
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

    past = N_k - N_q  # keys before the first query's own
    end = tl.minimum((i + 1) * B_R + past, N_k) if CAUSAL else N_k  # no row of the block sees a key from here on
    for start in range(0, end, B_C):
        offs_n = start + tl.arange(0, B_C)
        cols = (head * N_k + offs_n[:, None]) * D + offs_d[None, :]  # (B_C, D)
        k = tl.load(K_ptr + cols, mask=offs_n[:, None] < N_k, other=0.0)
        v = tl.load(V_ptr + cols, mask=offs_n[:, None] < N_k, other=0.0)
        S = tl.dot(q, k.T, input_precision="ieee") * scale  # (B_R, B_C)
        visible = (offs_n < N_k)[None, :]
        if CAUSAL:
            visible &= offs_n[None, :] <= offs_m[:, None] + past
        S = tl.where(visible, S, -float("inf"))
        m_old = m
        m = tl.maximum(m_old, tl.max(S, axis=1))
        shift = tl.where(m == -float("inf"), 0.0, m)  # -inf - (-inf) would be nan
        alpha = tl.exp(m_old - shift)
        P = tl.exp(S - shift[:, None])
        l = alpha * l + tl.sum(P, axis=1)
        O_acc = alpha[:, None] * O_acc + tl.dot(P.to(v.dtype), v, input_precision="ieee")

    divisor = tl.where(l == 0.0, 1.0, l)  # a row that saw no key: O = 0, lse = -inf
    O = O_acc / divisor[:, None]
    tl.store(O_ptr + rows, O.to(O_ptr.dtype.element_ty), mask=offs_m[:, None] < N_q)
    tl.store(Lse_ptr + head * N_q + offs_m, m + tl.log(divisor), mask=offs_m < N_q)


def my_attention(Q, K, V, causal):
    Q, K, V = Q.contiguous(), K.contiguous(), V.contiguous()
    B, H, N_q, d = Q.shape
    N_k = K.shape[2]
    O = torch.empty_like(Q)
    lse = torch.empty((B, H, N_q), dtype=torch.float32, device=Q.device)
    B_R, B_C = (32, 32) if Q.dtype == torch.float32 else (64, 64)  # fp32 tiles take twice the memory
    grid = (triton.cdiv(N_q, B_R), B * H)
    attention_kernel[grid](
        Q, K, V, O, lse, N_q, N_k, 1 / math.sqrt(d), D=d, B_R=B_R, B_C=B_C, CAUSAL=causal, num_stages=2
    )
    return O, lse
