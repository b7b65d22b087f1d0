"""Right kernels for any mask, the last exercise, in other styles: see `tests.checks.answers`."""


# variant: one body for each loop, the guard where rows may have seen nothing
@triton.jit
def loops(
    Q, K, V, O, L, NW, W, NC, C, H, N_q, N_k, T_c, scale,
    D: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr, SEEN: tl.constexpr, SCORE: tl.constexpr,
):
    i, p = tl.program_id(0), tl.program_id(1).to(tl.int64)
    b, h = p // H, p % H
    row, e = i * BR + tl.arange(0, BR), tl.arange(0, D)
    at = (p * N_q + row)[:, None] * D + e[None, :]
    q = tl.load(Q + at, mask=(row < N_q)[:, None], other=0.0)
    r = (row + N_k - N_q)[:, None]
    m, l, acc = tl.full([BR], -float("inf"), tl.float32), tl.zeros([BR], tl.float32), tl.zeros([BR, D], tl.float32)
    for n in range(0, tl.load(NW + i)):
        key = tl.load(W + i * T_c + n) * BC + tl.arange(0, BC)
        place = (p * N_k + key)[:, None] * D + e[None, :]
        k = tl.load(K + place, mask=(key < N_k)[:, None], other=0.0)
        v = tl.load(V + place, mask=(key < N_k)[:, None], other=0.0)
        s = SCORE(tl.dot(q, tl.trans(k), input_precision="ieee") * scale, b, h, r, key[None, :])
        s = tl.where((key < N_k)[None, :], s, -float("inf"))
        new = tl.maximum(m, tl.max(s, 1))
        w = tl.exp(s - new[:, None])
        a = tl.exp(m - new)
        m, l = new, l * a + tl.sum(w, 1)
        acc = acc * a[:, None] + tl.dot(w.to(v.dtype), v, input_precision="ieee")
    for n in range(0, tl.load(NC + i)):
        key = tl.load(C + i * T_c + n) * BC + tl.arange(0, BC)
        place = (p * N_k + key)[:, None] * D + e[None, :]
        k = tl.load(K + place, mask=(key < N_k)[:, None], other=0.0)
        v = tl.load(V + place, mask=(key < N_k)[:, None], other=0.0)
        s = SCORE(tl.dot(q, tl.trans(k), input_precision="ieee") * scale, b, h, r, key[None, :])
        s = tl.where(SEEN(b, h, r, key[None, :]) & (key < N_k)[None, :], s, -float("inf"))
        new = tl.maximum(m, tl.max(s, 1))
        safe = tl.where(new == -float("inf"), 0.0, new)
        w = tl.exp(s - safe[:, None])
        a = tl.exp(m - safe)
        m, l = new, l * a + tl.sum(w, 1)
        acc = acc * a[:, None] + tl.dot(w.to(v.dtype), v, input_precision="ieee")
    one = tl.where(l > 0, l, 1.0)
    tl.store(O + at, (acc / one[:, None]).to(O.dtype.element_ty), mask=(row < N_q)[:, None])
    tl.store(L + p * N_q + row, m + tl.log(one), mask=row < N_q)


def my_variant(Q, K, V, table, SEEN, SCORE, B_R, B_C):
    Q, K, V = Q.contiguous(), K.contiguous(), V.contiguous()
    B, H, N_q, d = Q.shape
    N_k = K.shape[2]
    O, L = torch.empty_like(Q), torch.empty(B, H, N_q, device=Q.device)
    T_c = triton.cdiv(N_k, B_C)
    grid = (triton.cdiv(N_q, B_R), B * H)
    loops[grid](Q, K, V, O, L, *table, H, N_q, N_k, T_c, 1 / d**0.5, d, B_R, B_C, SEEN, SCORE)
    return O, L


# variant: strides, cut tiles first, powers of 2, a grid of three axes
@triton.jit
def visit(
    q, k_ptr, v_ptr, m, l, acc, b, h, r, c, N_k, kn, vn, kd, vd, scale,
    D: tl.constexpr, MASKED: tl.constexpr, SEEN: tl.constexpr, SCORE: tl.constexpr,
):
    d = tl.arange(0, D)
    k = tl.load(k_ptr + d[:, None] * kd + c[None, :] * kn, mask=c[None, :] < N_k, other=0.0)
    v = tl.load(v_ptr + c[:, None] * vn + d[None, :] * vd, mask=c[:, None] < N_k, other=0.0)
    s = tl.dot(q, k, input_precision="ieee") * scale
    s = SCORE(s, b, h, r[:, None], c[None, :]) * 1.4426950408889634
    if MASKED:
        s = tl.where(SEEN(b, h, r[:, None], c[None, :]), s, float("-inf"))
    s = tl.where(c[None, :] < N_k, s, float("-inf"))
    top = tl.maximum(m, tl.max(s, axis=1))
    shift = tl.where(top > float("-inf"), top, 0.0)
    p, fix = tl.exp2(s - shift[:, None]), tl.exp2(m - shift)
    return top, l * fix + tl.sum(p, axis=1), acc * fix[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")


@triton.jit
def block_kernel(
    Q, K, V, O, lse, n_whole, whole, n_cut, cut, qb, qh, qn, qd, kb, kh, kn, kd, vb, vh, vn, vd, ob, oh, on,
    N_q, N_k, row_of_table, scale,
    D: tl.constexpr, R: tl.constexpr, C: tl.constexpr, SEEN: tl.constexpr, SCORE: tl.constexpr,
):
    i, h, b = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2).to(tl.int64)
    row, d = i * R + tl.arange(0, R), tl.arange(0, D)
    q = tl.load(Q + b * qb + h * qh + row[:, None] * qn + d[None, :] * qd, mask=row[:, None] < N_q, other=0.0)
    k_ptr, v_ptr = K + b * kb + h * kh, V + b * vb + h * vh
    r = row + (N_k - N_q)
    m = tl.full((R,), float("-inf"), tl.float32)
    l = tl.zeros((R,), tl.float32)
    acc = tl.zeros((R, D), tl.float32)
    for n in range(tl.load(n_cut + i)):
        c = tl.load(cut + i * row_of_table + n) * C + tl.arange(0, C)
        m, l, acc = visit(q, k_ptr, v_ptr, m, l, acc, b, h, r, c, N_k, kn, vn, kd, vd, scale, D, True, SEEN, SCORE)
    for n in range(tl.load(n_whole + i)):
        c = tl.load(whole + i * row_of_table + n) * C + tl.arange(0, C)
        m, l, acc = visit(q, k_ptr, v_ptr, m, l, acc, b, h, r, c, N_k, kn, vn, kd, vd, scale, D, False, SEEN, SCORE)
    safe = tl.where(l == 0, 1.0, l)
    tl.store(O + b * ob + h * oh + row[:, None] * on + d[None, :], acc / safe[:, None], mask=row[:, None] < N_q)
    tl.store(lse + (b * tl.num_programs(1) + h) * N_q + row, (m + tl.log2(safe)) * 0.6931471805599453, mask=row < N_q)


