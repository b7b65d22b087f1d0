"""Solutions of this chapter."""

# ruff: noqa: I001
import flashlib.kernels  # noqa: F401  before triton
import numpy as np
import triton
import triton.language as tl


# exercise: delta_kernel
@triton.jit
def my_delta_kernel(O_ptr, dO_ptr, delta_ptr, N_q, D: tl.constexpr, ROWS: tl.constexpr):
    offs_m = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = offs_m < N_q
    rows = offs_m[:, None] * D + tl.arange(0, D)[None, :]  # (ROWS, D)
    o = tl.load(O_ptr + rows, mask=inside[:, None], other=0.0).to(tl.float32)
    do = tl.load(dO_ptr + rows, mask=inside[:, None], other=0.0).to(tl.float32)
    tl.store(delta_ptr + offs_m, tl.sum(o * do, axis=1), mask=inside)


# exercise: dkv_loop
@triton.jit
def my_dkv_loop(
    k, v, Q_ptr, dO_ptr, lse_ptr, delta_ptr, N_q, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr
):
    dk = tl.zeros((B_C, D), tl.float32)
    dv = tl.zeros((B_C, D), tl.float32)
    for start in range(0, N_q, B_R):
        offs_m = start + tl.arange(0, B_R)
        inside = offs_m < N_q
        rows = offs_m[:, None] * D + tl.arange(0, D)[None, :]  # (B_R, D)
        q = tl.load(Q_ptr + rows, mask=inside[:, None], other=0.0)
        do = tl.load(dO_ptr + rows, mask=inside[:, None], other=0.0)
        lse = tl.load(lse_ptr + offs_m, mask=inside, other=0.0)
        delta = tl.load(delta_ptr + offs_m, mask=inside, other=0.0)
        S_T = tl.dot(k, q.T, input_precision="ieee") * scale  # (B_C, B_R)
        P_T = tl.exp(S_T - lse[None, :])
        dv += tl.dot(P_T.to(do.dtype), do, input_precision="ieee")
        dP_T = tl.dot(v, do.T, input_precision="ieee")  # (B_C, B_R)
        dS_T = P_T * (dP_T - delta[None, :])
        dk += tl.dot(dS_T.to(q.dtype), q, input_precision="ieee")
    return dk * scale, dv


# exercise: dq_loop
@triton.jit
def my_dq_loop(
    i, q, do, lse, delta, K_ptr, V_ptr, N_q, N_k, scale,
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
):  # fmt: skip
    dq = tl.zeros((B_R, D), tl.float32)
    offs_m = i * B_R + tl.arange(0, B_R)
    past = N_k - N_q  # keys before the first query's own
    end = tl.minimum((i + 1) * B_R + past, N_k)
    for start in range(0, end, B_C):
        offs_n = start + tl.arange(0, B_C)
        inside = offs_n < N_k
        cols = offs_n[:, None] * D + tl.arange(0, D)[None, :]  # (B_C, D)
        k = tl.load(K_ptr + cols, mask=inside[:, None], other=0.0)
        v = tl.load(V_ptr + cols, mask=inside[:, None], other=0.0)
        S = tl.dot(q, k.T, input_precision="ieee") * scale  # (B_R, B_C)
        visible = offs_n[None, :] <= offs_m[:, None] + past
        P = tl.where(visible, tl.exp(S - lse[:, None]), 0.0)
        dP = tl.dot(do, v.T, input_precision="ieee")  # (B_R, B_C)
        dS = P * (dP - delta[:, None])
        dq += tl.dot(dS.to(k.dtype), k, input_precision="ieee")
    return dq * scale


# exercise: grouped
def my_grouped(dK, H_k):
    B, H_q, N_k, d = dK.shape
    groups = dK.reshape(B, H_k, H_q // H_k, N_k, d)
    return groups.sum(axis=2, dtype=np.promote_types(dK.dtype, np.float32))
