"""Softmax of the rows of a matrix: one program a row, online over blocks of it."""

import torch
import triton
import triton.language as tl

from flashlib.inputs import check_tensors
from flashlib.kernels.launch.inputs import (
    DTYPES,
    check_device,
    check_no_gradient,
    check_readable,
    kernel_input,
    on_device_of,
)

MAX_BLOCK = 4096


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Return softmax over the last axis of x, a torch tensor (..., N) of float16, bfloat16 or float32.

    Reads x twice and writes once; computes in fp32. A row of -inf gives zeros.
    Raises TypeError or ValueError for anything else, before any work.
    Source: Milakov & Gimelshein, Online normalizer calculation for softmax (2018), Algorithm 3, over blocks.
    """
    check_tensors(DTYPES, x=x)
    check_device(x=x)
    check_no_gradient(x=x)
    check_readable(x=x)
    if x.ndim == 0:
        raise ValueError("x has shape (); expected at least one axis, (..., N)")
    X = kernel_input(x.reshape(-1, x.shape[-1]) if x.numel() else x.reshape(0, x.shape[-1]))
    Y = torch.empty_like(X)
    n_rows, N = X.shape
    if X.numel():
        block = min(triton.next_power_of_2(N), MAX_BLOCK)
        with on_device_of(X):
            _softmax[(n_rows,)](X, Y, X.stride(0), Y.stride(0), N, BLOCK=block)
    return Y.to(x.dtype).reshape(x.shape)


@triton.jit
def _softmax(X_ptr, Y_ptr, stride_x, stride_y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = -float("inf")
    l = 0.0
    for start in range(0, N, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(X_ptr + row * stride_x + offs, mask=offs < N, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        shift = tl.where(m_new == -float("inf"), 0.0, m_new)  # -inf - (-inf) would be nan
        l = l * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=0)
        m = m_new
    shift = tl.where(m == -float("inf"), 0.0, m)
    divisor = tl.where(l == 0.0, 1.0, l)
    for start in range(0, N, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(X_ptr + row * stride_x + offs, mask=offs < N, other=-float("inf")).to(tl.float32)
        y = tl.exp(x - shift) / divisor
        tl.store(Y_ptr + row * stride_y + offs, y.to(Y_ptr.dtype.element_ty), mask=offs < N)
