"""Right answers to the last exercise in other styles: see `tests.checks.answers`."""


# decode: one grid, the merge in two loops
@triton.jit
def split_kernel(q_ptr, k_ptr, v_ptr, len_ptr, tab_ptr, m_ptr, l_ptr, acc_ptr, HK, G, PAGE, W, SPLITS, scale,
                 D: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    s = pid % SPLITS
    hk = pid // SPLITS % HK
    b = pid // SPLITS // HK
    rows = tl.arange(0, ROWS)
    dims = tl.arange(0, D)
    ok = rows < G
    hq = hk * G + rows
    q = tl.load(q_ptr + (b * HK * G + hq[:, None]) * D + dims[None, :], mask=ok[:, None], other=0.0)
    n = tl.load(len_ptr + b)
    blocks = (n + BLOCK - 1) // BLOCK
    per = (blocks + SPLITS - 1) // SPLITS
    mi = tl.full((ROWS,), float("-inf"), tl.float32)
    li = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, D), tl.float32)
    for blk in range(s * per, tl.minimum((s + 1) * per, blocks)):
        key = blk * BLOCK + tl.arange(0, BLOCK)
        live = key < n
        pg = tl.load(tab_ptr + b * W + key // PAGE, mask=live, other=0).to(tl.int64)
        off = (pg * HK + hk) * PAGE * D + (key % PAGE) * D
        k = tl.load(k_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        v = tl.load(v_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        x = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        x = tl.where(live[None, :], x, float("-inf"))
        new = tl.maximum(mi, tl.max(x, 1))
        keep = tl.exp(mi - new)
        p = tl.exp(x - new[:, None])
        li = li * keep + tl.sum(p, 1)
        acc = acc * keep[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        mi = new
    at = (b * HK * G + hq) * SPLITS + s
    tl.store(m_ptr + at, mi, mask=ok)
    tl.store(l_ptr + at, li, mask=ok)
    tl.store(acc_ptr + at[:, None] * D + dims[None, :], acc, mask=ok[:, None])


@triton.jit
def join_kernel(m_ptr, l_ptr, acc_ptr, o_ptr, lse_ptr, SPLITS, D: tl.constexpr):
    row = tl.program_id(0)
    dims = tl.arange(0, D)
    big = float("-inf")
    for s in range(SPLITS):
        big = tl.maximum(big, tl.load(m_ptr + row * SPLITS + s))
    total = 0.0
    out = tl.zeros((D,), tl.float32)
    if big > float("-inf"):
        for s in range(SPLITS):
            w = tl.exp(tl.load(m_ptr + row * SPLITS + s) - big)
            total += w * tl.load(l_ptr + row * SPLITS + s)
            out += w * tl.load(acc_ptr + (row * SPLITS + s) * D + dims)
        out = out / total
    tl.store(o_ptr + row * D + dims, out)
    tl.store(lse_ptr + row, big + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, HQ, D = Q.shape
    HK, PAGE = K.shape[1], K.shape[2]
    G = HQ // HK
    m = torch.empty(B, HQ, parts, device=Q.device)
    l = torch.empty_like(m)
    acc = torch.empty(B, HQ, parts, D, device=Q.device)
    O = torch.empty_like(Q)
    lse = torch.empty(B, HQ, device=Q.device)
    split_kernel[(B * HK * parts,)](
        Q, K, V, lengths, table, m, l, acc, HK, G, PAGE, table.shape[1], parts, D ** -0.5,
        D=D, ROWS=max(16, triton.next_power_of_2(G)), BLOCK=32)
    join_kernel[(B * HQ,)](m, l, acc, O, lse, parts, D=D)
    return O, lse


# decode: parts of keys, powers of 2, parts finished and merged by lse
@triton.jit
def part(Q, K, V, lens, table, Opart, Lpart, Hk, page, most, parts, scale,
         group: tl.constexpr, R: tl.constexpr, D: tl.constexpr, C: tl.constexpr):
    k_part, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    N = tl.load(lens + b)
    first = N * k_part // parts
    last = N * (k_part + 1) // parts
    r = tl.arange(0, R)
    d = tl.arange(0, D)
    row = b * Hk * group + h * group + r
    q = tl.load(Q + row[:, None] * D + d, mask=(r < group)[:, None], other=0.0)
    m = tl.full([R], -float("inf"), tl.float32)
    l = tl.zeros([R], tl.float32)
    acc = tl.zeros([R, D], tl.float32)
    for start in range(first, last, C):
        c = start + tl.arange(0, C)
        mine = c < last
        number = tl.load(table + b * most + c // page, mask=mine, other=0).to(tl.int64)
        place = number * Hk * page * D + h * page * D + c % page * D
        k = tl.load(K + place[None, :] + d[:, None], mask=mine[None, :], other=0.0)
        v = tl.load(V + place[:, None] + d[None, :], mask=mine[:, None], other=0.0)
        s = tl.dot(q, k, input_precision="ieee") * (scale * 1.4426950408889634)
        s = tl.where(mine[None, :], s, -float("inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        a = tl.exp2(m - m_new)
        p = tl.exp2(s - m_new[:, None])
        l = l * a + tl.sum(p, axis=1)
        acc = acc * a[:, None]
        acc += tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m = m_new
    safe = tl.where(l == 0, 1.0, l)
    tl.store(Opart + (row * parts + k_part)[:, None] * D + d, acc / safe[:, None], mask=(r < group)[:, None])
    tl.store(Lpart + row * parts + k_part, m * 0.6931471805599453 + tl.log(safe), mask=r < group)


@triton.jit
def merge(Opart, Lpart, O, L, parts, P: tl.constexpr, D: tl.constexpr):
    row, d, p = tl.program_id(0), tl.arange(0, D), tl.arange(0, P)
    lse = tl.load(Lpart + row * parts + p, mask=p < parts, other=-float("inf"))
    o = tl.load(Opart + (row * parts + p)[:, None] * D + d[None, :], mask=(p < parts)[:, None], other=0.0)
    top = tl.max(lse, axis=0)
    top = tl.where(top == -float("inf"), 0.0, top)
    w = tl.exp(lse - top)
    total = tl.sum(w, axis=0)
    tl.store(O + row * D + d, tl.sum(w[:, None] * o, axis=0) / tl.where(total == 0, 1.0, total))
    tl.store(L + row, top + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, H, D = Q.shape
    _, Hk, page, _ = K.shape
    group = H // Hk
    Opart = torch.zeros(B, H, parts, D, dtype=torch.float32, device=Q.device)
    Lpart = torch.zeros(B, H, parts, dtype=torch.float32, device=Q.device)
    O, L = torch.zeros_like(Q), torch.zeros(B, H, device=Q.device)
    R = max(triton.next_power_of_2(group), 16)
    part[(parts, Hk, B)](Q, K, V, lengths, table, Opart, Lpart, Hk, page, table.size(1), parts, D**-0.5, group, R, D, 16)
    merge[(B * H,)](Opart, Lpart, O, L, parts, P=triton.next_power_of_2(parts), D=D)
    return O, L


# decode: a page in each turn, the merge step by step
@triton.jit
def of_pages(q_ptr, k_ptr, v_ptr, len_ptr, table_ptr, state_ptr, o_ptr, page, most, parts, H_k, group, scale,
             D: tl.constexpr, ROWS: tl.constexpr, PAGE: tl.constexpr):
    b, h, s = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    n = tl.load(len_ptr + b)
    pages = tl.cdiv(n, page)
    each = tl.cdiv(pages, parts)
    i, e, at = tl.arange(0, ROWS), tl.arange(0, D), tl.arange(0, PAGE)
    of_group = (i < group)[:, None]
    heads = (b * H_k + h) * group + i
    q = tl.load(q_ptr + heads[:, None] * D + e[None, :], mask=of_group, other=0.0)
    m = tl.full((ROWS,), -1e30, tl.float32)
    l = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, D), tl.float32)
    for number in range(s * each, tl.minimum(pages, (s + 1) * each)):
        base = (tl.load(table_ptr + b * most + number).to(tl.int64) * H_k + h) * page
        there = (at < page) & (number * page + at < n)
        k = tl.load(k_ptr + (base + at)[:, None] * D + e[None, :], mask=there[:, None], other=0.0)
        v = tl.load(v_ptr + (base + at)[:, None] * D + e[None, :], mask=there[:, None], other=0.0)
        x = tl.dot(q, k.T, input_precision="ieee") * scale + tl.where(there, 0.0, -float("inf"))[None, :]
        new = tl.maximum(m, tl.max(x, axis=1))
        p, keep = tl.exp(x - new[:, None]), tl.exp(m - new)
        l = l * keep + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * keep[:, None], input_precision="ieee")
        m = new
    place = (heads * parts + s)[:, None]
    tl.store(o_ptr + place * D + e[None, :], acc, mask=of_group)
    tl.store(state_ptr + place * 2, m[:, None], mask=of_group)
    tl.store(state_ptr + place * 2 + 1, l[:, None], mask=of_group)


@triton.jit
def merged(state_ptr, acc_ptr, o_ptr, lse_ptr, parts, D: tl.constexpr):
    row, e = tl.program_id(0), tl.arange(0, D)
    m, l = -1e30, 0.0
    acc = tl.zeros((D,), tl.float32)
    for s in range(row * parts, (row + 1) * parts):
        m_s, l_s = tl.load(state_ptr + 2 * s), tl.load(state_ptr + 2 * s + 1)
        new = tl.maximum(m, m_s)
        a, b = tl.exp(m - new), tl.where(l_s > 0, tl.exp(m_s - new), 0.0)
        acc = acc * a + b * tl.load(acc_ptr + s * D + e)
        l = l * a + b * l_s
        m = new
    tl.store(o_ptr + row * D + e, acc / tl.where(l > 0, l, 1.0))
    tl.store(lse_ptr + row, tl.where(l > 0, m + tl.log(l), -float("inf")))


def my_decode(Q, K, V, lengths, table, parts):
    B, H_q, d = Q.shape
    H_k, page = K.shape[1:3]
    group = H_q // H_k
    acc = Q.new_empty((B, H_q, parts, d), dtype=torch.float32)
    states = Q.new_empty((B, H_q, parts, 2), dtype=torch.float32)
    O, lse = torch.empty_like(Q), Q.new_empty((B, H_q), dtype=torch.float32)
    constants = {"D": d, "ROWS": triton.next_power_of_2(max(group, 16)), "PAGE": max(16, triton.next_power_of_2(page))}
    sizes = page, table.shape[1], parts, H_k, group, d**-0.5
    of_pages[B, H_k, parts](Q, K, V, lengths, table, states, acc, *sizes, **constants)
    merged[B * H_q,](states, acc, O, lse, parts, D=d)
    return O, lse


# decode: parts take turns with the tiles, powers of 2, q scaled in fp32
@triton.jit
def turns(Q_ptr, K_ptr, V_ptr, N_ptr, T_ptr, M_ptr, L_ptr, A_ptr, H, G, page, width, parts, c, D: tl.constexpr,
          B_R: tl.constexpr, B_C: tl.constexpr):
    b = tl.program_id(0) // H
    h = tl.program_id(0) % H
    s = tl.program_id(1)
    g = tl.arange(0, B_R) % G  # rows that are too many do the work of others again
    d = tl.arange(0, D)
    q = tl.load(Q_ptr + ((b * H + h) * G + g)[:, None] * D + d).to(tl.float32) * c
    m = tl.full((B_R,), -float("inf"), tl.float32)
    l = tl.zeros((B_R,), tl.float32)
    a = tl.zeros((B_R, D), tl.float32)
    n = tl.load(N_ptr + b)
    for start in range(s * B_C, n, parts * B_C):  # parts take turns
        key = start + tl.arange(0, B_C)
        key_ = tl.minimum(key, n - 1)
        row = (tl.load(T_ptr + b * width + key_ // page).to(tl.int64) * H + h) * page + key_ % page
        k = tl.load(K_ptr + row[:, None] * D + d)
        v = tl.load(V_ptr + row[:, None] * D + d)
        x = tl.where(key < n, tl.dot(q, k.T.to(tl.float32), input_precision="ieee"), -float("inf"))
        top = tl.maximum(m, tl.max(x, 1))
        p = tl.exp2(x - top[:, None])
        r = tl.exp2(m - top)
        l = r * l + tl.sum(p, 1)
        a = r[:, None] * a + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m = top
    o = ((b * H + h) * G + g) * parts + s
    own = tl.arange(0, B_R) < G
    tl.store(M_ptr + o, m, mask=own)
    tl.store(L_ptr + o, l, mask=own)
    tl.store(A_ptr + o[:, None] * D + d, a, mask=own[:, None])


@triton.jit
def together(M_ptr, L_ptr, A_ptr, O_ptr, E_ptr, parts, D: tl.constexpr, P: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    s, d = tl.arange(0, P), tl.arange(0, D)
    there = s < parts
    m = tl.where(there, tl.load(M_ptr + row * parts + s, mask=there), -float("inf"))
    l = tl.where(there, tl.load(L_ptr + row * parts + s, mask=there), 0.0)
    a = tl.load(A_ptr + (row * parts + s)[:, None] * D + d, mask=there[:, None], other=0.0)
    top = tl.maximum(tl.max(m, 0), -1e37)
    w = tl.exp2(m - top)
    z = tl.sum(w * l, 0)
    tl.store(O_ptr + row * D + d, tl.sum(a * w[:, None], 0) / tl.maximum(z, 1e-30))
    tl.store(E_ptr + row, tl.where(z == 0, -float("inf"), (top + tl.log2(z)) * 0.6931471805599453))


def my_decode(Q, K, V, lengths, table, parts):
    (B, n, D), H = Q.shape, K.shape[1]
    f32 = {"dtype": torch.float32, "device": Q.device}
    M, L = (torch.zeros((B, n, parts), **f32) for _ in range(2))
    A, O, E = torch.zeros((B, n, parts, D), **f32), torch.zeros_like(Q), torch.zeros((B, n), **f32)
    rows = max(16, triton.next_power_of_2(n // H))
    sizes = H, n // H, K.shape[2], table.stride(0), parts, 1.4426950408889634 / D**0.5
    turns[(B * H, parts)](Q, K, V, lengths, table, M, L, A, *sizes, D=D, B_R=rows, B_C=16, num_warps=4)
    together[(B * n,)](M, L, A, O, E, parts, D=D, P=max(2, triton.next_power_of_2(parts)))
    return [O, E]


# decode: a reader's, of parts of keys that are finished, tiles within a page, the merge step by step
@triton.jit
def where_key(table_ptr, b, c, page, most, mask):
    return tl.load(table_ptr + b * most + c // page, mask=mask, other=0).to(tl.int64)


@triton.jit
def k1(
    Q,
    K,
    V,
    lens,
    table,
    O,
    LSE,
    hk,
    group,
    page,
    most,
    parts,
    qk_scale,
    sqb,
    sqh,
    D: tl.constexpr,
    R: tl.constexpr,
    C: tl.constexpr,
):
    pid = tl.program_id(0)
    part = pid % parts
    h = (pid // parts) % hk
    b = pid // (parts * hk)
    n = tl.load(lens + b)
    size = tl.cdiv(n, parts)
    lo = part * size
    hi = tl.minimum(n, lo + size)
    g = tl.arange(0, R)
    dd = tl.arange(0, D)
    q = tl.load(Q + b * sqb + (h * group + g)[:, None] * sqh + dd[None, :], mask=(g < group)[:, None], other=0.0)
    m = tl.full((R,), -1e30, tl.float32)
    l = tl.zeros((R,), tl.float32)
    acc = tl.zeros((R, D), tl.float32)
    for s in range(lo, hi, C):
        c = s + tl.arange(0, C)
        ok = c < hi
        p = where_key(table, b, c, page, most, ok)
        at = ((p * hk + h) * page + c % page) * D
        kt = tl.load(K + at[None, :] + dd[:, None], mask=ok[None, :], other=0.0)
        S = tl.dot(q, kt, input_precision="ieee") * qk_scale
        S = tl.where(ok[None, :], S, -float("inf"))
        mn = tl.maximum(m, tl.max(S, 1))
        a = tl.math.exp2(m - mn)
        P = tl.math.exp2(S - mn[:, None])
        v = tl.load(V + at[:, None] + dd[None, :], mask=ok[:, None], other=0.0)
        l = l * a + tl.sum(P, 1)
        acc = tl.dot(P.to(v.dtype), v, acc * a[:, None], input_precision="ieee")
        m = mn
    lse = tl.where(l > 0, m + tl.log2(l), -float("inf"))
    acc = acc / tl.where(l > 0, l, 1.0)[:, None]
    row = ((b * hk + h) * group + g) * parts + part
    tl.store(LSE + row, lse, mask=g < group)
    tl.store(O + row[:, None] * D + dd[None, :], acc, mask=(g < group)[:, None])


@triton.jit
def k2(Op, Lp, O, LSE, hq, parts, D: tl.constexpr):
    b, h = tl.program_id(0), tl.program_id(1)
    row = b * hq + h
    dd = tl.arange(0, D)
    m = -float("inf")
    l = 0.0
    acc = tl.zeros((D,), tl.float32)
    for s in range(parts):
        x = tl.load(Lp + row * parts + s)
        if x > -float("inf"):
            mn = tl.maximum(m, x)
            a = tl.math.exp2(m - mn)
            w = tl.math.exp2(x - mn)
            l = l * a + w
            acc = acc * a + w * tl.load(Op + (row * parts + s) * D + dd)
            m = mn
    if l > 0:
        acc = acc / l
        lse = (m + tl.log2(l)) * 0.6931471805599453
    else:
        lse = -float("inf")
    tl.store(O + row * D + dd, acc.to(O.dtype.element_ty))
    tl.store(LSE + row, lse)


def my_decode(Q, K, V, lengths, table, parts):
    B, H_q, d = Q.shape
    pages, H_k, page, _ = K.shape
    group = H_q // H_k
    part_O = Q.new_empty((B, H_q, parts, d), dtype=torch.float32)
    part_lse = Q.new_empty((B, H_q, parts), dtype=torch.float32)
    O, lse = torch.empty_like(Q), Q.new_empty((B, H_q), dtype=torch.float32)
    C = min(64, max(16, triton.next_power_of_2(page)))
    k1[(B * H_k * parts,)](
        Q,
        K,
        V,
        lengths,
        table,
        part_O,
        part_lse,
        H_k,
        group,
        page,
        table.stride(0),
        parts,
        1.4426950408889634 / d**0.5,
        Q.stride(0),
        Q.stride(1),
        D=d,
        R=max(16, triton.next_power_of_2(group)),
        C=C,
        num_warps=4,
    )
    k2[(B, H_q)](part_O, part_lse, O, lse, H_q, parts, D=d)
    return O, lse
