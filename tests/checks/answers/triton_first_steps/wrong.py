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


# row_max, no_kernel: plain torch
def my_row_max(X, m):
    m.copy_(X.max(dim=1).values)


# row_max, last_block: blocks are counted with //
@triton.jit
def kernel(X, out, stride, N, B: tl.constexpr):
    m = -float("inf")
    for block in range(0, N // B):
        x = tl.load(X + tl.program_id(0) * stride + block * B + tl.arange(0, B))
        m = tl.maximum(m, tl.max(x, 0))
    tl.store(out + tl.program_id(0), m)


def my_row_max(X, m):
    kernel[(len(X),)](X, m, X.stride(0), X.shape[1], 16)


# row_max, past_end: four rows in a program, and no mask for the rows
@triton.jit
def kernel(X, out, stride, rows, N, R: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    m = tl.full((R,), -float("inf"), tl.float32)
    for start in range(0, N, B):
        c = start + tl.arange(0, B)
        inside = (r[:, None] < rows) & (c[None, :] < N)
        x = tl.load(X + r[:, None] * stride + c[None, :], mask=inside, other=-float("inf"))
        m = tl.maximum(m, tl.max(x, axis=1))
    tl.store(out + r, m)


def my_row_max(X, m):
    kernel[(triton.cdiv(X.shape[0], 4),)](X, m, X.stride(0), *X.shape, R=4, B=16)


# row_max, not_written: returned
def my_row_max(X, m):
    return X.max(dim=1).values


# online_block, no_kernel: plain torch
def my_online_block(X, m, l, m_new, l_new):
    torch.maximum(m, X.max(dim=1).values, out=m_new)
    shift = torch.where(m_new == -torch.inf, 0.0, m_new)
    l_new.copy_(l * torch.exp(m - shift) + torch.exp(X - shift[:, None]).sum(dim=1))


# online_block, l_not_rescaled: m is replaced before the factor is worked out
@triton.jit
def kernel(X, m_ptr, l_ptr, m_new_ptr, l_new_ptr, stride, N, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    x = tl.load(X + row * stride + c, mask=c < N, other=-float("inf"))
    m = tl.maximum(tl.load(m_ptr + row), tl.max(x, 0))
    safe = tl.where(m == -float("inf"), 0.0, m)
    l = tl.load(l_ptr + row) * tl.where(m == -float("inf"), 1.0, tl.exp(m - safe)) + tl.sum(tl.exp(x - safe), 0)
    tl.store(m_new_ptr + row, m)
    tl.store(l_new_ptr + row, l)


def my_online_block(X, m, l, m_new, l_new):
    kernel[(X.shape[0],)](X, m, l, m_new, l_new, X.stride(0), X.shape[1], B=16)


# online_block, block_alone: the state of the block, and nothing is loaded but X
@triton.jit
def kernel(X, m_new_ptr, l_new_ptr, stride, N, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    x = tl.load(X + row * stride + c, mask=c < N, other=-float("inf"))
    m = tl.max(x, 0)
    safe = tl.where(m == -float("inf"), 0.0, m)
    tl.store(m_new_ptr + row, m)
    tl.store(l_new_ptr + row, tl.sum(tl.exp(x - safe), 0))


def my_online_block(X, m, l, m_new, l_new):
    kernel[(X.shape[0],)](X, m_new, l_new, X.stride(0), X.shape[1], B=16)


# online_block, as_it_came: m and l are copied
@triton.jit
def kernel(m_ptr, l_ptr, m_new_ptr, l_new_ptr):
    row = tl.program_id(0)
    tl.store(m_new_ptr + row, tl.load(m_ptr + row))
    tl.store(l_new_ptr + row, tl.load(l_ptr + row))


def my_online_block(X, m, l, m_new, l_new):
    kernel[(X.shape[0],)](m, l, m_new, l_new)


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


# row_max, programs: four rows in a program, with a mask of rows and columns
@triton.jit
def kernel(X, out, stride, rows, N, R: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    m = tl.full((R,), -float("inf"), tl.float32)
    for start in range(0, N, B):
        c = start + tl.arange(0, B)
        inside = (r[:, None] < rows) & (c[None, :] < N)
        x = tl.load(X + r[:, None] * stride + c[None, :], mask=inside, other=-float("inf"))
        m = tl.maximum(m, tl.max(x, axis=1))
    tl.store(out + r, m, mask=r < rows)


def my_row_max(X, m):
    kernel[(triton.cdiv(X.shape[0], 4),)](X, m, X.stride(0), *X.shape, R=4, B=16)
