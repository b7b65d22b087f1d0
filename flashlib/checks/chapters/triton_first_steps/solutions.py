"""Solutions of this chapter."""

# ruff: noqa: I001
import flashlib.kernels  # noqa: F401  before triton
import torch  # noqa: F401
import triton
import triton.language as tl


# exercise: add
@triton.jit
def strided_add_kernel(x_ptr, y_ptr, out_ptr, stride_x, stride_y, stride_out, N, BLOCK: tl.constexpr):
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # numbers of elements
    mask = n < N
    x = tl.load(x_ptr + n * stride_x, mask=mask)
    y = tl.load(y_ptr + n * stride_y, mask=mask)
    tl.store(out_ptr + n * stride_out, x + y, mask=mask)


def my_add(x, y, out):
    N = len(x)
    grid = (triton.cdiv(N, 32),)
    strided_add_kernel[grid](x, y, out, x.stride(0), y.stride(0), out.stride(0), N, BLOCK=32)


# exercise: scale_exp
@triton.jit
def scale_exp_kernel(x_ptr, y_ptr, scale, N, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < N)
    tl.store(y_ptr + offs, tl.exp(x * scale), mask=offs < N)


def my_scale_exp(x, y, scale):
    scale_exp_kernel[(triton.cdiv(len(x), 32),)](x, y, scale, len(x), BLOCK=32)


# exercise: causal_softmax
@triton.jit
def causal_softmax_kernel(S_ptr, P_ptr, stride_s, stride_p, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    s = tl.load(S_ptr + row * stride_s + offs, mask=offs <= row, other=-float("inf"))
    p = tl.exp(s - tl.max(s, axis=0))  # 0 where s is -inf
    tl.store(P_ptr + row * stride_p + offs, p / tl.sum(p, axis=0), mask=offs < N)


def my_causal_softmax(S, P):
    N = len(S)
    causal_softmax_kernel[(N,)](S, P, S.stride(0), P.stride(0), N, BLOCK=triton.next_power_of_2(N))


# exercise: row_max
@triton.jit
def row_max_kernel(X_ptr, m_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = -float("inf")
    for start in range(0, N, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(X_ptr + row * stride_x + offs, mask=offs < N, other=-float("inf"))
        m = tl.maximum(m, tl.max(x, axis=0))
    tl.store(m_ptr + row, m)


def my_row_max(X, m):
    row_max_kernel[(X.shape[0],)](X, m, X.stride(0), X.shape[1], BLOCK=16)


# exercise: online_block
@triton.jit
def block_kernel(X_ptr, m_ptr, l_ptr, m_new_ptr, l_new_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(X_ptr + row * stride_x + offs, mask=offs < N, other=-float("inf"))
    m = tl.load(m_ptr + row)
    l = tl.load(l_ptr + row)
    m_new = tl.maximum(m, tl.max(x, axis=0))
    shift = tl.where(m_new == -float("inf"), 0.0, m_new)
    l_new = l * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=0)
    tl.store(m_new_ptr + row, m_new)
    tl.store(l_new_ptr + row, l_new)


def my_online_block(X, m, l, m_new, l_new):
    block_kernel[(X.shape[0],)](X, m, l, m_new, l_new, X.stride(0), X.shape[1], BLOCK=16)


# exercise: row_lse
@triton.jit
def lse_kernel(X_ptr, lse_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = -float("inf")
    l = 0.0
    for start in range(0, N, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(X_ptr + row * stride_x + offs, mask=offs < N, other=-float("inf"))
        m_new = tl.maximum(m, tl.max(x, axis=0))
        shift = tl.where(m_new == -float("inf"), 0.0, m_new)
        l = l * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=0)
        m = m_new
    tl.store(lse_ptr + row, m + tl.log(tl.where(l == 0.0, 1.0, l)))


def my_row_lse(X, lse):
    lse_kernel[(X.shape[0],)](X, lse, X.stride(0), X.shape[1], BLOCK=16)
