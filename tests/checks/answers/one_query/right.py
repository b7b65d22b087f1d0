"""Right answers in other styles: see `tests.checks.answers`."""


# cache_tokens: K and V on their own, and divmod
def my_cache_tokens(layers, H_k, d, itemsize, room):
    K = V = layers * H_k * d * itemsize
    tokens, _ = divmod(room, K + V)
    return [K + V, tokens]


# cache_tokens: tokens added one by one would take too long; a search
def my_cache_tokens(layers, H_k, d, itemsize, room):
    size = sum(layers * d * itemsize for _ in range(H_k) for _ in "KV")
    low, high = 0, room + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle * size <= room else (low, middle)
    return np.int64(size), low


# split_keys: NumPy, rows by concatenation
def my_split_keys(lengths, B_c, parts):
    tiles = (np.array(lengths) + B_c - 1) // B_c
    most = int(np.maximum(np.ceil(tiles.sum() / parts), 1))
    own = np.maximum((tiles + most - 1) // most, 1)
    b = np.repeat(np.arange(len(tiles)), own)
    k = np.concatenate([np.arange(n) for n in own])
    return np.stack([b, tiles[b] * k // own[b], tiles[b] * (k + 1) // own[b]], axis=1)


# split_keys: a walk with the end of the last part carried on
def my_split_keys(lengths, B_c, parts):
    count = lambda n, size: (n + size - 1) // size  # noqa: E731
    total = sum(count(n, B_c) for n in lengths) or 1
    rows = []
    while len(lengths):
        n, b = count(lengths.pop(0), B_c), len({row[0] for row in rows})
        own = count(n, count(total, parts)) or 1
        end = 0
        for k in range(1, own + 1):
            begin, end = end, k * n // own
            rows.append([b, begin, end])
    return rows


# merge_parts: one by one, as in a running merge
def my_merge_parts(m, l, O_acc):
    M, L, O = -np.inf, 0.0, np.zeros(O_acc.shape[1])
    for m_s, l_s, O_s in zip(m, l, O_acc):
        if m_s == -np.inf:
            continue
        new = max(M, m_s)
        L, O = np.exp(M - new) * L + np.exp(m_s - new) * l_s, np.exp(M - new) * O + np.exp(m_s - new) * O_s
        M = new
    return (O / L, M + np.log(L)) if L else (O, M)


# merge_parts: outputs and lse of each part, then weights of a softmax
def my_merge_parts(m, l, O_acc):
    seen = l > 0
    if not seen.any():
        return 0 * O_acc.sum(axis=0), np.float64("-inf")
    parts = m[seen] + np.log(l[seen])
    lse = np.logaddexp.reduce(parts)
    return (np.exp(parts - lse)[:, None] * (O_acc[seen] / l[seen, None])).sum(0), lse


# decode_part: rows and columns that repeat in place of masks
@triton.jit
def my_decode_part(
    Q_ptr, K_ptr, V_ptr, lengths_ptr, m_ptr, l_ptr, O_ptr, N, H_k, group, parts, scale,
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
):
    part, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    x, r = tl.arange(0, D)[None, :], tl.arange(0, B_R)
    length = tl.load(lengths_ptr + b)
    head = (b * H_k + h) * group + r % group
    q = tl.load(Q_ptr + head[:, None] * D + x)
    m = tl.full([B_R], value=float("-inf"), dtype=tl.float32)
    l = tl.full([B_R], value=0, dtype=tl.float32)
    O_acc = tl.zeros([B_R, D], dtype=tl.float32)
    T = (length + B_C - 1) // B_C
    j, end = T * part // parts, T * (part + 1) // parts
    while j < end:
        c = j * B_C + tl.arange(0, B_C)
        rows = ((b * H_k + h).to(tl.int64) * N + tl.minimum(c, length - 1))[:, None] * D + x
        S = tl.dot(q, tl.trans(tl.load(K_ptr + rows)), input_precision="ieee") * scale
        S += tl.where(c < length, 0.0, -float("inf"))[None, :]
        m_new = tl.maximum(m, tl.max(S, 1))
        alpha, P = tl.exp(m - m_new), tl.exp(S - m_new[:, None])
        V_j = tl.load(V_ptr + rows)
        O_acc = tl.dot(P.to(V_j.dtype), V_j, acc=O_acc * alpha[:, None], input_precision="ieee")
        l, m = l * alpha + tl.sum(P, 1), m_new
        j += 1
    at = head * parts + part
    tl.store(m_ptr + at, m)
    tl.store(l_ptr + at, l)
    tl.store(O_ptr + at[:, None] * D + x, O_acc)


# decode_part: base 2, a last tile of its own
@triton.jit
def of_tile(q, K_ptr, V_ptr, rows, seen, m, l, O_acc, scale):
    k = tl.load(K_ptr + rows, mask=seen[:, None], other=0.0)
    v = tl.load(V_ptr + rows, mask=seen[:, None], other=0.0)
    S = tl.where(seen[None, :], tl.dot(q, tl.trans(k), input_precision="ieee") * scale, float("-inf"))
    new = tl.maximum(m, tl.max(S, 1))
    alpha = tl.exp2(m - new)
    P = tl.exp2(S - new[:, None])
    return new, l * alpha + tl.sum(P, 1), tl.dot(P.to(v.dtype), v, acc=O_acc * alpha[:, None], input_precision="ieee")


@triton.jit
def my_decode_part(
    Q_ptr,
    K_ptr,
    V_ptr,
    lengths_ptr,
    m_ptr,
    l_ptr,
    O_ptr,
    N,
    H_k,
    group,
    parts,
    scale,
    D: tl.constexpr,
    B_R: tl.constexpr,
    B_C: tl.constexpr,
):
    part = tl.program_id(0)
    kv = (tl.program_id(2) * H_k + tl.program_id(1)).to(tl.int64)
    length = tl.load(lengths_ptr + tl.program_id(2))
    row, cols = tl.arange(0, B_R), tl.arange(0, D)
    at = (kv * group + row)[:, None] * D + cols[None, :]
    q = tl.load(Q_ptr + at, mask=(row < group)[:, None], other=0.0)
    n = (length + B_C - 1) // B_C
    begin, end = n * part // parts * B_C, tl.minimum(n * (part + 1) // parts * B_C, length)
    m = tl.zeros((B_R,), tl.float32) - float("inf")
    l = tl.zeros((B_R,), tl.float32)
    O = tl.zeros((B_R, D), tl.float32)
    for start in range(begin, end, B_C):
        c = start + tl.arange(0, B_C)
        rows = (kv * N + c)[:, None] * D + cols[None, :]
        m, l, O = of_tile(q, K_ptr, V_ptr, rows, c < length, m, l, O, scale * 1.4426950408889634)
    state = (kv * group + row) * parts + part
    tl.store(m_ptr + state, m * 0.6931471805599453, mask=row < group)
    tl.store(l_ptr + state, l, mask=row < group)
    tl.store(O_ptr + state[:, None] * D + cols[None, :], O, mask=(row < group)[:, None])


# decode_part: an empty part first, guarded shifts, pointers that move on
@triton.jit
def my_decode_part(
    Q_ptr,
    K_ptr,
    V_ptr,
    lengths_ptr,
    m_ptr,
    l_ptr,
    O_ptr,
    N,
    H_k,
    group,
    parts,
    scale,
    D: tl.constexpr,
    B_R: tl.constexpr,
    B_C: tl.constexpr,
):
    part, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(lengths_ptr + b)
    r, x = tl.arange(0, B_R), tl.arange(0, D)
    rows = r < group
    head = b * H_k * group + h * group + r
    m_ptr += head * parts + part
    l_ptr += head * parts + part
    out = O_ptr + ((head * parts + part) * D)[:, None] + x[None, :]
    neg = float("-inf")
    tl.store(m_ptr, tl.full((B_R,), neg, tl.float32), mask=rows)
    tl.store(l_ptr, tl.zeros((B_R,), tl.float32), mask=rows)
    tl.store(out, tl.zeros((B_R, D), tl.float32), mask=rows[:, None])
    tiles = tl.cdiv(length, B_C)
    first, stop = (tiles * part) // parts, (tiles * part + tiles) // parts
    if first < stop:
        K_ptr += (b * H_k + h).to(tl.int64) * N * D + first * B_C * D
        V_ptr += (b * H_k + h).to(tl.int64) * N * D + first * B_C * D
        q = tl.load(Q_ptr + head[:, None] * D + x[None, :], mask=rows[:, None], other=0.0)
        m, l = tl.full((B_R,), neg, tl.float32), tl.zeros((B_R,), tl.float32)
        acc = tl.zeros((B_R, D), tl.float32)
        left = length - first * B_C
        for _ in range(first, stop):
            c = tl.arange(0, B_C)
            tile, ok = c[:, None] * D + x[None, :], c < left
            k = tl.load(K_ptr + tile, mask=ok[:, None], other=0.0)
            v = tl.load(V_ptr + tile, mask=ok[:, None], other=0.0)
            s = scale * tl.sum(q[:, None, :] * k[None, :, :], axis=2) + tl.where(ok, 0.0, neg)[None, :]
            m_new = tl.maximum(m, tl.max(s, axis=1))
            shift = tl.where(m_new == neg, 0.0, m_new)
            p = tl.exp(s - shift[:, None])
            l = l * tl.exp(m - shift) + tl.sum(p, axis=1)
            acc = acc * tl.exp(m - shift)[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
            m = m_new
            K_ptr += B_C * D
            V_ptr += B_C * D
            left -= B_C
        tl.store(m_ptr, m, mask=rows)
        tl.store(l_ptr, l, mask=rows)
        tl.store(out, acc, mask=rows[:, None])
