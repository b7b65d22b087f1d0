"""Kernels that call the parts of backward kernels in answers: the loop for dK and dV, and the loop for dQ.

Results that an answer does not set are nan, and nan surrounds its inputs.
"""

# ruff: noqa: I001  flashlib.kernels before triton
from collections.abc import Callable

import numpy as np
import torch

from flashlib.checks.engine import Finding, Measured
from flashlib.checks.harness.gradient import poisoned, visited
from flashlib.checks.harness.launches import launched
from flashlib.checks.harness.parts import POISON, amid_nan, launch_watched, tensor
from flashlib.kernels import DEVICE
import triton
import triton.language as tl

IDS = "one_dtype", "in_16_bits"
PRODUCTS = 3  # for dQ of a tile: S, dP and dS K


def deltas(answer: Callable) -> Callable:
    """Return a function of O, dO and an Out for delta that launches the kernel `answer` on blocks of ROWS rows."""

    def launch(O, dO, delta, ROWS):
        N_q, D = O.shape
        answer[(triton.cdiv(N_q, ROWS),)](O, dO, delta, N_q, D, ROWS)

    return launched(launch)


def dkv_of(answer: Callable) -> Callable:
    """Return a function of a column block and all rows that calls `answer` once; it returns dk and dv, Measured.

    answer: takes k, v, pointers to Q, dO, lse and delta, N_q, scale, D, B_R and B_C. Raises Finding if dk or dv is
    not in fp32, or is nan because of reading past the end.
    """

    def run(k, v, Q, dO, lse, delta, scale, B_R):
        B_C, D = k.shape
        rows = {name: amid_nan(X) for name, X in (("Q", Q), ("dO", dO), ("lse", lse), ("delta", delta))}
        dk, dv = torch.full((2, B_C, D), torch.nan, device=DEVICE)
        watch, used = launch_watched(
            _dkv_kernel, 1, ("dk", "dv"), rows, *map(tensor, (k, v)), *rows.values(), dk, dv,
            last=(len(Q), scale), ids=IDS, f=answer, D=D, B_R=B_R, B_C=B_C,
        )  # fmt: skip
        found = Finding("read_past", name=watch.outside) if watch.outside else used
        if watch.outside and (dk.isnan().any() or dv.isnan().any()):
            raise found
        return Measured((dk.cpu().numpy(), dv.cpu().numpy()), found)

    return run


def dq_of(answer: Callable) -> Callable:
    """Return a function of one head that calls `answer` for each row block and returns dQ, Measured.

    answer: takes i, q, do, lse, delta, pointers to K and V, N_q, N_k, scale, D, B_R and B_C. Each block gets its
    own K and V, with nan in tiles that none of its rows sees. Raises Finding if dq is not in fp32.
    """

    def run(Q, dO, lse, delta, K, V, scale, B_R, B_C):
        (N_q, D), N_k = Q.shape, len(K)
        T_r = triton.cdiv(N_q, B_R)
        keys = [amid_nan(np.stack([_padded(poisoned(X, i, N_q, B_R, B_C)) for i in range(T_r)])) for X in (K, V)]
        seen = {f"{name}_{i}": X[i, : visited(i, N_q, N_k, B_R, B_C)]
                for name, X in zip("KV", keys, strict=True) for i in range(T_r)}  # fmt: skip
        dQ = torch.full((N_q, D), torch.nan, device=DEVICE)
        watch, found = launch_watched(
            _dq_kernel, T_r, ("dq",), seen, *map(tensor, (Q, dO, lse, delta)), *keys, dQ,
            last=(keys[0].stride(0), N_q, N_k, scale), ids=IDS, f=answer, D=D, B_R=B_R, B_C=B_C,
        )  # fmt: skip
        if watch.outside:
            found = Finding("read_past" if len(seen[watch.outside]) == N_k else "hidden_read")
        tiles = sum(triton.cdiv(visited(i, N_q, N_k, B_R, B_C), B_C) for i in range(T_r))
        if watch.idle and watch.products.total() > PRODUCTS * tiles:
            found = found or Finding("hidden_visited")
        return Measured(dQ.cpu().numpy(), found)

    return run


def _padded(X):
    return np.concatenate([X, np.full((POISON, *X.shape[1:]), np.nan, X.dtype)])


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
    in_fp32: tl.constexpr = dq.dtype == tl.float32
    tl.store(dQ_ptr + rows, dq, mask=inside[:, None])
    tl.store(in_fp32_ptr, 1.0 if in_fp32 else 0.0)
