"""The last exercise: a step of decoding, with its kernels and launches. The checks import Triton."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from flashlib.checks.chapters.one_query.exercises_whole import DECODING, EXACT, FP16, OUTPUTS
from flashlib.checks.engine import Case, Known, Verdict, examine, exercise, random_cases
from flashlib.checks.harness import update
from flashlib.softmax import summarise_rows

NO_PAGE = -(2**31)  # on both sides of the table


def _entries(table, at, inside):
    """Return entries of the table by position, 0 where `inside` is False."""
    there = (at >= 0) & (at < table.size)
    found = np.where(there, table.reshape(-1)[np.where(there, at, 0)].astype(int), NO_PAGE)
    return np.where(inside, found, 0)


@exercise(
    title="Decoding over pages",
    minutes=55,
    difficulty="medium",
    program=partial(DECODING, entries=_entries),
    limit=15.0,
)
def decode(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness import far_memory
    from flashlib.checks.harness.decoding import DecodingTilings, over_pages

    tiles, reaches = DecodingTilings(), []
    run, known = over_pages(answer, tiles, reaches), replace(known, variants=tiles)
    verdict = examine(run, _stages(), known, outputs=OUTPUTS, nan="nan, or never stored")
    return far_memory.noted(verdict, *reaches) if reaches else verdict


def _stages():
    """Return the Cases, the simplest first; in the first stage all pages hold numbers, even those not in use."""
    return [
        [
            _case("one page, one part", [16], page=16, order=[0]),
            _case("two pages in order, one part", [32], page=16, order=[0, 1]),
            _case("pages in any order", [64], page=16, order=[2, 0, 3, 1]),
            _case("a long sequence in two parts", [256], page=16, parts=2),
            _case("a group of 3 heads, in three parts", [320], page=16, parts=3, group=3),
            _case("two heads of K and V, of a group of 2 each", [128], H_k=2, group=2, page=16, parts=2),
            _case("two sequences of the same length", [128, 128], H_k=2, group=2, page=16, parts=2),
            _case("keys with more weight in one part than in the other", [256], page=16, parts=2, rising=True),
            _case("1024 keys in eight parts", [1024], page=16, parts=8),
            _case("scores that differ by thousands", [256], page=16, parts=3, size=2**10, group=3),
        ],
        [
            _case("a single key", [1], page=16),
            _case("a last page that is not full", [21], page=16),
            _case("a last page that is not full, in two parts", [277], page=16, parts=2, group=2),
            _case("sequences of different lengths", [150, 37, 201], H_k=2, group=2, page=16, parts=2),
            _case("pages of 24 keys", [203], page=24, parts=2),
            _case("pages of one key", [19], page=1, parts=1),
            _case("more parts than pages", [41], page=16, parts=7),
            _case("a group of 20 heads", [70], page=16, group=20, parts=2),
            _case("a group of 71 heads", [70], page=16, group=71, parts=2),
            _case("133 parts", [1100], page=16, parts=133),
            _case("d = 64", [130, 5], d=64, page=16, group=2, parts=2),
            _case("scores that are all far below 0", [41], page=16, below=True),
            _case("scores of -1.7e10, all equal", [41], page=16, alike=2.0**16),
            _case("scores that are all 0", [70], page=16, parts=2, size=0),
            _case("a single key in three parts, whose score is far below 0", [1], page=16, parts=3, below=True),
            _case("a single key in three parts, whose score is -1.7e10", [1], page=16, parts=3, alike=2.0**16),
            *random_cases.cases(_any_case, 3),
        ],
        [
            _case("nan in rows past the lengths and in other pages", [37, 150], page=16, parts=2, nan=True),
            _case("invalid entries after a sequence's own", [37, 150], page=16, parts=2, far=True),
        ],
        [
            _case("a sequence without a key, next to others", [0, 40, 5], page=16, parts=2, nan=True, far=True),
            _case("a sequence without a key, alone", [0], page=16, parts=3),
        ],
        [_case("d = 128, and numbers that fp16 cannot represent", [150], d=128, page=16, parts=2, fine=True)],
        [
            _case("tensors in fp16, and sums beyond 65504", [150], d=32, page=16, parts=2, V_size=2**15, **FP16),
            _case(
                "tensors in fp16, d = 128, and V of 0", [150],
                d=128, page=16, parts=2, group=16, size=4, V_size=0, **EXACT,
            ),
        ],
    ]  # fmt: skip


def _any_case(rng):
    H_k, group, page, parts = (int(n) for n in rng.integers((1, 1, 1, 1), (4, 6, 40, 9)))
    lengths = [int(n) for n in rng.integers(0, rng.choice([20, 220]), rng.integers(1, 4))]
    words = f"{lengths} keys in pages of {page}, {H_k} heads of K and V, groups of {group}, {parts} parts"
    some = {"H_k": H_k, "group": group, "page": page, "parts": parts, "d": int(rng.choice([16, 32, 64]))}
    return _case(words, lengths, rng=rng, **some)


def _case(
    words, lengths, *, page, H_k=1, group=1, parts=1, d=16, order=None, dtype=np.float32, tolerance=1e-5, size=1.0,
    V_size=1.0, fine=False, rising=False, below=False, alike=0.0, nan=False, far=False,
    rng=None,
):  # fmt: skip
    """Return the Case of sequences with these lengths, whose pages are in `order`, or in a random order.

    rising: later keys have larger scores. below: all scores are far below 0. nan: rows that are not a key's are
    nan; otherwise they hold numbers like those of keys. far: table entries after a sequence's pages are invalid.
    fine, size, V_size, alike: as in `multi_head.case`.
    """
    rng = rng or np.random.default_rng(len(lengths) + sum(lengths))
    pages = [-(-n // page) for n in lengths]
    most, owned = max(1, *pages), sum(pages)
    n_pages = owned + 3 + sum(most - n for n in pages)  # all entries are different pages of the pool
    order = 1 + rng.permutation(n_pages - 1) if order is None else np.array(order)  # masked lanes may load page 0
    table = order[: len(lengths) * most].reshape(len(lengths), most).copy()
    steps = 16 if not fine else 2**10 if dtype is np.float16 else 2**14
    Q, K, V = (
        rng.integers(-3 * steps // 2, 3 * steps // 2 + 1, shape) / steps
        for shape in ((len(lengths), H_k * group, d), *[(n_pages, H_k, page, d)] * 2)
    )
    Q, V = Q * size, (np.abs(V) if V_size > 1 else V) * V_size
    if below:
        Q, K = np.abs(Q) * 16 + 64, -np.abs(K) - 64
    if alike:
        Q, K = np.full_like(Q, -alike), np.full_like(K, alike)
    expected = []
    for b, n in enumerate(lengths):
        c = np.arange(n)
        at = table[b, c // page], slice(None), c % page
        if rising:
            Q[b], K[at] = np.abs(Q[b]) + 0.5, K[at] + 4 * (c / n)[:, None, None]
        keys, values = K[at], V[at]  # (n, H_k, d)
        for h in range(H_k * group):
            S = Q[b, h] @ keys[:, h // group].T / np.sqrt(d)
            O, lse = update.finished(summarise_rows(S[None], values[:, h // group]))
            expected.append((O[0], lse[0]))
    if nan:
        K, V = (_nan_elsewhere(X, table, lengths) for X in (K, V))
    if far:
        for b, n in enumerate(pages):
            table[b, n:] = (10**6, -(10**6), 2**31 - 1)[b % 3]
    O, lse = (np.array(X) for X in zip(*expected, strict=True))
    given = *(X.astype(dtype) for X in (Q, K, V)), np.array(lengths, np.int32), table.astype(np.int32), parts
    return Case(words, given, (O.reshape(Q.shape), lse.reshape(Q.shape[:2])), tolerance, (dtype, np.float32))


def _nan_elsewhere(pool, table, lengths):
    """Return a pool in which all rows but those of keys are nan."""
    clean, page = np.full_like(pool, np.nan), pool.shape[2]
    for row, n in zip(table, lengths, strict=True):
        c = np.arange(n)
        at = row[c // page], slice(None), c % page
        clean[at] = pool[at]
    return clean
