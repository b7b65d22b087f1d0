"""The exercises on scores that change, and on sinks."""

from collections.abc import Callable

import numpy as np

from flashlib.checks.engine import Case, Known, Verdict, examine, exercise, random_cases
from flashlib.checks.harness import update
from flashlib.softmax import summarise_rows

INF = np.inf


# ---- ALiBi


@exercise(title="ALiBi on a tile", minutes=10, difficulty="easy", optional=True)
def alibi_tile(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    cases = [
        _penalised(rng, "one score", 0, 1, 0, 1, 1, 1),
        _penalised(rng, "a first tile of 2 x 2", 0, 2, 0, 2, 4, 4),
        _penalised(rng, "a tile below the diagonal", 4, 6, 0, 2, 6, 6),
        _penalised(rng, "a tile above the diagonal", 0, 2, 3, 6, 6, 6),
        _penalised(rng, "a tile of 3 x 2 on the diagonal", 3, 6, 4, 6, 8, 8),
        _penalised(rng, "fewer queries than keys", 1, 3, 4, 7, 3, 9),
        _penalised(rng, "more queries than keys", 2, 5, 1, 3, 9, 4),
        _penalised(rng, "a slope of 0.3 and keys far away", 290, 293, 0, 4, 300, 300, slope=0.3),
        *random_cases.cases(_any_penalised),
    ]
    return examine(answer, cases, known)


def _penalised(rng, words, r0, r1, c0, c1, N_q, N_k, slope=0.25):
    S, past = rng.normal(size=(r1 - r0, c1 - c0)).round(1), N_k - N_q
    right = [[S[r - r0, c - c0] - slope * abs(r + past - c) for c in range(c0, c1)] for r in range(r0, r1)]
    return Case(words, (S, slice(r0, r1), slice(c0, c1), past, slope), np.array(right))


def _any_penalised(rng):
    N_q, N_k = map(int, rng.integers(2, 40, 2))
    (r0, r1), (c0, c1) = (sorted(map(int, rng.choice(N + 1, 2, replace=False))) for N in (N_q, N_k))
    slope = float(rng.integers(1, 100)) / 128
    return _penalised(rng, f"{N_q} queries and {N_k} keys", r0, r1, c0, c1, N_q, N_k, slope)


# ---- the gradient under a soft cap


@exercise(title="The gradient under a soft cap", minutes=15, difficulty="medium")
def capped_gradient(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(1)
    plain = [
        _gradient(rng, "one query and 1 of 2 keys", 1, 2, 1),
        _gradient(rng, "two queries and 2 of 4 keys", 2, 4, 2),
        _gradient(rng, "2 queries and 3 of 5 keys, some of them seen", 2, 5, 3, hidden=0.4),
        _gradient(rng, "3 queries and 4 keys, some of them seen", 3, 4, 4, hidden=0.4),
        _gradient(rng, "another cap", 3, 5, 3, cap=1.5, hidden=0.3),
        _gradient(rng, "scores far beyond the cap", 3, 5, 3, size=400.0, hidden=0.3),
        _gradient(rng, "scores of 0 among others", 2, 5, 3, zero=True),
        _gradient(rng, "small weights", 2, 6, 4, cap=30.0, size=12.0),
        *random_cases.cases(_any_gradient),
    ]
    large = [
        _large_gradient(rng, "scores near 1500 and a cap of 2", 2.0),
        _large_gradient(rng, "scores near 1500 and a cap of 1000", 1000.0),
        _large_gradient(rng, "scores near 20000 and a cap of 30000", 30000.0, 20000),
    ]
    unseen = [
        _gradient(rng, "a query that sees no key of this tile", 3, 6, 3, hidden=0.3, blind="here"),
        _gradient(rng, "a query that sees no key at all", 3, 6, 3, hidden=0.3, blind="at all"),
    ]
    return examine(answer, [plain, large, unseen], known)


def _gradient(rng, words, B_r, N_k, B_c, *, cap=5.0, size=4.0, hidden=0.0, blind="", zero=False):
    S = (rng.normal(size=(B_r, N_k)) * size).round(1)
    dP = rng.normal(size=(B_r, N_k)).round(1)
    seen = rng.random((B_r, N_k)) >= hidden
    seen[:, 0] = seen[:, -1] = True
    if zero:
        S[:, -1] = 0
    if blind:
        seen[1, -B_c:] = False
        seen[1] &= blind == "here"
    return _gradient_of(words, S, dP, seen, B_c, cap)


def _large_gradient(rng, words, cap, size=1500):
    """Return a Case of scores near 0, `size` and -size, with hidden ones near -size and size among them."""
    S, dP = rng.normal(size=(3, 5)).round(1), rng.normal(size=(3, 5)).round(1)
    near = np.array([[0, 0, 0, 0, 0], [1, 1, 1, -1, 1], [-1, -1, -1, 1, -1]]) * size
    return _gradient_of(words, S + near, dP, near == near[:, :1], 3, cap)


def _gradient_of(words, S, dP, seen, B_c, cap):
    """Return the Case of the last B_c keys, with the gradient from the Jacobian of each row."""
    capped = np.where(seen, cap * np.tanh(S / cap), -INF)
    m = np.where(seen.any(axis=1), capped.max(axis=1), 0)
    E = np.exp(capped - m[:, None])
    l = E.sum(axis=1)
    P = E / np.where(l == 0, 1, l)[:, None]
    with np.errstate(divide="ignore"):
        lse = m + np.log(l)
    rows = [(np.diag(p) - np.outer(p, p)) @ g for p, g in zip(P, dP, strict=True)]
    right = np.array(rows) / np.cosh(np.minimum(np.abs(S / cap), 300)) ** 2
    here = slice(S.shape[1] - B_c, None)
    arguments = S[:, here], dP[:, here], lse, (P * dP).sum(axis=1), seen[:, here], cap
    return Case(words, arguments, right[:, here], size=np.abs(dP).max())  # dP and delta may cancel


def _any_gradient(rng):
    B_r, B_c, others = map(int, rng.integers(1, 9, 3))
    cap, hidden = float(rng.integers(2, 20)) / 2, float(rng.choice([0, 0.3]))
    return _gradient(rng, f"{B_r} queries and {B_c} keys", B_r, B_c + others, B_c, cap=cap, hidden=hidden)


# ---- a sink


@exercise(title="Attention with a sink", minutes=10, difficulty="medium")
def sink(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(2)
    plain = [
        _sunk(rng, "one row of one column", 1, 2, 1, 0.0),
        _sunk(rng, "two rows of two columns", 2, 3, 2, 1.0),
        _sunk(rng, "three rows and a sink of -1.5", 3, 5, 2, -1.5),
        _sunk(rng, "as many rows as columns", 4, 6, 4, 0.5),
        _sunk(rng, "a sink far above the scores", 2, 4, 3, 20.0),
        _sunk(rng, "a sink far below the scores", 2, 4, 3, -20.0),
        _sunk(rng, "a sink of -8", 2, 4, 3, -8.0),
        *random_cases.cases(_any_sunk),
    ]
    large = [
        _sunk(rng, "scores near 1000 and a sink of 1000", 3, 4, 2, 1000.0, at=1000),
        _sunk(rng, "scores near -1000 and a sink of -1000", 3, 4, 2, -1000.0, at=-1000),
    ]
    unseen = [_sunk(rng, "a row that sees no key", 3, 4, 2, 0.5, blind=True)]
    far = [
        _sunk_far(rng, "rows near 1000 and -1000 and a sink of -1000", [1000.0, -1000.0], -1000.0),
        _sunk_far(rng, "lse = -1000 and a sink of 0", [-1000.0], 0.0),
        _sunk_far(rng, "lse = 1000 and a sink of 0", [1000.0], 0.0),
        _sunk_far(rng, "lse = 20 and a sink of -1000", [20.0], -1000.0),
        _sunk_far(rng, "lse = -1e6 and a sink of -1e6", [-1e6], -1e6),
        _sunk_far(rng, "an lse of 0 next to others", [0.0, 1.5], 1.0),
        _sunk_far(rng, "values that are 0", [1.5, -0.5], 1.0, v=0),
    ]
    return examine(answer, [plain, large, unseen, far], known, outputs=("O_new", "lse_new"))


def _any_sunk(rng):
    N_q, N_k, d = map(int, rng.integers(2, 9, 3))
    return _sunk(rng, f"{N_q} rows", N_q, N_k, d, float(rng.integers(-20, 21)) / 8)


def _sunk(rng, words, N_q, N_k, d, sink, at=0.0, blind=False):
    """Return the Case of attention to N_k keys and one more, whose score is the sink and whose value is 0."""
    S, V = rng.normal(size=(N_q, N_k)).round(1) + at, rng.normal(size=(N_k, d)).round(1)
    if blind:
        S[1] = -INF
    O, lse = _attended(S, V)
    right = _attended(np.column_stack([S, np.full(N_q, sink)]), np.vstack([V, np.zeros(d)]))
    return Case(words, (O, lse, sink), right)


def _sunk_far(rng, words, lse, sink, v=1):
    """Return the Case of rows with these lse, each of one key; v: factor for the values."""
    O, lse = rng.normal(size=(len(lse), 2)).round(1) * v, np.array(lse)
    rows = [_attended(np.array([[x, sink]]), np.array([o, 0 * o])) for o, x in zip(O, lse, strict=True)]
    return Case(words, (O, lse, sink), tuple(map(np.concatenate, zip(*rows, strict=True))))


def _attended(S, V):
    return update.finished(summarise_rows(S, V))
