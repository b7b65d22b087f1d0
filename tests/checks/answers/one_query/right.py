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


# gather_pages: a loop over tokens
def my_gather_pages(pool, table, N):
    page, d = pool.shape[1:]
    rows = np.empty((N, d))
    for c in range(N):
        rows[c] = pool[table[c // page]][c % page]
    return rows


# gather_pages: flat rows by slot, np.take
def my_gather_pages(pool, table, N):
    i, r = np.divmod(np.arange(N), pool.shape[1])
    slots = table.take(i).astype(np.int64) * pool.shape[1] + r
    return pool.reshape(-1, pool.shape[-1]).take(slots, axis=0)


# gather_pages: page by page, cut at the last
def my_gather_pages(pool, table, N):
    out, page = np.zeros((N, pool.shape[2])), pool.shape[1]
    for first in range(0, N, page):
        n = min(page, N - first)
        out[first : first + n] = pool[int(table[first // page]), :n]
    return out


# pages: sets of owners, free pages in a set, slots as an array
class Sequence:
    def __init__(self, pages=(), n=0):
        self.pages, self.n = list(pages), n


def my_pages(n_pages, page):
    class Allocator:
        owners = [set() for _ in range(n_pages)]

        def start(self):
            return Sequence()

        def fork(self, sequence):
            child = Sequence(sequence.pages, sequence.n)
            for i in child.pages:
                self.owners[i].add(child)
            return child

        def free(self, sequence):
            for i in sequence.pages:
                self.owners[i].discard(sequence)

        def table(self, sequence):
            return np.array(sequence.pages, dtype=np.int32)

        def append(self, sequence, n):
            empty = [i for i, owners in enumerate(self.owners) if not owners]
            positions = np.arange(sequence.n, sequence.n + n)
            pages, copied = list(sequence.pages), None
            if n and sequence.n % page and self.owners[pages[-1]] != {sequence}:
                if not empty:
                    raise MemoryError
                copied = [pages[-1], empty.pop(0)]
                pages[-1] = copied[1]
            while len(pages) * page < sequence.n + n:
                if not empty:
                    raise MemoryError("no page is free")
                pages.append(empty.pop(0))
            if copied:
                self.owners[copied[0]].remove(sequence)
            for i in pages:
                self.owners[i].add(sequence)
            sequence.pages, sequence.n = pages, sequence.n + n
            return np.stack([np.array(pages, int)[positions // page], positions % page], axis=1), copied

    return Allocator()


# pages: owners counted from the tables, token by token
class Counted:
    def __init__(self, n_pages, page):
        self.n_pages, self.page, self.all, self.n = n_pages, page, {}, {}

    def _owners(self, i):
        return sum(i in table for table in self.all.values())

    def start(self):
        name = f"sequence {len(self.n)}"
        self.all[name], self.n[name] = [], 0
        return name

    def fork(self, sequence):
        name = self.start()
        self.all[name] += self.all[sequence]
        self.n[name] = self.n[sequence]
        return name

    def free(self, sequence):
        del self.all[sequence]

    def table(self, sequence):
        return tuple(self.all[sequence])

    def append(self, sequence, n):
        before = list(self.all[sequence]), self.n[sequence]
        slots, copied = [], None
        try:
            for _ in range(n):
                table, row = self.all[sequence], self.n[sequence] % self.page
                if row == 0:
                    table.append(self._unused())
                elif self._owners(table[-1]) > 1:
                    copied = (table[-1], self._unused())
                    table[-1] = copied[1]
                slots.append([table[-1], row])
                self.n[sequence] += 1
        except MemoryError:
            self.all[sequence], self.n[sequence] = before
            raise
        return slots, copied

    def _unused(self):
        for i in reversed(range(self.n_pages)):
            if not self._owners(i):
                return i
        raise MemoryError("all pages are owned")


def my_pages(n_pages, page):
    return Counted(n_pages, page)


# pages: sequences that are lists, equal while they have the same pages, and the number of tokens in front
def my_pages(n_pages, page):
    owners = np.zeros(n_pages, int)

    class Lists:
        def start(self):
            return [0]

        def fork(self, sequence):
            owners[sequence[1:]] += 1
            return sequence[:]

        def free(self, sequence):
            owners[sequence[1:]] -= 1
            sequence.clear()

        def table(self, sequence):
            return sequence[1:]

        def append(self, sequence, n):
            N, *pages = sequence
            last = pages[-1] if n and N % page else None
            shared = last is not None and bool(owners[last] > 1)
            (free,) = np.nonzero(owners == 0)
            new = free[: -(-(N + n) // page) - len(pages) + shared].tolist()
            if len(pages) + len(new) - shared < -(-(N + n) // page):
                raise MemoryError
            owners[new] = 1
            if shared:
                owners[last] -= 1
                pages.pop()
            pages += new
            sequence[:] = [N + n, *pages]
            slots = [(pages[c // page], c % page) for c in range(N, N + n)]
            return slots, ((last, new[0]) if shared else None)

    return Lists()


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
        rows = ((b * H_k + h) * N + tl.minimum(c, length - 1))[:, None] * D + x
        S = tl.dot(q, tl.trans(tl.load(K_ptr + rows)), input_precision="ieee") * scale
        S += tl.where(c < length, 0.0, -float("inf"))[None, :]
        m_new = tl.maximum(m, tl.max(S, 1))
        alpha, P = tl.exp(m - m_new), tl.exp(S - m_new[:, None])
        O_acc = tl.dot(P, tl.load(V_ptr + rows), acc=O_acc * alpha[:, None], input_precision="ieee")
        l, m = l * alpha + tl.sum(P, 1), m_new
        j += 1
    at = head * parts + part
    tl.store(m_ptr + at, m)
    tl.store(l_ptr + at, l)
    tl.store(O_ptr + at[:, None] * D + x, O_acc)


# append_kernel: columns that repeat in place of a mask
@triton.jit
def my_append_kernel(new_ptr, pool_ptr, table_ptr, lengths_ptr, most, page, d, D: tl.constexpr):
    b, x = tl.program_id(0), tl.arange(0, D) % d
    c = tl.load(lengths_ptr + b) - 1
    if c >= 0:
        id, row = tl.load(table_ptr + b * most + c // page), c % page
        tl.store(pool_ptr + (id * page + row) * d + x, tl.load(new_ptr + b * d + x))


# decode_part: base 2, a last tile of its own
@triton.jit
def of_tile(q, K_ptr, V_ptr, rows, seen, m, l, O_acc, scale):
    k = tl.load(K_ptr + rows, mask=seen[:, None], other=0.0)
    v = tl.load(V_ptr + rows, mask=seen[:, None], other=0.0)
    S = tl.where(seen[None, :], tl.dot(q, tl.trans(k), input_precision="ieee") * scale, float("-inf"))
    new = tl.maximum(m, tl.max(S, 1))
    alpha = tl.exp2(m - new)
    P = tl.exp2(S - new[:, None])
    return new, l * alpha + tl.sum(P, 1), tl.dot(P, v, acc=O_acc * alpha[:, None], input_precision="ieee")


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
    kv = tl.program_id(2) * H_k + tl.program_id(1)
    length = tl.load(lengths_ptr + tl.program_id(2))
    row, cols = tl.arange(0, B_R), tl.arange(0, D)
    at = (kv * group + row)[:, None] * D + cols[None, :]
    q = tl.load(Q_ptr + at, mask=(row < group)[:, None], other=0.0) * scale
    n = (length + B_C - 1) // B_C
    begin, end = n * part // parts * B_C, tl.minimum(n * (part + 1) // parts * B_C, length)
    m = tl.zeros((B_R,), tl.float32) - float("inf")
    l = tl.zeros((B_R,), tl.float32)
    O = tl.zeros((B_R, D), tl.float32)
    for start in range(begin, end, B_C):
        c = start + tl.arange(0, B_C)
        rows = (kv * N + c)[:, None] * D + cols[None, :]
        m, l, O = of_tile(q, K_ptr, V_ptr, rows, c < length, m, l, O, 1.4426950408889634)
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
        K_ptr += (b * H_k + h) * N * D + first * B_C * D
        V_ptr += (b * H_k + h) * N * D + first * B_C * D
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
            acc = acc * tl.exp(m - shift)[:, None] + tl.dot(p, v, input_precision="ieee")
            m = m_new
            K_ptr += B_C * D
            V_ptr += B_C * D
            left -= B_C
        tl.store(m_ptr, m, mask=rows)
        tl.store(l_ptr, l, mask=rows)
        tl.store(out, acc, mask=rows[:, None])


# append_kernel: a branch in place of masks
@triton.jit
def my_append_kernel(new_ptr, pool_ptr, table_ptr, lengths_ptr, most, page, d, D: tl.constexpr):
    b = tl.program_id(axis=0)
    length = tl.load(lengths_ptr + b)
    if length > 0:
        at = (length - 1) // page
        id = tl.load(table_ptr + most * b + at)
        x = tl.arange(0, D)
        to = pool_ptr + (id * page + length - 1 - at * page) * d
        tl.store(to + x, tl.load(new_ptr + b * d + x, mask=x < d), mask=x < d)


# append_kernel: number by number
@triton.jit
def my_append_kernel(new_ptr, pool_ptr, table_ptr, lengths_ptr, most, page, d, D: tl.constexpr):
    table_ptr += tl.program_id(0) * most
    new_ptr += tl.program_id(0) * d
    c = tl.load(lengths_ptr + tl.program_id(0)) - 1
    there = c >= 0
    id = tl.load(table_ptr + tl.maximum(c, 0) // page, mask=there, other=0).to(tl.int64)
    for n in range(d):
        x = tl.load(new_ptr + n)
        tl.store(pool_ptr + id * page * d + (c % page) * d + n, x, mask=there)


# quantise: row by row
def my_quantise(X):
    X8, scale = np.zeros(X.shape, dtype="int8"), np.ones(len(X))
    for n, row in enumerate(X):
        largest = max(row.max(), -row.min())
        if largest != 0:
            scale[n] = largest / 127
            X8[n] = np.round(row / scale[n])
    return X8, scale


# quantise: the norm, keepdims, a multiplication
def my_quantise(X):
    largest = (
        np.linalg.norm(X, ord=np.inf, axis=1, keepdims=True) if X.ndim == 1 else np.abs(X).max(1, keepdims=True)
    )
    scale = largest / 127.0
    scale[scale == 0] = 1.0
    q = np.clip((X / scale).round(), -127, 127)
    return np.array(q, np.int8), scale.reshape(-1)
