"""The exercises of this chapter."""

from collections.abc import Callable
from functools import wraps

import numpy as np

from flashlib.checks.engine import Case, Finding, Known, Measured, Verdict, examine, exercise, random_cases
from flashlib.checks.harness import gradient
from flashlib.checks.harness.gradient import softmax
from flashlib.checks.harness.metered import measured_memory

INF = np.inf
KB = 1024


def lean(answer: Callable, limit: int) -> Callable:
    """Return answer; it reports if more than `limit` bytes are held at once."""

    @wraps(answer)
    def run(*arguments):
        result, most = measured_memory(lambda: answer(*arguments), limit)
        found = Finding("held", kb=most // KB, limit=limit // KB) if most > limit else None
        return Measured(result, found)

    return run


# ---- delta


@exercise(title="One number for each row", minutes=10, difficulty="medium")
def delta(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    plain = [
        _rows(rng, "one row of one", 1, 1),
        _rows(rng, "two rows of two", 2, 2),
        _rows(rng, "three rows of five", 3, 5),
        _rows(rng, "five rows of two", 5, 2, 100),
        _rows(rng, "one row", 1, 4),
        _rows(rng, "no rows", 0, 3),
        _rows(rng, "numbers of 1e-5", 2, 3, times=1e-5),
        _rows(rng, "inputs in fp32", 4, 3, dtype=np.float32),
        *random_cases.cases(lambda rng: _rows(rng, "rows", *rng.integers(1, 40, size=2))),
    ]
    in_fp16 = [
        _rows(rng, "inputs in fp16", 3, 64, dtype=np.float16),
        _rows(rng, "inputs in fp16, whose products are beyond 65504", 2, 3, 400, np.float16),
    ]
    large = [_rows(rng, "many rows", 512, 2)]
    return examine(lean(answer, 512 * KB), [plain, in_fp16, large], known)


def _rows(rng, words, N_q, d, size=1, dtype=float, times=1):
    dO, O = ((rng.normal(size=(N_q, d)) * size).round(1).astype(dtype) * times for _ in range(2))
    terms = dO.astype(float) * O.astype(float)
    size = np.abs(terms).max(initial=0)
    return Case(words, (dO, O), terms.sum(axis=1), 1e-6 if dtype is float else 1e-5, size=size)


# ---- dV and dS


@exercise(title="The gradient of V", minutes=5, difficulty="easy")
def grad_V(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(1)
    plain = [
        _weights(rng, "one query and one key", 1, 1, 1),
        _weights(rng, "two queries and two keys", 2, 2, 2),
        _weights(rng, "two queries and three keys", 2, 3, 2),
        _weights(rng, "five queries and three keys", 5, 3, 4),
        _weights(rng, "as many queries as keys and columns", 4, 4, 4),
        _weights(rng, "one query", 1, 4, 3),
        _weights(rng, "one key", 4, 1, 3),
        _weights(rng, "weights from 1 to less than 1e-9", 3, 6, 2, spread=20),
        _weights(rng, "inputs in fp32", 3, 5, 4, dtype=np.float32),
        *random_cases.cases(lambda rng: _weights(rng, "queries and keys", *rng.integers(1, 30, size=3))),
    ]
    unseen = [
        _weights(rng, "two queries that see no key, so that their rows of P are 0", 5, 3, 2, 2),
        _weights(rng, "fp32 and a query that sees no key", 3, 4, 2, 1, np.float32),
        _weights(rng, "no queries", 0, 3, 2),
    ]
    return examine(answer, [plain, unseen], known)


def _weights(rng, words, N_q, N_k, d, hidden=0, dtype=float, spread=2):
    P, dO = _P(rng, N_q, N_k, hidden, dtype, spread), rng.normal(size=(N_q, d)).round(1).astype(dtype)
    right = np.einsum("rc,re->ce", P.astype(float), dO.astype(float))
    return Case(words, (P, dO), right, 1e-12 if dtype is float else 1e-5)


def _P(rng, N_q, N_k, hidden, dtype, spread=2):
    """Return weights whose first `hidden` rows are 0; spread: the standard deviation of their scores."""
    P = softmax(rng.normal(size=(N_q, N_k)) * spread)
    P[:hidden] = 0
    return P.astype(dtype)


@exercise(title="Back through the softmax", minutes=15, difficulty="medium")
def grad_S(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(2)
    plain = [
        _through_softmax(rng, "one query and two keys", 1, 2),
        _through_softmax(rng, "two queries and two keys", 2, 2),
        _through_softmax(rng, "two queries and five keys", 2, 5),
        _through_softmax(rng, "five queries and three keys", 5, 3, size=100),
        _through_softmax(rng, "as many queries as keys", 4, 4),
        _through_softmax(rng, "one key, which always has the weight 1", 3, 1),
        _through_softmax(rng, "weights from 1 to less than 1e-9", 3, 6, spread=10),
        _gradient("a row whose delta is 0", np.full((2, 2), 0.5), np.array([[1.0, -1.0], [2.0, 1.0]])),
        _through_softmax(rng, "inputs in fp32", 3, 4, dtype=np.float32),
        *random_cases.cases(lambda rng: _through_softmax(rng, "queries and keys", *rng.integers(2, 30, size=2))),
    ]
    unseen = [
        _through_softmax(rng, "two queries that see no key, so that their rows of P are 0", 5, 3, 2),
        _through_softmax(rng, "fp32 and a query that sees no key", 3, 4, 1, dtype=np.float32),
        _through_softmax(rng, "no queries", 0, 3),
    ]
    large = [_through_softmax(rng, "many keys", 4, 256)]
    return examine(lean(answer, 256 * KB), [plain, large, unseen], known)


def _through_softmax(rng, words, N_q, N_k, hidden=0, size=1, dtype=float, spread=2):
    P = _P(rng, N_q, N_k, hidden, dtype, spread)
    dP = ((rng.normal(size=(N_q, N_k)) * size).round(1) + size).astype(dtype)
    return _gradient(words, P, dP, dtype)


def _gradient(words, P, dP, dtype=float):
    N_q, N_k = P.shape
    rows = [(np.diag(p) - np.outer(p, p)) @ dp for p, dp in zip(P.astype(float), dP.astype(float), strict=True)]
    right = np.array(rows).reshape(N_q, N_k) if N_k > 1 else np.zeros((N_q, 1))
    return Case(words, (P, dP), right, 1e-9 if dtype is float else 1e-5, size=np.abs(P * dP).max(initial=0))


# ---- a tile of P


@exercise(
    title="A tile of P from lse",
    minutes=10,
    difficulty="easy",
    optional=True,
    program=gradient.tile_of_P("my_recompute_P(Q_i, K_j, lse_i, scale)", "seen = lse_i[:, None] > -np.inf"),
)
def recompute_P(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(3)
    plain = [
        _tile(rng, "1 row and 1 of 2 keys", 1, 2, 1, 1),
        _tile(rng, "2 rows and 2 of 4 keys", 2, 4, 2, 2),
        _tile(rng, "3 rows and 2 of 5 keys", 3, 5, 2, 4),
        _tile(rng, "2 rows and 4 of 7 keys", 2, 7, 4, 3),
        _tile(rng, "1 row and all of its 3 keys", 1, 3, 3, 2),
        _tile(rng, "2 rows and 2 of 3 keys, scale 0.5", 2, 3, 2, 2, scale=0.5),
        _tile(rng, "inputs in fp32", 4, 6, 4, 3, dtype=np.float32),
        *random_cases.cases(_any_tile),
    ]
    large = [
        _tile(rng, "scores near 900", 3, 5, 3, 2, 900),
        _tile(rng, "scores near -900", 3, 5, 3, 2, -900),
        _tile(rng, "scores near -20000", 3, 5, 3, 2, -20000),
        _tile(rng, "scores near -1000000", 3, 5, 3, 2, -1e6),
        _tile(rng, "rows 1800 apart", 3, 5, 3, 2, 1800, apart=True),
        _given("a row whose lse is 0", [[1.0], [2.0]], [[-np.log(2)]], [0.0, -np.log(2)], [[0.5], [0.5]]),
        _given("a weight of exp(-25)", [[1.0]], [[0.0]], [25.0], [[np.exp(-25)]]),
    ]
    unseen = [
        _tile(rng, "2 rows, of which one sees no key", 2, 3, 2, 2, hidden=1),
        _tile(rng, "3 rows, of which one sees no key", 3, 5, 2, 2, hidden=1),
        _tile(rng, "2 rows that see no key", 2, 4, 2, 2, hidden=2),
        _tile(rng, "fp32 and a row that sees no key", 3, 4, 4, 2, hidden=1, dtype=np.float32),
        _tile(rng, "scores near -900 and a row that sees no key", 3, 5, 3, 2, -900, 1),
        _tile(rng, "rows 1800 apart and one that sees no key", 4, 5, 3, 2, 1800, 1, apart=True),
    ]
    return examine(answer, [plain, large, unseen], known)


def _given(words, Q_i, K_j, lse_i, P_ij):
    """Return the Case of a tile given as lists, with scale 1."""
    return Case(words, (*(np.array(X) for X in (Q_i, K_j, lse_i)), 1.0), np.array(P_ij))


def _tile(rng, words, B_r, N_k, B_c, d, offset=0, hidden=0, dtype=float, scale=0.375, apart=False):
    """Return the Case of the last B_c of N_k keys.

    offset: of all scores; apart: only of the last row's scores, and far less for the others. hidden: how many rows
    see no key.
    """
    Q_i, K = (rng.normal(size=(N, d)).round(1) for N in (B_r, N_k))
    if offset:
        Q_i[:, -1], K[:, -1] = np.linspace(-1, 1, B_r) if apart else 1, offset / scale
    S = Q_i @ K.T * scale
    m = S.max(axis=1)
    lse = m + np.log(np.exp(S - m[:, None]).sum(axis=1))
    S[:hidden], lse[:hidden] = -INF, -INF
    arguments = [X.astype(dtype) for X in (Q_i, K[-B_c:], lse)]
    return Case(words, (*arguments, scale), softmax(S)[:, -B_c:], 1e-9 if dtype is float else 1e-5)


def drawn_scale(rng: np.random.Generator) -> float:
    """Return a random scale other than 1."""
    return int(rng.integers(1, 10)) / 10


def _any_tile(rng):
    B_r, d = rng.integers(1, 12, size=2)
    B_c, others = rng.integers(1, 12, size=2)
    return _tile(
        rng, f"{B_r} rows and {B_c} of {B_c + others} keys", B_r, B_c + others, B_c, d, scale=drawn_scale(rng)
    )
