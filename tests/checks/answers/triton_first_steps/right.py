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


# row_max: a maximum for each place of the block, put together at the end
@triton.jit
def kernel(X, out, stride, N, B: tl.constexpr):
    row = tl.program_id(0)
    m = tl.full((B,), -float("inf"), tl.float32)
    for start in range(0, N, B):
        c = start + tl.arange(0, B)
        m = tl.maximum(m, tl.load(X + row * stride + c, mask=c < N, other=-float("inf")))
    tl.store(out + row, tl.max(m, 0))


def my_row_max(X, m):
    kernel[(len(X),)](X, m, X.stride(0), X.shape[1], B=16)


# row_max: the load has no other, and tl.where leaves its hidden lanes out
@triton.jit
def kernel(X, out, stride, N, B: tl.constexpr):
    row = tl.program_id(0)
    m = -float("inf")
    for start in range(0, N, B):
        c = start + tl.arange(0, B)
        x = tl.load(X + row * stride + c, mask=c < N)
        m = tl.maximum(m, tl.max(tl.where(c < N, x, -float("inf")), 0))
    tl.store(out + row, m)


def my_row_max(X, m):
    kernel[(len(X),)](X, m, X.stride(0), X.shape[1], B=16)


# row_max: offsets of the last block wrap around, and a while loop
@triton.jit
def kernel(X, out, stride, N, B: tl.constexpr):
    row = tl.program_id(0)
    m = tl.load(X + row * stride)
    start = 0
    while start < N:
        c = tl.minimum(start + tl.arange(0, B), N - 1)
        m = tl.maximum(m, tl.max(tl.load(X + row * stride + c), 0))
        start += B
    tl.store(out + row, m)


def my_row_max(X, m):
    kernel[(X.shape[0],)](X, m, X.stride(0), X.shape[1], 16)


# online_block: the update in a function of its own, and a state where nothing was seen is replaced
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
    x = tl.load(X + row * stride + c, mask=c < N, other=-float("inf"))
    new, total = updated(tl.load(m + row), tl.load(l + row), x)
    tl.store(m_new + row, new)
    tl.store(l_new + row, total)


def my_online_block(X, m, l, m_new, l_new):
    kernel[(len(m),)](X, m, l, m_new, l_new, X.stride(0), X.shape[1], B=16)


# online_block: the block has a state of its own, and the two are merged
@triton.jit
def kernel(X, m_ptr, l_ptr, m_new_ptr, l_new_ptr, stride, N, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    x = tl.load(X + row * stride + c, mask=c < N, other=-float("inf"))
    m_b = tl.max(x, 0)
    l_b = tl.sum(tl.where(x == -float("inf"), 0.0, tl.exp(x - m_b)), 0)
    m_a, l_a = tl.load(m_ptr + row), tl.load(l_ptr + row)
    m = tl.maximum(m_a, m_b)
    a = tl.where(m_a == -float("inf"), 0.0, tl.exp(m_a - m))
    b = tl.where(m_b == -float("inf"), 0.0, tl.exp(m_b - m))
    tl.store(m_new_ptr + row, m)
    tl.store(l_new_ptr + row, l_a * a + l_b * b)


def my_online_block(X, m, l, m_new, l_new):
    kernel[(X.shape[0],)](X, m, l, m_new, l_new, X.stride(0), X.shape[1], B=triton.next_power_of_2(X.shape[1]))


# online_block: score after score
@triton.jit
def kernel(X, m_ptr, l_ptr, m_new_ptr, l_new_ptr, stride, N):
    row = tl.program_id(0)
    m = tl.load(m_ptr + row)
    l = tl.load(l_ptr + row)
    for c in range(0, N):
        x = tl.load(X + row * stride + c)
        if x > m:
            l = l * tl.exp(m - x) + 1.0
            m = x
        elif x > -float("inf"):
            l += tl.exp(x - m)
    tl.store(m_new_ptr + row, m)
    tl.store(l_new_ptr + row, l)


def my_online_block(X, m, l, m_new, l_new):
    kernel[(X.shape[0],)](X, m, l, m_new, l_new, X.stride(0), X.shape[1])


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
