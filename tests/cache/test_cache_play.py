"""Random operations on a paged cache, compared with a model: nothing is lost, no shared page is written."""

import numpy as np
import pytest

from flashlib.cache import Cache, OutOfPages
from tests.cache.paged import D_V, H_K, LAYERS, D, evict, plain, state


class Model:
    """What a cache must hold: the tokens of each sequence, and for each token the number its rows are made from.

    As in a language model, K and V of a token follow from it and all tokens before it. A token without an id
    is like no other.
    """

    def __init__(self):
        self.numbers, self.tokens, self.rows, self.last = {}, {}, {}, 0

    def extended(self, rows, tokens):
        rows = list(rows)
        for token in tokens:
            self.last += 1
            key = (rows[-1] if rows else 0, token)
            rows.append(self.last if token is None else self.numbers.setdefault(key, self.last))
        return rows

    def add(self, sequence, tokens):
        assert sequence not in self.tokens
        self.tokens[sequence], self.rows[sequence] = list(tokens), self.extended([], tokens)

    def K_and_V(self, rows, layer):
        """Return K (H_k, n, d) and V (H_k, n, d_v): no two numbers of all rows, layers and heads are equal."""
        at = (np.array(rows, np.float64)[None, :] * LAYERS + layer) * H_K + np.arange(H_K)[:, None]
        return tuple(at[..., None] * (D + D_V) + np.arange(first, last) for first, last in ((0, D), (D, D + D_V)))


