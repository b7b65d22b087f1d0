"""Right answers in other styles: see `tests.checks.answers`."""


# add: offsets that wrap around in place of a mask on the loads
@triton.jit
def kernel(x, y, out, sx, sy, so, N, B: tl.constexpr):
    n = tl.program_id(0) * B + tl.arange(0, B)
    a = tl.load(x + (n % N) * sx)
    b = tl.load(y + (n % N) * sy)
    tl.store(out + n * so, a + b, mask=n < N)


def my_add(x, y, out):
    kernel[(triton.cdiv(len(x), 32),)](x, y, out, x.stride(0), y.stride(0), out.stride(0), len(x), 32)


# add: a program for each element
@triton.jit
def kernel(x, y, out, sx, sy, so):
    n = tl.program_id(0)
    tl.store(out + n * so, tl.load(x + n * sx) + tl.load(y + n * sy))


def my_add(x, y, out):
    kernel[(len(x),)](x, y, out, x.stride(0), y.stride(0), out.stride(0))


# add: whole blocks without a mask, and the last one with it, in one program
@triton.jit
def kernel(x, y, out, sx, sy, so, N, B: tl.constexpr):
    whole = N // B * B
    for start in range(0, whole, B):
        n = start + tl.arange(0, B)
        tl.store(out + n * so, tl.load(x + n * sx) + tl.load(y + n * sy))
    n = whole + tl.arange(0, B)
    tl.store(out + n * so, tl.load(x + n * sx, n < N) + tl.load(y + n * sy, n < N), n < N)


def my_add(x, y, out):
    if len(x) > 0:
        kernel[(1,)](x, y, out, x.stride(0), y.stride(0), out.stride(0), len(x), 32)


# add: autotuned
@triton.autotune(configs=[triton.Config({"B": 32}), triton.Config({"B": 64}, num_warps=2)], key=["N"])
@triton.jit
def kernel(x, y, out, sx, sy, so, N, B: tl.constexpr):
    n = tl.program_id(0) * B + tl.arange(0, B)
    a = tl.load(x + n * sx, mask=n < N)
    b = tl.load(y + n * sy, mask=n < N)
    tl.store(out + n * so, a + b, mask=n < N)


def my_add(x, y, out):
    grid = lambda meta: (triton.cdiv(x.numel(), meta["B"]),)
    kernel[grid](x, y, out, x.stride(0), y.stride(0), out.stride(0), x.numel())


# scale_exp: heuristics choose the block
@triton.heuristics({"B": lambda args: 32})
@triton.jit
def kernel(x, y, scale, N, B: tl.constexpr):
    n = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + n, tl.exp(tl.load(x + n, mask=n < N, other=0.0) * scale), mask=n < N)


def my_scale_exp(x, y, scale):
    kernel[(triton.cdiv(x.shape[0], 32),)](x, y, scale, x.shape[0])


# scale_exp: a power of 2 of scaled exponents, loaded and stored by a block pointer
@triton.jit
def kernel(x, y, scale, N, B: tl.constexpr):
    p = tl.program_id(0)
    source = tl.make_block_ptr(x, (N,), (1,), (p * B,), (B,), (0,))
    target = tl.make_block_ptr(y, (N,), (1,), (p * B,), (B,), (0,))
    values = tl.load(source, boundary_check=(0,), padding_option="zero")
    tl.store(target, tl.exp2(values * (scale * 1.4426950408889634)), boundary_check=(0,))


def my_scale_exp(x, y, scale):
    kernel[(triton.cdiv(len(x), 32),)](x, y, scale, len(x), B=32)


# scale_exp: poisoned first, and in whole and last blocks of two launches
@triton.jit
def kernel(x, y, scale, first, N, B: tl.constexpr, MASKED: tl.constexpr):
    n = first + tl.program_id(0) * B + tl.arange(0, B)
    if MASKED:
        tl.store(y + n, tl.exp(tl.load(x + n, mask=n < N) * scale), mask=n < N)
    else:
        tl.store(y + n, tl.exp(tl.load(x + n) * scale))


