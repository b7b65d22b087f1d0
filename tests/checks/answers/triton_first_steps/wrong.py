"""Wrong answers: see `tests.checks.answers`."""


# add, copied: contiguous copies, as in the chapter
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, N, B: tl.constexpr):
    offs = tl.program_id(0) * B + tl.arange(0, B)
    sum_ = tl.load(x_ptr + offs, mask=offs < N) + tl.load(y_ptr + offs, mask=offs < N)
    tl.store(out_ptr + offs, sum_, mask=offs < N)


def my_add(x, y, out):
    kernel[(triton.cdiv(out.numel(), 32),)](x.contiguous(), y.contiguous(), out, out.numel(), B=32)


# add, x_and_y_strides: one program that loops, as in the chapter
@triton.jit
def kernel(a, b, c, n, B: tl.constexpr):
    for start in range(0, n, B):
        i = start + tl.arange(0, B)
        tl.store(c + i, tl.load(a + i, i < n) + tl.load(b + i, i < n), i < n)


def my_add(x, y, out):
    kernel[(1,)](x, y, out, x.shape[0], 32)


# add, plain_global: the size of a block from outside
BLOCK = 32


@triton.jit
def kernel(x, y, out, sx, sy, so, N):
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.load(x + n * sx, mask=n < N) + tl.load(y + n * sy, mask=n < N)
    tl.store(out + n * so, sums, mask=n < N)


def my_add(x, y, out):
    kernel[(triton.cdiv(len(out), BLOCK),)](x, y, out, x.stride(0), y.stride(0), out.stride(0), len(out))


# add, tile_in_if: a Python if
@triton.jit
def kernel(x, y, out, sx, sy, so, N, B: tl.constexpr):
    n = tl.program_id(0) * B + tl.arange(0, B)
    if n < N:
        tl.store(out + n * so, tl.load(x + n * sx, mask=n < N) + tl.load(y + n * sy, mask=n < N), mask=n < N)


def my_add(x, y, out):
    kernel[(triton.cdiv(len(out), 32),)](x, y, out, x.stride(0), y.stride(0), out.stride(0), len(out), 32)


# add, no_kernel: plain torch
def my_add(x, y, out):
    torch.add(x, y, out=out)


# add, not_written: returns the sum
def my_add(x, y, out):
    return x + y


# add, last_block: a loop in one program that ends with the last whole block
@triton.jit
def kernel(x, y, out, sx, sy, so, n, B: tl.constexpr):
    for block in range(0, n // B):
        i = block * B + tl.arange(0, B)
        tl.store(out + i * so, tl.load(x + i * sx) + tl.load(y + i * sy))


def my_add(x, y, out):
    kernel[(1,)](x, y, out, x.stride(0), y.stride(0), out.stride(0), len(x), B=32)


# add, offsets_masked: offsets, and a mask of them
@triton.jit
def kernel(x, y, out, sx, sy, so, N, B: tl.constexpr):
    n = tl.program_id(0) * B + tl.arange(0, B)
    a = tl.load(x + n * sx, mask=n * sx < N)
    b = tl.load(y + n * sy, mask=n * sy < N)
    tl.store(out + n * so, a + b, mask=(n * sx < N) & (n * sy < N))


def my_add(x, y, out):
    kernel[(triton.cdiv(len(out), 32),)](x, y, out, x.stride(0), y.stride(0), out.stride(0), len(out), 32)


# add, past_end: the store is in a function of its own
@triton.jit
def put(ptr, n, step, values):
    tl.store(ptr + n * step, values)


@triton.jit
def kernel(x, y, out, sx, sy, so, N, B: tl.constexpr):
    n = tl.program_id(0) * B + tl.arange(0, B)
    a = tl.load(x + n * sx, mask=n < N, other=0.0)
    b = tl.load(y + n * sy, mask=n < N, other=0.0)
    put(out, n, so, a + b)


def my_add(x, y, out):
    kernel[(triton.cdiv(len(out), 32),)](x, y, out, x.stride(0), y.stride(0), out.stride(0), len(out), 32)


# scale_exp, scale_after: two kernels, the scale in the second
@triton.jit
def exp_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.exp(tl.load(x + i, i < n)), i < n)


