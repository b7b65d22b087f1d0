"""Right answers to the exercises of chapter 10 in other styles: see `tests.checks.answers`."""


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
