"""The exercises on the safe softmax."""

import contextlib
from collections.abc import Callable
from functools import wraps

import numpy as np

from flashlib.checks.engine import (
    Case,
    Finding,
    Known,
    Measured,
    Verdict,
    defined,
    examine,
    exercise,
    inspected,
    random_cases,
)
from flashlib.checks.engine.value_text import describe, show
from flashlib.checks.harness.metered import MeteredArray

INF = np.inf


LINES = """
m = S.max(axis=1, initial=-np.inf)
shift = np.where(m == -np.inf, 0, m)
P = np.exp(S - shift[:, None])
l = P.sum(axis=1)
some = np.where(l == 0, 1, l)
"""
UNGUARDED = "some = l"


def _program(head, result, rows=""):
    """Return the ProgramText of a function that returns `result`; rows: lines that define the rows of scores S."""
    return defined(head, f"{rows}{LINES}result = {result}", "return result")


def _weights(row):
    """Return the exact softmax of a row, or zeros if the whole row is masked."""
    terms = np.exp(row - max(row.max(initial=-INF), -1e300))
    return terms / (terms.sum() or 1)


def _lse(row):
    """Return the exact log-sum-exp of a row."""
    return np.logaddexp.reduce(row, initial=-INF)


# ---- softmax and log-sum-exp of each row

PLAIN = (
    ("one score", [[2.0]]),
    ("one row of two scores", [[0.0, 1.0]]),
    ("the larger score first", [[1.5, 0.5]]),
    ("two equal scores", [[1.0, 1.0]]),
    ("two rows", [[0.5, -1.0, 2.0], [-0.25, -1.5, 1.0]]),
    ("two negative scores, and two rows of them", [[-2.0, -1.0], [-3.0, -0.5]]),
    ("rows with equal maxima", [[3.0, 1.0, 3.0], [0.0, 0.0, 0.0], [-2.0, -1.0, -1.0]]),
    ("large scores", [[1000.0, 999.0, 998.5]]),
    ("large negative scores", [[-1000.0, -1001.0, -1000.5], [-800.0, -800.5, -801.0]]),
    ("scores far apart", [[-3000.0, 0.0, 2000.0], [2000.0, 0.0, -3000.0], [0.0, 2000.0, -3000.0]]),
    ("rows of very different size", [[1e4, 9999.0], [-1e4, -9999.5], [0.0, 1.0]]),
    ("scores near a million", [[1e6, 1e6 - 1], [-1e6, 1 - 1e6], [-1e6, 1e6]]),
    ("scores of minus a million", [[-1e6, -1e6], [1.0, 0.0]]),
    ("20 scores, all equal", [[0.5] * 20]),
    ("a second score 20 below the first", [[1.0, -19.0]]),
)
MASKED = (
    ("a masked score", [[0.5, -INF, 1.5], [-INF, -1.0, -2.0]]),
    ("a masked score first, all others equal", [[-INF, 2.0, 2.0]]),
    ("a masked score next to scores of 0", [[-INF, 0.0, 0.0]]),
    ("a fully masked row", [[-INF, -INF, -INF], [0.0, 1.0, 2.0]]),
    ("rows that are all fully masked", [[-INF] * 3, [-INF] * 3]),
    ("a fully masked row next to large scores", [[1000.0, 999.0], [-INF, -INF], [-1000.0, -999.0]]),
    ("masked scores next to very negative ones", [[-1e6, -INF, 1 - 1e6], [-INF, -2e4, -INF]]),
)


def _stages(oracle, dtype=False):
    """Return the stages of Cases for a function of each row: plain, masked, without keys, in fp32.

    dtype: whether the result must have the dtype of the scores.
    """

    def case(words, S):
        single = S.dtype == np.float32
        expected = np.array([oracle(row) for row in S.astype(np.float64)])
        size = np.abs(S[S > -INF]).max(initial=0)
        tolerance = max(1e-5, 1e-7 * size) if single else 1e-10 if size < 10 else 1e-9  # S - lse loses digits
        return Case(f"{words}{', in float32' * single}", (S,), expected, tolerance, S.dtype if dtype else None)

    def drawn_case(masked, kind):
        def make(rng):
            S = rng.normal(size=rng.integers(17, 50, size=2)) * rng.choice([1, 30, 1000])
            S[:, rng.random(S.shape[1]) < 0.1] = S[0, 0]
            S[rng.random(S.shape) < 0.3 * masked] = -INF
            S[rng.random(len(S)) < 0.2 * masked] = -INF
            return case(f"{S.shape[0]} rows of {S.shape[1]} scores", S.astype(kind))

        return make

    def fixed(rows, kind=np.float64):
        return [case(words, np.array(S, kind)) for words, S in rows]

    none = [("no keys, N_k = 0", np.zeros((3, 0)))]
    return [
        fixed(PLAIN) + random_cases.cases(drawn_case(False, np.float64), 2),
        fixed(MASKED) + random_cases.cases(drawn_case(True, np.float64), 2),
        fixed(none),
        [
            *fixed(PLAIN, np.float32),
            *fixed(MASKED, np.float32),
            *random_cases.cases(drawn_case(True, np.float32), 1),
        ],
        fixed(none, np.float32),
    ]


