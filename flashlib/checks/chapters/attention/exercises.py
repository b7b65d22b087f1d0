"""The exercises of this chapter."""

import math
from collections.abc import Callable
from functools import wraps
from numbers import Rational

import numpy as np

from flashlib import naive
from flashlib.checks.engine import Case, Finding, Known, Verdict, examine, exercise, inspected, random_cases
from flashlib.checks.engine.equality import same
from flashlib.checks.engine.value_text import describe_value

CLOSE = 1e-10  # relative error of fp64


@exercise(title="How long a text fits?", minutes=5, difficulty="easy", optional=True)
def longest(answer: Callable, known: Known) -> Verdict:
    fixed = [
        _fits("one matrix of one item, twice", 2, 1, 1),
        _fits("a capacity that is used to the last byte", 2400, 3, 4),
        _fits("one byte less than that", 2399, 3, 4),
        _fits("one byte more", 2401, 3, 4),
        _fits("some bytes more", 2400 + 3 * 24, 3, 4),
        _fits("one head", 1000, 1, 2),
        _fits("a capacity too small for one token", 10, 8, 4),
        _fits("no capacity", 0, 1, 1),
        _fits("a GPU of 80 GB, 32 heads in fp16", 80 * 10**9, 32, 2),
        _fits("2 TB less a byte", 2 * 10**12 - 1, 1, 1),
        _fits("a GPU of 24 GB, 12 heads in fp32", 24 * 10**9, 12, 4),
    ]
    return examine(inspected(answer, _is_whole), fixed + random_cases.cases(_any_fit, 4), known)


def _fits(words, capacity, H, itemsize):
    return Case(words, (capacity, H, itemsize), math.isqrt(capacity // (2 * H * itemsize)), tolerance=0)


def _any_fit(rng):
    H, itemsize, N = int(rng.integers(1, 65)), int(2 ** rng.integers(4)), int(rng.integers(2, 30000))
    room = int(rng.choice([-1, 0, rng.integers(2 * N)]))  # S and P of N + 1 tokens need 2 N + 1 more items each
    return _fits(f"{H} heads and items of {itemsize} bytes", 2 * H * itemsize * (N * N + room), H, itemsize)


def _is_whole(N, *_):
    if isinstance(N, Rational | np.integer | np.ndarray):
        return None
    return Finding("no_int", N=f"the float {N}" if isinstance(N, float) else describe_value(N))


@exercise(title="A sliding window", minutes=10, difficulty="easy")
def window(answer: Callable, known: Known) -> Verdict:
    fixed = [
        _seen("one query and one key", 1, 1, 1),
        _seen("as many queries as keys", 4, 4, 2),
        _seen("a window of one key", 3, 3, 1),
        _seen("fewer queries than keys", 2, 5, 3),
        _seen("more queries than keys", 5, 2, 1),
        _seen("more queries than keys and a wider window", 7, 5, 3),
        _seen("a window wider than the text", 3, 5, 9),
    ]
    return examine(inspected(answer, _is_mask), fixed + random_cases.cases(_any_window, 4), known)


def _seen(words, N_q, N_k, w):
    past = N_k - N_q
    seen = [[r + past - w < c <= r + past for c in range(N_k)] for r in range(N_q)]
    return Case(words, (N_q, N_k, w), np.array(seen))


def _any_window(rng):
    N_q, N_k, w = rng.integers(1, [20, 20, 12]).tolist()
    return _seen(f"{N_q} queries, {N_k} keys and a window of {w}", N_q, N_k, w)


def _is_mask(mask, *_):
    if not isinstance(mask, np.ndarray):
        return Finding("no_array", given=describe_value(mask))
    return None if mask.dtype == bool else Finding("numbers", dtype=mask.dtype)


UNGUARDED = "np.where(m == -np.inf, 0, m) -> m; np.where(l == 0, 1, l) -> l"  # right too: every query sees a key


@exercise(title="Causal attention", minutes=20, difficulty="medium", variants=(UNGUARDED,))
def causal_attention(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(3)
    K, V = -1 - rng.random((4, 2)).round(3) / 100, rng.random((4, 2)).round(2)
    K[3] = 1  # hidden from all but the last query, and larger than all that the others see
    fp64 = [
        _random(rng, "one query and one key", 1, 1, 2),
        _random(rng, "two queries and two keys", 2, 2, 2),
        _random(rng, "as many queries as keys", 3, 3, 2),
        _random(rng, "fewer queries than keys", 2, 5, 3),
        _random(rng, "scores in the hundreds", 5, 7, 4, times=1000),
        _random(rng, "scores in the thousands", 4, 4, 3, times=10000),
        _attention("scores that are all equal", np.zeros((3, 2)), K[:3], V[:3]),
        _attention("scores near -20000", np.full((3, 2), 14142.0), K[:3] + np.arange(3)[:, None] / 1e5, V[:3]),
        _random(rng, "one column", 3, 4, 1),
        _attention("rows whose scores are far apart", np.array([[0.0, 0], [800, 0], [1600, 0]]), K, V),
        _attention(
            "a key 18 below the other", np.full((2, 2), 1.0), np.array([[0.0, 0], [-25.0, 0]]), 50.0 ** V[:2]
        ),
        _attention("a value of 0", np.eye(3, 2), K[:3], V[:3] * [[0], [1], [1]]),
    ]
    fp32 = [
        _random(rng, "inputs in fp32", 4, 6, 5, dtype=np.float32),
        _random(rng, "inputs in fp32 and one query", 1, 5, 3, dtype=np.float32),
    ]
    stages = [fp64 + random_cases.cases(_any_attention), fp32]
    return examine(inspected(_in_dtype_of_Q(answer), _is_exact), stages, known)


def _attention(words, Q, K, V):
    O = _exact(Q, K, V)
    return Case(words, (Q, K, V), O, 1e-5 if Q.dtype == np.float32 else CLOSE)


def _exact(*inputs):
    return naive.attention(*(X.astype(float) for X in inputs), causal=True).O


def _random(rng, words, N_q, N_k, d, times=1, dtype=float):
    Q, K = (rng.normal(size=(N, d)).round(2) for N in (N_q, N_k))
    V = rng.uniform(1, 5, size=(N_k, d)).round(2)
    return _attention(words, *(X.astype(dtype) for X in (Q * times, K, V)))


def _any_attention(rng):
    N_q, N_k = sorted(rng.integers(1, 12, size=2))
    d, times = rng.integers(1, 10), rng.choice([1, 30, 1000])
    return _random(rng, f"{N_q} queries, {N_k} keys and d = {d}", N_q, N_k, d, times)


def _in_dtype_of_Q(answer):
    """Return answer, with results of other float types in the dtype of Q: attention is judged, not promotion.

    In NumPy 2, 1 / np.sqrt(d) turns fp32 into fp64. A result in a type of fewer digits must be right to these.
    """

    @wraps(answer)
    def run(Q, K, V):
        exact = _exact(Q, K, V)
        O = answer(Q, K, V)
        if not isinstance(O, np.ndarray) or O.dtype.kind != "f" or O.dtype == Q.dtype:
            return O
        return (exact if same(O, exact, float(8 * np.finfo(O.dtype).eps)) else O).astype(Q.dtype)

    return run


def _is_exact(O, Q, K, V):
    if not isinstance(O, np.ndarray):
        return Finding("no_array", given=describe_value(O))
    exact = _exact(Q, K, V)
    if Q.dtype == float and not same(O, exact, CLOSE) and same(O, exact, 1e-4):
        return Finding("inexact")
    return None
