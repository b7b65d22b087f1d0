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


# exercise: transpose
@triton.jit
def my_transpose(
    X_ptr, Y_ptr, n_rows, n_cols, stride_xr, stride_xc, stride_yr, stride_yc,
    B_R: tl.constexpr, B_C: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(0) * B_R + tl.arange(0, B_R)  # rows of X, columns of Y
    c = tl.program_id(1) * B_C + tl.arange(0, B_C)
    mask = (r[:, None] < n_rows) & (c[None, :] < n_cols)  # (B_R, B_C)
    tile = tl.load(X_ptr + r[:, None] * stride_xr + c[None, :] * stride_xc, mask=mask)
    tl.store(Y_ptr + c[None, :] * stride_yr + r[:, None] * stride_yc, tile, mask=mask)


# exercise: scores
@triton.jit
def my_scores(
    Q_ptr, K_ptr, S_ptr, N_q, N_k, scale, stride_qh, stride_qn, stride_qd, stride_kh, stride_kn, stride_kd,
    stride_sh, stride_sq, stride_sk, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
):  # fmt: skip
    h = tl.program_id(2)
    r = tl.program_id(0) * B_R + tl.arange(0, B_R)  # queries
    c = tl.program_id(1) * B_C + tl.arange(0, B_C)  # keys
    d = tl.arange(0, D)
    q_ptrs = Q_ptr + h * stride_qh + r[:, None] * stride_qn + d[None, :] * stride_qd  # (B_R, D)
    k_ptrs = K_ptr + h * stride_kh + c[:, None] * stride_kn + d[None, :] * stride_kd  # (B_C, D)
    q = tl.load(q_ptrs, mask=r[:, None] < N_q, other=0.0)
    k = tl.load(k_ptrs, mask=c[:, None] < N_k, other=0.0)
    S = tl.dot(q, k.T, input_precision="ieee") * scale  # (B_R, B_C), in fp32
    S = tl.where((r[:, None] < N_q) & (c[None, :] < N_k), S, -float("inf"))
    tl.store(S_ptr + h * stride_sh + r[:, None] * stride_sq + c[None, :] * stride_sk, S)


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


# exercise: online_block
@triton.jit
def blocks_kernel(X_ptr, m_ptr, l_ptr, m_new_ptr, l_new_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(X_ptr + row * stride_x + offs, mask=offs < N, other=-float("inf"))
    m = tl.max(x, axis=0)
    l = tl.sum(tl.exp(x - m), axis=0)
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, l)

    more = BLOCK + offs
    x_2 = tl.load(X_ptr + row * stride_x + more, mask=more < N, other=-float("inf"))
    m_new = tl.maximum(m, tl.max(x_2, axis=0))
    l_new = l * tl.exp(m - m_new) + tl.sum(tl.exp(x_2 - m_new), axis=0)
    tl.store(m_new_ptr + row, m_new)
    tl.store(l_new_ptr + row, l_new)


def my_online_block(X, m, l, m_new, l_new):
    blocks_kernel[(X.shape[0],)](X, m, l, m_new, l_new, X.stride(0), X.shape[1], BLOCK=16)


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
