"""The exercise in Triton, which is imported by the checks: macOS and Windows lack it."""

from collections.abc import Callable
from functools import partial

import numpy as np

from flashlib.checks.engine import Case, Known, Verdict, exercise, random_cases, written

# ---- new keys into pages


def _put(flat, at, row):
    """Write a row into flat memory, except for positions outside of it."""
    inside = (at >= 0) & (at < len(flat))
    flat[at[inside]] = row[inside]


def _get(table, at, outside=0):
    """Return an entry of the table; loads outside of it are forbidden, and in 32 bits they lead to page 0."""
    return table.flat[at] if 0 <= at < table.size else outside


@exercise(
    title="A new key into its page", minutes=15, difficulty="medium", optional=True,
    program=partial(written, put=_put, get=_get),
    variants=("id = get(table, at, outside=-(2**31))",),  # in 64 bits such a load leads out of the pool
)  # fmt: skip
def append_kernel(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness import far_memory, far_parts
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
        [_appended("pages of one key, after a sequence of length 0", 7, 1, 16, [[3, 4], [2, 1]], [0, 2])],
    ]
    verdict = examine_kernel(answer, into_pages, stages, known, outputs=("pool",))
    return far_memory.extended(verdict, known, lambda: far_parts.row_reached(answer))


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
    page, most, T = map(int, rng.integers((1, 1, 1), (6, 4, 4)))
    n_pages = 2 * (T * most + 2)  # so that a row written to a wrong place is still in the pool
    table = rng.permutation(T * most + 2)[: T * most].reshape(T, most)
    lengths = [int(n) for n in rng.integers(1, most * page + 1, T)]
    return _appended(f"keys {lengths} in pages of {page}", n_pages, page, d, table.tolist(), lengths, rng)