@triton.jit
def scale_kernel(y, s, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, s * tl.load(y + i, i < n), i < n)


def my_scale_exp(x, y, scale):
    grid = lambda options: (triton.cdiv(x.numel(), options["BLOCK"]),)
    exp_kernel[grid](x, y, x.numel(), BLOCK=32)
    scale_kernel[grid](y, scale, x.numel(), BLOCK=32)


# scale_exp, two_steps: two kernels, the product in y between them
@triton.jit
def scale_kernel(x, y, s, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, s * tl.load(x + i, i < n), i < n)


@triton.jit
def exp_kernel(y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.exp(tl.load(y + i, i < n)), i < n)


def my_scale_exp(x, y, scale):
    grid = (triton.cdiv(len(x), 32),)
    scale_kernel[grid](x, y, scale, len(x), BLOCK=32)
    exp_kernel[grid](y, len(x), BLOCK=32)


# scale_exp, two_steps: two kernels, the product in a tensor of its own
@triton.jit
def scale_kernel(x, y, s, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, s * tl.load(x + i, i < n), i < n)


@triton.jit
def exp_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.exp(tl.load(x + i, i < n)), i < n)


def my_scale_exp(x, y, scale):
    grid = (triton.cdiv(len(x), 32),)
    scaled = torch.empty_like(x)
    scale_kernel[grid](x, scaled, scale, len(x), BLOCK=32)
    exp_kernel[grid](scaled, y, len(x), BLOCK=32)


# scale_exp, no_kernel: plain torch
def my_scale_exp(x, y, scale):
    y[:] = torch.exp(x * scale)


