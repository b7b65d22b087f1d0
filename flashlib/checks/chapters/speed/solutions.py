"""Solutions of this chapter."""

# ruff: noqa: I001
import math

import flashlib.kernels  # noqa: F401  before triton
import numpy as np
import triton
import triton.language as tl


# exercise: tflops
def my_tflops(B, H, N, d, causal, ms):
    FLOPs = 4 * B * H * N**2 * d
    if causal:
        FLOPs /= 2
    return FLOPs / (ms * 1e-3) / 1e12


# exercise: base_2
@triton.jit
def my_base_2(S, m, l, O_acc, v, scale_log2e):
    m_old = m
    m = tl.maximum(m_old, tl.max(S, axis=1) * scale_log2e)
    shift = tl.where(m == -float("inf"), 0.0, m)  # -inf - (-inf) would be nan
    alpha = tl.exp2(m_old - shift)
    P = tl.exp2(S * scale_log2e - shift[:, None])  # (B_R, B_C)
    l = alpha * l + tl.sum(P, axis=1)
    O_acc = alpha[:, None] * O_acc + tl.dot(P.to(v.dtype), v, input_precision="ieee")
    return m, l, O_acc


# exercise: lse_from_base_2
def my_lse_from_base_2(m_2, l):
    with np.errstate(divide="ignore"):  # log2(0) is -inf, as it should be
        lse2 = m_2 + np.log2(l)
    return lse2 * math.log(2)


# exercise: tail
@triton.jit
def my_tail(q, K_ptr, V_ptr, m, l, O_acc, N_k, scale_log2e, update, D: tl.constexpr, B_C: tl.constexpr):
    offs_d = tl.arange(0, D)
    full = N_k // B_C * B_C  # keys in whole tiles

    for start in range(0, full, B_C):
        offs_n = start + tl.arange(0, B_C)
        cols = offs_n[:, None] * D + offs_d[None, :]  # (B_C, D)
        k = tl.load(K_ptr + cols)
        v = tl.load(V_ptr + cols)
        S = tl.dot(q, k.T, input_precision="ieee")  # (B_R, B_C)
        m, l, O_acc = update(S, m, l, O_acc, v, scale_log2e)

    if full < N_k:
        offs_n = full + tl.arange(0, B_C)
        inside = offs_n < N_k
        cols = offs_n[:, None] * D + offs_d[None, :]
        k = tl.load(K_ptr + cols, mask=inside[:, None], other=0.0)
        v = tl.load(V_ptr + cols, mask=inside[:, None], other=0.0)
        S = tl.dot(q, k.T, input_precision="ieee")
        S = tl.where(inside[None, :], S, -float("inf"))
        m, l, O_acc = update(S, m, l, O_acc, v, scale_log2e)
    return m, l, O_acc


# exercise: programs
def my_programs(registers, shared, num_warps):
    of_warp = -(-registers * 32 // 256) * 256
    by_registers = 65536 // (of_warp * num_warps)
    by_shared = 228 * 1024 // (shared + 1024)
    by_warps = 64 // num_warps
    return min(by_registers, by_shared, by_warps)
