"""Wrong answers that only particular cases catch: see `tests.checks.answers`."""


# pages, shared_state: class attributes
class MyPages:
    tables, lengths, owners = {}, {}, {}
    n = 0

    def __init__(self, n_pages, page):
        self.page, self.unused = page, list(range(n_pages))
        self.owners.clear()

    def start(self):
        self.n += 1
        self.tables[self.n], self.lengths[self.n] = [], 0
        return self.n

    def append(self, s, n):
        table, N = self.tables[s], self.lengths[s]
        copies = n > 0 and N % self.page > 0 and self.owners[table[-1]] > 1
        more = -(-(N + n) // self.page) - len(table)
        if more + copies > len(self.unused):
            raise MemoryError
        copied = None
        if copies:
            old, new = table[-1], self.unused.pop()
            self.owners[old] -= 1
            self.owners[new] = 1
            table[-1] = new
            copied = old, new
        for _ in range(more):
            table.append(self.unused.pop())
            self.owners[table[-1]] = 1
        self.lengths[s] = N + n
        return [(table[c // self.page], c % self.page) for c in range(N, N + n)], copied

    def fork(self, s):
        new = self.start()
        self.tables[new] = list(self.tables[s])
        self.lengths[new] = self.lengths[s]
        for p in self.tables[new]:
            self.owners[p] += 1
        return new

    def free(self, s):
        for p in self.tables.pop(s):
            self.owners[p] -= 1
            if not self.owners[p]:
                self.unused.append(p)

    def table(self, s):
        return self.tables[s]


def my_pages(n_pages, page):
    return MyPages(n_pages, page)


# pages, shared_state: a mutable default
def my_pages(n_pages, page, tables={}, free=[]):
    class P:
        def __init__(self):
            self.n = 0
            free[:] = range(n_pages)
            self.owners = [0] * n_pages
            self.len = {}

        def start(self):
            self.n += 1
            tables[self.n], self.len[self.n] = [], 0
            return self.n

        def append(self, s, n):
            t, N = tables[s], self.len[s]
            copies = n > 0 and N % page > 0 and self.owners[t[-1]] > 1
            more = -(-(N + n) // page) - len(t)
            if more + copies > len(free):
                raise MemoryError
            copied = None
            if copies:
                old, new = t[-1], free.pop()
                self.owners[old] -= 1
                self.owners[new] = 1
                t[-1] = new
                copied = old, new
            for _ in range(more):
                t.append(free.pop())
                self.owners[t[-1]] = 1
            self.len[s] = N + n
            return [(t[c // page], c % page) for c in range(N, N + n)], copied

        def fork(self, s):
            new = self.start()
            tables[new] = list(tables[s])
            self.len[new] = self.len[s]
            for p in tables[new]:
                self.owners[p] += 1
            return new

        def free(self, s):
            for p in tables.pop(s):
                self.owners[p] -= 1
                if not self.owners[p]:
                    free.append(p)

        def table(self, s):
            return tables[s]

    return P()


# pages, freed_while_owned: frees shared pages at once
class MyPages:
    def __init__(self, n_pages, page):
        self.page, self.unused = page, list(range(n_pages))
        self.owners, self.tables, self.lengths, self.n = [0] * n_pages, {}, {}, 0

    def start(self):
        self.n += 1
        self.tables[self.n], self.lengths[self.n] = [], 0
        return self.n

    def append(self, s, n):
        table, N = self.tables[s], self.lengths[s]
        copies = n > 0 and N % self.page > 0 and self.owners[table[-1]] > 1
        more = -(-(N + n) // self.page) - len(table)
        if more + copies > len(self.unused):
            raise MemoryError
        copied = None
        if copies:
            old, new = table[-1], self.unused.pop()
            self.owners[old] -= 1
            self.owners[new] = 1
            table[-1] = new
            copied = old, new
        for _ in range(more):
            table.append(self.unused.pop())
            self.owners[table[-1]] = 1
        self.lengths[s] = N + n
        return [(table[c // self.page], c % self.page) for c in range(N, N + n)], copied

    def fork(self, s):
        new = self.start()
        self.tables[new] = list(self.tables[s])
        self.lengths[new] = self.lengths[s]
        for p in self.tables[new]:
            self.owners[p] += 1
        return new

    def free(self, s):
        for p in self.tables.pop(s):
            self.owners[p] = 0
            self.unused.append(p)

    def table(self, s):
        return self.tables[s]


def my_pages(n_pages, page):
    return MyPages(n_pages, page)


# pages, shared_written: a fork owns nothing
class MyPages:
    def __init__(self, n_pages, page):
        self.page, self.unused = page, list(range(n_pages))
        self.owner, self.tables, self.lengths, self.n = {}, {}, {}, 0

    def start(self):
        self.n += 1
        self.tables[self.n], self.lengths[self.n] = [], 0
        return self.n

    def append(self, s, n):
        table, N = self.tables[s], self.lengths[s]
        copies = n > 0 and N % self.page > 0 and self.owner[table[-1]] != s
        more = -(-(N + n) // self.page) - len(table)
        if more + copies > len(self.unused):
            raise MemoryError
        copied = None
        if copies:
            old, new = table[-1], self.unused.pop()
            self.owner[new] = s
            table[-1] = new
            copied = old, new
        for _ in range(more):
            table.append(self.unused.pop())
            self.owner[table[-1]] = s
        self.lengths[s] = N + n
        return [(table[c // self.page], c % self.page) for c in range(N, N + n)], copied

    def fork(self, s):
        new = self.start()
        self.tables[new] = list(self.tables[s])
        self.lengths[new] = self.lengths[s]
        return new

    def free(self, s):
        for p in self.tables.pop(s):
            if self.owner[p] == s:
                self.unused.append(p)

    def table(self, s):
        return self.tables[s]


def my_pages(n_pages, page):
    return MyPages(n_pages, page)


# gather_pages, page_more: a list of too many
def my_gather_pages(pool, table, first, N):
    page = pool.shape[1]
    begin = first // page
    rows = [pool[table[j]] for j in range(begin, N // page + 1)]
    return np.concatenate(rows)[first - begin * page : N - begin * page]


# gather_pages, page_more: by numbers
def my_gather_pages(pool, table, first, N):
    begin, end = first // pool.shape[1], N // pool.shape[1] + 1
    return pool[table[begin:end]].reshape(-1, pool.shape[2])[first % pool.shape[1] :][: N - first]


# gather_pages, fixed_page: at least two rows
def my_gather_pages(pool, table, first, N):
    page = max(pool.shape[1], 2)
    c = np.arange(first, N)
    return pool[table[c // page], c % page]


# gather_pages, argument_changed: table cleaned
def my_gather_pages(pool, table, first, N):
    page = pool.shape[1]
    n = -(-N // page)
    table[n:] = 0
    return pool[table].reshape(-1, pool.shape[2])[first:N]


# gather_pages, shape: whole pages as floats
def my_gather_pages(pool, table, first, N):
    page = pool.shape[1]
    n = int(N / page + 0.5)
    return pool[table[first // page : n]].reshape(-1, pool.shape[2])[first % page :][: N - first]


# gather_pages, shape: squeezed
def my_gather_pages(pool, table, first, N):
    page = pool.shape[1]
    c = np.arange(first, N)
    return pool[table[c // page], c % page].squeeze()


# quantise, value: scale of two columns at least
def my_quantise(X):
    s = np.ptp(np.abs(X), axis=1) / 127 if X.shape[1] == 1 else np.abs(X).max(axis=1) / 127
    s = np.where(s == 0, 1, s)
    return np.rint(X / s[:, None]).astype(np.int8), s


# quantise, small_is_zero: small numbers are 0
def my_quantise(X):
    s = np.abs(X).max(axis=1) / 127
    s = np.where(s < 1e-8, 1, s)
    return np.rint(X / s[:, None]).astype(np.int8), s


# quantise, truncated: truncated
def my_quantise(X):
    s = np.abs(X).max(axis=1) / 127
    s = np.where(s == 0, 1, s)
    return (X / s[:, None]).astype(np.int8), s


# quantise, half_up: rounded by + 0.5
def my_quantise(X):
    s = np.abs(X).max(axis=1) / 127
    s = np.where(s == 0, 1, s)
    return np.floor(X / s[:, None] + 0.5).astype(np.int8), s


# append_kernel, input_written: the length is counted down
@triton.jit
def my_append_kernel(new_ptr, pool_ptr, table_ptr, lengths_ptr, most, page, d, D: tl.constexpr):
    b = tl.program_id(0)
    c = tl.load(lengths_ptr + b) - 1
    tl.store(lengths_ptr + b, c)
    cols = tl.arange(0, D)
    inside = (cols < d) & (c >= 0)
    slot = tl.load(table_ptr + b * most + c // page, mask=c >= 0, other=0) * page + c % page
    tl.store(pool_ptr + slot * d + cols, tl.load(new_ptr + b * d + cols, mask=inside, other=0.0), mask=inside)


# append_kernel, input_written: entries of the table that are not used yet are set to 0
@triton.jit
def my_append_kernel(new_ptr, pool_ptr, table_ptr, lengths_ptr, most, page, d, D: tl.constexpr):
    b = tl.program_id(0)
    c = tl.load(lengths_ptr + b) - 1
    for place in range((c + page) // page, most):
        tl.store(table_ptr + b * most + place, -1)
    cols = tl.arange(0, D)
    inside = (cols < d) & (c >= 0)
    slot = tl.load(table_ptr + b * most + c // page, mask=c >= 0, other=0) * page + c % page
    tl.store(pool_ptr + slot * d + cols, tl.load(new_ptr + b * d + cols, mask=inside, other=0.0), mask=inside)
