"""Right answers in other styles: see `tests.checks.answers`."""


# gather_pages: a loop over tokens
def my_gather_pages(pool, table, first, N):
    page, d = pool.shape[1:]
    rows = np.empty((N - first, d))
    for c in range(first, N):
        rows[c - first] = pool[table[c // page]][c % page]
    return rows


# gather_pages: flat rows by slot, np.take
def my_gather_pages(pool, table, first, N):
    i, r = np.divmod(np.arange(first, N), pool.shape[1])
    slots = table.take(i).astype(np.int64) * pool.shape[1] + r
    return pool.reshape(-1, pool.shape[-1]).take(slots, axis=0)


# gather_pages: page by page, cut at the last
def my_gather_pages(pool, table, first, N):
    out, page = np.zeros((N - first, pool.shape[2])), pool.shape[1]
    for i in range(first // page, -(-N // page)):
        a, b = max(first, i * page), min(N, (i + 1) * page)
        if a < b:
            out[a - first : b - first] = pool[int(table[i]), a - i * page : b - i * page]
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


# append_kernel: columns that repeat in place of a mask
@triton.jit
def my_append_kernel(new_ptr, pool_ptr, table_ptr, lengths_ptr, most, page, d, D: tl.constexpr):
    b, x = tl.program_id(0), tl.arange(0, D) % d
    c = tl.load(lengths_ptr + b) - 1
    if c >= 0:
        id, row = tl.load(table_ptr + b * most + c // page).to(tl.int64), c % page
        tl.store(pool_ptr + (id * page + row) * d + x, tl.load(new_ptr + b * d + x))


# append_kernel: a branch in place of masks
@triton.jit
def my_append_kernel(new_ptr, pool_ptr, table_ptr, lengths_ptr, most, page, d, D: tl.constexpr):
    b = tl.program_id(axis=0)
    length = tl.load(lengths_ptr + b)
    if length > 0:
        at = (length - 1) // page
        id = tl.load(table_ptr + most * b + at).to(tl.int64)
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