# causal_softmax, mask_after: weights set to 0 at the end
@triton.jit
def kernel(S, P, s_row, p_row, N, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    x = tl.load(S + r * s_row + c, mask=c < N, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    y = e / tl.sum(e, 0)
    tl.store(P + r * p_row + c, tl.where(c > r, 0.0, y), mask=c < N)


def my_causal_softmax(S, P):
    kernel[(S.shape[0],)](S, P, *S.stride()[:1], *P.stride()[:1], S.shape[1], B=triton.next_power_of_2(len(S)))


# causal_softmax, hidden_in_maximum: weights set to 0 before the sum
@triton.jit
def kernel(S, P, s_row, p_row, N, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    x = tl.load(S + r * s_row + c, mask=c < N, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0)) * (c <= r)
    tl.store(P + r * p_row + c, e / tl.sum(e, 0), mask=c < N)


def my_causal_softmax(S, P):
    kernel[(S.shape[0],)](S, P, S.stride(0), P.stride(0), S.shape[1], B=triton.next_power_of_2(len(S)))


# causal_softmax, hidden_finite: -1e6 is added to hidden scores
@triton.jit
def kernel(S, P, s_row, p_row, N, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    x = tl.load(S + r * s_row + c, mask=c < N, other=-float("inf")) + tl.where(c <= r, 0.0, -1e6)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(P + r * p_row + c, e / tl.sum(e, 0), mask=c < N)


def my_causal_softmax(S, P):
    kernel[(S.shape[0],)](S, P, S.stride(0), P.stride(0), S.shape[1], B=triton.next_power_of_2(len(S)))


# causal_softmax, no_kernel: plain torch
def my_causal_softmax(S, P):
    hidden = torch.ones(len(S), len(S), dtype=torch.bool, device=S.device).triu(1)
    P.copy_(torch.softmax(S.masked_fill(hidden, -float("inf")), dim=-1))


# causal_softmax, course_kernel: the course's softmax of masked scores
def my_causal_softmax(S, P):
    from flashlib.kernels.softmax import softmax

    hidden = torch.ones(len(S), len(S), dtype=torch.bool, device=S.device).triu(1)
    P.copy_(softmax(S.masked_fill(hidden, -float("inf"))))


# online_block, no_kernel: plain torch
def my_online_block(X, m, l, m_new, l_new):
    for top, total, x in ((m, l, X[:, :16]), (m_new, l_new, X)):
        top.copy_(x.max(dim=1).values)
        total.copy_(torch.exp(x - top[:, None]).sum(dim=1))


# online_block, not_written: returned
def my_online_block(X, m, l, m_new, l_new):
    tops = X[:, :16].max(dim=1).values, X.max(dim=1).values
    return tops[0], torch.exp(X[:, :16] - tops[0][:, None]).sum(dim=1), tops[1], torch.exp(X - tops[1][:, None]).sum(dim=1)


# online_block, l_not_rescaled: m is replaced before the factor is worked out
@triton.jit
def kernel(X, m_ptr, l_ptr, m_new_ptr, l_new_ptr, stride, N, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    x = tl.load(X + row * stride + c, mask=c < N, other=-float("inf"))
    m = tl.max(x, 0)
    l = tl.sum(tl.exp(x - m), 0)
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, l)
    x = tl.load(X + row * stride + B + c, mask=B + c < N, other=-float("inf"))
    m = tl.maximum(m, tl.max(x, 0))
    l = l * tl.exp(m - m) + tl.sum(tl.exp(x - m), 0)
    tl.store(m_new_ptr + row, m)
    tl.store(l_new_ptr + row, l)


def my_online_block(X, m, l, m_new, l_new):
    kernel[(X.shape[0],)](X, m, l, m_new, l_new, X.stride(0), X.shape[1], B=16)


# online_block, block_alone: two programs for each block, and the second one knows nothing of the first
@triton.jit
def kernel(X, m_ptr, l_ptr, stride, N, first, B: tl.constexpr):
    row = tl.program_id(0)
    c = first + tl.arange(0, B)
    x = tl.load(X + row * stride + c, mask=c < N, other=-float("inf"))
    m = tl.max(x, 0)
    safe = tl.where(m == -float("inf"), 0.0, m)
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, tl.sum(tl.exp(x - safe), 0))


def my_online_block(X, m, l, m_new, l_new):
    kernel[(X.shape[0],)](X, m, l, X.stride(0), X.shape[1], 0, B=16)
    kernel[(X.shape[0],)](X, m_new, l_new, X.stride(0), X.shape[1], 16, B=16)


# online_block, as_before: the second block is forgotten
@triton.jit
def kernel(X, m_ptr, l_ptr, m_new_ptr, l_new_ptr, stride, N, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    x = tl.load(X + row * stride + c, mask=c < N, other=-float("inf"))
    m = tl.max(x, 0)
    l = tl.sum(tl.exp(x - m), 0)
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, l)
    tl.store(m_new_ptr + row, m)
    tl.store(l_new_ptr + row, l)


def my_online_block(X, m, l, m_new, l_new):
    kernel[(X.shape[0],)](X, m, l, m_new, l_new, X.stride(0), X.shape[1], B=16)


# online_block, row_at_once: the whole row, and the first half of it for m and l
@triton.jit
def kernel(X, m_ptr, l_ptr, m_new_ptr, l_new_ptr, stride, N, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, 2 * B)
    x = tl.load(X + row * stride + c, mask=c < N, other=-float("inf"))
    first = tl.where(c < B, x, -float("inf"))
    m, m_new = tl.max(first, 0), tl.max(x, 0)
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, tl.sum(tl.exp(first - m), 0))
    tl.store(m_new_ptr + row, m_new)
    tl.store(l_new_ptr + row, tl.sum(tl.exp(x - m_new), 0))


def my_online_block(X, m, l, m_new, l_new):
    kernel[(X.shape[0],)](X, m, l, m_new, l_new, X.stride(0), X.shape[1], B=16)


# online_block, programs: four rows in a program, with a mask of rows and columns
@triton.jit
def kernel(X, m_ptr, l_ptr, m_new_ptr, l_new_ptr, stride, rows, N, R: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.arange(0, B)
    x = tl.load(
        X + r[:, None] * stride + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < N), other=-float("inf")
    )
    m = tl.max(x, axis=1)
    l = tl.sum(tl.exp(x - m[:, None]), axis=1)
    tl.store(m_ptr + r, m, mask=r < rows)
    tl.store(l_ptr + r, l, mask=r < rows)
    c += B
    x = tl.load(
        X + r[:, None] * stride + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < N), other=-float("inf")
    )
    new = tl.maximum(m, tl.max(x, axis=1))
    tl.store(m_new_ptr + r, new, mask=r < rows)
    tl.store(l_new_ptr + r, l * tl.exp(m - new) + tl.sum(tl.exp(x - new[:, None]), axis=1), mask=r < rows)


