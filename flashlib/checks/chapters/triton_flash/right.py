"""Right answers to the exercises of chapter 10 in other styles: see `flashlib.checks.answers`."""


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
