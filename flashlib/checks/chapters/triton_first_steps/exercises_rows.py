"""The exercises on rows of scores, block by block. Triton is imported by the checks, not here."""

from collections.abc import Callable

import numpy as np

from flashlib.checks.chapters.triton_first_steps.exercises import BLOCKS, MODEL, fp32, of_rows
from flashlib.checks.engine import Case, Finding, Known, Verdict, examine, exercise, random_cases
from flashlib.checks.harness.strided import Out, Strided
from flashlib.softmax import State, merge, summarise_rows

INF = np.inf

LOW = np.array([[500], [3e9], [INF]])  # moves scores below a finite substitute for -inf
APART = np.array([[2000], [-INF], [-2000]])
UP_TO_256 = BLOCKS[:4]  # in one case, 256 scores fill whole blocks of these sizes, so `other` has no effect


@exercise(title="The maximum of each row", minutes=10, difficulty="easy", program=MODEL, variants=UP_TO_256)
def row_max(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness.launches import LONG, launched

    rng = np.random.default_rng(0)
    cases = [
        _maxima(rng, "one score", 1, 1),
        _maxima(rng, "rows of 3 scores", 2, 3),
        _maxima(rng, "rows of 16 scores", 2, 16),
        _maxima(rng, "rows of 17 scores", 3, 17),
        _maxima(rng, "scores far below 0", 2, 3, lambda X: X - 500),
        _maxima(rng, "scores that grow", 2, 40, lambda X: X + np.arange(40) // 16 * 9),
        _maxima(rng, "scores that fall", 2, 40, lambda X: X - np.arange(40) // 16 * 9),
        _maxima(rng, "rows with gaps between them", 3, 5, apart=7),
        _maxima(rng, "a long row of scores that grow", 1, LONG, lambda X: X + np.arange(LONG)),
        _maxima(rng, "256 scores far below 0, and a row of -inf", 3, 256, lambda X: X - LOW),
        _maxima(rng, "a row of -inf", 3, 21, lambda X: np.where([[False], [True], [False]], -INF, X)),
        _maxima(rng, "scores near -3e9", 2, 3, lambda X: X * 1e9 - 3e9),
        _maxima(rng, "a largest score of 0", 2, 3, lambda X: X - X.max(axis=1, keepdims=True)),
    ]
    return examine(launched(answer, _row_by_row), cases + random_cases.cases(_any_maxima), known)


def _scores(rng, rows, N, change, apart):
    """Return rows of N scores, exact in fp32, and their stand-in: a matrix with gaps between rows."""
    X = fp32(change(rng.normal(size=(rows, N)).round(2) * 2))
    return X, Strided(X, (N + apart, 1))


def _maxima(rng, words, rows, N, change=lambda X: X, apart=0):
    X, given = _scores(rng, rows, N, change, apart)
    return Case(words, (given, Out((rows,))), X.max(axis=1), 1e-6)


def _any_maxima(rng):
    rows, N, apart = map(int, rng.integers((1, 1, 0), (5, 100, 9)))
    offset = rng.choice([-200, 200])
    return _maxima(rng, f"{rows} rows of {N} scores", rows, N, lambda X: X * 10 + offset, apart)


NO_GUARD = "shift = m_new"


@exercise(title="One more block", minutes=10, difficulty="medium", program=MODEL, variants=(NO_GUARD,))
def online_block(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness.launches import launched

    rng = np.random.default_rng(0)
    finite = [
        _block(rng, "one row of 16 scores", 1, 16),
        _block(rng, "three rows of 16 scores", 3, 16),
        _block(rng, "rows of 5 scores", 2, 5),
        _block(rng, "a first block, with m = -inf and l = 0 before it", 2, 16, first=True),
        _block(rng, "rows of 5 scores far below 0", 2, 5, lambda X: X - 500, at=-500),
        _block(rng, "scores above the earlier ones", 2, 16, lambda X: X + 20),
        _block(rng, "scores below the earlier ones", 2, 16, lambda X: X - 20),
        _block(rng, "scores near 1000", 2, 16, lambda X: 500 * X, at=500),
        _block(rng, "rows with gaps between them", 3, 5, apart=7),
        _block(rng, "an m of 0", 2, 5, lambda X: X + 3, m=0.0),
        _block(rng, "scores 11 above the earlier ones", 2, 5, lambda X: X * 0 + 11, m=0.0),
    ]
    hidden = [
        _block(rng, "a block of -inf", 2, 7, lambda X: X - INF),
        _block(rng, "a first block of -inf", 2, 16, lambda X: X - INF, first=True),
        _block(rng, "scores near -3e9", 2, 3, lambda X: X * 1e8 - 3e9, at=-3e9),
        _block(rng, "rows 2000 apart, one of them of -inf", 3, 5, lambda X: X + APART),
    ]
    cases = [finite, hidden + random_cases.cases(_any_block)]
    way = lambda watch, X, *others: of_rows(watch, len(X))  # noqa: E731
    return examine(launched(answer, way), cases, known, outputs=("m_new", "l_new"))


def _block(rng, words, rows, N, change=lambda X: X, *, at=0.0, m=None, first=False, apart=0):
    """Return the Case of a block of N scores, with m and l of the scores before it; m is near `at`, or given."""
    X, given = _scores(rng, rows, N, change, apart)
    near, l = fp32(at + rng.normal(size=rows).round(2) * 2), fp32(1 + rng.random(rows).round(2) * 9)
    m = near if m is None else np.full(rows, m)
    if first:
        m, l = np.full(rows, -INF), np.zeros(rows)
    after = merge(State(m, l), summarise_rows(X))
    return Case(words, (given, m, l, Out((rows,)), Out((rows,))), (after.m, after.l), 1e-6)


def _any_block(rng):
    rows, N, apart = map(int, rng.integers((1, 1, 0), (5, 17, 9)))
    hidden = rng.random((rows, N)) < rng.choice([0, 0.3, 0.99])
    words = f"{rows} rows of {N} scores"
    return _block(rng, words, rows, N, lambda X: np.where(hidden, -INF, X * 3), apart=apart)


OFTEN = "return m + np.log(np.where(l == 0, 1, l))", "shift = m", *BLOCKS


@exercise(title="Log-sum-exp of each row", minutes=20, difficulty="medium", program=MODEL, variants=OFTEN)
def row_lse(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness.launches import LONG, launched

    rng = np.random.default_rng(0)
    finite = [
        _rows(rng, "one score", 1, 1),
        _rows(rng, "rows of 3 scores", 2, 3),
        _rows(rng, "rows of 16 scores", 2, 16),
        _rows(rng, "rows of 17 scores", 3, 17),
        _rows(rng, "scores far below 0", 2, 3, lambda X: X - 500),
        _rows(rng, "scores that grow", 2, 40, lambda X: X + np.arange(40) // 16 * 4),
        _rows(rng, "scores that fall", 2, 40, lambda X: X - np.arange(40) // 16 * 4),
        _rows(rng, "scores near 1000", 2, 40, lambda X: 500 * X),
        _rows(rng, "rows with gaps between them", 3, 5, apart=7),
        _rows(rng, "a long row", 1, LONG),
        _rows(
            rng,
            "a maximum of 0 in the first block, then 1",
            1,
            17,
            lambda X: np.append(0 - np.arange(16), 1)[None],
        ),
        _rows(rng, "scores that grow by 9 from block to block", 2, 40, lambda X: X / 9 + np.arange(40) // 16 * 9),
    ]
    hidden = [
        _rows(rng, "a row of -inf", 3, 5, lambda X: np.where([[False], [True], [False]], -INF, X)),
        _rows(rng, "16 scores of -inf", 1, 16, lambda X: X - INF),
        _rows(rng, "first scores of -inf", 2, 23, lambda X: np.where(np.arange(23) < 18, -INF, X)),
        _rows(rng, "last scores of -inf", 2, 40, lambda X: np.where(np.arange(40) < 18, X, -INF)),
        _rows(rng, "scores near -3e9", 2, 3, lambda X: X * 1e9 - 3e9),
    ]
    return examine(launched(answer, _once_in_blocks), [finite, hidden + random_cases.cases(_any_rows)], known)


def _rows(rng, words, rows, N, change=lambda X: X, apart=0):
    X, given = _scores(rng, rows, N, change, apart)
    return Case(words, (given, Out((rows,))), np.logaddexp.reduce(X, axis=1), 1e-6)


def _any_rows(rng):
    rows, N, apart = map(int, rng.integers((1, 1, 0), (5, 100, 9)))
    hidden = rng.random((rows, N)) < rng.choice([0, 0.3, 0.99])
    offset = rng.choice([-200, 200])  # away from 0, where the relative error of lse would be large
    words = f"{rows} rows of {N} scores"
    return _rows(rng, words, rows, N, lambda X: np.where(hidden, -INF, X * 10 + offset), apart)


def _row_by_row(watch, X, m):
    return _once_in_blocks(watch, X, m) or of_rows(watch, len(X))


def _once_in_blocks(watch, X, lse):
    (rows, N), places = X.shape, max(watch.widest.values())
    if not watch.sees or N <= 256:
        return None
    if places >= N:
        return Finding("row_at_once")
    if places not in (1, 16):
        return Finding("block_size", places=places)
    return Finding("read_again") if max(watch.read.values()) > 1.5 * rows * N else None
