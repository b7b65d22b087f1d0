"""Right answers in other styles: see `tests.checks.answers`."""


# inner_loop: masked by addition, guarded afterwards, the precision as the fourth argument
@triton.jit
def my_inner_loop(q, k, v, m, l, O_acc, visible, scale):
    s = tl.dot(q, tl.trans(k), None, "ieee") * scale + tl.where(visible, 0.0, float("-inf"))
    new = tl.maximum(m, tl.max(s, 1))
    nothing = new == float("-inf")
    p = tl.where(nothing[:, None], 0.0, tl.exp(s - new[:, None]))
    keep = tl.where(nothing, 0.0, tl.exp(m - new))
    acc = tl.dot(p.to(v.dtype), v, O_acc * keep[:, None], "ieee")
    return new, keep * l + tl.sum(p, 1), acc


# inner_loop: powers of 2 inside, v in fp32, a finite shift
@triton.jit
def my_inner_loop(q, k, v, m, l, O_acc, visible, scale):
    s = tl.where(visible, tl.dot(q, k.T, input_precision="ieee") * scale, float("-inf"))
    new = tl.maximum(m, tl.max(s, 1))
    shift = tl.maximum(new, -1e30)
    p = tl.exp2((s - shift[:, None]) * 1.4426950408889634)
    keep = tl.exp2((m - shift) * 1.4426950408889634)
    return new, keep * l + tl.sum(p, 1), keep[:, None] * O_acc + tl.dot(p, v.to(tl.float32), allow_tf32=False)


# causal_split: full without a minimum, end rounded up to a tile
@triton.jit
def my_causal_split(i, N_q, N_k, B_R: tl.constexpr, B_C: tl.constexpr):
    seen = i * B_R + 1 + N_k - N_q
    last = min(N_k, seen - 1 + B_R)
    full = max(0, seen) // B_C * B_C
    return full, tl.cdiv(max(0, last), B_C) * B_C


# causal_split: numbers of tiles, at the end times B_C, and an if
@triton.jit
def my_causal_split(i, N_q, N_k, B_R: tl.constexpr, B_C: tl.constexpr):
    last_row = tl.minimum((i + 1) * B_R, N_q) - 1
    first_sees = i * B_R + N_k - N_q + 1
    last_sees = last_row + N_k - N_q + 1
    tiles = 0
    if first_sees > 0:
        tiles = first_sees // B_C
    return tiles * B_C, last_sees


# padded: a new tensor for each, and a look-up of the dimension
def my_padded(Q, K, V):
    d = Q.shape[-1]
    n = min(n for n in (16, 32, 64, 128) if n >= d)

    def wide(X):
        new = X.new_zeros(*X.shape[:-1], n)
        new[..., :d] = X
        return new

    O, lse = r5_causal.attention(wide(Q), wide(K), wide(V), scale=d**-0.5)
    return O.narrow(-1, 0, d).contiguous()


# padded: Q scaled, for the default scale
def my_padded(Q, K, V):
    d = Q.shape[-1]
    n = 16
    while n < d:
        n *= 2
    pad = lambda X: torch.cat([X, torch.zeros(*X.shape[:-1], n - d, dtype=X.dtype, device=X.device)], dim=-1)
    Q = (Q.float() * (n / d) ** 0.5).to(Q.dtype)
    return r5_causal.attention(pad(Q), pad(K), pad(V), causal=False)[0][..., :d]


