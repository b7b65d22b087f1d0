"""Right answers to the last exercise in other styles: see `tests.checks.answers`."""


# decode_cache: one grid, the merge in two loops
@triton.jit
def split_kernel(q_ptr, k_ptr, v_ptr, len_ptr, m_ptr, l_ptr, acc_ptr, HK, G, ROOM, SPLITS, scale,
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
        off = (b.to(tl.int64) * HK + hk) * ROOM * D + key * D
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


def my_decode_cache(Q, K, V, lengths, parts):
    B, HQ, D = Q.shape
    HK, ROOM = K.shape[1], K.shape[2]
    G = HQ // HK
    m = torch.empty(B, HQ, parts, device=Q.device)
    l = torch.empty_like(m)
    acc = torch.empty(B, HQ, parts, D, device=Q.device)
    O = torch.empty_like(Q)
    lse = torch.empty(B, HQ, device=Q.device)
    split_kernel[(B * HK * parts,)](
        Q, K, V, lengths, m, l, acc, HK, G, ROOM, parts, D ** -0.5,
        D=D, ROWS=max(16, triton.next_power_of_2(G)), BLOCK=32)
    join_kernel[(B * HQ,)](m, l, acc, O, lse, parts, D=D)
    return O, lse


# decode_cache: parts of keys, powers of 2, parts finished and merged by lse
@triton.jit
def part(Q, K, V, lens, Opart, Lpart, Hk, room, parts, scale,
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
        place = (b * Hk + h).to(tl.int64) * room * D + c * D
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


def my_decode_cache(Q, K, V, lengths, parts):
    B, H, D = Q.shape
    _, Hk, room, _ = K.shape
    group = H // Hk
    Opart = torch.zeros(B, H, parts, D, dtype=torch.float32, device=Q.device)
    Lpart = torch.zeros(B, H, parts, dtype=torch.float32, device=Q.device)
    O, L = torch.zeros_like(Q), torch.zeros(B, H, device=Q.device)
    R = max(triton.next_power_of_2(group), 16)
    part[(parts, Hk, B)](Q, K, V, lengths, Opart, Lpart, Hk, room, parts, D**-0.5, group, R, D, 16)
    merge[(B * H,)](Opart, Lpart, O, L, parts, P=triton.next_power_of_2(parts), D=D)
    return O, L