def my_scale_exp(x, y, scale):
    N = len(x)
    y.fill_(float("nan"))
    if N >= 32:
        kernel[(N // 32,)](x, y, scale, 0, N, B=32, MASKED=False)
    if N % 32:
        kernel[(1,)](x, y, scale, N // 32 * 32, N, B=32, MASKED=True)


# scale_exp: cached, and the scale is a tensor
import functools


@triton.jit
def kernel(x, y, scale, N, B: tl.constexpr):
    n = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + n, tl.exp(tl.load(x + n, mask=n < N) * tl.load(scale)), mask=n < N)


@functools.cache
def my_scale_exp(x, y, scale):
    kernel[(triton.cdiv(len(x), 32),)](x, y, torch.tensor([float(scale)], device=x.device), len(x), 32)


# causal_softmax: more programs than rows
@triton.jit
def kernel(S, P, s_row, p_row, N, B: tl.constexpr):
    r = tl.program_id(0)
    if r < N:
        c = tl.arange(0, B)
        s = tl.load(S + r * s_row + c, mask=c < N, other=-float("inf"))
        s = tl.where(c <= r, s, -float("inf"))
        e = tl.exp(s - tl.max(s, 0))
        tl.store(P + r * p_row + c, e / tl.sum(e, 0), mask=c < N)


def my_causal_softmax(S, P):
    N = len(S)
    kernel[(triton.cdiv(N, 8) * 8,)](S, P, S.stride(0), P.stride(0), N, B=triton.next_power_of_2(N))


# causal_softmax: P is 0 before, tl.softmax, and a block of 16 places at least
@triton.jit
def kernel(S, P, s_row, p_row, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    s = tl.load(S + r * s_row + c, mask=c <= r, other=float("-inf"))
    tl.store(P + r * p_row + c, tl.softmax(s), mask=c <= r)


def my_causal_softmax(S, P):
    P.zero_()
    kernel[(len(S),)](S, P, S.stride(0), P.stride(0), B=max(16, triton.next_power_of_2(len(S))))


# causal_softmax: scalar after scalar
@triton.jit
def kernel(S, P, s_row, p_row, N):
    r = tl.program_id(0)
    m = tl.load(S + r * s_row)
    for c in range(1, r + 1):
        m = tl.maximum(m, tl.load(S + r * s_row + c))
    l = 0.0
    for c in range(0, r + 1):
        l += tl.exp(tl.load(S + r * s_row + c) - m)
    for c in range(0, N):
        if c <= r:
            tl.store(P + r * p_row + c, tl.exp(tl.load(S + r * s_row + c) - m) / l)
        else:
            tl.store(P + r * p_row + c, 0.0)


def my_causal_softmax(S, P):
    kernel[(len(S),)](S, P, S.stride(0), P.stride(0), len(S))


# online_block: an update in a function of its own, called twice
@triton.jit
def updated(m, l, x):
    top = tl.max(x, 0)
    new = tl.where(top > m, top, m)
    safe = tl.where(new == float("-inf"), 0.0, new)
    return new, tl.sum(tl.exp(x - safe), 0) + tl.exp(m - safe) * l


@triton.jit
def kernel(X, m, l, m_new, l_new, stride, N, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    top, total = updated(-float("inf"), 0.0, tl.load(X + row * stride + c, mask=c < N, other=-float("inf")))
    tl.store(m + row, top)
    tl.store(l + row, total)
    c += B
    top, total = updated(top, total, tl.load(X + row * stride + c, mask=c < N, other=-float("inf")))
    tl.store(m_new + row, top)
    tl.store(l_new + row, total)


def my_online_block(X, m, l, m_new, l_new):
    kernel[(len(m),)](X, m, l, m_new, l_new, X.stride(0), X.shape[1], B=16)


# online_block: the second block has a state of its own, and the two are merged
@triton.jit
def state(ptr, c, N):
    x = tl.load(ptr + c, mask=c < N, other=-float("inf"))
    m = tl.max(x, 0)
    return m, tl.sum(tl.where(x == -float("inf"), 0.0, tl.exp(x - m)), 0)


@triton.jit
def kernel(X, m_ptr, l_ptr, m_new_ptr, l_new_ptr, stride, N, B: tl.constexpr):
    row = tl.program_id(0)
    m_a, l_a = state(X + row * stride, tl.arange(0, B), N)
    m_b, l_b = state(X + row * stride, B + tl.arange(0, B), N)
    m = tl.maximum(m_a, m_b)
    tl.store(m_ptr + row, m_a)
    tl.store(l_ptr + row, l_a)
    tl.store(m_new_ptr + row, m)
    tl.store(l_new_ptr + row, l_a * tl.exp(m_a - m) + l_b * tl.exp(m_b - m))


def my_online_block(X, m, l, m_new, l_new):
    kernel[(X.shape[0],)](X, m, l, m_new, l_new, X.stride(0), X.shape[1], B=16)


# online_block: score after score
@triton.jit
def kernel(X, m_ptr, l_ptr, m_new_ptr, l_new_ptr, stride, N):
    row = tl.program_id(0)
    m = -float("inf")
    l = 0.0
    for c in range(0, N):
        x = tl.load(X + row * stride + c)
        if x > m:
            l = l * tl.exp(m - x) + 1.0
            m = x
        elif x > -float("inf"):
            l += tl.exp(x - m)
        if c == 15 or c == N - 1 and N < 16:
            tl.store(m_ptr + row, m)
            tl.store(l_ptr + row, l)
    tl.store(m_new_ptr + row, m)
    tl.store(l_new_ptr + row, l)


def my_online_block(X, m, l, m_new, l_new):
    kernel[(X.shape[0],)](X, m, l, m_new, l_new, X.stride(0), X.shape[1])


# online_block: loads without other, and tl.where leaves their hidden lanes out
@triton.jit
def kernel(X, m_ptr, l_ptr, m_new_ptr, l_new_ptr, stride, N, B: tl.constexpr):
    row = tl.program_id(0)
    c, later = tl.arange(0, B), B + tl.arange(0, B)
    x = tl.load(X + row * stride + c, mask=c < N)
    m = tl.max(tl.where(c < N, x, float("-inf")), 0)
    l = tl.sum(tl.where(c < N, tl.exp(x - m), 0.0), 0)
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, l)
    x = tl.load(X + row * stride + later, mask=later < N)
    m_new = tl.maximum(m, tl.max(tl.where(later < N, x, float("-inf")), 0))
    tl.store(m_new_ptr + row, m_new)
    tl.store(l_new_ptr + row, l / tl.exp(m_new - m) + tl.sum(tl.where(later < N, tl.exp(x - m_new), 0.0), 0))


def my_online_block(X, m, l, m_new, l_new):
    kernel[(X.shape[0],)](X, m, l, m_new, l_new, X.stride(0), X.shape[1], B=16)


# online_block: the second block only if there is one, and offsets that wrap around in the first
@triton.jit
def kernel(X, m_ptr, l_ptr, m_new_ptr, l_new_ptr, stride, N, B: tl.constexpr):
    row = tl.program_id(0)
    X += row * stride
    c = tl.arange(0, B)
    x = tl.where(c < N, tl.load(X + tl.minimum(c, N - 1)), -float("inf"))
    m = tl.max(x)
    l = tl.sum(tl.exp(x - m))
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, l)
    if N > B:
        x = tl.load(X + B + c, B + c < N, -float("inf"))
        old = m
        m = tl.maximum(old, tl.max(x))
        l = tl.exp(old - m) * l
        l += tl.sum(tl.exp(x - m))
    tl.store(m_new_ptr + row, m)
    tl.store(l_new_ptr + row, l)


def my_online_block(X, m, l, m_new, l_new):
    kernel[(X.shape[0],)](X, m, l, m_new, l_new, X.stride(0), X.shape[1], B=16)


# transpose: the tile is transposed on the chip, and its mask with it
@triton.jit
def my_transpose(
    X_ptr, Y_ptr, n_rows, n_cols, stride_xr, stride_xc, stride_yr, stride_yc, B_R: tl.constexpr, B_C: tl.constexpr
):
    i, j = tl.program_id(0), tl.program_id(1)
    rows = (i * B_R + tl.arange(0, B_R))[:, None]
    cols = (j * B_C + tl.arange(0, B_C))[None, :]
    inside = (rows < n_rows) & (cols < n_cols)
    tile = tl.load(X_ptr + rows * stride_xr + cols * stride_xc, mask=inside, other=0.0)
    tl.store(Y_ptr + tl.trans(cols) * stride_yr + tl.trans(rows) * stride_yc, tl.trans(tile), mask=tl.trans(inside))


# transpose: the tile of Y is loaded, so that both accesses have its shape
@triton.jit
def my_transpose(X, Y, R, C, sxr, sxc, syr, syc, B_R: tl.constexpr, B_C: tl.constexpr):
    y_row = tl.program_id(1) * B_C + tl.arange(0, B_C)
    y_col = tl.program_id(0) * B_R + tl.arange(0, B_R)
    inside = (y_col < R)[None, :] & (y_row < C)[:, None]
    y = tl.load(X + y_row[:, None] * sxc + y_col[None, :] * sxr, inside)
    tl.store(Y + y_row[:, None] * syr + y_col[None, :] * syc, y, inside)


# transpose: block pointers
@triton.jit
def my_transpose(
    X_ptr, Y_ptr, n_rows, n_cols, stride_xr, stride_xc, stride_yr, stride_yc, B_R: tl.constexpr, B_C: tl.constexpr
):
    i, j = tl.program_id(0), tl.program_id(1)
    source = tl.make_block_ptr(
        X_ptr, (n_rows, n_cols), (stride_xr, stride_xc), (i * B_R, j * B_C), (B_R, B_C), (1, 0)
    )
    target = tl.make_block_ptr(
        Y_ptr, (n_cols, n_rows), (stride_yr, stride_yc), (j * B_C, i * B_R), (B_C, B_R), (1, 0)
    )
    tile = tl.load(source, boundary_check=(0, 1))
    tl.store(target, tl.trans(tile), boundary_check=(0, 1))


# transpose: row after row of the tile
@triton.jit
def my_transpose(
    X_ptr, Y_ptr, n_rows, n_cols, stride_xr, stride_xc, stride_yr, stride_yc, B_R: tl.constexpr, B_C: tl.constexpr
):
    first = tl.program_id(0) * B_R
    c = tl.program_id(1) * B_C + tl.arange(0, B_C)
    for r in range(first, tl.minimum(first + B_R, n_rows)):
        x = tl.load(X_ptr + r * stride_xr + c * stride_xc, mask=c < n_cols)
        tl.store(Y_ptr + r * stride_yc + c * stride_yr, x, mask=c < n_cols)


# transpose: offsets that wrap around in place of a mask, on both accesses
@triton.jit
def my_transpose(
    X_ptr, Y_ptr, n_rows, n_cols, stride_xr, stride_xc, stride_yr, stride_yc, B_R: tl.constexpr, B_C: tl.constexpr
):
    r = ((tl.program_id(0) * B_R + tl.arange(0, B_R)) % n_rows)[:, None]
    c = ((tl.program_id(1) * B_C + tl.arange(0, B_C)) % n_cols)[None, :]
    tl.store(Y_ptr + c * stride_yr + r * stride_yc, tl.load(X_ptr + r * stride_xr + c * stride_xc))


# transpose: pointers that move to the tile, and a function for the offsets
@triton.jit
def offsets(a, stride_a, b, stride_b):
    return a[:, None] * stride_a + b[None, :] * stride_b


@triton.jit
def my_transpose(
    X_ptr, Y_ptr, n_rows, n_cols, stride_xr, stride_xc, stride_yr, stride_yc, B_R: tl.constexpr, B_C: tl.constexpr
):
    row, col = tl.program_id(0).to(tl.int64) * B_R, tl.program_id(1).to(tl.int64) * B_C
    X_ptr += row * stride_xr + col * stride_xc
    Y_ptr += col * stride_yr + row * stride_yc
    a, b = tl.arange(0, B_R), tl.arange(0, B_C)
    left = (a < n_rows - row)[:, None] & (b < n_cols - col)[None, :]
    x = tl.load(X_ptr + offsets(a, stride_xr, b, stride_xc), mask=left)
    tl.store(Y_ptr + offsets(a, stride_yc, b, stride_yr), x, mask=left)


# scores: K is loaded as a tile of its transpose
@triton.jit
def my_scores(
    Q_ptr, K_ptr, S_ptr, N_q, N_k, scale, stride_qh, stride_qn, stride_qd, stride_kh, stride_kn, stride_kd,
    stride_sh, stride_sq, stride_sk, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
):  # fmt: skip
    i, j, h = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    Q_ptr += h * stride_qh
    K_ptr += h * stride_kh
    S_ptr += h * stride_sh
    m = i * B_R + tl.arange(0, B_R)
    n = j * B_C + tl.arange(0, B_C)
    d = tl.arange(0, D)
    q = tl.load(Q_ptr + m[:, None] * stride_qn + d[None, :] * stride_qd, mask=m[:, None] < N_q, other=0)
    kT = tl.load(K_ptr + d[:, None] * stride_kd + n[None, :] * stride_kn, mask=n[None, :] < N_k, other=0)
    S = scale * tl.dot(q, kT, input_precision="ieee")
    hidden = (m >= N_q)[:, None] | (n >= N_k)[None, :]
    tl.store(S_ptr + m[:, None] * stride_sq + n[None, :] * stride_sk, tl.where(hidden, float("-inf"), S))


# scores: products and their sum in fp32, without tl.dot
@triton.jit
def my_scores(Q, K, S, N_q, N_k, s, qh, qn, qd, kh, kn, kd, sh, sq, sk, D: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    h = tl.program_id(2)
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.program_id(1) * C + tl.arange(0, C)
    d = tl.arange(0, D)
    q = tl.load(Q + h * qh + r[:, None] * qn + d[None, :] * qd, mask=r[:, None] < N_q, other=0).to(tl.float32) * s
    k = tl.load(K + h * kh + c[:, None] * kn + d[None, :] * kd, mask=c[:, None] < N_k, other=0).to(tl.float32)
    x = tl.sum(q[:, None, :] * k[None, :, :], axis=2)
    x = tl.where(r[:, None] < N_q, x, -float("inf"))
    x = tl.where(c[None, :] < N_k, x, -float("inf"))
    tl.store(S + h * sh + r[:, None] * sq + c[None, :] * sk, x)


# scores: block pointers, and -inf is added
@triton.jit
def my_scores(
    Q_ptr, K_ptr, S_ptr, N_q, N_k, scale, stride_qh, stride_qn, stride_qd, stride_kh, stride_kn, stride_kd,
    stride_sh, stride_sq, stride_sk, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
):  # fmt: skip
    i, j, h = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    Q_block = tl.make_block_ptr(
        Q_ptr + h * stride_qh, (N_q, D), (stride_qn, stride_qd), (i * B_R, 0), (B_R, D), (1, 0)
    )
    K_block = tl.make_block_ptr(
        K_ptr + h * stride_kh, (D, N_k), (stride_kd, stride_kn), (0, j * B_C), (D, B_C), (0, 1)
    )
    q = tl.load(Q_block, boundary_check=(0,), padding_option="zero")
    k = tl.load(K_block, boundary_check=(1,), padding_option="zero")
    r = i * B_R + tl.arange(0, B_R)
    c = j * B_C + tl.arange(0, B_C)
    bias = tl.where((r < N_q)[:, None] & (c < N_k)[None, :], 0.0, -float("inf"))
    S = tl.dot(q, k, input_precision="ieee") * scale + bias
    S_block = tl.make_block_ptr(
        S_ptr + h * stride_sh, (tl.cdiv(N_q, B_R) * B_R, tl.cdiv(N_k, B_C) * B_C), (stride_sq, stride_sk),
        (i * B_R, j * B_C), (B_R, B_C), (1, 0),
    )  # fmt: skip
    tl.store(S_block, S)


# scores: rows that wrap around in place of masks on the loads, and two products over halves of D
@triton.jit
def tile(ptr, rows, stride_n, d, stride_d):
    return tl.load(ptr + rows[:, None] * stride_n + d[None, :] * stride_d)


@triton.jit
def my_scores(
    Q_ptr, K_ptr, S_ptr, N_q, N_k, scale, stride_qh, stride_qn, stride_qd, stride_kh, stride_kn, stride_kd,
    stride_sh, stride_sq, stride_sk, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
):  # fmt: skip
    h = tl.program_id(2).to(tl.int64)
    r = tl.program_id(0) * B_R + tl.arange(0, B_R)
    c = tl.program_id(1) * B_C + tl.arange(0, B_C)
    S = tl.zeros((B_R, B_C), tl.float32)
    for start in range(0, D, 16):
        d = start + tl.arange(0, 16)
        q = tile(Q_ptr + h * stride_qh, r % N_q, stride_qn, d, stride_qd)
        k = tile(K_ptr + h * stride_kh, c % N_k, stride_kn, d, stride_kd)
        S = tl.dot(q, tl.trans(k), S, input_precision="ieee")
    S = tl.where((r[:, None] < N_q) & (c[None, :] < N_k), S * scale, -float("inf"))
    tl.store(S_ptr + h * stride_sh + r[:, None] * stride_sq + c[None, :] * stride_sk, S)


# scores: -inf is stored first, and then what is inside, under a mask
@triton.jit
def my_scores(
    Q_ptr, K_ptr, S_ptr, N_q, N_k, scale, stride_qh, stride_qn, stride_qd, stride_kh, stride_kn, stride_kd,
    stride_sh, stride_sq, stride_sk, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
):  # fmt: skip
    h = tl.program_id(2)
    r = tl.program_id(0) * B_R + tl.arange(0, B_R)
    c = tl.program_id(1) * B_C + tl.arange(0, B_C)
    d = tl.arange(0, D)
    s_ptrs = S_ptr + h * stride_sh + r[:, None] * stride_sq + c[None, :] * stride_sk
    inside = (r[:, None] < N_q) & (c[None, :] < N_k)
    tl.store(s_ptrs, tl.full((B_R, B_C), -float("inf"), tl.float32), mask=inside == 0)
    q = tl.load(Q_ptr + h * stride_qh + r[:, None] * stride_qn + d[None, :] * stride_qd, mask=r[:, None] < N_q)
    k = tl.load(K_ptr + h * stride_kh + c[:, None] * stride_kn + d[None, :] * stride_kd, mask=c[:, None] < N_k)
    q, k = q.to(tl.float32), k.to(tl.float32)
    tl.store(s_ptrs, tl.dot(q * scale, k.T, input_precision="ieee"), mask=inside)


# row_lse: whole blocks without a mask, the last one with it
@triton.jit
def update(m, l, x):
    new = tl.maximum(m, tl.max(x, 0))
    shift = tl.where(new == float("-inf"), 0.0, new)
    return new, l * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), 0)


@triton.jit
def kernel(X, lse, stride, N, B: tl.constexpr):
    row = tl.program_id(0)
    whole = N // B * B
    m = -float("inf")
    l = 0.0
    for start in range(0, whole, B):
        m, l = update(m, l, tl.load(X + row * stride + start + tl.arange(0, B)))
    if whole < N:
        c = whole + tl.arange(0, B)
        m, l = update(m, l, tl.load(X + row * stride + c, mask=c < N, other=-float("inf")))
    tl.store(lse + row, m + tl.log(l))


def my_row_lse(X, lse):
    kernel[(X.shape[0],)](X, lse, X.stride(0), X.shape[1], 16)


# row_lse: the lse itself is carried from block to block, in powers of 2
@triton.jit
def kernel(X, lse, stride, N, B: tl.constexpr):
    row = tl.program_id(0)
    so_far = -float("inf")
    for start in range(0, N, B):
        c = start + tl.arange(0, B)
        x = tl.load(X + row * stride + c, mask=c < N, other=-float("inf"))
        m = tl.maximum(so_far, tl.max(x, 0))
        safe = tl.where(m == -float("inf"), 0.0, m)
        l = tl.exp2((so_far - safe) * 1.4426950408889634) + tl.sum(tl.exp2((x - safe) * 1.4426950408889634), 0)
        so_far = safe + tl.log2(l) * 0.6931471805599453
    tl.store(lse + row, so_far)


def my_row_lse(X, lse):
    kernel[(len(X),)](X, lse, X.stride(0), X.shape[1], B=16)


# row_lse: the kernel stands in the function, and takes tensors by name
def my_row_lse(X, lse):
    @triton.jit
    def kernel(X, lse, stride, N, B: tl.constexpr):
        row = tl.program_id(axis=0)
        m = tl.load(X + row * stride)
        l = 0.0
        for block in range(tl.cdiv(N, B)):
            c = block * B + tl.arange(0, B)
            x = tl.load(X + row * stride + c, mask=c < N, other=float("-inf"))
            old = m
            m = tl.maximum(m, tl.max(x, 0))
            if m > float("-inf"):
                l = l * tl.exp(old - m) + tl.sum(tl.exp(x - m), 0)
        tl.store(lse + row, m + tl.log(l))

    kernel[(X.shape[0],)](X=X, lse=lse, stride=X.stride(0), N=X.shape[1], B=16)
    return lse


# row_lse: score after score, with a branch for -inf
@triton.jit
def kernel(X, lse, stride, N):
    row = tl.program_id(0)
    m = -float("inf")
    l = 0.0
    for c in range(0, N):
        x = tl.load(X + row * stride + c)
        if x > m:
            l = l * tl.exp(m - x) + 1.0
            m = x
        elif x > -float("inf"):
            l += tl.exp(x - m)
    tl.store(lse + row, m + tl.log(l))


def my_row_lse(X, lse):
    kernel[(X.shape[0],)](X, lse, X.stride(0), X.shape[1])


# row_lse: a maximum and a sum for each place of the block, put together at the end
@triton.jit
def kernel(X, lse, stride, rows, N, B: tl.constexpr):
    row = tl.program_id(0)
    m = tl.full((B,), -float("inf"), tl.float32)
    l = tl.zeros((B,), tl.float32)
    for start in range(0, N, B):
        c = start + tl.arange(0, B)
        x = tl.load(X + row * stride + c, mask=c < N, other=-float("inf"))
        new = tl.maximum(m, x)
        shift = tl.where(new == -float("inf"), 0.0, new)
        l = l * tl.exp(m - shift) + tl.exp(x - shift)
        m = new
    top = tl.max(m, 0)
    top_shift = tl.where(top == -float("inf"), 0.0, top)
    tl.store(lse + row, top + tl.log(tl.sum(l * tl.exp(m - top_shift), 0)))


def my_row_lse(X, lse):
    kernel[(len(X),)](X, lse, X.stride(0), *X.shape, B=16)


# row_lse: a block pointer that moves on
@triton.jit
def k_lse(X, lse, stride, N, B: tl.constexpr):
    row = tl.program_id(0)
    m, l = -float("inf"), 0.0
    block = tl.make_block_ptr(X + row * stride, (N,), (1,), (0,), (B,), (0,))
    for start in range(0, N, B):
        x = tl.load(block, boundary_check=(0,))
        x = tl.where(start + tl.arange(0, B) < N, x, -float("inf"))
        new = tl.maximum(m, tl.max(x, 0))
        safe = tl.where(new == -float("inf"), 0.0, new)
        l = l * tl.exp(m - safe) + tl.sum(tl.exp(x - safe), 0)
        m = new
        block = tl.advance(block, (B,))
    tl.store(lse + row, m + tl.log(l))


def my_row_lse(X, lse):
    k_lse[(X.shape[0],)](X, lse, X.stride(0), X.shape[1], B=16)
