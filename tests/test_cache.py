"""Invariants of a paged cache under random operations: no page is lost, a shared page is never written."""

import copy
import subprocess
import sys

import numpy as np
import pytest

from flashlib.cache import Cache, OutOfPages, Pages, bytes_per_token

LAYERS, H_K, D, D_V = 2, 3, 5, 2


def plain(X):
    return X if isinstance(X, np.ndarray) else X.cpu().numpy()


def state(pages):
    """Return all that an operation can change, to be compared with ==."""
    numbers = {name: plain(X).tobytes() for name, X in vars(pages).items() if name in ("K", "V")}
    return numbers, copy.deepcopy({name: x for name, x in vars(pages).items() if name not in ("K", "V")})


class Model:
    """What a cache must hold: of each sequence its tokens, and for each the number its rows are made from.

    As in a model of language, K and V of a token follow from it and all tokens before it. A token without an id
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
        assert self.cache.evict(10**9) <= self.cache.n_pages and self.cache.kept == 0
        assert self.cache.free_pages == self.cache.n_pages, "a page is lost"
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
        assert self.cache.evict(n) == min(n, kept) and self.cache.kept == kept - min(n, kept)

    def compare(self):
        """Hold all rows, lengths and figures of the cache against the model."""
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


@pytest.mark.parametrize("n_pages, page", [(5, 1), (7, 2), (11, 4), (3, 8), (1, 4)])
def test_nothing_is_lost_under_random_operations(n_pages, page):
    seen = play(n_pages, page, operations=2000)
    rare = {"copied"} if page == 1 or n_pages == 1 else set()  # a full page, and the only one, is never copied
    rare |= {"known", "evicted"} if n_pages == 1 else set()
    assert all(count > 20 for name, count in seen.items() if name not in rare), seen


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


def prompt(rng, n):
    return rng.integers(1000, size=n).tolist()


def computed(pages, tokens):
    """Return a new sequence that has all these tokens, and how many of them were known."""
    sequence, known = pages.start(tokens)
    pages.append(sequence, tokens[known:])
    return sequence, known


@pytest.mark.parametrize("page", [1, 4, 16])
@pytest.mark.parametrize("N", [1, 3, 16, 17, 61])
def test_a_second_sequence_of_the_same_tokens_shares_all_full_pages_but_the_last_token(N, page, rng):
    pages, tokens = Pages(200, page), prompt(rng, N)
    first, n = computed(pages, tokens)
    assert n == 0 and pages.used == -(-N // page)
    second, n = computed(pages, tokens)
    assert n == (N - 1) // page * page
    assert pages.used == 2 * -(-N // page) - n // page
    a, b = pages.table([first, second])
    same = n // page
    assert (a[:same] == b[:same]).all() and not set(a[same:]) & set(b[same:])
    pages.check()


@pytest.mark.parametrize("page", [1, 4])
def test_equal_tokens_after_different_beginnings_are_not_shared(page):
    x, y, z = ([token] * page for token in (1, 2, 3))
    pages = Pages(50, page)
    computed(pages, x + y + z)
    for tokens, n in ((x + y, 2), (x + z + y, 1), (z + y, 0), (y + z, 0), (y + x, 0), (x + y + z + z, 3)):
        assert known(pages, [*tokens, 9]) == n * page, tokens
    pages.check()


def test_tokens_without_ids_and_all_after_them_are_not_shared():
    pages = Pages(50, 4)
    sequence, _ = pages.start()
    pages.append(sequence, 4)
    pages.append(sequence, [1] * 8)
    for tokens in ([1] * 5, [0] * 5):
        assert pages.start(tokens)[1] == 0
    pages.free(sequence)
    assert pages.kept == 0 and pages.free_pages == 50
    pages.check()


ON_GPU = [pytest.param(f"torch.{name} on cuda", marks=pytest.mark.gpu) for name in ("bfloat16", "float8_e4m3fn")]


@pytest.mark.parametrize("dtype", ["float32", "torch.float32", "torch.bfloat16", "torch.float8_e4m3fn", *ON_GPU])
@pytest.mark.parametrize("drop", [0, 1, 3, 5], ids="drop {}".format)
def test_a_write_leaves_the_rows_of_a_fork_as_they_were(dtype, drop, rng):
    cache, write = filled(dtype)
    first, _ = cache.start()
    write(first, prompt(rng, 7), rng)
    second, left = cache.fork(first), 7 - drop
    cache.drop(second, drop)
    before = gathered(cache, first) + [X[:, :left] for X in gathered(cache, second)]
    write(second, prompt(rng, 6), rng)
    write(second, 5, rng)
    after = gathered(cache, first) + [X[:, :left] for X in gathered(cache, second)]
    for X, same in zip(before, after, strict=True):
        assert X.tobytes() == same.tobytes() and np.isfinite(X).all() and X.any()
    a, b = plain(cache.table([first, second]))
    assert (a[: left // 4] == b[: left // 4]).all() and not set(a[left // 4 : 2]) & set(b)
    cache.check()


def gathered(cache, sequence):
    """Return K and V of all layers as arrays."""
    return [plain_of(X) for layer in range(LAYERS) for X in cache.gather(sequence, layer)]


def plain_of(X):
    return X if isinstance(X, np.ndarray) else X.float().cpu().numpy()


def filled(dtype):
    """Return a cache, and a function that appends tokens to a sequence and writes random rows."""
    if dtype.startswith("torch."):
        torch = pytest.importorskip("torch")
        name, _, device = dtype.removeprefix("torch.").partition(" on ")
        of = getattr(torch, name)
        cache = Cache(13, 4, H_K, D, d_v=D_V, layers=LAYERS, dtype=of, device=device or None)
        of = torch.float32 if cache.k_scale is not None else of
    else:
        cache, of = Cache(13, 4, H_K, D, d_v=D_V, layers=LAYERS, dtype=dtype), dtype

    def write(sequence, tokens, rng):
        slots = cache.append(sequence, tokens)
        rows = [[rng.standard_normal((H_K, len(slots), d)) for d in (D, D_V)] for _ in range(LAYERS)]
        for layer, (K, V) in enumerate(rows):
            if isinstance(cache.K, np.ndarray):
                cache.write(slots, K.astype(of), V.astype(of), layer)
            else:
                cache.write(slots, *(torch.from_numpy(X).to(cache.K.device, of) for X in (K, V)), layer=layer)

    return cache, write


def test_dropped_tokens_are_not_found_again_but_those_of_others_are(rng):
    tokens = prompt(rng, 21)
    alone, shared = Pages(50, 4), Pages(50, 4)
    for pages in (alone, shared):
        first, _ = computed(pages, tokens)
    second = shared.fork(first)
    for pages in (alone, shared):
        pages.drop(first, 6)  # its fourth page has 3 tokens now
        pages.check()
    assert known(alone, tokens) == 12 and known(shared, tokens) == 20 and alone.kept == 0
    shared.append(first, [5])
    other = [*tokens[:15], 5]
    assert known(shared, tokens) == 20 and known(shared, [*other, 0]) == 16
    shared.free(second)
    shared.drop(first, 3)
    assert known(shared, tokens) == 20 and known(shared, [*other, 0]) == 12
    shared.free(first)
    assert known(shared, tokens) == 20 and shared.kept == 5
    shared.check()


def known(pages, tokens):
    """Return how many of these tokens are known, without a trace in the cache."""
    return copy.deepcopy(pages).start(tokens)[1]


@pytest.mark.parametrize("used_again", [False, True])
def test_the_least_recently_used_page_is_evicted_first_and_ends_before_beginnings(used_again, rng):
    pages = Pages(8, 4)
    first, second = prompt(rng, 16), prompt(rng, 16)
    for tokens in (first, second):
        pages.free(computed(pages, tokens)[0])
    if used_again:
        pages.free(pages.start([*first, 0])[0])
        first, second = second, first
    assert pages.kept == 8 and pages.free_pages == 0
    other, _ = pages.start()
    for taken in range(1, 9):
        pages.append(other, 4)
        left = 4 * min(4, max(0, 4 - taken)), 4 * min(4, 8 - taken)
        assert (known(pages, [*first, 0]), known(pages, [*second, 0])) == left
        pages.check()
    assert pages.used == 8


def test_a_content_is_kept_once(rng):
    pages, tokens = Pages(50, 4), prompt(rng, 12)
    for _ in range(3):
        pages.free(computed(pages, tokens)[0])  # the last page is computed again each time
        assert pages.kept == 3 and pages.used == 0
        pages.check()


def test_what_two_have_computed_is_found_while_one_of_them_lives(rng):
    pages, tokens = Pages(50, 4), prompt(rng, 9)
    first, second = (pages.start()[0] for _ in range(2))
    for sequence in (first, second):
        pages.append(sequence, tokens)
    pages.free(first)
    pages.evict(50)
    assert known(pages, tokens) == 8 and pages.used == 3
    pages.check()


def test_a_table_of_fixed_width_is_padded_with_0_and_lengths_say_what_counts(rng):
    cache, _ = filled("float32")
    sequences = [computed(cache, prompt(rng, n))[0] for n in (9, 0, 4)]
    for pages, kind in ((cache, np.ndarray), (Pages(13, 4), np.ndarray)):
        assert type(pages.table([])) is kind and pages.table([]).shape == (0, 0)
        assert pages.table([], width=7).shape == (0, 7) and pages.lengths([]).shape == (0,)
    table, lengths = cache.table(sequences, width=5), cache.lengths(sequences)
    assert table.dtype == lengths.dtype == np.int32 and table.shape == (3, 5)
    assert lengths.tolist() == [9, 0, 4]
    assert not table[:, 3:].any() and not table[1].any() and not table[2, 1:].any()
    assert len({*table[0, :3].tolist(), int(table[2, 0])}) == 4
    assert np.array_equal(cache.table(sequences), table[:, :3])


def test_tensors_have_tables_and_lengths_on_their_device():
    torch = pytest.importorskip("torch")
    cache = Cache(5, 4, H_K, D, dtype=torch.bfloat16, device="cpu")
    sequence, _ = computed(cache, [1, 2, 3, 4, 5])
    for X in (cache.table([sequence]), cache.lengths([sequence]), cache.table([])):
        assert isinstance(X, torch.Tensor) and X.dtype == torch.int32 and X.device == cache.K.device
    assert cache.table([sequence], 3).shape == (1, 3) and cache.V.shape == (1, 5, H_K, 4, D)
    assert cache.k_scale is None and cache.v_scale is None


@pytest.mark.parametrize("kind", [list, tuple, np.array, "torch"])
def test_tokens_are_ids_of_any_kind_of_list(kind):
    if kind == "torch":
        kind = pytest.importorskip("torch").tensor
    pages = Pages(9, 2)
    computed(pages, [3, 1, 4, 1, 5])
    assert known(pages, kind([3, 1, 4, 1, 5])) == 4


def test_slots_of_several_sequences_are_written_at_once(rng):
    cache, _ = filled("float64")
    sequences = [cache.start()[0] for _ in range(3)]
    slots = [cache.append(sequence, n) for sequence, n in zip(sequences, (5, 0, 7), strict=True)]
    K, V = (rng.standard_normal((H_K, 12, d)) for d in (D, D_V))
    cache.write(np.concatenate(slots), K, V, layer=1)
    for sequence, own in zip(sequences, (slice(0, 5), slice(5, 5), slice(5, 12)), strict=True):
        for X, expected in zip(cache.gather(sequence, 1), (K, V), strict=True):
            assert np.array_equal(X, expected[:, own]) and X.flags.c_contiguous
        assert not any(X.any() for X in cache.gather(sequence, 0)), "another layer was written"


@pytest.mark.parametrize("largest", [1.0, 1e-30, 1e30])
def test_rows_in_8_bits_have_a_scale_each(largest, rng):
    torch = pytest.importorskip("torch")
    cache = Cache(5, 4, H_K, D, d_v=D_V, layers=LAYERS, dtype=torch.float8_e4m3fn)
    sequence, _ = cache.start()
    slots = cache.append(sequence, 11)
    K, V = (torch.from_numpy(rng.standard_normal((H_K, 11, d)) * largest).float() for d in (D, D_V))
    K[1, 4] = 0
    cache.write(slots, K, V, layer=1)
    for X, given in zip((K, V), cache.gather(sequence, 1), strict=True):
        finest = X.abs().amax(-1, keepdim=True) / 448 * 2.0**-10  # half the least number of e4m3
        assert given.dtype == torch.float32 and given.is_contiguous()
        assert ((given - X).abs() <= X.abs() * 2.0**-4 * 1.0001 + finest).all(), "half a unit of 4 bits"
    page, row = slots[4].tolist()
    assert not cache.gather(sequence, 1)[0][1, 4].any() and cache.k_scale[1, page, 1, row] == 1
    assert cache.K.dtype == torch.float8_e4m3fn and cache.k_scale.shape == cache.K.shape[:-1]


@pytest.mark.parametrize("dtype", ["float16", "torch.float16", "torch.float8_e4m3fn"])
def test_no_row_of_a_new_cache_spoils_a_product(dtype):
    cache, _ = filled(dtype)
    assert not plain_of(cache.K).any() and not plain_of(cache.V).any()


def test_bytes_of_a_token_are_those_of_the_storage():
    torch = pytest.importorskip("torch")
    for dtype, scales in ((torch.bfloat16, False), (torch.float8_e4m3fn, True)):
        cache = Cache(13, 4, H_K, D, d_v=D_V, layers=LAYERS, dtype=dtype)
        stored = [X for X in (cache.K, cache.V, cache.k_scale, cache.v_scale) if X is not None]
        each = bytes_per_token(H_K, D, D_V, itemsize=dtype.itemsize, layers=LAYERS, scales=scales)
        assert each * 13 * 4 == sum(X.numel() * X.element_size() for X in stored)
    assert bytes_per_token(8, 128, itemsize=2, layers=32) == 131072  # Llama 3 8B


def test_out_of_pages_says_how_many_and_a_sequence_goes_on_afterwards(rng):
    pages = Pages(5, 4)
    pages.free(computed(pages, prompt(rng, 4))[0])
    sequence, _ = computed(pages, prompt(rng, 9))
    before = copy.deepcopy(vars(pages))
    for tokens in (12, 10**15, [1] * 12):
        with pytest.raises(OutOfPages, match=r"need \d+ pages; of 5, 1 are free and 1 kept"):
            pages.append(sequence, tokens)
        assert vars(pages) == before
    pages.append(sequence, 11)
    assert pages.used == 5 and pages.waste == 0
    pages.check()


def test_a_sequence_is_never_used_again():
    pages = Pages(3, 2)
    made = []
    for _ in range(5):
        made += [pages.start()[0], pages.fork(pages.start()[0])]
        pages.free(made[-1])
    assert len(set(made)) == 10


MISTAKES = {
    "unknown sequence": (lambda c: c.append(99, 1), ValueError, "there is no sequence 99"),
    "freed sequence": (lambda c: c.free(1), ValueError, "there is no sequence 1"),
    "True for 1": (lambda c: c.fork(True), ValueError, "there is no sequence True"),
    "sequence 0.0": (lambda c: c.lengths([0.0]), ValueError, "there is no sequence 0.0"),
    "dropped more than it has": (lambda c: c.drop(0, 7), ValueError, "n is 7 and sequence 0 has 6"),
    "dropped -1": (lambda c: c.drop(0, -1), ValueError, "n is -1"),
    "evicted half": (lambda c: c.evict(0.5), TypeError, "n is 0.5"),
    "float ids": (lambda c: c.append(0, [1, 2.0]), TypeError, "tokens has 2.0"),
    "float array": (lambda c: c.append(0, np.ones(2)), TypeError, "tokens has 1.0"),
    "float count": (lambda c: c.append(0, 2.0), TypeError, "tokens is 2.0"),
    "bool id": (lambda c: c.start([True]), TypeError, "tokens has True"),
    "negative id": (lambda c: c.start([-1]), TypeError, "tokens has -1"),
    "negative count": (lambda c: c.append(0, -1), ValueError, "tokens is -1"),
    "text": (lambda c: c.append(0, "text"), TypeError, "tokens is 'text'"),
    "rows of ids": (lambda c: c.append(0, [[1]]), TypeError, "tokens has"),
    "width too small": (lambda c: c.table([0], width=1), ValueError, "width is 1 and a sequence has 2 pages"),
    "K too long": (lambda c: c.write(*rows(n=5)), ValueError, r"K has shape \(3, 5, 5\); for 6 slots"),
    "heads and tokens": (lambda c: c.write(*rows(H=6, n=3)), ValueError, r"K has shape \(6, 3, 5\)"),
    "V with d": (lambda c: c.write(*rows(d_v=5)), ValueError, r"V has shape .* it is \(3, 6, 2\)"),
    "another dtype": (lambda c: c.write(*rows(dtype="float64")), TypeError, "K has dtype float64; the cache has"),
    "integers": (lambda c: c.write(*rows(dtype="int64")), TypeError, "K has dtype int64"),
    "a list": (lambda c: c.write(rows()[0], [1], [2]), TypeError, "K is a list"),
    "layer 2 of 2": (lambda c: c.write(*rows(), layer=2), ValueError, "layer is 2; the cache has 2"),
    "layer -1": (lambda c: c.gather(0, -1), ValueError, "layer is -1"),
    "flat slots": (lambda c: c.write(np.arange(6), *rows()[1:]), ValueError, r"slots has shape \(6,\)"),
    "float slots": (lambda c: c.write(rows()[0] * 1.0, *rows()[1:]), ValueError, "dtype float64"),
    "row 4 of 4": (lambda c: c.write(rows()[0] + [[0, 4]], *rows()[1:]), ValueError, "not there"),
    "page of nobody": (lambda c: c.write(rows()[0] + [[9, 0]], *rows()[1:]), ValueError, "without an owner"),
}


def rows(n=6, H=H_K, d=D, d_v=D_V, dtype="float32"):
    """Return slots of six tokens, and K and V."""
    slots = np.array([divmod(at, 4) for at in range(6)], np.int32)
    return slots, np.ones((H, n, d), dtype), np.ones((H, n, d_v), dtype)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_says_so_and_changes_nothing(mistake, rng):
    call, kind, words = MISTAKES[mistake]
    cache, write = filled("float32")
    first, _ = cache.start()
    write(first, prompt(rng, 6), rng)
    cache.free(computed(cache, prompt(rng, 9))[0])
    before = state(cache)
    with pytest.raises(kind, match=words):
        call(cache)
    assert state(cache) == before
    cache.check()


@pytest.mark.parametrize(
    "sizes, kind, words",
    [
        ({"page": 12}, ValueError, "page is 12; accepted are powers of two"),
        ({"page": 0}, ValueError, "page is 0"),
        ({"n_pages": 2.0}, TypeError, "n_pages is 2.0"),
        ({"n_pages": 0}, ValueError, "n_pages is 0"),
        ({"d_v": 0}, ValueError, "d_v is 0"),
        ({"layers": True}, TypeError, "layers is True"),
        ({"dtype": "int8"}, TypeError, "dtype is 'int8'; accepted are float16"),
        ({"dtype": None}, TypeError, "dtype is None"),
        ({"dtype": "no such"}, TypeError, "dtype is 'no such'"),
        ({"device": "cuda"}, ValueError, "device is 'cuda' and float32"),
    ],
)
def test_sizes_and_dtypes_that_no_cache_can_have(sizes, kind, words):
    with pytest.raises(kind, match=words):
        Cache(**{"n_pages": 5, "page": 4, "H_k": 2, "d": 3} | sizes)


def test_tensors_and_arrays_are_not_mixed(rng):
    torch = pytest.importorskip("torch")
    for dtype, words in ((torch.float32, "K is a ndarray"), (torch.float8_e4m3fn, "K is a ndarray")):
        cache = Cache(5, 4, H_K, D, d_v=D_V, dtype=dtype)
        computed(cache, prompt(rng, 6))
        with pytest.raises(TypeError, match=words):
            cache.write(*rows())
        with pytest.raises(TypeError, match="K has dtype torch.float64"):
            cache.write(rows()[0], *map(torch.from_numpy, rows(dtype="float64")[1:]))
        assert not plain_of(cache.K).any()
    with pytest.raises(TypeError, match="dtype is torch.int8; accepted are torch.float16"):
        Cache(5, 4, H_K, D, dtype=torch.int8)


def test_tensors_that_need_a_gradient_are_written_without_it(rng):
    torch = pytest.importorskip("torch")
    cache = Cache(5, 4, H_K, D, d_v=D_V, dtype=torch.float32)
    sequence, _ = computed(cache, prompt(rng, 6))
    slots, *K_and_V = rows()
    cache.write(slots, *(torch.from_numpy(X).requires_grad_() for X in K_and_V))
    assert all((X == 1).all() and not X.requires_grad for X in cache.gather(sequence))


BREAKS = {
    "a page is lost": lambda p: p._free.pop(),
    "a page is free twice": lambda p: p._free.append(p._free[0]),
    "owned and free": lambda p: p._free.append(p._sequences[0].pages[0]),
    "owned and kept": lambda p: p._kept.update({p._sequences[0].pages[0]: None}),
    "an owner too many": lambda p: p._owners.__setitem__(p._sequences[0].pages[0], 5),
    "a page too many": lambda p: p._sequences[0].pages.append(p._free.pop()),
    "a token too many": lambda p: p._sequences[0].tokens.extend([1] * 4),
    "written though shared": lambda p: p._sequences[1].tokens.__setitem__(9, 10**6),
    "full page changed": lambda p: p._sequences[0].tokens.__setitem__(2, 10**6),
    "index of another page": lambda p: next(iter(p._index.values())).add(p._free[0]),
    "content without index": lambda p: p._index.popitem(),
    "free page with content": lambda p: p._content.update({p._free[0]: b""}),
}


@pytest.mark.parametrize("broken", BREAKS)
def test_check_finds_what_is_broken(broken, rng):
    pages = Pages(20, 4)
    first, _ = computed(pages, prompt(rng, 10))
    pages.fork(first)
    pages.free(computed(pages, prompt(rng, 6))[0])
    pages.check()
    BREAKS[broken](pages)
    with pytest.raises(AssertionError, match=r"\w+ \w+ \w+"):
        pages.check()


def test_numpy_is_all_that_an_array_cache_needs():
    code = (
        "import sys\nfrom flashlib.cache import Cache\ncache = Cache(5, 4, 2, 3)\n"
        "cache.append(cache.start()[0], 6)\nassert cache.used == 2 and 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