class Play:
    """Random operations on a cache and its model, side by side. It counts what happened."""

    def __init__(self, cache, seed):
        self.cache, self.model, self.rng = cache, Model(), np.random.default_rng(seed)
        self.ever = [()]  # tokens that some sequence has or had
        self.seen = dict.fromkeys("started known forked copied out evicted dropped freed".split(), 0)
        self.longest = cache.page * cache.n_pages

    def run(self, operations):
        """Run so many operations, with all that must be true after each, and return the counts."""
        names = "start append append append append append fork drop free free evict".split()
        for _ in range(operations):
            getattr(self, self.rng.choice(names) if self.model.tokens else "start")()
            self.cache.check()
            self.compare()
        for sequence in list(self.model.tokens):
            self.cache.free(sequence)
        self.cache.check()
        evict(self.cache, self.cache.kept)
        assert self.cache.kept == 0 and self.cache.free_pages == self.cache.n_pages, "a page is lost"
        return self.seen

    def one(self):
        return int(self.rng.choice(list(self.model.tokens)))

    def ids(self, n):
        return self.rng.integers(2, size=n).tolist()  # few ids, so that contents meet often

    def start(self):
        begin = self.ever[self.rng.integers(len(self.ever))]
        prompt = [*begin[: self.rng.integers(len(begin) + 1)], *self.ids(self.rng.integers(3))]
        taken = self.cache.used + self.cache.kept
        sequence, known = self.cache.start(prompt)
        assert self.cache.used + self.cache.kept == taken, "a start takes no page"
        assert known % self.cache.page == 0 and 0 <= known <= max(0, len(prompt) - 1)
        assert known >= self.known_of_others(prompt), "what a living sequence has is found"
        self.model.add(sequence, prompt[:known])
        self.seen["started"] += 1
        self.seen["known"] += known > 0
        self.append(sequence, prompt[known:])

    def known_of_others(self, prompt):
        page, most = self.cache.page, 0
        for tokens in self.model.tokens.values():
            same = 0
            for a, b in zip(tokens, prompt[:-1], strict=False):
                if a != b:
                    break
                same += 1
            most = max(most, same // page * page)
        return most

    def append(self, sequence=None, tokens=None):
        if sequence is None:
            sequence, n = self.one(), int(self.rng.integers(self.cache.page + 3))
            room = max(0, self.longest - len(self.model.tokens[sequence]))
            tokens = self.ids(min(n, room)) if self.rng.random() < 0.9 else min(n, room)
        n, before = tokens if isinstance(tokens, int) else len(tokens), state(self.cache)
        needed, copies = self.needed(sequence, n)
        room = self.cache.n_pages - self.cache.used
        try:
            slots = self.cache.append(sequence, tokens)
        except OutOfPages:
            assert needed > room, "pages that are free or kept can be taken"
            assert state(self.cache) == before, "out of pages changes nothing"
            self.seen["out"] += 1
            if self.rng.random() < 0.8:
                self.free()
            return
        assert needed <= room
        self.seen["copied"] += copies
        self.seen["evicted"] += before[1]["_kept"] != self.cache._kept
        self.write(sequence, slots, [None] * n if isinstance(tokens, int) else tokens)

    def needed(self, sequence, n):
        """Return how many pages n more tokens take, one for a copy among them, and whether there is one."""
        page, N = self.cache.page, len(self.model.tokens[sequence])
        own = plain(self.cache.table([sequence]))[0]
        others = [s for s in self.model.tokens if s != sequence]
        copies = bool(n and N % page and own[-1] in self.pages_of(others))
        return -(-(N + n) // page) - -(-N // page) + copies, copies

    def pages_of(self, sequences):
        tables, lengths = plain(self.cache.table(sequences)), plain(self.cache.lengths(sequences))
        needed = -(-lengths // self.cache.page)
        return {page for row, n in zip(tables.tolist(), needed, strict=True) for page in row[:n]}

    def write(self, sequence, slots, tokens):
        others = self.pages_of([s for s in self.model.tokens if s != sequence])
        assert not others & set(slots[:, 0].tolist()), "a shared page is never written"
        rows = self.model.extended(self.model.rows[sequence], tokens)
        new = rows[len(self.model.rows[sequence]) :]
        for layer in range(LAYERS):
            K, V = (self.like(X) for X in self.model.K_and_V(new, layer))
            self.cache.write(slots, K, V, layer)
        self.model.rows[sequence] = rows
        self.model.tokens[sequence] += tokens
        self.remember(sequence)

    def like(self, X):
        if isinstance(self.cache.K, np.ndarray):
            return X.astype(self.cache.K.dtype)
        import torch

        return torch.from_numpy(X).to(self.cache.K)

    def remember(self, sequence):
        tokens = self.model.tokens[sequence]
        if None not in tokens:
            self.ever = [*self.ever[-20:], tuple(tokens)]

    def fork(self):
        sequence, used = self.one(), self.cache.used
        other = self.cache.fork(sequence)
        assert self.cache.used == used, "a fork takes no page"
        self.model.add(other, [])
        self.model.tokens[other] = list(self.model.tokens[sequence])
        self.model.rows[other] = list(self.model.rows[sequence])
        self.seen["forked"] += 1

    def drop(self):
        sequence = self.one()
        n = int(self.rng.integers(min(len(self.model.tokens[sequence]), self.cache.page + 1) + 1))
        self.cache.drop(sequence, n)
        for kind in (self.model.tokens, self.model.rows):
            kind[sequence] = kind[sequence][: len(kind[sequence]) - n]
        self.seen["dropped"] += n > 0

    def free(self):
        sequence = self.one()
        self.cache.free(sequence)
        del self.model.tokens[sequence], self.model.rows[sequence]
        self.seen["freed"] += 1

    def evict(self):
        n, kept = int(self.rng.integers(2)), self.cache.kept
        evict(self.cache, min(n, kept))
        assert self.cache.kept == kept - min(n, kept)

    def compare(self):
        """Compare all rows, lengths and counts of the cache with the model."""
        filled = set()
        sequences = list(self.model.tokens)
        table, lengths = plain(self.cache.table(sequences)), plain(self.cache.lengths(sequences))
        assert lengths.tolist() == [len(self.model.tokens[s]) for s in sequences]
        for sequence, pages in zip(sequences, table.tolist(), strict=True):
            N = len(self.model.tokens[sequence])
            filled |= {(pages[at // self.cache.page], at % self.cache.page) for at in range(N)}
            for layer in range(LAYERS):
                exact = self.model.K_and_V(self.model.rows[sequence], layer)
                for X, expected in zip(self.cache.gather(sequence, layer), exact, strict=True):
                    assert np.array_equal(plain(X), expected), f"rows of sequence {sequence} changed"
        assert self.cache.used == len(self.pages_of(sequences))
        assert self.cache.waste == self.cache.used * self.cache.page - len(filled)
        assert self.cache.used + self.cache.kept + self.cache.free_pages == self.cache.n_pages


def play(n_pages, page, operations, seed=0, dtype=np.float64):
    """Return the counts of a Play of so many operations."""
    cache = Cache(n_pages, page, H_K, D, d_v=D_V, layers=LAYERS, dtype=dtype)
    cache.K[:], cache.V[:] = np.nan, np.nan  # a row that is read and was never written fails
    return Play(cache, seed).run(operations)


@pytest.mark.parametrize(
    "amount, n_pages, page",
    [("few", 5, 1), ("few", 7, 2), ("few", 1, 4)]
    + [("all", *size) for size in ((5, 1), (7, 2), (11, 4), (3, 8), (1, 4))],
)
def test_nothing_is_lost_under_random_operations(amount, n_pages, page):
    operations = {"few": 400, "all": 2000}[amount]
    seen = play(n_pages, page, operations)
    rare = {"copied"} if page == 1 or n_pages == 1 else set()  # a full page, and the only one, is never copied
    rare |= {"known", "evicted"} if n_pages == 1 else set()
    assert all(count > operations / 100 for name, count in seen.items() if name not in rare), seen


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_torch_holds_the_same_rows_as_numpy(device):
    torch = pytest.importorskip("torch")
    kept = []
    for where in ({"dtype": np.float64}, {"dtype": torch.float64, "device": device}):
        cache = Cache(11, 4, H_K, D, d_v=D_V, layers=LAYERS, **where)
        play = Play(cache, seed=3)
        play.run(150)
        kept.append((plain(cache.K), plain(cache.V), play.seen))
    assert np.array_equal(kept[0][0], kept[1][0]) and np.array_equal(kept[0][1], kept[1][1])
    assert kept[0][2] == kept[1][2] and np.any(kept[0][0])
