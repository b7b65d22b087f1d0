"""The exercises on the log-sum-exp."""

from collections.abc import Callable

import numpy as np

from flashlib.checks.chapters.softmax.exercises_safe import UNGUARDED, row_program, row_stages, with_finding
from flashlib.checks.engine import Case, Known, Verdict, examine, exercise, random_cases

INF = np.inf
LOG_SOFTMAX = row_program("my_log_softmax(x)", "x - m - np.log(some)", "S = x[None]")


def _lse(row):
    """Return the exact log-sum-exp of a row."""
    return np.logaddexp.reduce(row, initial=-INF)


@exercise(
    title="Log-sum-exp of each row",
    minutes=10,
    difficulty="easy",
    program=row_program("my_logsumexp(S)", "m + np.log(some)"),
    variants=(UNGUARDED,),
)
def logsumexp(answer: Callable, known: Known) -> Verdict:
    answer = with_finding(answer, "finite", lambda S, lse: np.isfinite(lse[(S == -INF).all(axis=1)]))
    return examine(answer, row_stages(_lse), known)


@exercise(
    title="The logarithm of softmax",
    minutes=5,
    difficulty="easy",
    program=LOG_SOFTMAX,
    variants=(UNGUARDED,),
    optional=True,
)
def log_softmax(answer: Callable, known: Known) -> Verdict:
    finite = (
        ("a single score", [2.0]),
        ("two equal scores", [1.0, 1.0]),
        ("three scores", [0.0, -1.0, 2.0]),
        ("the largest score twice", [3.0, 1.0, 3.0, -2.0]),
        ("a weight that underflows", [0.0, -2000.0, 1000.0]),
        ("the largest score first", [1000.0, 0.0, -2000.0]),
        ("scores near -800", [-800.0, -801.0]),
        ("scores near -1000", [-1000.0, -1001.0]),
        ("scores up to a million", [1e6, 999999.0, -1e6, 3.0, 999998.5]),
        ("scores near -1000000", [-1e6, 1 - 1e6]),
    )
    masked = (
        ("a masked score", [0.5, -INF, 1.5, -INF]),
        ("a masked score first", [-INF, -20000.0]),
        ("masked and equal scores", [-INF, 700.0, 700.0, -INF, -700.0]),
    )
    small = _logarithms("a second score 18 below the first", [0.0, -18.0])._replace(tolerance=1e-12)
    stages = [
        [*(_logarithms(*row) for row in finite), small, *random_cases.cases(lambda rng: _any_row(rng, 0))],
        [_logarithms(*row) for row in masked] + random_cases.cases(lambda rng: _any_row(rng, 0.3)),
    ]
    answer = with_finding(answer, "masked_is_finite", lambda x, result: np.isfinite(result[x == -INF]))
    return examine(answer, stages, known)


def _logarithms(words, row):
    x = np.array(row)
    return Case(words, (x,), x - _lse(x), 1e-9 if np.abs(x[x > -INF]).max() > 10 else 1e-10)


def _any_row(rng, masked):
    x = rng.normal(size=rng.integers(17, 80)) * rng.choice([1, 100, 3000])
    x[1:][rng.random(len(x) - 1) < masked] = -INF
    return _logarithms(f"{len(x)} scores", x)
