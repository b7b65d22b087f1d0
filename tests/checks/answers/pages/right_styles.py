"""Right answers in further styles: see `tests.checks.answers`."""


# pages: a class of sets
class MyPages:
    def __init__(self, n_pages, page):
        self.page, self.free_pages = page, set(range(n_pages))
        self.seqs = []

    def start(self):
        self.seqs.append(s := {"pages": [], "n": 0, "id": len(self.seqs)})
        return s["id"]

    def _owners(self, p):
        return sum(p in s["pages"] for s in self.seqs if s)

    def append(self, i, n):
        s = self.seqs[i]
        copy = n > 0 and s["n"] % self.page and self._owners(s["pages"][-1]) > 1
        more = -(-(s["n"] + n) // self.page) - len(s["pages"])
        if more + bool(copy) > len(self.free_pages):
            raise MemoryError
        copied = None
        if copy:
            copied = s["pages"][-1], self.free_pages.pop()
            s["pages"][-1] = copied[1]
        for _ in range(more):
            s["pages"].append(self.free_pages.pop())
        slots = [(s["pages"][c // self.page], c % self.page) for c in range(s["n"], s["n"] + n)]
        s["n"] += n
        return slots, copied

    def fork(self, i):
        j = self.start()
        self.seqs[j] |= {"pages": list(self.seqs[i]["pages"]), "n": self.seqs[i]["n"]}
        return j

    def free(self, i):
        s, self.seqs[i] = self.seqs[i], None
        self.free_pages |= {p for p in s["pages"] if not self._owners(p)}

    def table(self, i):
        return tuple(self.seqs[i]["pages"])


def my_pages(n_pages, page):
    return MyPages(n_pages, page)


# gather_pages: take and concatenate
def my_gather_pages(pool, table, first, N):
    page, d = pool.shape[1:]
    begin = first // page
    pages = [pool[i] for i in table[begin : -(-N // page)]]
    return np.concatenate([np.empty((0, d)), *pages])[first - begin * page : N - begin * page]


# gather_pages: slots in a flat pool
def my_gather_pages(pool, table, first, N):
    page, d = pool.shape[1:]
    slots = np.array([table[c // page] * page + c % page for c in range(first, N)], int)
    return pool.reshape(-1, d)[slots]


# quantise: np.round, a mask
def my_quantise(X):
    scale = np.abs(X).max(axis=1) / 127
    scale[scale == 0] = 1
    return np.round(X / scale[:, np.newaxis]).astype("int8"), scale
