"""The exercises in Triton, which is imported by the checks: macOS and Windows lack it."""

from collections.abc import Callable
from functools import partial

import numpy as np

from flashlib.checks.engine import Case, Known, Verdict, exercise, random_cases, written
from flashlib.checks.harness import update
from flashlib.softmax import State, summarise_rows

# ---- a part of the keys


def _taken(X, c):
    """Return rows c of X, zeros past its end."""
    return np.where((c < len(X))[:, None], X[np.minimum(c, len(X) - 1)], 0)


def _decoding(text):
    """Return the ProgramText of a loop over parts of the keys; tl.max ignores nan."""
    looped = update.looped(text, before=(update.IN_FP32,), taken=_taken)
    return looped.edited("m = np.maximum(m_old, np.fmax.reduce(S_ij, axis=1))")


@exercise(title="A part of the keys", minutes=25, difficulty="hard", program=_decoding, limit=8.0)
def decode_part(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness.launches import examine_kernel
    from flashlib.checks.harness.parts_inference import by_parts

    stages = [
        [
            _decoded("one tile", (1, 1, 1, 16), [16]),
            _decoded("two tiles in one part", (1, 1, 1, 32), [32]),
            _decoded("two parts of a tile each", (1, 1, 1, 32), [32], parts=2),
            _decoded("two parts, of one and of two tiles", (1, 1, 1, 48), [48], parts=2),
            _decoded("a group of 3 heads", (1, 1, 3, 32), [32], parts=2),
            _decoded("two heads of K and V, of a group of 2 each", (1, 2, 2, 32), [32], parts=2),
            _decoded("two sequences of the same length", (2, 1, 2, 32), [32, 32], parts=2),
            _decoded("scores near 1000 and d = 32", (1, 1, 2, 48), [48], parts=2, d=32, size=64),
            _decoded("keys that are all zero", (1, 1, 1, 32), [32], alike=0),
            _decoded("a group of 20 heads", (1, 1, 20, 16), [16]),
        ],
        [
            _decoded("a last tile that is not full", (1, 1, 1, 21), [21]),
            _decoded(
                "a last tile that is not full, and scores far below 0", (1, 1, 1, 21), [21], below=2**12, alike=1
            ),
            _decoded("a cache with room for more", (1, 1, 1, 70), [21], parts=2),
            _decoded("two sequences of different lengths", (2, 2, 2, 50), [39, 50], parts=3),
            *random_cases.cases(_any_decoded, 1),
        ],
        [
            _decoded("parts without a tile", (1, 1, 2, 32), [20], parts=7),
            _decoded("a sequence without a key", (2, 1, 2, 20), [0, 20], parts=2),
        ],
    ]
    return examine_kernel(answer, by_parts, stages, known, outputs=State._fields, nan="nan, or never stored")


def _decoded(words, shape, lengths, parts=1, d=16, scale=0.375, B_C=16, size=1, rng=None, alike=None, below=0):
    """Return the Case of a shape (B, H_k, group, N); past the lengths K and V are nan. size, below: of Q.

    alike: if given, all keys are the first one times this number.
    """
    rng = rng or np.random.default_rng(5)
    B, H_k, group, N = shape
    steps = 16 if size > 1 or below else 2**14  # in 1; for small scores, more bits than fp16 has
    Q, K, V = (
        rng.integers(-1.5 * steps, 1.5 * steps + 1, shape) / steps
        for shape in ((B, H_k * group, d), *[(B, H_k, N, d)] * 2)
    )
    Q *= size
    if below:
        Q, K = (np.abs(Q) * 64 + 256) * below, -np.abs(K) - 256
    if alike is not None:
        K[:] = K[:, :, :1] * alike
    m, l = np.zeros((2, B, H_k * group, parts))
    O_acc = np.zeros((B, H_k * group, parts, d))
    for b, h, part in np.ndindex(m.shape):
        tiles = -(-lengths[b] // B_C)
        keys = slice(*(min(tiles * n // parts * B_C, lengths[b]) for n in (part, part + 1)))
        S, values = scale * K[b, h // group, keys] @ Q[b, h], V[b, h // group, keys]
        m[b, h, part], l[b, h, part], O_acc[b, h, part] = summarise_rows(S, values)
    for b, length in enumerate(lengths):
        K[b, :, length:] = V[b, :, length:] = np.nan
    given = *(X.astype(np.float32) for X in (Q, K, V)), np.array(lengths, np.int32)
    return Case(words, (*given, parts, scale, B_C), (m, l, O_acc), 1e-5)


def _any_decoded(rng):
    H_k, group, parts = map(int, rng.integers((1, 1, 1), (3, 5, 4)))
    lengths = [int(n) for n in rng.integers(1, 60, 2)]
    shape, B_C = (2, H_k, group, max(lengths) + int(rng.integers(0, 9))), int(rng.choice([16, 32]))
    words = f"{lengths[0]} and {lengths[1]} keys in {parts} parts"
    return _decoded(words, shape, lengths, parts, scale=float(rng.integers(1, 16)) / 16, B_C=B_C, rng=rng)


# ---- new keys into pages


def _put(flat, at, row):
    """Write a row into flat memory, except for positions outside of it."""
    inside = (at >= 0) & (at < len(flat))
    flat[at[inside]] = row[inside]


def _get(table, at, outside=0):
    """Return an entry of the table; loads outside of it are forbidden, and in 32 bits they lead to page 0."""
    return table.flat[at] if 0 <= at < table.size else outside


@exercise(
    title="A new key into its page", minutes=15, difficulty="medium", program=partial(written, put=_put, get=_get),
    variants=("id = get(table, at, outside=-(2**31))",),  # in 64 bits such a load leads out of the pool
)  # fmt: skip
def append_kernel(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness.launches import examine_kernel
    from flashlib.checks.harness.parts_inference import into_pages

    stages = [
        [
            _appended("one sequence, whose key goes into its first page", 6, 4, 16, [[1, 2]], [2]),
            _appended("a first key", 6, 4, 16, [[1, 2]], [1]),
            _appended("a key in a second page", 6, 4, 16, [[1, 3]], [6]),
            _appended("a key that fills its page", 6, 4, 16, [[1, 3]], [4]),
            _appended("a key that begins a page, page number 0", 6, 4, 16, [[3, 0]], [5]),
            _appended("two sequences", 9, 4, 16, [[1, 2], [5, 4]], [3, 6]),
            _appended(
                "pages of 3 keys, and a table with room for more", 12, 3, 16, [[4, 1, 0], [2, 5, 7]], [5, 8]
            ),
            *random_cases.cases(lambda rng: _any_appended(rng, 16), 1),
        ],
        [
            _appended("d = 80", 9, 4, 80, [[1, 2], [5, 4]], [3, 6]),
            *random_cases.cases(lambda rng: _any_appended(rng, int(rng.integers(2, 40))), 2),
        ],
        [_appended("a key of d = 5 in the last row of the pool", 3, 4, 5, [[2, 0]], [4])],
        [_appended("a sequence of length 0", 7, 4, 16, [[3, 4], [2, 1]], [0, 6])],
    ]
    return examine_kernel(answer, into_pages, stages, known, outputs=("pool",))


def _appended(words, n_pages, page, d, table, lengths, rng=None):
    rng = rng or np.random.default_rng(6)
    new, pool = (rng.integers(-(10**6), 10**6, shape) / 2**17 for shape in ((len(lengths), d), (n_pages, page, d)))
    new[:, 0], right = 0, pool.copy()
    for row, ids, length in zip(new, table, lengths, strict=True):
        if length:
            right[ids[(length - 1) // page], (length - 1) % page] = row
    given = *(X.astype(np.float32) for X in (new, pool)), np.array(table, np.int32), np.array(lengths, np.int32)
    return Case(words, given, right, 0)


def _any_appended(rng, d):
    page, most, T = map(int, rng.integers((2, 1, 1), (6, 4, 4)))
    n_pages = 2 * (T * most + 2)  # so that a row written to a wrong place is still in the pool
    table = rng.permutation(T * most + 2)[: T * most].reshape(T, most)
    lengths = [int(n) for n in rng.integers(1, most * page + 1, T)]
    return _appended(f"keys {lengths} in pages of {page}", n_pages, page, d, table.tolist(), lengths, rng)