MASK = """
scores = S
S = np.where(visible, S, -np.inf)
"""
UNGUARDED_WEIGHTS = (UNGUARDED, "some = l; return result -> return np.nan_to_num(result)")


@exercise(
    title="Softmax of each row",
    minutes=10,
    difficulty="medium",
    program=_program("my_softmax_rows(S, visible)", "P / some[:, None]", MASK),
    variants=UNGUARDED_WEIGHTS,
)
def softmax_rows(answer: Callable, known: Known) -> Verdict:
    answer = _with_finding(answer, "masked_weight", lambda S, visible, P: ~visible & (P != 0) & (P == P))
    in_fp64 = _stages(_weights)[:3]
    return examine(answer, [[_with_visible(case) for case in stage] for stage in in_fp64], known)


def _with_visible(case):
    """Return the Case with `visible` in place of -inf; what it masks is moderate or larger than all others."""
    (S,) = case.arguments
    visible = S > -INF
    k = np.arange(S.size).reshape(S.shape)
    masked = np.where(k % 2, 1e6 - k, k / 10)
    return case._replace(arguments=(np.where(visible, S, masked), visible))


@exercise(
    title="Safe softmax of a matrix",
    minutes=10,
    difficulty="medium",
    program=_program("my_safe_softmax(S)", "P / some[:, None]"),
    variants=UNGUARDED_WEIGHTS,
    optional=True,
)
def safe_softmax(answer: Callable, known: Known) -> Verdict:
    answer = _with_finding(answer, "masked_weight", lambda S, P: (S == -INF) & (P != 0) & (P == P))
    return examine(answer, _stages(_weights, dtype=True), known)


def _with_finding(answer, id, holds):
    """Return answer; it reports the Finding `id` if holds(*arguments, result) is true anywhere."""

    def look(result, *arguments):
        with contextlib.suppress(TypeError, ValueError, IndexError):  # not numbers, or of the wrong shape
            return Finding(id) if np.any(holds(*arguments, np.asarray(result))) else None

    return inspected(answer, look)


@exercise(
    title="Log-sum-exp of each row",
    minutes=10,
    difficulty="easy",
    program=_program("my_logsumexp(S)", "m + np.log(some)"),
    variants=(UNGUARDED,),
)
def logsumexp(answer: Callable, known: Known) -> Verdict:
    answer = _with_finding(answer, "finite", lambda S, lse: np.isfinite(lse[(S == -INF).all(axis=1)]))
    return examine(answer, _stages(_lse), known)


# ---- the logarithm of softmax

LOG_SOFTMAX = _program("my_log_softmax(x)", "x - m - np.log(some)", "S = x[None]")


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
    answer = _with_finding(answer, "masked_is_finite", lambda x, result: np.isfinite(result[x == -INF]))
    return examine(answer, stages, known)


def _logarithms(words, row):
    x = np.array(row)
    return Case(words, (x,), x - _lse(x), 1e-9 if np.abs(x[x > -INF]).max() > 10 else 1e-10)


def _any_row(rng, masked):
    x = rng.normal(size=rng.integers(17, 80)) * rng.choice([1, 100, 3000])
    x[1:][rng.random(len(x) - 1) < masked] = -INF
    return _logarithms(f"{len(x)} scores", x)


# ---- read only what counts


class _Memory(MeteredArray):
    """Slow memory whose slices are slow memory too, so that stores through them are seen."""

    def __getitem__(self, key):
        return self._moved(lambda x: x[key]) if isinstance(key, slice) else super().__getitem__(key)


ROW = _program("row(x, n, p)", "np.append(P / some[:, None], np.zeros(len(x) - n))", "S = x[None, :n]")


