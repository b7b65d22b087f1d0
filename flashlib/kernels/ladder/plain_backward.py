"""A first backward pass: a kernel for delta, one for dK and dV, one for dQ, and nothing that makes them fast.

To `kernels.backward` it is what `r3_flash` is to `kernels.forward`.
"""

import torch
import triton
import triton.language as tl

from flashlib.inputs import check_counts, resolve_scale
from flashlib.kernels.ladder import MAX_HEADS
from flashlib.kernels.launch.inputs import (
    check_attention,
    check_kernel_blocks,
    check_powers_of_two,
    kernel_input,
    on_device_of,
)
from flashlib.types import Grads


def backward(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor, lse: torch.Tensor, dO: torch.Tensor, *,
    causal: bool = False, scale: float | None = None,
    B_r: int = 64, B_c: int = 64, num_warps: int = 4, num_stages: int = 1,
) -> Grads:  # fmt: skip
    """Return Grads(dQ, dK, dV).

    O, lse: as the forward pass returned them. d is one of 16, 32, 64, 128, and K and V have the heads of Q. Inputs
    that are not contiguous are copied. Source: FlashAttention-2, Algorithm 2; the kernel for dQ replaces its
    additions to dQ in HBM.
    """
    check_attention(Q, K, V, causal)
    check_kernel_blocks(B_r=B_r, B_c=B_c)
    check_powers_of_two(1, 16, num_warps=num_warps)
    check_counts(at_least=1, num_stages=num_stages)
    scale = resolve_scale(scale, Q.shape[-1])
    B, H, N_q, d = Q.shape
    N_k = K.shape[2]
    if B * H > MAX_HEADS:
        raise ValueError(f"B * H is {B * H}; these kernels take at most {MAX_HEADS}: use kernels.backward")
    q, k, v, o, do = (kernel_input(X).contiguous() for X in (Q, K, V, O, dO))
    lse, delta = lse.contiguous(), torch.empty_like(lse)
    grads = tuple(torch.empty_like(X) for X in (q, k, v))
    given = q, k, v, do, lse, delta
    sizes = {"D": d, "B_R": int(B_r), "B_C": int(B_c), "CAUSAL": bool(causal)}
    options = {"num_warps": int(num_warps), "num_stages": int(num_stages)}
    with on_device_of(q):
        if lse.numel():
            _delta[(triton.cdiv(lse.numel(), B_r),)](o, do, delta, lse.numel(), D=d, ROWS=int(B_r))
            _dq[(triton.cdiv(N_q, B_r), B * H)](*given, grads[0], N_q, N_k, scale, **sizes, **options)
        if k.numel():
            _dkv[(triton.cdiv(N_k, B_c), B * H)](*given, *grads[1:], N_q, N_k, scale, **sizes, **options)
    return Grads(*(X.to(Q.dtype) for X in grads))


@triton.jit
def _delta(O_ptr, dO_ptr, Delta_ptr, N, D: tl.constexpr, ROWS: tl.constexpr):
    offs_m = tl.program_id(0) * ROWS + tl.arange(0, ROWS)  # rows of all heads
    inside = offs_m < N
    rows = offs_m.to(tl.int64)[:, None] * D + tl.arange(0, D)[None, :]  # (ROWS, D)
    o = tl.load(O_ptr + rows, mask=inside[:, None], other=0.0).to(tl.float32)
    do = tl.load(dO_ptr + rows, mask=inside[:, None], other=0.0).to(tl.float32)
    tl.store(Delta_ptr + offs_m, tl.sum(o * do, axis=1), mask=inside)


@triton.jit
def _dkv(
    Q_ptr, K_ptr, V_ptr, dO_ptr, Lse_ptr, Delta_ptr, dK_ptr, dV_ptr, N_q, N_k, scale,
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    j = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    offs_n = j * B_C + tl.arange(0, B_C)
    offs_d = tl.arange(0, D)
    cols = (head * N_k + offs_n[:, None]) * D + offs_d[None, :]  # (B_C, D)
    k = tl.load(K_ptr + cols, mask=offs_n[:, None] < N_k, other=0.0)
    v = tl.load(V_ptr + cols, mask=offs_n[:, None] < N_k, other=0.0)
    dk = tl.zeros((B_C, D), tl.float32)
    dv = tl.zeros((B_C, D), tl.float32)
    past = N_k - N_q  # keys before the first query's own
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
        dP_T = tl.dot(v, do.T, input_precision="ieee")  # (B_C, B_R)
        dS_T = P_T * (dP_T - delta[None, :])
        dk += tl.dot(dS_T.to(q.dtype), q, input_precision="ieee")

    tl.store(dK_ptr + cols, (dk * scale).to(dK_ptr.dtype.element_ty), mask=offs_n[:, None] < N_k)
    tl.store(dV_ptr + cols, dv.to(dV_ptr.dtype.element_ty), mask=offs_n[:, None] < N_k)


@triton.jit
def _dq(
    Q_ptr, K_ptr, V_ptr, dO_ptr, Lse_ptr, Delta_ptr, dQ_ptr, N_q, N_k, scale,
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    offs_m = i * B_R + tl.arange(0, B_R)
    offs_d = tl.arange(0, D)
    inside = offs_m < N_q
    rows = (head * N_q + offs_m[:, None]) * D + offs_d[None, :]  # (B_R, D)
    q = tl.load(Q_ptr + rows, mask=inside[:, None], other=0.0)
    do = tl.load(dO_ptr + rows, mask=inside[:, None], other=0.0)
    lse = tl.load(Lse_ptr + head * N_q + offs_m, mask=inside, other=0.0)
    delta = tl.load(Delta_ptr + head * N_q + offs_m, mask=inside, other=0.0)
    dq = tl.zeros((B_R, D), tl.float32)
    past = N_k - N_q  # keys before the first query's own
    end = tl.minimum((i + 1) * B_R + past, N_k) if CAUSAL else N_k  # no row of the block sees a key from here on

    for start in range(0, end, B_C):
        offs_n = start + tl.arange(0, B_C)
        cols = (head * N_k + offs_n[:, None]) * D + offs_d[None, :]  # (B_C, D)
        k = tl.load(K_ptr + cols, mask=offs_n[:, None] < N_k, other=0.0)
        v = tl.load(V_ptr + cols, mask=offs_n[:, None] < N_k, other=0.0)
        S = tl.dot(q, k.T, input_precision="ieee") * scale  # (B_R, B_C)
        P = tl.exp(S - lse[:, None])
        visible = (offs_n < N_k)[None, :]
        if CAUSAL:
            visible &= offs_n[None, :] <= offs_m[:, None] + past
        P = tl.where(visible, P, 0.0)
        dP = tl.dot(do, v.T, input_precision="ieee")  # (B_R, B_C)
        dS = P * (dP - delta[:, None])
        dq += tl.dot(dS.to(k.dtype), k, input_precision="ieee")

    tl.store(dQ_ptr + rows, (dq * scale).to(dQ_ptr.dtype.element_ty), mask=inside[:, None])