def my_variant(Q, K, V, table, SEEN, SCORE, B_R, B_C):
    (B, H, N_q, d), N_k = Q.shape, K.shape[2]
    O = torch.empty(Q.shape, dtype=Q.dtype, device=Q.device)
    lse = torch.full((B, H, N_q), -float("inf"), device=Q.device)
    strides = *Q.stride(), *K.stride(), *V.stride(), *O.stride()[:3]
    n_whole, whole, n_cut, cut = table
    block_kernel[(len(n_whole), H, B)](
        Q, K, V, O, lse, n_whole, whole, n_cut, cut, *strides, N_q, N_k, whole.stride(0), d**-0.5,
        D=d, R=B_R, C=B_C, SEEN=SEEN, SCORE=SCORE,
    )
    return O, lse


# variant: one loop over both lists, all in fp32, the last row blocks first
@triton.jit
def one_loop(
    Q, K, V, O, L, nw, whole, nc, cut, H, N_q, N_k, T, scale,
    D: tl.constexpr, R: tl.constexpr, C: tl.constexpr, SEEN: tl.constexpr, SCORE: tl.constexpr,
):
    i = tl.num_programs(1) - 1 - tl.program_id(1)
    head = tl.program_id(0).to(tl.int64)
    b = head // H
    h = head - b * H
    x = tl.arange(0, D)[None, :]
    row = i * R + tl.arange(0, R)[:, None]
    q = tl.load(Q + (head * N_q + row) * D + x, mask=row < N_q, other=0.0).to(tl.float32)
    m = tl.full((R, 1), -1e38, tl.float32)
    l = tl.full((R, 1), 0.0, tl.float32)
    acc = tl.full((R, D), 0.0, tl.float32)
    first, second = tl.load(nw + i), tl.load(nc + i)
    for n in range(first + second):
        is_cut = n >= first
        j = tl.load(whole + i * T + n, mask=n < first, other=0)
        j += tl.load(cut + i * T + n - first, mask=is_cut, other=0)
        key = j * C + tl.arange(0, C)[:, None]
        k = tl.load(K + (head * N_k + key) * D + x, mask=key < N_k, other=0.0).to(tl.float32)
        v = tl.load(V + (head * N_k + key) * D + x, mask=key < N_k, other=0.0).to(tl.float32)
        c = key.T
        s = SCORE(tl.dot(q * scale, k.T, input_precision="ieee"), b, h, row + N_k - N_q, c)
        hidden = (c >= N_k) | (is_cut & (SEEN(b, h, row + N_k - N_q, c) == 0))
        old = m
        m = tl.maximum(m, tl.max(tl.where(hidden, -1e38, s), axis=1, keep_dims=True))
        p = tl.where(hidden, 0.0, tl.exp(s - m))
        l = l * tl.exp(old - m) + tl.sum(p, axis=1, keep_dims=True)
        acc = acc * tl.exp(old - m) + tl.dot(p, v, input_precision="ieee")
    o = tl.where(l > 0, acc / tl.where(l > 0, l, 1.0), 0.0)
    tl.store(O + (head * N_q + row) * D + x, o, mask=row < N_q)
    tl.store(L + head * N_q + row, tl.where(l > 0, m + tl.log(l), -float("inf")), mask=row < N_q)


def my_variant(Q, K, V, table, SEEN, SCORE, B_R, B_C):
    shape, N_k = Q.shape, K.size(2)
    Q, K, V = (X.reshape(-1, X.size(2), X.size(3)).contiguous() for X in (Q, K, V))
    O, L = torch.zeros_like(Q), torch.zeros(Q.shape[:2], dtype=torch.float32, device=Q.device)
    one_loop[(len(Q), triton.cdiv(Q.size(1), B_R))](
        Q, K, V, O, L, *table, shape[1], Q.size(1), N_k, triton.cdiv(N_k, B_C), shape[3] ** -0.5,
        shape[3], B_R, B_C, SEEN, SCORE,
    )
    return O.view(shape), L.view(shape[:3])
