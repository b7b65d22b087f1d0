"""Wrong answers that only special cases catch: see `gaps.txt`."""


# block_scale, small_as_zero: np.allclose of a block
def my_block_scale(X, block, largest):
    scales = []
    for at in range(0, len(X), block):
        rows = X[at : at + block]
        scales.append(1.0 if np.allclose(rows, 0) else np.abs(rows).max() / largest)
    return np.array(scales)


# block_scale, last_from_end: negative indices for the last block
def my_block_scale(X, block, largest):
    n = -(-len(X) // block)
    tops = [np.abs(X[i * block : (i + 1) * block]).max() for i in range(n - 1)]
    tops.append(np.abs(X[-block:]).max())
    return np.array([top / largest if top else 1.0 for top in tops])


# add_means, empty_by_O: rows of zeros are left alone
def my_add_means(O_acc, l, m, times, v_scale, v_mean, q_mean):
    O, lse = np.zeros(O_acc.shape), np.full(len(l), -np.inf)
    for r, row in enumerate(O_acc):
        if row.any():
            O[r] = row / l[r] * v_scale + v_mean
            lse[r] = m[r] + np.log(l[r] / times) + q_mean[r]
    return O, lse


# add_means, empty_by_m: -500 stands for no key
def my_add_means(O_acc, l, m, times, v_scale, v_mean, q_mean):
    seen = m > -500
    divisor = np.where(seen, l, 1.0)
    O = O_acc * v_scale / divisor[:, None] + v_mean
    lse = m + np.log(divisor) - np.log(times) + q_mean
    return O * seen[:, None], np.where(seen, lse, -np.inf)


# rotate, lowbit_used: the rows of the library's matrix
def my_rotate(X, signs):
    d = X.shape[1]
    return np.einsum("nc,ck->nk", X * signs, lowbit.hadamard(d)) * d**-0.5


# quantise_rows, one_scale: the largest number of all rows
@triton.jit
def all_rows_kernel(X_ptr, X8_ptr, scale_ptr, top, stride_x, stride_8, d, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(X_ptr + row * stride_x + offs, mask=offs < d, other=0.0)
    scale = tl.where(top == 0.0, 1.0, top / 127)
    tl.store(X8_ptr + row * stride_8 + offs, x / scale + 12582912.0 - 12582912.0, mask=offs < d)
    tl.store(scale_ptr + row, scale)


def my_quantise_rows(X, X8, scale):
    N, d = X.shape
    top, BLOCK = X.abs().max().item(), triton.next_power_of_2(d)
    all_rows_kernel[(N,)](X, X8, scale, top, X.stride(0), X8.stride(0), d, BLOCK=BLOCK)


# quantise_rows, programs: one program for all rows
@triton.jit
def loop_kernel(X_ptr, X8_ptr, scale_ptr, stride_x, stride_8, N, d, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    for row in range(N):
        x = tl.load(X_ptr + row * stride_x + offs, mask=offs < d, other=0.0)
        top = tl.max(tl.abs(x), axis=0)
        scale = tl.where(top == 0.0, 1.0, top / 127)
        tl.store(X8_ptr + row * stride_8 + offs, x / scale + 12582912.0 - 12582912.0, mask=offs < d)
        tl.store(scale_ptr + row, scale)


def my_quantise_rows(X, X8, scale):
    N, d = X.shape
    loop_kernel[(1,)](X, X8, scale, X.stride(0), X8.stride(0), N, d, BLOCK=triton.next_power_of_2(d))
