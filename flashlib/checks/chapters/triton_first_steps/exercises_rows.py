"""The exercises on rows of scores, block by block. Triton is imported by the checks, not here."""

from collections.abc import Callable

import numpy as np

from flashlib.checks.chapters.triton_first_steps.exercises import BLOCKS, MODEL, fp32, of_rows
from flashlib.checks.engine import Case, Finding, Known, SideFinding, Verdict, examine, exercise, random_cases
from flashlib.checks.harness.strided import Out, Strided
from flashlib.softmax import summarise_rows

INF = np.inf

APART = np.array([[2000], [0], [-2000]])
SECOND = np.arange(32) // 16  # 1 in the second block


@exercise(title="The first block, and one more", minutes=15, difficulty="medium", program=MODEL)
def online_block(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness.launches import launched

    rng = np.random.default_rng(0)
    cases = [
        _blocks(rng, "one row of 32 scores", 1, 32),
        _blocks(rng, "three rows of 32 scores", 3, 32),
        _blocks(rng, "rows of 21 scores", 2, 21),
        _blocks(rng, "rows of 5 scores, so that the second block is empty", 2, 5),
        _blocks(rng, "rows of 16 scores, so that the second block is empty", 2, 16),
        _blocks(rng, "one score", 1, 1),
        _blocks(rng, "scores far below 0", 2, 21, lambda X: X - 500),
        _blocks(rng, "a second block above the first", 2, 32, lambda X: X + 20 * SECOND),
        _blocks(rng, "a second block below the first", 2, 32, lambda X: X - 20 * SECOND),
        _blocks(rng, "scores near 1000", 2, 32, lambda X: 500 * X),
        _blocks(rng, "rows with gaps between them", 3, 21, apart=7),
        _blocks(rng, "a first maximum of 0", 2, 21, _from_0),
        _blocks(rng, "a second block 11 above the first", 2, 21, lambda X: X * 0 + 1 + 11 * SECOND[:21]),
        _blocks(rng, "a second block of -inf", 2, 23, lambda X: np.where(SECOND[:23] > 0, -INF, X)),
        _blocks(rng, "scores near -3e9", 2, 19, lambda X: X * 1e8 - 3e9),
        _blocks(rng, "rows 2000 apart", 3, 21, lambda X: X + APART),
    ]
    outputs = "m", "l", "m_new", "l_new"
    return examine(launched(answer, _two_blocks), cases + random_cases.cases(_any_blocks), known, outputs=outputs)


def _scores(rng, rows, N, change, apart):
    """Return rows of N scores, exact in fp32, and their stand-in: a matrix with gaps between rows."""
    X = fp32(change(rng.normal(size=(rows, N)).round(2) * 2))
    return X, Strided(X, (N + apart, 1))


def _from_0(X):
    """Return scores whose maximum is 0 in the first block, and above it in the second."""
    top = X[:, :16].max(axis=1, keepdims=True)
    return X - top + 3 * SECOND[: X.shape[1]] * (1 + np.abs(top))


def _blocks(rng, words, rows, N, change=lambda X: X, apart=0):
    """Return the Case of rows of N scores, with m and l after 16 of them, and after all."""
    X, given = _scores(rng, rows, N, change, apart)
    states = [summarise_rows(X[:, :n]) for n in (16, N)]
    expected = tuple(number for state in states for number in (state.m, state.l))
    return Case(words, (given, *[Out((rows,))] * 4), expected, 1e-6)


def _any_blocks(rng):
    rows, N, apart = map(int, rng.integers((1, 1, 0), (5, 33, 9)))
    hidden = rng.random((rows, N)) < rng.choice([0, 0.3, 0.99])
    hidden[:, 0] = False
    words = f"{rows} rows of {N} scores"
    return _blocks(rng, words, rows, N, lambda X: np.where(hidden, -INF, X * 3), apart=apart)


def _two_blocks(watch, X, m, *others):
    (rows, N), places = X.shape, watch.widest["X"]
    if places > 16:
        return SideFinding("row_at_once", places=places)
    again = N == 32 and watch.read["X"] > 1.25 * rows * N  # in a shorter row, offsets may wrap around
    return SideFinding("read_again") if again else of_rows(watch, rows)


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


def _once_in_blocks(watch, X, lse):
    (rows, N), places = X.shape, max(watch.widest.values())
    if not watch.sees or N <= 256:
        return None
    if places >= N:
        return Finding("row_at_once")
    if places not in (1, 16):
        return Finding("block_size", places=places)
    return Finding("read_again") if max(watch.read.values()) > 1.5 * rows * N else None
