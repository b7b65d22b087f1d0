"""Kernels that call the parts of backward kernels written in answers: the loop for dK and dV, and that for dQ.

As in `launches` and `tiles`: what an answer does not set comes out as nan, and nan lies around what it may read.
"""

# ruff: noqa: I001  flashlib.kernels before triton
import numpy as np
import torch

from flashlib.checks.examine import Finding
from flashlib.checks.gradients_in_triton import poisoned
from flashlib.checks.launches import launched, unwrapped
from flashlib.kernels import DEVICE
import triton
import triton.language as tl

POISON = 64  # rows of nan before and after what is read
DTYPES = "both inputs of tl.dot have one dtype: round the tile in fp32 to that of the other, as in P.to(do.dtype)"


def deltas(answer):
    """Return a function of O, dO and an Out for delta that launches the kernel `answer`, ROWS rows a block."""

    def launch(O, dO, delta, ROWS):
        N_q, D = O.shape
        answer[(triton.cdiv(N_q, ROWS),)](O, dO, delta, N_q, D, ROWS)

    return launched(launch)


def dkv_of(answer):
    """Return a function of one column block and of all rows that calls `answer` once and returns dk and dv.

    answer: takes k, v, pointers to Q, dO, lse and delta, N_q, scale, D, B_R and B_C. Raises Finding if dk or dv is
    not in fp32.
    """

    def run(k, v, Q, dO, lse, delta, scale, B_R):
        B_C, D = k.shape
        streamed = [_with_nan(X) for X in (Q, dO, lse, delta)]
        dk, dv = torch.full((2, B_C, D), torch.nan, device=DEVICE)
        _launch(
            _dkv_kernel, 1, ("dk", "dv"), _plain(k), _plain(v), *streamed, dk, dv, last=(len(Q), scale),
            f=answer, D=D, B_R=B_R, B_C=B_C,
        )  # fmt: skip
        return dk.cpu().numpy(), dv.cpu().numpy()

    return run


def dq_of(answer):
    """Return a function of one head that calls `answer` for each row block and returns dQ.

    answer: takes i, q, do, lse, delta, pointers to K and V, N_q, N_k, scale, D, B_R and B_C. Each block gets K and
    V of its own, with nan in tiles that none of its rows sees. Raises Finding if dq is not in fp32.
    """

    def run(Q, dO, lse, delta, K, V, scale, B_R, B_C):
        (N_q, D), N_k = Q.shape, len(K)
        T_r = triton.cdiv(N_q, B_R)
        keys = [
            _with_nan(np.stack([poisoned(_padded(X), i, N_q, B_R, B_C, N_k) for i in range(T_r)])) for X in (K, V)
        ]
        dQ = torch.full((N_q, D), torch.nan, device=DEVICE)
        _launch(
            _dq_kernel, T_r, ("dq",), *map(_plain, (Q, dO, lse, delta)), *keys, dQ,
            last=(keys[0].stride(0), N_q, N_k, scale), f=answer, D=D, B_R=B_R, B_C=B_C,
        )  # fmt: skip
        return dQ.cpu().numpy()

    return run


def _plain(X):
    return torch.from_numpy(np.ascontiguousarray(X)).to(DEVICE)


def _padded(X):
    return np.concatenate([X, np.full((POISON, *X.shape[1:]), np.nan, X.dtype)])


def _with_nan(X):
    """Return X as a tensor, before and after which nan lies in memory."""
    around = np.full((POISON, *X.shape[1:]), np.nan, X.dtype)
    return torch.from_numpy(np.concatenate([around, X, around])).to(DEVICE)[POISON:]


def _launch(kernel, programs, outputs, *tensors, last, **constants):
    in_16_bits = f"{' or '.join(outputs)} is returned in 16 bits: sums stay in fp32, whatever the inputs are in"
    in_fp32 = torch.zeros(1, device=DEVICE)
    try:
        unwrapped(lambda: kernel[(programs,)](*tensors, in_fp32, *last, **constants))
    except Exception as error:
        if "same dtype" in str(error):
            raise Finding(DTYPES) from None
        if "Loop-carried variable" in str(error):  # so the compiler, of sums that change their type
            raise Finding(in_16_bits) from None
        raise
    if not in_fp32[0]:
        raise Finding(in_16_bits)


@triton.jit
def _dkv_kernel(
    K_ptr, V_ptr, Q_ptr, dO_ptr, lse_ptr, delta_ptr, dK_ptr, dV_ptr, in_fp32_ptr, N_q, scale,
    f: tl.constexpr, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
):  # fmt: skip
    cols = tl.arange(0, B_C)[:, None] * D + tl.arange(0, D)[None, :]  # (B_C, D)
    k = tl.load(K_ptr + cols)
    v = tl.load(V_ptr + cols)
    dk, dv = f(k, v, Q_ptr, dO_ptr, lse_ptr, delta_ptr, N_q, scale, D, B_R, B_C)
    tl.store(dK_ptr + cols, dk)
    tl.store(dV_ptr + cols, dv)
    tl.store(in_fp32_ptr, 1.0 if dk.dtype == tl.float32 and dv.dtype == tl.float32 else 0.0)


@triton.jit
def _dq_kernel(
    Q_ptr, dO_ptr, lse_ptr, delta_ptr, K_ptr, V_ptr, dQ_ptr, in_fp32_ptr, keys, N_q, N_k, scale,
    f: tl.constexpr, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0)
    offs_m = i * B_R + tl.arange(0, B_R)
    inside = offs_m < N_q
    rows = offs_m[:, None] * D + tl.arange(0, D)[None, :]  # (B_R, D)
    q = tl.load(Q_ptr + rows, mask=inside[:, None], other=0.0)
    do = tl.load(dO_ptr + rows, mask=inside[:, None], other=0.0)
    lse = tl.load(lse_ptr + offs_m, mask=inside, other=0.0)
    delta = tl.load(delta_ptr + offs_m, mask=inside, other=0.0)
    dq = f(i, q, do, lse, delta, K_ptr + i * keys, V_ptr + i * keys, N_q, N_k, scale, D, B_R, B_C)
    tl.store(dQ_ptr + rows, dq, mask=inside[:, None])
    tl.store(in_fp32_ptr, 1.0 if dq.dtype == tl.float32 else 0.0)