# alibi: strides passed, hidden tiles skipped, tiles of 16 x 32, m from -1e30
@triton.jit
def strided_kernel(
    Q_ptr, K_ptr, V_ptr, O_ptr, qb, qh, qn, qd, kb, kh, kn, kd, vb, vh, vn, vd, H, N_q, N_k, scale, slope,
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
):
    b, h = tl.program_id(1) // H, tl.program_id(1) % H
    r = tl.program_id(0) * B_R + tl.arange(0, B_R)
    d = tl.arange(0, D)
    q = tl.load(Q_ptr + b * qb + h * qh + (r % N_q)[:, None] * qn + d[None, :] * qd)
    m = tl.full((B_R,), -1e30, tl.float32)
    l = tl.zeros((B_R,), tl.float32)
    acc = tl.zeros((B_R, D), tl.float32)
    end = tl.minimum((tl.program_id(0) + 1) * B_R + N_k - N_q, N_k)
    for start in range(0, end, B_C):
        c = start + tl.arange(0, B_C)
        own = tl.minimum(c, N_k - 1)[:, None]
        k = tl.load(K_ptr + b * kb + h * kh + own * kn + d[None, :] * kd)
        v = tl.load(V_ptr + b * vb + h * vh + own * vn + d[None, :] * vd)
        far = (r[:, None] + (N_k - N_q) - c[None, :]).to(tl.float32)
        s = tl.where(far >= 0, tl.dot(q, k.T, None, "ieee") * scale - slope * far, float("-inf"))
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        keep = tl.exp(m - new)
        l = keep * l + tl.sum(p, 1)
        acc = tl.dot(p, v, acc * keep[:, None], "ieee")
        m = new
    o = O_ptr + (tl.program_id(1) * N_q + r[:, None]) * D + d[None, :]
    tl.store(o, acc / tl.maximum(l, 1e-37)[:, None], mask=r[:, None] < N_q)


def my_alibi(Q, K, V, slope):
    B, H, N_q, d = Q.shape
    O = torch.zeros(B, H, N_q, d, dtype=Q.dtype, device=Q.device)
    strides = (*Q.stride(), *K.stride(), *V.stride())
    grid = (triton.cdiv(N_q, 16), B * H)
    strided_kernel[grid](Q, K, V, O, *strides, H, N_q, K.shape[2], d**-0.5, slope, D=d, B_R=16, B_C=32)
    return O


# attention: strides passed, powers of 2, full tiles without a mask, in two loops, O as (B, N, H, d)
@triton.jit
def tile(q, k_ptrs, v_ptrs, m, l, acc, r, c, N_k, past, kn, vn, D: tl.constexpr, MASK: tl.constexpr, CAUSAL: tl.constexpr):
    d = tl.arange(0, D)
    inside = (c < N_k)[:, None]
    k = tl.load(k_ptrs + c[:, None] * kn, mask=inside, other=0.0)
    v = tl.load(v_ptrs + c[:, None] * vn, mask=inside, other=0.0)
    s = tl.dot(q, tl.trans(k), input_precision="ieee")
    if MASK:
        s = tl.where((c < N_k)[None, :], s, float("-inf"))
    if MASK and CAUSAL:
        s = tl.where(r[:, None] + past >= c[None, :], s, float("-inf"))
    new = tl.maximum(m, tl.max(s, 1))
    safe = tl.where(new == float("-inf"), 0.0, new)
    p = tl.exp2(s - safe[:, None])
    fix = tl.exp2(m - safe)
    return new, l * fix + tl.sum(p, 1), tl.dot(p.to(v.dtype), v, acc * fix[:, None], "ieee")


@triton.jit
def both_kernel(
    Q, K, V, O, L, qb, qh, qn, qd, kb, kh, kn, kd, vb, vh, vn, vd, ob, oh, on, H, N_q, N_k, c2,
    D: tl.constexpr, CAUSAL: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
):
    b, h = tl.program_id(1) // H, tl.program_id(1) % H
    r, d = tl.program_id(0) * R + tl.arange(0, R), tl.arange(0, D)
    row = (r < N_q)[:, None]
    q = tl.load(Q + b * qb + h * qh + r[:, None] * qn + d[None, :] * qd, mask=row, other=0.0)
    k_ptrs, v_ptrs = K + b * kb + h * kh + d[None, :] * kd, V + b * vb + h * vh + d[None, :] * vd
    past = N_k - N_q
    end = tl.maximum(0, tl.minimum(N_k, (tl.program_id(0) + 1) * R + past)) if CAUSAL else N_k
    full = tl.maximum(0, tl.minimum(N_k, tl.program_id(0) * R + past + 1)) // C * C if CAUSAL else N_k // C * C
    m, l, acc = tl.full((R,), float("-inf"), tl.float32), tl.zeros((R,), tl.float32), tl.zeros((R, D), tl.float32)
    q = q * c2
    for n in range(0, full, C):
        m, l, acc = tile(q, k_ptrs, v_ptrs, m, l, acc, r, n + tl.arange(0, C), N_k, past, kn, vn, D, False, CAUSAL)
    for n in range(full, end, C):
        m, l, acc = tile(q, k_ptrs, v_ptrs, m, l, acc, r, n + tl.arange(0, C), N_k, past, kn, vn, D, True, CAUSAL)
    one = tl.where(l > 0, l, 1.0)
    tl.store(O + b * ob + h * oh + r[:, None] * on + d[None, :], (acc / one[:, None]).to(O.dtype.element_ty), mask=row)
    tl.store(L + tl.program_id(1) * N_q + r, (m + tl.log2(one)) * 0.6931471805599453, mask=r < N_q)


