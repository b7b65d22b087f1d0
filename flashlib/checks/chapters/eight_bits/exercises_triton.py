"""The exercise in Triton, which is imported by the check: macOS and Windows lack it."""

from collections.abc import Callable
from functools import partial

import numpy as np

from flashlib import lowbit
from flashlib.checks.engine import Case, Finding, Known, Verdict, examine, exercise, random_cases, written
from flashlib.checks.harness.strided import Out, Strided


@exercise(
    title="A kernel that quantises",
    minutes=20,
    difficulty="medium",
    program=partial(written, lowbit=lowbit),
    optional=True,
)
def quantise_rows(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness.launches import launched

    rng = np.random.default_rng(0)
    cases = [
        _rows("one row of two numbers", [[254.0, 99.3]]),
        _rows("a row whose largest number is negative", [[-254.0, 99.3]]),
        _rows("a row of four negative numbers", [[-63.5, -20.3, -30.1, -254.0]]),
        _rows("rows of three numbers of different sizes", [[-63.5, 20.3, 30.1], [50.2, 254.0, -9.1]]),
        _rows("a scale of many digits", [[100.03, 33.3, -7.1]]),
        _rows("small numbers", [[1e-5, -3e-6, 7.3e-6]]),
        _rows("very small numbers", [[-2.1e-15, 1e-15, 3e-16]]),
        _rows("halves: 0.5, 1.5, 2.5 and their negatives", [[127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5]]),
        _rows("16 numbers", _drawn(rng, 3, 16)),
        _rows("rows of X with gaps between them", _drawn(rng, 3, 5), X_apart=4),
        _rows("rows of X8 with gaps between them", _drawn(rng, 3, 5), X8_apart=4),
        _rows("20 rows of 33", _drawn(rng, 20, 33), X_apart=2),
        _rows("two rows of 300", _drawn(rng, 2, 300)),
        *random_cases.cases(_any_rows),
    ]
    zeros = [_rows("a row of zeros", [[127.0, -20.3, 3.2], [0.0, 0.0, 0.0]])]
    return examine(launched(answer, _a_row_each), [cases, zeros], known, outputs=("X8", "scale"))


def _rows(words, X, X_apart=0, X8_apart=0):
    X = np.array(X, np.float32).astype(np.float64)
    N, d = X.shape
    top = np.sort(np.abs(X), axis=1)[:, -1]
    scale = np.where(top > 0, top / 127, 1)
    X8 = np.array([[round(x / s) for x in row] for row, s in zip(X.tolist(), scale.tolist(), strict=True)], float)
    arguments = Strided(X, (d + X_apart, 1)), Out((N, d), (d + X8_apart, 1)), Out((N,))
    return Case(words, arguments, (X8, scale), 1e-6)


def _drawn(rng, N, d):
    """Return N rows of numbers that round in fp32 as in fp64: none of them divided by its scale is near a tie."""
    steps = rng.integers(-126, 127, (N, d)) + rng.uniform(-0.4, 0.4, (N, d))
    steps[:, rng.integers(d)] = 127 * rng.choice([-1, 1], N)
    return steps * rng.uniform(1, 2, (N, 1)) * 2.0 ** rng.integers(-9, 9, (N, 1))


def _any_rows(rng):
    N, d, *apart = map(int, rng.integers((1, 2, 0, 0), (5, 40, 9, 9)))
    return _rows(f"{N} rows of {d}", _drawn(rng, N, d), *apart)


def _a_row_each(watch, X, X8, scale):
    rows = len(X)
    return Finding("programs", n=watch.programs, rows=rows) if watch.sees and watch.programs < rows else None
