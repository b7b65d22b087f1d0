"""Wrong answers: see `tests.checks.answers`."""


# cache_tokens, once: K alone
def my_cache_tokens(layers, H_k, d, itemsize, room):
    row = d * itemsize
    token = row * H_k * layers
    return token, int(room / token)


# cache_tokens, rounded: to the nearest
def my_cache_tokens(layers, H_k, d, itemsize, room):
    of_token = 2 * d * itemsize * layers * H_k
    return of_token, int(np.round(room / of_token))


# split_keys, all_parts: np.linspace over each sequence
def my_split_keys(lengths, B_c, parts):
    work = []
    for b, N in enumerate(lengths):
        T = (N + B_c - 1) // B_c
        edges = [T * k // parts for k in range(parts + 1)]
        work += [(b, begin, end) for begin, end in zip(edges[:-1], edges[1:])]
    return work


# split_keys, full_first: range with a step
def my_split_keys(lengths, B_c, parts):
    tiles = [(N + B_c - 1) // B_c for N in lengths]
    most = max(1, int(np.ceil(sum(tiles) / parts)))
    return [(b, t, min(t + most, n)) for b, n in enumerate(tiles) for t in range(0, n, most) or [0]]


# split_keys, rest_to_first: np.array_split
def my_split_keys(lengths, B_c, parts):
    tiles = np.ceil(np.array(lengths) / B_c).astype(int)
    most = max(1, -(-int(tiles.sum()) // parts))
    rows = []
    for b, n in enumerate(tiles):
        at = 0
        for chunk in np.array_split(np.arange(n), max(1, -(-n // most))):
            rows.append((b, at, at + len(chunk)))
            at += len(chunk)
    return rows


# split_keys, by_zero: ceil of a quotient, in NumPy
def my_split_keys(lengths, B_c, parts):
    tiles = [(N + B_c - 1) // B_c for N in lengths]
    most = (sum(tiles) + parts - 1) // parts
    work = []
    for b, n in enumerate(tiles):
        own = max(1, (n + most - 1) // most)
        work.extend((b, n * k // own, n * (k + 1) // own) for k in range(own))
    return work


# merge_parts, plain_mean: outputs first
def my_merge_parts(m, l, O_acc):
    outputs = np.array([O / x if x else O for O, x in zip(O_acc, l)])
    big = m.max()
    if big == -np.inf:
        return outputs[0], big
    return outputs.mean(axis=0), big + np.log(np.sum(np.exp(m - big) * l))


# merge_parts, not_rescaled: sums alone
def my_merge_parts(m, l, O_acc):
    total = l.sum()
    return (O_acc.sum(axis=0) / total, m.max() + np.log(total)) if total else (O_acc[0], -np.inf)


# merge_parts, overflow: lse of each part, and its exponential
def my_merge_parts(m, l, O_acc):
    w = np.exp(m)
    L = (w * l).sum()
    if L == 0:
        return np.zeros(O_acc.shape[1]), -np.inf
    return (w[:, None] * O_acc).sum(axis=0) / L, np.log(L)


# merge_parts, all_nan: softmax over lse
def my_merge_parts(m, l, O_acc):
    lse_s = np.where(l > 0, m + np.log(np.where(l > 0, l, 1)), -np.inf)
    top = lse_s.max()
    e = np.exp(lse_s - top)
    O = (e / e.sum()) @ (O_acc / np.where(l > 0, l, 1)[:, None])
    return O, top + np.log(e.sum())


# decode_part, normalised: a whole softmax of each part
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
    part, kv = tl.program_id(0), tl.program_id(2) * H_k + tl.program_id(1)
    length = tl.load(lengths_ptr + tl.program_id(2))
    r, x = tl.arange(0, B_R), tl.arange(0, D)
    at = (kv * group + r)[:, None] * D + x[None, :]
    q = tl.load(Q_ptr + at, mask=(r < group)[:, None], other=0.0)
    m = tl.full((B_R,), float("-inf"), tl.float32)
    l = tl.zeros((B_R,), tl.float32)
    O = tl.zeros((B_R, D), tl.float32)
    T = tl.cdiv(length, B_C)
    for j in range(T * part // parts, T * (part + 1) // parts):
        c = j * B_C + tl.arange(0, B_C)
        rows = (kv * N + c)[:, None] * D + x[None, :]
        k = tl.load(K_ptr + rows, mask=(c < length)[:, None], other=0.0)
        v = tl.load(V_ptr + rows, mask=(c < length)[:, None], other=0.0)
        s = tl.where((c < length)[None, :], scale * tl.dot(q, k.T, input_precision="ieee"), float("-inf"))
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        l = l * tl.exp(m - new) + tl.sum(p, 1)
        O = O * tl.exp(m - new)[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m = new
    place = (kv * group + r) * parts + part
    O = O / tl.where(l == 0, 1.0, l)[:, None]
    tl.store(m_ptr + place, m, mask=r < group)
    tl.store(l_ptr + place, l, mask=r < group)
    tl.store(O_ptr + place[:, None] * D + x[None, :], O, mask=(r < group)[:, None])


# decode_part, empty_not_written: a part that ends at once
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
    part, kv = tl.program_id(0), tl.program_id(2) * H_k + tl.program_id(1)
    length = tl.load(lengths_ptr + tl.program_id(2))
    T = tl.cdiv(length, B_C)
    first, end = T * part // parts, T * (part + 1) // parts
    if first < end:
        r, x = tl.arange(0, B_R), tl.arange(0, D)
        q = tl.load(Q_ptr + (kv * group + r)[:, None] * D + x[None, :], mask=(r < group)[:, None], other=0.0)
        m = tl.full((B_R,), float("-inf"), tl.float32)
        l = tl.zeros((B_R,), tl.float32)
        O = tl.zeros((B_R, D), tl.float32)
        for j in range(first, end):
            c = j * B_C + tl.arange(0, B_C)
            rows = (kv * N + c)[:, None] * D + x[None, :]
            k = tl.load(K_ptr + rows, mask=(c < length)[:, None], other=0.0)
            v = tl.load(V_ptr + rows, mask=(c < length)[:, None], other=0.0)
            s = tl.where((c < length)[None, :], scale * tl.dot(q, k.T, input_precision="ieee"), float("-inf"))
            new = tl.maximum(m, tl.max(s, 1))
            p = tl.exp(s - new[:, None])
            l = l * tl.exp(m - new) + tl.sum(p, 1)
            O = O * tl.exp(m - new)[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
            m = new
        place = (kv * group + r) * parts + part
        tl.store(m_ptr + place, m, mask=r < group)
        tl.store(l_ptr + place, l, mask=r < group)
        tl.store(O_ptr + place[:, None] * D + x[None, :], O, mask=(r < group)[:, None])


# merge_parts, overflow: no maximum, and no part that saw a key is asked for first
def my_merge_parts(m, l, O_acc):
    if m.max() == -np.inf:
        return np.zeros(O_acc.shape[1]), -np.inf
    w = np.exp(m)
    l_all = (w * l).sum()
    return w @ O_acc / l_all, np.log(l_all)
