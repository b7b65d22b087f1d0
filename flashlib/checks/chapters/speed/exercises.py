"""The exercises about kernels. Triton is imported by the checks: macOS and Windows lack it."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from flashlib.checks.engine import Case, Known, Verdict, examine, exercise, random_cases, written
from flashlib.checks.harness import update
from flashlib.softmax import State, summarise_rows

INF = np.inf
LN2 = np.log(2)
IN_BASE_2 = {
    "np.exp(": "np.exp2(",
    "np.log(": "np.log2(",
    "Q_i @ K_j.T": "S",
    "K_j = K_j": "half = V_j.dtype",
    "V_j = V_j": "V_j = V_j.astype(np.float32)",
}
STEP = "step(S, V_j, m_old, l_old, O_acc_old, scale, seen=True)"


def _base_2(text, **names):
    """Return the ProgramText of a loop whose update is in base 2."""
    return update.looped(text, signature=STEP, **names).in_terms(IN_BASE_2)


def _state(S, V, scale_log2e):
    """Return m in base 2, l and O_acc of rows of unscaled scores."""
    m, l, O_acc = summarise_rows(S * scale_log2e * LN2, V)
    return m / LN2, l, O_acc


@exercise(title="The update in base 2", minutes=25, difficulty="medium", program=_base_2)
def base_2(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness.launches import examine_kernel
    from flashlib.checks.harness.parts import updated

    stages = [
        [
            _scores("one tile", 16),
            _scores("two tiles", 32),
            _scores("two tiles, in which some scores are -inf", 32, hidden=0.4),
            _scores("large scores", 32, size=64, tolerance=1e-3),
            _scores("scores far below 0", 32, size=2**22, lowest=2**36, tolerance=1e-3),
            *random_cases.cases(lambda rng: _any_scores(rng, 16, 16), 2),
        ],
        [
            _scores("two tiles of 16 x 32", 64, 32, hidden=0.4),
            *random_cases.cases(lambda rng: _any_scores(rng, *rng.choice([16, 32], 2)), 2),
        ],
        [
            _scores("rows that see nothing in the first tile, or at all", 32, hidden=0.4, blind=True),
            *random_cases.cases(lambda rng: _any_scores(rng, 16, 16, blind=True), 1),
        ],
        [
            _scores("v in fp16, all of it 0", 32, dtype=np.float16, v=0),
            _scores("v in fp16, and sums beyond 65504", 64, size=1 / 8, dtype=np.float16, v=2**14, tolerance=1e-3),
        ],
    ]
    return examine_kernel(answer, updated, stages, known, outputs=State._fields)


def _scores(
    words, N_k, B_C=16, d=16, *, scale=0.75, size=1, v=1, lowest=0, hidden=0.0, blind=False,
    dtype=np.float32, tolerance=1e-5, rng=None,
):  # fmt: skip
    """Return the Case of 16 rows of scores, exact in fp32 before and after scaling.

    size, v: factors for scores and V. lowest: how far below 0 all scores are.
    """
    rng = rng or np.random.default_rng(0)
    S = rng.integers(-2560, 2561, (16, N_k)) * size / 256
    S[::4, B_C:] /= 8  # the largest score of these rows is in the first tile
    S -= lowest
    steps = 16 if dtype is np.float16 else 2**14  # in 1: more bits than fp16 has
    V = rng.integers(-1.5 * steps, 1.5 * steps + 1, (N_k, d)) / steps
    V = (np.abs(V) if v > 1 else V) * v
    visible = rng.random(S.shape) >= hidden
    visible[:, ::B_C] = True
    if blind:
        visible[3, :B_C] = visible[5] = False
    S = np.where(visible, S, -INF)
    arguments = S.astype(np.float32), V.astype(dtype), scale, B_C
    return Case(words, arguments, _state(S, V, scale), tolerance)


def _any_scores(rng, B_C, d, **options):
    n, scale, hidden = rng.integers(1, 4), float(rng.integers(1, 24) / 16), rng.integers(0, 8) / 10
    words = f"{n} tiles of 16 x {B_C} and d = {d}"
    return _scores(words, int(n * B_C), int(B_C), int(d), scale=scale, hidden=hidden, rng=rng, **options)


@exercise(
    title="From base 2 to lse",
    minutes=10,
    difficulty="easy",
    program=partial(written, math=math, LN2=LN2),
    optional=True,
)
def lse_from_base_2(answer: Callable, known: Known) -> Verdict:
    finite = (
        ("one row", [4.0], [2.0]),
        ("l = 1", [3.0], [1.0]),
        ("three rows", [4.0, -3.5, 0.0], [2.0, 1.25, 7.0]),
        ("m_2 = 2000, whose power of 2 overflows", [2000.0, -2000.0], [1.5, 9.0]),
        ("m_2 = -20000", [-20000.0], [3.0]),
        ("no rows", [], []),
    )
    unseen = _unscaled("a row that sees no key", [0.5, -INF], [3.0, 0.0])
    stages = [
        [*(_unscaled(*row) for row in finite), *random_cases.cases(_any_rows)],
        [unseen, _unscaled("no row sees a key", [-INF, -INF], [0.0, 0.0])],
    ]
    return examine(answer, stages, known)


def _unscaled(words, m_2, l):
    """Return the Case of rows, with lse computed in base e."""
    m_2, l = np.array(m_2), np.array(l)
    with np.errstate(divide="ignore"):
        return Case(words, (m_2, l), m_2 * LN2 + np.log(l), dtype=np.float64)


def _any_rows(rng):
    n = rng.integers(1, 20)
    return _unscaled(f"{n} rows", rng.normal(size=n).round(2) * 50, (rng.random(n) * 99 + 1).round(2))


def _rows(X, c, past):
    """Return rows c of X, filled with `past` after its end and with nan before its beginning."""
    found = np.full((len(c), X.shape[1]), past, X.dtype)
    inside = (c >= 0) & (c < len(X))
    found[inside], found[c < 0] = X[c[inside]], np.nan
    return found


def _tail(text):
    """Return the ProgramText of a loop over pointers to K and V, with maxima as in the interpreter."""
    looped = _base_2(text, rows=_rows)
    return looped.edited("shift = m; m = np.maximum(m_old, np.fmax.reduce(S_ij, axis=1))")


@exercise(
    title="A mask for the tail only",
    minutes=35,
    difficulty="medium",
    program=_tail,
    variants=("m = np.fmax(m_old, np.fmax.reduce(S_ij, axis=1))",),  # as on GPUs
)
def tail(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness.launches import examine_kernel
    from flashlib.checks.harness.parts import over_keys

    words = (("one key", 1), ("fewer keys than a tile", 5), ("one whole tile", 16), ("two whole tiles", 32))
    words += (("a key more than a tile", 17), ("two whole tiles and a tail", 43))
    cases = [_keys(text, N_k) for text, N_k in words] + [_keys("tiles of 32 keys and a tail", 85, 32)]
    cases.append(_keys("two whole tiles and a tail, and scores far below 0", 43, size=2**31))
    cases.append(_keys("a row of zeros as the last key, so that its scores are 0", 19, last=0))
    stages = [cases + random_cases.cases(_any_keys, 2), [_keys("no key at all", 0)]]
    return examine_kernel(answer, over_keys, stages, known, outputs=State._fields)


def _keys(words, N_k, B_C=16, d=16, scale=0.75, rng=None, size=1, last=1):
    """Return the Case of 16 queries and N_k keys, whose scores are exact in fp32, and all below 0 in some rows.

    size: the size of Q. last: factor for the last row of K.
    """
    rng = rng or np.random.default_rng(0)
    Q_i = rng.integers(-6, 7, (16, d)) / 4
    K, V = rng.integers(-6 * 2**10, 6 * 2**10 + 1, (2, N_k, d)) / 2**12  # more bits than fp16 has
    Q_i[::4], Q_i[1::4], K[:, 0] = 0, 0, np.abs(K[:, 0]) + 1
    Q_i[::4, 0], Q_i[1::4, 0] = -1.5, 1.5  # all scores of these rows have the same sign
    Q_i *= size
    K[-1:] *= last
    arguments = *(X.astype(np.float32) for X in (Q_i, K, V)), scale, B_C
    return Case(words, arguments, _state(Q_i @ K.T, V, scale), 1e-5)


def _any_keys(rng):
    B_C, d = map(int, rng.choice([16, 32], 2))
    N_k = int(rng.integers(1, 5 * B_C))
    return _keys(f"{N_k} keys in tiles of {B_C}, d = {d}", N_k, B_C, d, float(rng.integers(1, 24) / 16), rng)