def my_online_block(X, m, l, m_new, l_new):
    kernel[(triton.cdiv(X.shape[0], 4),)](X, m, l, m_new, l_new, X.stride(0), *X.shape, R=4, B=16)


# transpose, not_transposed: block pointers, and Y has the shape of X
@triton.jit
def my_transpose(X, Y, n_rows, n_cols, sxr, sxc, syr, syc, B_R: tl.constexpr, B_C: tl.constexpr):
    i, j = tl.program_id(0), tl.program_id(1)
    source = tl.make_block_ptr(X, (n_rows, n_cols), (sxr, sxc), (i * B_R, j * B_C), (B_R, B_C), (1, 0))
    target = tl.make_block_ptr(Y, (n_rows, n_cols), (syr, syc), (i * B_R, j * B_C), (B_R, B_C), (1, 0))
    tl.store(target, tl.load(source, boundary_check=(0, 1)), boundary_check=(0, 1))


# transpose, tiles_stay: tile (i, j) is transposed where it is
@triton.jit
def my_transpose(X, Y, n_rows, n_cols, sxr, sxc, syr, syc, B_R: tl.constexpr, B_C: tl.constexpr):
    row, col = tl.program_id(0) * B_R, tl.program_id(1) * B_C
    a, b = tl.arange(0, B_R), tl.arange(0, B_C)
    inside = (row + a < n_rows)[:, None] & (col + b < n_cols)[None, :]
    tile = tl.load(X + (row + a)[:, None] * sxr + (col + b)[None, :] * sxc, mask=inside)
    tl.store(Y + (row + b)[:, None] * syr + (col + a)[None, :] * syc, tile.T, mask=inside.T)


# transpose, mask_not_transposed: tl.trans, and names of its own for the two axes
@triton.jit
def my_transpose(
    X_ptr, Y_ptr, n_rows, n_cols, stride_xr, stride_xc, stride_yr, stride_yc, B_R: tl.constexpr, B_C: tl.constexpr
):
    r = tl.program_id(0) * B_R + tl.arange(0, B_R)
    c = tl.program_id(1) * B_C + tl.arange(0, B_C)
    mask = (r < n_rows)[:, None] & (c < n_cols)[None, :]
    x = tl.load(X_ptr + r[:, None] * stride_xr + c[None, :] * stride_xc, mask=mask)
    y_ptrs = Y_ptr + c[:, None] * stride_yr + r[None, :] * stride_yc
    tl.store(y_ptrs, tl.trans(x), mask=mask)


# transpose, columns_not_masked: the mask of the chapter's tile
@triton.jit
def my_transpose(
    X_ptr, Y_ptr, n_rows, n_cols, stride_xr, stride_xc, stride_yr, stride_yc, B_R: tl.constexpr, B_C: tl.constexpr
):
    r = tl.program_id(0) * B_R + tl.arange(0, B_R)
    c = tl.program_id(1) * B_C + tl.arange(0, B_C)
    tile = tl.load(X_ptr + r[:, None] * stride_xr + c[None, :] * stride_xc, mask=r[:, None] < n_rows, other=0.0)
    tl.store(Y_ptr + r[:, None] * stride_yc + c[None, :] * stride_yr, tile, mask=r[:, None] < n_rows)


# transpose, X_contiguous: n_cols in place of the stride, and the rest right
@triton.jit
def my_transpose(X, Y, R, C, sxr, sxc, syr, syc, B_R: tl.constexpr, B_C: tl.constexpr):
    r = (tl.program_id(0) * B_R + tl.arange(0, B_R))[:, None]
    c = (tl.program_id(1) * B_C + tl.arange(0, B_C))[None, :]
    x = tl.load(X + r * C + c, (r < R) & (c < C))
    tl.store(Y + r * syc + c * syr, x, (r < R) & (c < C))


