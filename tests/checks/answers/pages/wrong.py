"""Wrong answers: see `tests.checks.answers`."""


# gather_pages, no_table: the beginning of the pool
def my_gather_pages(pool, table, first, N):
    return pool.reshape(-1, pool.shape[2])[first:N].copy()


# gather_pages, pages_down: full pages
def my_gather_pages(pool, table, first, N):
    full = [pool[p] for p in table[first // pool.shape[1] : N // pool.shape[1]]]
    skip = first % pool.shape[1]
    return np.vstack(full)[skip : skip + N - first] if full else np.zeros((0, pool.shape[2]))


# gather_pages, no_token: np.concatenate of slices
def my_gather_pages(pool, table, first, N):
    page, rows = pool.shape[1], []
    for i in range(first // page, -(-N // page)):
        rows.append(pool[table[i], max(0, first - i * page) : min(page, N - i * page)])
    return np.concatenate(rows)


# pages, shared_written: a free list and no owners, copies by a flag of the fork
class Flagged:
    def __init__(self, n_pages, page):
        self.page, self.unused, self.tables, self.n, self.shared = page, list(range(n_pages)), [], [], []

    def start(self):
        self.tables.append([]), self.n.append(0), self.shared.append(False)
        return len(self.n) - 1

    def fork(self, s):
        new = self.start()
        self.tables[new], self.n[new], self.shared[new] = list(self.tables[s]), self.n[s], True
        return new

    def append(self, s, n):
        table, copied = self.tables[s], None
        copy = self.shared[s] and n and self.n[s] % self.page
        more = -(-(self.n[s] + n) // self.page) - len(table)
        if more + bool(copy) > len(self.unused):
            raise MemoryError
        if copy:
            copied = table[-1], self.unused.pop(0)
            table[-1], self.shared[s] = copied[1], False
        table += [self.unused.pop(0) for _ in range(more)]
        first, self.n[s] = self.n[s], self.n[s] + n
        return [(table[c // self.page], c % self.page) for c in range(first, first + n)], copied

    def free(self, s):
        self.unused += self.tables[s]

    def table(self, s):
        return self.tables[s]


def my_pages(n_pages, page):
    return Flagged(n_pages, page)


# pages, changed_on_error: token by token, without a way back
class OneByOne:
    def __init__(self, n_pages, page):
        self.n_pages, self.page, self.owned, self.all = n_pages, page, {}, []

    def start(self):
        self.all.append(([], []))
        return len(self.all) - 1

    def fork(self, s):
        for i in self.all[s][0]:
            self.owned[i] += 1
        self.all.append((list(self.all[s][0]), list(self.all[s][1])))
        return len(self.all) - 1

    def append(self, s, n):
        (table, rows), slots, copied = self.all[s], [], None
        for _ in range(n):
            row = len(rows) % self.page
            if row == 0:
                table.append(self.take())
            elif self.owned[table[-1]] > 1:
                new = self.take()
                self.owned[table[-1]] -= 1
                copied, table[-1] = (table[-1], new), new
            slots.append((table[-1], row))
            rows.append(row)
        return slots, copied

    def take(self):
        for i in range(self.n_pages):
            if not self.owned.get(i):
                self.owned[i] = 1
                return i
        raise MemoryError("none is free")

    def free(self, s):
        for i in self.all[s][0]:
            self.owned[i] -= 1

    def table(self, s):
        return self.all[s][0]


def my_pages(n_pages, page):
    return OneByOne(n_pages, page)


# append_kernel, after_last: a branch, and the length as the place
@triton.jit
def my_append_kernel(new_ptr, pool_ptr, table_ptr, lengths_ptr, most, page, d, D: tl.constexpr):
    b, x = tl.program_id(0), tl.arange(0, D)
    length = tl.load(lengths_ptr + b)
    if length > 0:
        id = tl.load(table_ptr + b * most + length // page, mask=length // page < most, other=0)
        row = tl.load(new_ptr + b * d + x, mask=x < d)
        tl.store(pool_ptr + (id * page + length % page) * d + x, row, mask=x < d)


# append_kernel, exchanged: a table of rows
@triton.jit
def my_append_kernel(new_ptr, pool_ptr, table_ptr, lengths_ptr, most, page, d, D: tl.constexpr):
    b, x = tl.program_id(0), tl.arange(0, D)
    c = tl.load(lengths_ptr + b) - 1
    keep = (x < d) & (c >= 0)
    at = b * most + c % page
    slot = tl.load(table_ptr + at, mask=c % page < most, other=0) * page + c // page
    tl.store(pool_ptr + slot * d + x, tl.load(new_ptr + b * d + x, mask=keep, other=0.0), mask=keep)


# quantise, truncated: astype alone
def my_quantise(X):
    s = np.abs(X).max(axis=-1) / 127
    s[s == 0] = 1
    return (X / s[:, None]).astype(np.int8), s


# quantise, one_scale: a scale for each row that is the same
def my_quantise(X):
    s = (np.abs(X).max() or 127) / 127
    return np.rint(X / s).astype(np.int8), np.full(len(X), s)


# quantise, overflow: 2**7
def my_quantise(X):
    largest = np.max(np.abs(X), axis=1, keepdims=True)
    scale = np.where(largest == 0, 1, largest / 2**7)
    return np.round(X / scale).astype(np.int8), scale[:, 0]