@exercise(
    title="Read only what counts",
    minutes=10,
    difficulty="medium",
    program=ROW,
    variants=(UNGUARDED,),
    optional=True,
)
def causal_row_passes(answer: Callable, known: Known) -> Verdict:
    finite = (
        ("one score", [2.0], 1),
        ("a visible and a hidden score", [0.5, 1.5], 1),
        ("no hidden score", [0.0, 1.0, -0.5], 3),
        ("equal scores, one of them hidden", [1.0, 0.5, 1.0, 1.0], 3),
        ("large scores", [1000.0, 999.0, 1001.0, 500.0, 998.0], 3),
        ("scores near -400", [-400.0, -401.0], 2),
        ("scores near -800", [-800.0, -801.0], 2),
        ("scores near -1000", [-1000.0, -1001.0, -999.5, -998.0, 0.0], 3),
        ("scores near a million, of both signs", [-1e6, 1 - 1e6, 1e6, 1e6 - 1], 2),
        ("scores of minus a million", [-1e6, -1e6, 0.0], 2),
        ("a score 18 below the first", [0.0, -18.0, 3.0], 2),
        ("hidden scores far above the visible ones", [1.0, 2.0, 3.0, 1e4, 5e3], 3),
        ("scores that fall", [800.0, 1.0, -50.0, -1000.0, 3.0], 4),
        ("scores that rise", [-1000.0, 0.0, 800.0, 5.0], 3),
        ("50 scores", np.random.default_rng(0).normal(scale=30, size=50), 20),
    )
    none = (("no visible score, n = 0", [0.5, -1.0, 2.0], 0), ("one hidden score, n = 0", [3.0], 0))
    seen = []  # the arguments, x and p in slow memory of each run
    stages = [[_row(*row) for row in finite] + random_cases.cases(_any_visible), [_row(*row) for row in none]]
    verdict = examine(_metered(answer, seen), stages, known)
    return _traffic(answer, seen, known) or verdict if verdict.right else verdict


def _row(words, row, n):
    weights = np.append(_weights(np.array(row[:n])), np.zeros(len(row) - n))
    return Case(words, (np.array(row), n, np.full(len(row), np.nan)), weights, 1e-9)


def _any_visible(rng):
    N = int(rng.integers(18, 80))
    n = int(rng.integers(17, N))
    return _row(f"{n} visible scores of {N}", rng.normal(size=N) * rng.choice([1, 30, 1000]), n)


def _metered(answer, seen):
    """Return answer as a function that returns p; it runs in slow memory, and appends its accesses to `seen`."""

    @wraps(answer)
    def run(x, n, p):
        slow_x, slow_p = MeteredArray(x), _Memory(p)
        answer(slow_x, n, slow_p)
        seen.append(((x, n, p), slow_x.reads, slow_p.reads, slow_p.writes))
        x_after, p_after = slow_x._data, slow_p._data
        if slow_x.writes.any() or not np.array_equal(x_after, x):
            raise Finding("x_written")
        if n and not slow_p.writes.any() and np.isnan(p_after).all():
            raise Finding("nothing_written")
        return Measured(p_after, Finding("hidden_not_0")) if n and p_after[n:].any() else p_after

    return run


def _traffic(answer, seen, known):
    """Return the Verdict for the longest row read or written wrongly, with the shortest one as input; or None."""
    found = []
    for arguments, reads, p_reads, writes in sorted(seen, key=lambda run: len(run[1])):
        if problem := _about_traffic(reads[: arguments[1]], reads[arguments[1] :], p_reads, writes):
            counted = f"reads of x {show(reads)}, writes of p {show(writes)}"
            found.append((*problem, ("input", describe(answer, arguments)), ("counted", counted)))
    if not found:
        return None
    (*_, at, counted), (id, fields, *_) = found[0], found[-1]
    return known.wrong(id, at, counted, **fields)


def _about_traffic(visible, hidden, p_reads, writes):
    """Return the id and fields of a mistake in the reads of the scores or in the use of p, or None."""
    most, least = hidden.max(initial=0), visible.min(initial=3)
    again = len(visible) and visible[0] == 4 and (visible[1:] == 3).all()
    problems = (
        ("read_for_none", most and not len(visible)),
        ("all_read", most >= 3),
        ("hidden_read", most),
        ("p_read", p_reads.any()),
        ("p_written_twice", (writes > 1).any()),
        ("first_read_again", again),
        ("read_twice", (visible > 3).any()),
        ("kept", least < 3),
    )
    fields = {"hidden_read": {"passes": most}, "kept": {"times": ("never", "once", "twice", "")[least]}}
    return next(((id, fields.get(id, {})) for id, holds in problems if holds), None)