# transpose, last_tile: a tile that is not whole is skipped
@triton.jit
def my_transpose(
    X_ptr, Y_ptr, n_rows, n_cols, stride_xr, stride_xc, stride_yr, stride_yc, B_R: tl.constexpr, B_C: tl.constexpr
):
    i, j = tl.program_id(0), tl.program_id(1)
    if (i + 1) * B_R <= n_rows and (j + 1) * B_C <= n_cols:
        r = (i * B_R + tl.arange(0, B_R))[:, None]
        c = (j * B_C + tl.arange(0, B_C))[None, :]
        tl.store(Y_ptr + c * stride_yr + r * stride_yc, tl.load(X_ptr + r * stride_xr + c * stride_xc))


# scores, head_ignored: the grid has two axes only
@triton.jit
def my_scores(
    Q_ptr, K_ptr, S_ptr, N_q, N_k, scale, stride_qh, stride_qn, stride_qd, stride_kh, stride_kn, stride_kd,
    stride_sh, stride_sq, stride_sk, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * B_R + tl.arange(0, B_R)
    n = tl.program_id(1) * B_C + tl.arange(0, B_C)
    d = tl.arange(0, D)
    q = tl.load(Q_ptr + m[:, None] * stride_qn + d[None, :] * stride_qd, mask=m[:, None] < N_q, other=0.0)
    k = tl.load(K_ptr + d[:, None] * stride_kd + n[None, :] * stride_kn, mask=n[None, :] < N_k, other=0.0)
    S = tl.where((m[:, None] < N_q) & (n[None, :] < N_k), tl.dot(q, k, input_precision="ieee") * scale, -float("inf"))
    tl.store(S_ptr + m[:, None] * stride_sq + n[None, :] * stride_sk, S)


# scores, ragged_zero: masked loads give zeros, and so the scores are 0
@triton.jit
def my_scores(
    Q_ptr, K_ptr, S_ptr, N_q, N_k, scale, stride_qh, stride_qn, stride_qd, stride_kh, stride_kn, stride_kd,
    stride_sh, stride_sq, stride_sk, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
):  # fmt: skip
    i, j, h = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    m = i * B_R + tl.arange(0, B_R)
    n = j * B_C + tl.arange(0, B_C)
    d = tl.arange(0, D)
    q = tl.load(Q_ptr + h * stride_qh + m[:, None] * stride_qn + d * stride_qd, mask=m[:, None] < N_q, other=0.0)
    k = tl.load(K_ptr + h * stride_kh + n[:, None] * stride_kn + d * stride_kd, mask=n[:, None] < N_k, other=0.0)
    S = tl.dot(q, tl.trans(k), input_precision="ieee")
    tl.store(S_ptr + h * stride_sh + m[:, None] * stride_sq + n * stride_sk, S * scale)


# scores, all_contiguous: offsets from shapes, as for contiguous tensors
@triton.jit
def my_scores(
    Q_ptr, K_ptr, S_ptr, N_q, N_k, scale, stride_qh, stride_qn, stride_qd, stride_kh, stride_kn, stride_kd,
    stride_sh, stride_sq, stride_sk, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
):  # fmt: skip
    i, j, h = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    r = i * B_R + tl.arange(0, B_R)[:, None]
    c = j * B_C + tl.arange(0, B_C)[:, None]
    d = tl.arange(0, D)[None, :]
    q = tl.load(Q_ptr + (h * N_q + r) * D + d, mask=r < N_q, other=0.0)
    k = tl.load(K_ptr + (h * N_k + c) * D + d, mask=c < N_k, other=0.0)
    S = tl.dot(q, k.T, input_precision="ieee") * scale
    S = tl.where((r < N_q) & (c.T < N_k), S, -float("inf"))
    height, width = tl.num_programs(0) * B_R, tl.num_programs(1) * B_C
    tl.store(S_ptr + (h * height + r) * width + c.T, S)


# scores, shifted: the maximum of each row is subtracted, as in a softmax
@triton.jit
def my_scores(Q, K, S, N_q, N_k, s, qh, qn, qd, kh, kn, kd, sh, sq, sk, D: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    h = tl.program_id(2)
    r = (tl.program_id(0) * R + tl.arange(0, R))[:, None]
    c = tl.program_id(1) * C + tl.arange(0, C)
    d = tl.arange(0, D)
    q = tl.load(Q + h * qh + r * qn + d[None, :] * qd, mask=r < N_q, other=0)
    k = tl.load(K + h * kh + c[None, :] * kn + d[:, None] * kd, mask=c[None, :] < N_k, other=0)
    x = tl.where((r < N_q) & (c < N_k)[None, :], tl.dot(q, k, input_precision="ieee") * s, -float("inf"))
    tl.store(S + h * sh + r * sq + c[None, :] * sk, x - tl.max(x, axis=1)[:, None])


# row_lse, no_maximum: one block, not online
@triton.jit
def kernel(X, out, stride, N, B: tl.constexpr):
    c = tl.arange(0, B)
    x = tl.load(X + tl.program_id(0) * stride + c, mask=c < N, other=-float("inf"))
    tl.store(out + tl.program_id(0), tl.log(tl.sum(tl.exp(x), 0)))


def my_row_lse(X, lse):
    kernel[X.shape[:1]](X, lse, X.stride(0), X.shape[1], B=triton.next_power_of_2(X.shape[1]))


# row_lse, read_again: a loop for the maximum, and a loop for the sum
@triton.jit
def kernel(X, lse, stride, N, B: tl.constexpr):
    row = tl.program_id(0)
    m = -float("inf")
    for start in range(0, N, B):
        c = start + tl.arange(0, B)
        m = tl.maximum(m, tl.max(tl.load(X + row * stride + c, mask=c < N, other=-float("inf")), 0))
    shift = tl.where(m == -float("inf"), 0.0, m)
    l = 0.0
    for start in range(0, N, B):
        c = start + tl.arange(0, B)
        x = tl.load(X + row * stride + c, mask=c < N, other=-float("inf"))
        l += tl.sum(tl.exp(x - shift), 0)
    tl.store(lse + row, shift + tl.log(l))


def my_row_lse(X, lse):
    kernel[(len(X),)](X, lse, X.stride(0), X.shape[1], B=16)


# row_lse, no_kernel: plain torch
def my_row_lse(X, lse):
    lse.copy_(torch.logsumexp(X, dim=1) if X.shape[1] else torch.full_like(lse, -float("inf")))


# row_lse, not_written: returns them
def my_row_lse(X, lse):
    return torch.logsumexp(X, dim=1)


# row_lse, raises: the maximum of no axis
@triton.jit
def kernel(X, lse, stride, N, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    x = tl.load(X + row * stride + c, mask=c < N, other=-float("inf"))
    m = tl.max(x, axis=1)
    tl.store(lse + row, m + tl.log(tl.sum(tl.exp(x - m), axis=1)))


def my_row_lse(X, lse):
    kernel[(len(X),)](X, lse, X.stride(0), X.shape[1], B=triton.next_power_of_2(X.shape[1]))


# row_lse, l_not_rescaled: m is replaced before the factor is worked out
@triton.jit
def kernel(X, lse, stride, N, B: tl.constexpr):
    row = tl.program_id(0)
    m = -float("inf")
    l = 0.0
    for start in range(0, N, B):
        c = start + tl.arange(0, B)
        x = tl.load(X + row * stride + c, mask=c < N, other=-float("inf"))
        m = tl.maximum(m, tl.max(x, 0))
        safe = tl.where(m == -float("inf"), 0.0, m)
        l = l * tl.where(m == -float("inf"), 0.0, tl.exp(safe - safe)) + tl.sum(tl.exp(x - safe), 0)
    tl.store(lse + row, m + tl.log(l))


def my_row_lse(X, lse):
    kernel[(len(X),)](X, lse, X.stride(0), X.shape[1], B=16)


# causal_softmax, programs: one program that goes over the rows, and columns that wrap around
@triton.jit
def kernel(S, P, s_row, p_row, N, B: tl.constexpr):
    c = tl.arange(0, B)
    for r in range(0, N):
        s = tl.where(c <= r, tl.load(S + r * s_row + c % N), -float("inf"))
        m = tl.max(s, 0)
        l = tl.sum(tl.exp(s - m), 0)
        tl.store(P + r * p_row + c, tl.exp(s - m - tl.log(l)), mask=c < N)


def my_causal_softmax(S, P):
    kernel[(1,)](S, P, S.stride(0), P.stride(0), len(S), triton.next_power_of_2(len(S)))
