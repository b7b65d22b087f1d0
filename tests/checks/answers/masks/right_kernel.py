"""Right kernels over lists of tiles in other styles: see `tests.checks.answers`."""


# whole_tiles: strides, powers of 2, a grid of three axes
@triton.jit
def listed_tiles(
    Q, K, V, O, lse, n_whole, whole, qb, qh, qn, qd, kb, kh, kn, kd, vb, vh, vn, vd, N_q, N_k, T_c, scale,
    D: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
):
    i, h, b = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2).to(tl.int64)
    row, d = i * R + tl.arange(0, R), tl.arange(0, D)
    q = tl.load(Q + b * qb + h * qh + row[:, None] * qn + d[None, :] * qd, mask=row[:, None] < N_q, other=0.0)
    m = tl.full((R,), float("-inf"), tl.float32)
    l = tl.zeros((R,), tl.float32)
    acc = tl.zeros((R, D), tl.float32)
    for n in range(tl.load(n_whole + i)):
        c = tl.load(whole + i * T_c + n) * C + tl.arange(0, C)
        k = tl.load(K + b * kb + h * kh + d[:, None] * kd + c[None, :] * kn, mask=c[None, :] < N_k, other=0.0)
        v = tl.load(V + b * vb + h * vh + c[:, None] * vn + d[None, :] * vd, mask=c[:, None] < N_k, other=0.0)
        s = tl.dot(q, k, input_precision="ieee") * (scale * 1.4426950408889634)
        s = tl.where(c[None, :] < N_k, s, float("-inf"))
        top = tl.maximum(m, tl.max(s, axis=1))
        p, fix = tl.exp2(s - top[:, None]), tl.exp2(m - top)
        l = l * fix + tl.sum(p, axis=1)
        acc = acc * fix[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m = top
    safe = tl.where(l == 0, 1.0, l)
    at = (b * tl.num_programs(1) + h) * N_q + row
    tl.store(O + at[:, None] * D + d[None, :], acc / safe[:, None], mask=row[:, None] < N_q)
    tl.store(lse + at, (m + tl.log2(safe)) * 0.6931471805599453, mask=row < N_q)


def my_whole_tiles(Q, K, V, n_whole, whole, B_R, B_C):
    (B, H, N_q, d), N_k = Q.shape, K.shape[2]
    O = torch.empty(Q.shape, dtype=Q.dtype, device=Q.device)
    lse = torch.full((B, H, N_q), -float("inf"), device=Q.device)
    strides = *Q.stride(), *K.stride(), *V.stride()
    listed_tiles[(len(n_whole), H, B)](
        Q, K, V, O, lse, n_whole, whole, *strides, N_q, N_k, whole.stride(0), d**-0.5, D=d, R=B_R, C=B_C
    )
    return O, lse


# whole_tiles: guards everywhere, and a pointer that walks along the list
@triton.jit
def walk(
    Q, K, V, O, L, NW, W, N_q, N_k, T_c, scale, D: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr,
):
    i, p = tl.program_id(0), tl.program_id(1).to(tl.int64)
    row, e = i * BR + tl.arange(0, BR), tl.arange(0, D)
    at = (p * N_q + row)[:, None] * D + e[None, :]
    q = tl.load(Q + at, mask=(row < N_q)[:, None], other=0.0)
    m, l, acc = tl.full([BR], -float("inf"), tl.float32), tl.zeros([BR], tl.float32), tl.zeros([BR, D], tl.float32)
    number = W + i * T_c
    for n in range(0, tl.load(NW + i)):
        key = tl.load(number) * BC + tl.arange(0, BC)
        number += 1
        place = (p * N_k + key)[:, None] * D + e[None, :]
        k = tl.load(K + place, mask=(key < N_k)[:, None], other=0.0)
        v = tl.load(V + place, mask=(key < N_k)[:, None], other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where((key < N_k)[None, :], s, -float("inf"))
        new = tl.maximum(m, tl.max(s, 1))
        safe = tl.where(new == -float("inf"), 0.0, new)
        w, a = tl.exp(s - safe[:, None]), tl.exp(m - safe)
        m, l = new, l * a + tl.sum(w, 1)
        acc = acc * a[:, None] + tl.dot(w.to(v.dtype), v, input_precision="ieee")
    one = tl.where(l > 0, l, 1.0)
    tl.store(O + at, (acc / one[:, None]).to(O.dtype.element_ty), mask=(row < N_q)[:, None])
    tl.store(L + p * N_q + row, m + tl.log(one), mask=row < N_q)


def my_whole_tiles(Q, K, V, n_whole, whole, B_R, B_C):
    Q, K, V = Q.contiguous(), K.contiguous(), V.contiguous()
    B, H, N_q, d = Q.shape
    N_k = K.shape[2]
    O, L = torch.empty_like(Q), torch.empty(B, H, N_q, device=Q.device)
    grid = (triton.cdiv(N_q, B_R), B * H)
    walk[grid](Q, K, V, O, L, n_whole, whole, N_q, N_k, triton.cdiv(N_k, B_C), 1 / d**0.5, d, B_R, B_C)
    return O, L
