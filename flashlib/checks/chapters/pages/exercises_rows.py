"""The exercises on rows of a cache: their places in pages, and their storage in 8 bits."""

from collections.abc import Callable

import numpy as np

from flashlib.checks.engine import Case, Known, Verdict, examine, exercise, random_cases

# ---- the rows of a sequence


@exercise(title="The rows of a sequence", minutes=15, difficulty="easy")
def gather_pages(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    plain = [
        _gathered(rng, "one token", 4, 2, 1, [2, 0, 3], 1),
        _gathered(rng, "one full page", 3, 2, 2, [1, 2], 2),
        _gathered(rng, "two full pages", 4, 2, 3, [2, 0], 4),
        _gathered(rng, "two pages, of which the last is not full", 4, 2, 3, [3, 1], 3),
        _gathered(rng, "pages in any order", 7, 3, 2, [5, 0, 3, 1], 10),
        _gathered(rng, "as many rows in a page as columns", 6, 4, 4, [4, 2, 5], 11),
        _gathered(rng, "a first page that is not full", 6, 5, 2, [3], 2),
        _gathered(rng, "pages of one row and one column", 5, 1, 1, [3, 0, 4, 1], 3),
        _gathered(rng, "a table with more entries than pages", 6, 3, 2, [4, 1, 0, 0], 5),
    ]
    later = [
        _gathered(rng, "the second of two full pages", 4, 2, 3, [2, 0], 4, first=2),
        _gathered(rng, "keys from the middle of the first page on", 4, 3, 2, [2, 0], 6, first=1),
        _gathered(rng, "keys from the middle of the second page on", 7, 3, 2, [5, 0, 3, 1], 10, first=4),
        _gathered(rng, "the last key alone", 7, 3, 2, [5, 0, 3, 1], 11, first=10),
        *random_cases.cases(_any_gathered),
    ]
    beyond = [
        _gathered(rng, "other numbers in unused entries", 6, 3, 2, [4, 1, 10**6, -(10**6)], N) for N in (5, 6)
    ]
    given_back = [
        _gathered(rng, "other numbers in entries before them", 6, 3, 2, [10**6, -(10**6), 4, 1], 11, first=n)
        for n in (6, 7)
    ]
    empty = [_gathered(rng, "no token", 4, 2, 3, [1, 2], N, first=N) for N in (0, 2)]
    return examine(answer, [plain, later, beyond, given_back, empty], known)


def _gathered(rng, words, n_pages, page, d, table, N, first=0):
    pool = rng.normal(size=(n_pages, page, d)).round(2)
    right = np.array([pool[table[c // page], c % page] for c in range(first, N)]).reshape(N - first, d)
    return Case(words, (pool, np.array(table, np.int32), first, N), right)


def _any_gathered(rng):
    n_pages, page, d = map(int, rng.integers((4, 1, 1), (12, 6, 6)))
    table = rng.permutation(n_pages)[: rng.integers(2, n_pages)]
    N = int(rng.integers(1, len(table) * page + 1))
    first = int(rng.integers(0, N))
    return _gathered(rng, f"keys {first} to {N - 1} in pages of {page}", n_pages, page, d, table, N, first)


# ---- 8 bits


@exercise(title="Rows in 8 bits", minutes=10, difficulty="medium", optional=True)
def quantise(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(1)
    plain = [
        _quantised("one row of two numbers", [[2.54, 1.0]]),
        _quantised("a row whose largest number is negative", [[-2.54, 1.0]]),
        _quantised("a row without a positive number", [[-3.0, -1.0, -0.5]]),
        _quantised("two rows of different sizes", [[1.0, -0.2, 0.3], [50.0, -70.0, 9.0]]),
        _quantised("as many rows as columns", rng.normal(size=(4, 4)) * [[1], [20], [0.01], [3]]),
        _quantised("halves: 0.5, 1.5, 2.5 and their negatives", [[127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5]]),
        _quantised("a row of one large number", [[0.1, 0.2, -1000.0], [0.1, 0.2, -0.3]]),
        _quantised("very small numbers", rng.normal(size=(2, 3)) * 1e-30),
        _quantised("one column", [[-3.0], [0.5]]),
        *random_cases.cases(_any_quantised),
        _quantised("rows in fp32", rng.normal(size=(3, 5)).astype(np.float32)),
    ]
    zeros = [
        _quantised("a row of zeros", [[0.0, 0.0, 0.0], [1.0, -3.0, 0.5]]),
        _quantised("rows that are all zero", np.zeros((2, 3))),
    ]
    return examine(answer, [plain, zeros], known, outputs=("X8", "scale"))


def _quantised(words, X):
    X = np.array(X)
    largest = np.sort(np.abs(X), axis=1)[:, -1]
    scale = np.array([x / 127 if x else 1.0 for x in largest.tolist()])
    X8 = np.array(
        [[round(x / s) for x in row] for row, s in zip(X.tolist(), scale.tolist(), strict=True)], np.int8
    )
    return Case(words, (X,), (X8, scale), 1e-6, (np.int8, None))


def _any_quantised(rng):
    N, d = map(int, rng.integers((1, 1), (6, 9)))
    X = rng.normal(size=(N, d)) * 10.0 ** rng.integers(-3, 4, (N, 1))
    return _quantised(f"{N} rows of {d}", X)