def my_attention(Q, K, V, causal=False):
    B, H, N_q, d = Q.shape
    O = Q.new_empty(B, N_q, H, d).transpose(1, 2)
    lse = torch.zeros(B, H, N_q, device=Q.device)
    Q = Q.float() if Q.dtype == torch.float16 else Q
    K, V = K.to(Q.dtype), V.to(Q.dtype)
    sizes = *Q.stride(), *K.stride(), *V.stride(), *O.stride()[:3], H, N_q, K.shape[2], d**-0.5 * 1.4426950408889634
    both_kernel[(triton.cdiv(N_q, 32), B * H)](Q, K, V, O, lse, *sizes, D=d, CAUSAL=causal, R=32, C=16)
    return O, lse


# attention: block pointers, a grid of heads by row blocks
@triton.jit
def k_block(Q, K, V, O, L, N_q, N_k, scale, D: tl.constexpr, R: tl.constexpr, C: tl.constexpr, CAUSAL: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1)
    q_block = tl.make_block_ptr(Q + head * N_q * D, (N_q, D), (D, 1), (i * R, 0), (R, D), (1, 0))
    k_block = tl.make_block_ptr(K + head * N_k * D, (D, N_k), (1, D), (0, 0), (D, C), (0, 1))
    v_block = tl.make_block_ptr(V + head * N_k * D, (N_k, D), (D, 1), (0, 0), (C, D), (1, 0))
    q = tl.load(q_block, boundary_check=(0,), padding_option="zero")
    r = i * R + tl.arange(0, R)
    m = tl.full((R,), float("-inf"), tl.float32)
    l = tl.zeros((R,), tl.float32)
    acc = tl.zeros((R, D), tl.float32)
    end = N_k
    if CAUSAL:
        end = tl.minimum(N_k, (i + 1) * R + N_k - N_q)
    for start in range(0, end, C):
        k = tl.load(k_block, boundary_check=(1,), padding_option="zero")
        v = tl.load(v_block, boundary_check=(0,), padding_option="zero")
        c = start + tl.arange(0, C)
        s = tl.dot(q, k, input_precision="ieee") * scale
        s = tl.where(c[None, :] < N_k, s, float("-inf"))
        if CAUSAL:
            s = tl.where(r[:, None] + N_k - N_q >= c[None, :], s, float("-inf"))
        new = tl.maximum(m, tl.max(s, 1))
        nothing = new == float("-inf")
        p = tl.where(nothing[:, None], 0.0, tl.exp(s - new[:, None]))
        a = tl.where(nothing, 1.0, tl.exp(m - new))
        l = l * a + tl.sum(p, 1)
        acc = acc * a[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m = new
        k_block = tl.advance(k_block, (0, C))
        v_block = tl.advance(v_block, (C, 0))
    acc = acc / tl.where(l > 0, l, 1.0)[:, None]
    o_block = tl.make_block_ptr(O + head * N_q * D, (N_q, D), (D, 1), (i * R, 0), (R, D), (1, 0))
    tl.store(o_block, acc.to(O.dtype.element_ty), boundary_check=(0,))
    tl.store(L + head * N_q + r, tl.where(l > 0, m + tl.log(l), float("-inf")), mask=r < N_q)


def my_attention(Q, K, V, causal):
    B, H, N_q, d = Q.shape
    Q, K, V = (X.contiguous() for X in (Q, K, V))
    O = torch.empty(B, H, N_q, d, dtype=Q.dtype, device=Q.device)
    L = torch.empty(B, H, N_q, device=Q.device)
    k_block[(B * H, triton.cdiv(N_q, 16))](Q, K, V, O, L, N_q, K.shape[2], d**-0.5, D=d, R=16, C=32, CAUSAL=causal)
    return O, L


# attention: all in fp32, S transposed, no tile skipped, tiles of 64 x 16
@triton.jit
def k_t(Q, K, V, O, L, N_q, N_k, past, scale, CAUSAL, D: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    b = tl.program_id(1)
    r = tl.program_id(0) * R + tl.arange(0, R)
    e = tl.arange(0, D)
    at = (b * N_q + r)[:, None] * D + e[None, :]
    q = tl.load(Q + at, mask=(r < N_q)[:, None], other=0.0).to(tl.float32) * scale
    m = tl.full([R], -float("inf"), tl.float32)
    l = tl.full([R], 0.0, tl.float32)
    acc = tl.zeros([D, R], tl.float32)
    for j in range(tl.cdiv(N_k, C)):
        c = j * C + tl.arange(0, C)
        place = (b * N_k + c)[:, None] * D + e[None, :]
        k = tl.load(K + place, mask=(c < N_k)[:, None], other=0.0).to(tl.float32)
        v = tl.load(V + place, mask=(c < N_k)[:, None], other=0.0).to(tl.float32)
        s = tl.dot(k, q.T, input_precision="ieee")
        ok = (c < N_k)[:, None] & ((c[:, None] <= r[None, :] + past) | (CAUSAL == 0))
        s = tl.where(ok, s, -float("inf"))
        new = tl.maximum(m, tl.max(s, axis=0))
        shift = tl.where(new > -float("inf"), new, 0.0)
        p = tl.exp(s - shift[None, :])
        a = tl.exp(m - shift)
        l = l * a + tl.sum(p, axis=0)
        acc = acc * a[None, :] + tl.dot(v.T, p, input_precision="ieee")
        m = new
    o = acc.T / tl.maximum(l, 1e-30)[:, None]
    tl.store(O + at, o, mask=(r < N_q)[:, None])
    tl.store(L + b * N_q + r, m + tl.log(tl.where(l == 0, 1.0, l)), mask=r < N_q)


def my_attention(Q, K, V, causal):
    Q, K, V = Q.contiguous(), K.contiguous(), V.contiguous()
    B, H, N_q, d = Q.shape
    N_k = K.size(2)
    O, L = torch.zeros_like(Q), torch.zeros(B, H, N_q, device=Q.device)
    k_t[(triton.cdiv(N_q, 64), B * H)](Q, K, V, O, L, N_q, N_k, N_k - N_q, 1 / d**0.5, int(causal), D=d, R=64, C=16)
    return O, L


# attention: autotuned, a grid of three axes, strides, a while loop, base 2 up to the end
@triton.jit
def seen(r, c, N_k, past, CAUSAL: tl.constexpr):
    ok = c[None, :] < N_k
    if CAUSAL:
        ok = ok & (c[None, :] <= (r + past)[:, None])
    return ok


@triton.autotune([triton.Config({"R": 32, "C": 32}, num_warps=4), triton.Config({"R": 16, "C": 16}, num_warps=2)], key=["N_q", "N_k"])
@triton.jit
def k_tuned(Q, K, V, O, L, a1, a2, a3, a4, b1, b2, b3, b4, c1, c2, c3, c4, N_q, N_k, qk, D: tl.constexpr, CAUSAL: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    b, h, i = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    r, e = i * R + tl.arange(0, R), tl.arange(0, D)
    q = tl.load(Q + b * a1 + h * a2 + r[:, None] * a3 + e[None, :] * a4, mask=r[:, None] < N_q, other=0)
    m = tl.zeros((R,), tl.float32) - float("inf")
    l, acc = tl.zeros((R,), tl.float32), tl.zeros((R, D), tl.float32)
    start = 0
    end = N_k
    if CAUSAL:
        end = tl.minimum(N_k, i * R + R + N_k - N_q)
    while start < end:
        c = start + tl.arange(0, C)
        k = tl.load(K + b * b1 + h * b2 + c[:, None] * b3 + e[None, :] * b4, mask=c[:, None] < N_k, other=0)
        v = tl.load(V + b * c1 + h * c2 + c[:, None] * c3 + e[None, :] * c4, mask=c[:, None] < N_k, other=0)
        s = tl.where(seen(r, c, N_k, N_k - N_q, CAUSAL), tl.dot(q, tl.trans(k), input_precision="ieee") * qk, float("-inf"))
        new = tl.maximum(m, tl.max(s, 1))
        safe = tl.where(new == float("-inf"), 0, new)
        a = tl.exp2(m - safe)
        p = tl.exp2(s - safe[:, None])
        l = tl.fma(l, a, tl.sum(p, 1))
        acc = tl.dot(p.to(v.dtype), v, acc * a[:, None], input_precision="ieee")
        m = new
        start += C
    some = tl.where(l == 0, 1, l)
    at = ((b * tl.num_programs(1) + h) * N_q + r)
    tl.store(O + at[:, None] * D + e[None, :], (acc / some[:, None]).to(O.dtype.element_ty), mask=r[:, None] < N_q)
    tl.store(L + at, (m + tl.log2(some)) / 1.4426950408889634, mask=r < N_q)


def my_attention(Q, K, V, causal):
    B, H, N_q, d = Q.shape
    O = torch.empty(Q.shape, dtype=Q.dtype, device=Q.device)
    L = torch.empty(B, H, N_q, dtype=torch.float32, device=Q.device)
    grid = lambda meta: (B, H, triton.cdiv(N_q, meta["R"]))
    k_tuned[grid](Q, K, V, O, L, *Q.stride(), *K.stride(), *V.stride(), N_q, K.shape[2], math.log2(math.e) / math.sqrt(d), D=d, CAUSAL=causal)
    return O, L


# inner_loop: the tile has a state of its own, and the two are merged
@triton.jit
def my_inner_loop(q, k, v, m, l, O_acc, visible, scale):
    s = tl.where(visible, scale * tl.dot(q, k.T, input_precision="ieee"), -float("inf"))
    m_t = tl.max(s, axis=1)
    p = tl.where(visible, tl.exp(s - tl.where(m_t == -float("inf"), 0.0, m_t)[:, None]), 0.0)
    l_t = tl.sum(p, axis=1)
    o_t = tl.dot(p.to(v.dtype), v, input_precision="ieee")
    new = tl.maximum(m, m_t)
    x = tl.where(m == -float("inf"), 0.0, tl.exp(m - new))
    y = tl.where(m_t == -float("inf"), 0.0, tl.exp(m_t - new))
    return new, l * x + l_t * y, O_acc * x[:, None] + o_t * y[:, None]


# alibi: slope * c added, the part of the row left out
@triton.jit
def k_alibi(Q, K, V, O, N_q, N_k, scale, slope, D: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    head, i = tl.program_id(0), tl.program_id(1)
    r, e = i * R + tl.arange(0, R), tl.arange(0, D)
    q = tl.load(Q + (head * N_q + r)[:, None] * D + e[None, :], mask=r[:, None] < N_q, other=0.0)
    m, l, acc = tl.full((R,), float("-inf"), tl.float32), tl.zeros((R,), tl.float32), tl.zeros((R, D), tl.float32)
    for start in range(0, tl.minimum(N_k, (i + 1) * R + N_k - N_q), C):
        c = start + tl.arange(0, C)
        k = tl.load(K + (head * N_k + c)[None, :] * D + e[:, None], mask=c[None, :] < N_k, other=0.0)
        v = tl.load(V + (head * N_k + c)[:, None] * D + e[None, :], mask=c[:, None] < N_k, other=0.0)
        s = tl.dot(q, k, input_precision="ieee") * scale + slope * c[None, :]
        s = tl.where(c[None, :] <= r[:, None] + N_k - N_q, s, float("-inf"))
        new = tl.maximum(m, tl.max(s, 1))
        safe = tl.where(new == float("-inf"), 0.0, new)
        p, a = tl.exp(s - safe[:, None]), tl.exp(m - safe)
        l, acc, m = l * a + tl.sum(p, 1), acc * a[:, None] + tl.dot(p, v, input_precision="ieee"), new
    tl.store(O + (head * N_q + r)[:, None] * D + e[None, :], acc / tl.where(l == 0, 1.0, l)[:, None], mask=r[:, None] < N_q)


def my_alibi(Q, K, V, slope):
    Q, K, V = map(torch.Tensor.contiguous, (Q, K, V))
    B, H, N_q, d = Q.shape
    O = torch.empty_like(Q)
    k_alibi[(B * H, triton.cdiv(N_q, 64))](Q, K, V, O, N_q, K.shape[2], d**-0.5, slope, D=d, R=64, C=32)
    return O


# attention: the pieces of the chapter, joined: the update is a function, and pointers move to their head
@triton.jit
def piece(q, k, v, m, l, O_acc, visible, scale):
    S = tl.where(visible, tl.dot(q, k.T, input_precision="ieee") * scale, -float("inf"))
    m_old = m
    m = tl.maximum(m_old, tl.max(S, axis=1))
    shift = tl.where(m == -float("inf"), 0.0, m)
    alpha = tl.exp(m_old - shift)
    P = tl.exp(S - shift[:, None])
    O_acc = alpha[:, None] * O_acc + tl.dot(P.to(v.dtype), v, input_precision="ieee")
    return m, alpha * l + tl.sum(P, axis=1), O_acc


@triton.jit
def joined(Q_ptr, K_ptr, V_ptr, O_ptr, Lse_ptr, N_q, N_k, scale, CAUSAL: tl.constexpr, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr):
    i = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    Q_ptr += head * N_q * D
    K_ptr += head * N_k * D
    V_ptr += head * N_k * D
    O_ptr += head * N_q * D
    Lse_ptr += head * N_q
    offs_m = i * B_R + tl.arange(0, B_R)
    offs_d = tl.arange(0, D)
    q = tl.load(Q_ptr + offs_m[:, None] * D + offs_d[None, :], mask=offs_m[:, None] < N_q, other=0.0)
    m = tl.full((B_R,), -float("inf"), tl.float32)
    l = tl.zeros((B_R,), tl.float32)
    O_acc = tl.zeros((B_R, D), tl.float32)
    for start in range(0, N_k, B_C):
        offs_n = start + tl.arange(0, B_C)
        k = tl.load(K_ptr + offs_n[:, None] * D + offs_d[None, :], mask=offs_n[:, None] < N_k, other=0.0)
        v = tl.load(V_ptr + offs_n[:, None] * D + offs_d[None, :], mask=offs_n[:, None] < N_k, other=0.0)
        visible = (offs_n < N_k)[None, :]
        if CAUSAL:
            visible &= offs_n[None, :] <= offs_m[:, None] + N_k - N_q
        m, l, O_acc = piece(q, k, v, m, l, O_acc, visible, scale)
    divisor = tl.where(l == 0.0, 1.0, l)
    O = O_acc / divisor[:, None]
    tl.store(O_ptr + offs_m[:, None] * D + offs_d[None, :], O.to(O_ptr.dtype.element_ty), mask=offs_m[:, None] < N_q)
    tl.store(Lse_ptr + offs_m, m + tl.log(divisor), mask=offs_m < N_q)


def my_attention(Q, K, V, causal):
    Q, K, V = Q.contiguous(), K.contiguous(), V.contiguous()
    (B, H, N_q, d), N_k = Q.shape, K.shape[2]
    O, lse = torch.empty_like(Q), torch.empty((B, H, N_q), dtype=torch.float32, device=Q.device)
    joined[(triton.cdiv(N_q, 32), B * H)](Q, K, V, O, lse, N_q, N_k, d**-0.5, causal, D=d, B_R=32, B_C=32)
    return O, lse
