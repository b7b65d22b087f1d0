"""Solutions of this chapter."""

# ruff: noqa: I001
import flashlib.kernels  # noqa: F401  before triton
import numpy as np
import torch
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


# exercise: backward_pass, with delta_kernel
@triton.jit
def dkv_pass(
    Q_ptr, K_ptr, V_ptr, dO_ptr, Lse_ptr, Delta_ptr, dK_ptr, dV_ptr, N_q, N_k, scale,
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    j = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    past = N_k - N_q  # keys before the first query's own
    offs_n = j * B_C + tl.arange(0, B_C)
    offs_d = tl.arange(0, D)
    cols = (head * N_k + offs_n[:, None]) * D + offs_d[None, :]  # (B_C, D)
    k = tl.load(K_ptr + cols, mask=offs_n[:, None] < N_k, other=0.0)
    v = tl.load(V_ptr + cols, mask=offs_n[:, None] < N_k, other=0.0)
    dk = tl.zeros((B_C, D), tl.float32)
    dv = tl.zeros((B_C, D), tl.float32)
    begin = tl.maximum(j * B_C - past, 0) // B_R * B_R if CAUSAL else 0  # no row before sees a key of the block
    for start in range(begin, N_q, B_R):
        offs_m = start + tl.arange(0, B_R)
        inside = offs_m < N_q
        rows = (head * N_q + offs_m[:, None]) * D + offs_d[None, :]  # (B_R, D)
        q = tl.load(Q_ptr + rows, mask=inside[:, None], other=0.0)
        do = tl.load(dO_ptr + rows, mask=inside[:, None], other=0.0)
        lse = tl.load(Lse_ptr + head * N_q + offs_m, mask=inside, other=0.0)
        delta = tl.load(Delta_ptr + head * N_q + offs_m, mask=inside, other=0.0)
        S_T = tl.dot(k, q.T, input_precision="ieee") * scale  # (B_C, B_R)
        P_T = tl.exp(S_T - lse[None, :])
        if CAUSAL:
            P_T = tl.where(offs_n[:, None] <= offs_m[None, :] + past, P_T, 0.0)
        dv += tl.dot(P_T.to(do.dtype), do, input_precision="ieee")
        dS_T = P_T * (tl.dot(v, do.T, input_precision="ieee") - delta[None, :])
        dk += tl.dot(dS_T.to(q.dtype), q, input_precision="ieee")
    tl.store(dK_ptr + cols, (dk * scale).to(dK_ptr.dtype.element_ty), mask=offs_n[:, None] < N_k)
    tl.store(dV_ptr + cols, dv.to(dV_ptr.dtype.element_ty), mask=offs_n[:, None] < N_k)


@triton.jit
def dq_pass(
    Q_ptr, K_ptr, V_ptr, dO_ptr, Lse_ptr, Delta_ptr, dQ_ptr, N_q, N_k, scale,
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    past = N_k - N_q  # keys before the first query's own
    offs_m = i * B_R + tl.arange(0, B_R)
    offs_d = tl.arange(0, D)
    inside = offs_m < N_q
    rows = (head * N_q + offs_m[:, None]) * D + offs_d[None, :]  # (B_R, D)
    q = tl.load(Q_ptr + rows, mask=inside[:, None], other=0.0)
    do = tl.load(dO_ptr + rows, mask=inside[:, None], other=0.0)
    lse = tl.load(Lse_ptr + head * N_q + offs_m, mask=inside, other=0.0)
    delta = tl.load(Delta_ptr + head * N_q + offs_m, mask=inside, other=0.0)
    dq = tl.zeros((B_R, D), tl.float32)
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
        P = tl.where(visible, tl.exp(S - lse[:, None]), 0.0)
        dS = P * (tl.dot(do, v.T, input_precision="ieee") - delta[:, None])
        dq += tl.dot(dS.to(k.dtype), k, input_precision="ieee")
    tl.store(dQ_ptr + rows, (dq * scale).to(dQ_ptr.dtype.element_ty), mask=inside[:, None])


def my_backward_pass(Q, K, V, O, lse, dO, causal):
    B, H, N_q, d = Q.shape
    N_k, scale = K.shape[2], d**-0.5
    delta = torch.empty_like(lse)
    dQ, dK, dV = (torch.empty_like(X) for X in (Q, K, V))
    given = Q, K, V, dO, lse, delta
    sizes = {"D": d, "B_R": 32, "B_C": 32, "CAUSAL": causal}
    my_delta_kernel[(triton.cdiv(B * H * N_q, 32),)](O, dO, delta, B * H * N_q, d, 32)
    dkv_pass[(triton.cdiv(N_k, 32), B * H)](*given, dK, dV, N_q, N_k, scale, **sizes)
    dq_pass[(triton.cdiv(N_q, 32), B * H)](*given, dQ, N_q, N_k, scale, **sizes)
    return dQ, dK, dV
