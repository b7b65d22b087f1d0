"""The exercises of chapter 02."""

import math
from functools import wraps
from itertools import product

import numpy as np

from flashlib.checks.examine import Case, Finding, Mistake, attempt, describe, examine, not_callable, show
from flashlib.checks.exercise import exercise
from flashlib.checks.process import announce
from flashlib.checks.verdict import Verdict
from flashlib.memory import HBM

CHAPTER = "02_safe_softmax"
INF = np.inf


def _rows(function, S, out):
    """Fill `out`, a row or a number for each row of S, with what `function` makes of the row's scores in fp64."""
    for r, row in enumerate(np.asarray(S, np.float64)):
        out[r] = function(row)
    return out


def _weights(row):
    """Return softmax of a row, the oracle: in plain Python, over the scores that are not masked."""
    seen = [x for x in row.tolist() if x > -INF]
    if not seen:
        return np.zeros(len(row))
    total = math.fsum(math.exp(x - max(seen)) for x in seen)
    return [math.exp(x - max(seen)) / total for x in row.tolist()]


def _lse(row):
    """Return log-sum-exp of a row, the oracle."""
    seen = [x for x in row.tolist() if x > -INF]
    return max(seen) + math.log(math.fsum(math.exp(x - max(seen)) for x in seen)) if seen else -INF


def _matrices():
    """Return (words, matrix of scores), from small to large."""
    rng = np.random.default_rng(0)
    some = rng.normal(size=(11, 13)).round(2) * 1000
    some[rng.random(some.shape) < 0.3] = -INF
    some[[3, 8]] = -INF
    return [
        ("one row of two scores", np.array([[0.0, 1.0]])),
        ("two rows", rng.normal(size=(2, 3)).round(2)),
        ("large scores", np.array([[1000.0, 999.0, 998.5]])),
        ("large negative scores", np.array([[-1000.0, -1001.0, -1000.5]])),
        ("rows of very different size", np.array([[1e4, 9999.0], [-1e4, -9999.5], [0.0, 1.0]])),
        ("a masked score", np.array([[0.5, -INF, 1.5], [-INF, -1.0, -2.0]])),
        ("a row that is wholly masked", np.array([[-INF, -INF, -INF], [0.0, 1.0, 2.0]])),
        ("rows that are all wholly masked", np.full((2, 3), -INF)),
        ("no keys, N_k = 0", np.zeros((3, 0))),
        ("float32", (rng.normal(size=(5, 7)) * 100).astype(np.float32)),
        ("masked and large scores", some),
    ]


def _cases(oracle, shape):
    """Return the Cases of a function of each row; shape: that of its result for a matrix."""
    return [
        Case(words, (S,), _rows(oracle, S, np.zeros(shape(S))), 1e-5 if S.dtype == np.float32 else 1e-9)
        for words, S in _matrices()
    ]


def _variants(mistakes, nothing):
    """Return Mistakes: each with wholly masked rows as they come, right or nan, and with N_k = 0 right or raising.

    nothing: what is right for a row without scores. Of two mistakes in one answer the first in the list is named.
    """

    def variant(wrong, masked, raises):
        def f(S):
            if S.shape[1] == 0:
                if raises:
                    raise ValueError("zero-size array to reduction operation")
                return np.full(S.shape if nothing == 0 else len(S), nothing)
            result = wrong(np.asarray(S, np.float64))
            if masked is not None:
                result[(S == -INF).all(axis=1)] = masked
            return result

        return f

    kinds = list(product((None, nothing, np.nan), (False, True)))
    return [Mistake(sentence, variant(wrong, *kind)) for sentence, wrong in mistakes for kind in kinds]


# ---- softmax of each row

UNGUARDED = "a wholly masked row is nan: -inf - (-inf) is nan, so shift it by 0, and divide by 1 where l is 0"
SLIGHTLY_OFF = "the weights are slightly off: add nothing to l (divide by 1 where it is 0), in the dtype of S"
NO_KEYS = "it raises for N_k = 0: S.max(axis=1, initial=-np.inf) knows the maximum of an empty row"
NO_MAXIMUM = "the maximum is not subtracted: large scores overflow, take np.exp(S - m)"
ONE_MAXIMUM = "one maximum is taken for the whole matrix: a row far below it underflows, each row has its own"
LARGEST_SIZE = "the largest absolute value is subtracted: the exponentials of negative scores then underflow"


@exercise(chapter=CHAPTER, title="Safe softmax of a matrix", minutes=10, difficulty="medium")
def safe_softmax(answer):
    verdict = examine(answer, _cases(_weights, np.shape), _variants(_softmax_mistakes(), 0.0))
    if verdict.right or verdict.sentence == SLIGHTLY_OFF:
        for dtype in (np.float32, np.float64):
            S = np.array([[0.0, 1.0], [2.0, 1.0]], dtype)
            given = np.asarray(attempt(answer, S.copy())).dtype
            if given != dtype:
                sentence = f"the result is {given} for scores in {S.dtype}: keep the dtype of S"
                return Verdict("", "wrong", sentence, (("input", describe(answer, (S,))),))
    return verdict


def _softmax(S, m=None, axis=1, eps=0.0):
    """Return softmax of each row of S with m subtracted, the maximum of the row by default."""
    m = S.max(axis=1, keepdims=True) if m is None else m
    P = np.exp(S - np.where(m == -INF, 0, m))
    l = P.sum(axis=axis, keepdims=True)
    return P / (np.where((l == 0) & (m == -INF), 1, l) + eps)


def _softmax_mistakes():
    """Return (sentence, function) of each known mistake in safe_softmax."""
    columns = {"axis": 1, "keepdims": True}

    def masked(S, value):
        return np.where((S == -INF).all(**columns), value, _softmax(S))

    def guard_of_the_whole(S):
        return masked(S, np.nan if (S > -INF).any() else 0)

    def all_if_any(S):
        return np.zeros_like(S) if (S == -INF).all(axis=1).any() else _softmax(S)

    def without_infinity(S):
        return np.where(S == -INF, 0, S)

    mean = "the mean is subtracted: only the maximum keeps every exponential at 1 or below"
    down = "the maximum is taken down each column: it is one for each row, S.max(axis=1, keepdims=True)"
    whole = "the sum runs over the whole matrix: each row has its own l, sum(axis=1)"
    return [
        (UNGUARDED, lambda S: masked(S, np.nan)),
        (UNGUARDED, guard_of_the_whole),
        (NO_KEYS, _softmax),
        ("one wholly masked row makes all rows 0: look at each row by itself", all_if_any),
        ("a wholly masked row gets equal weights: it gets 0", lambda S: masked(S, 1 / S.shape[1])),
        *((SLIGHTLY_OFF, lambda S, e=e: _softmax(S, eps=e)) for e in (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)),
        (NO_MAXIMUM, lambda S: _softmax(S, np.zeros(1))),
        (ONE_MAXIMUM, lambda S: _softmax(S, S.max())),
        (down, lambda S: _softmax(S, S.max(axis=0))),
        ("softmax is taken down each column: a row is along the last axis, axis=1", lambda S: _softmax(S.T).T),
        (whole, lambda S: _softmax(S, axis=None)),
        ("the sum runs down each column: each row has its own l, sum(axis=1)", lambda S: _softmax(S, axis=0)),
        ("the exponentials are not divided by their sum l", lambda S: np.exp(S - S.max(**columns))),
        ("the logarithms of the weights are returned: return the weights", lambda S: np.log(_softmax(S))),
        (LARGEST_SIZE, lambda S: _softmax(S, np.abs(S).max(**columns))),
        (LARGEST_SIZE, lambda S: _softmax(S, np.abs(without_infinity(S)).max(**columns))),
        (mean, lambda S: _softmax(S, S.mean(**columns))),
        ("the minimum is subtracted: take the maximum", lambda S: _softmax(S, S.min(**columns))),
        ("a masked score counts as 0: leave it at -inf", lambda S: _softmax(without_infinity(S))),
    ]


# ---- log-sum-exp of each row


@exercise(chapter=CHAPTER, title="Log-sum-exp of each row", minutes=10, difficulty="easy")
def logsumexp(answer):
    return examine(answer, _cases(_lse, len), _variants(_logsumexp_mistakes(), -INF))


def _logsumexp_mistakes():
    """Return (sentence, function) of each known mistake in logsumexp."""

    def of(f):
        """Return the function of S that f is of m and l of its rows, and of N_k."""

        def of_rows(S):
            m = S.max(axis=1)
            return f(m, np.exp(S - np.where(m == -INF, 0, m)[:, None]).sum(axis=1), S.shape[1])

        return of_rows

    def shifted(S, m):
        return m + np.log(np.exp(S - np.reshape(m, (-1, 1))).sum(axis=1))

    nan = "a wholly masked row gives nan: -inf - (-inf) is nan, so shift it by 0"
    finite = "a wholly masked row gives a finite number: it weighs nothing, and log(0) is -inf"
    large = [0.0, -1e4, -1e5, -1e6, -1e9, -1e10, -1e30, np.finfo(np.float64).min]
    small = [np.log(x) for x in (1e-6, 1e-8, 1e-9, 1e-10, 1e-12, 1e-15, 1e-16, 1e-20, 1e-30, 1e-300)]
    overflows = "it is computed as written, log(sum(exp)), and overflows: subtract m, and add it at the end"
    log1p = "np.log1p takes the logarithm of 1 + l: take that of l"
    return [
        (nan, of(lambda m, l, N_k: np.where(m == -INF, np.nan, m + np.log(l)))),
        *((finite, of(lambda m, l, N_k, x=x: np.where(m == -INF, x, m + np.log(l)))) for x in large + small),
        (finite, of(lambda m, l, N_k: np.where(m == -INF, np.log(N_k), m + np.log(l)))),
        (NO_KEYS, of(lambda m, l, N_k: m + np.log(l))),
        (overflows, lambda S: shifted(S, np.zeros(1))),
        ("m is not added again: l is the sum of exp(S - m), lse = m + log(l)", of(lambda m, l, N_k: np.log(l))),
        ("it returns the maximum alone: lse = m + log(l)", of(lambda m, l, N_k: m)),
        ("the logarithm of l is missing: lse = m + log(l)", of(lambda m, l, N_k: m + l)),
        ("it returns the sum l: lse = m + log(l)", of(lambda m, l, N_k: l)),
        ("m is subtracted once more: it must be added, lse = m + log(l)", of(lambda m, l, N_k: np.log(l) - m)),
        (ONE_MAXIMUM, lambda S: shifted(S, S.max())),
        (LARGEST_SIZE, lambda S: shifted(S, np.abs(S).max(axis=1))),
        ("the mean of the exponentials is taken: take their sum", of(lambda m, l, N_k: m + np.log(l / N_k))),
        ("the logarithm is to base 2: take np.log", of(lambda m, l, N_k: m + np.log2(l))),
        (log1p, of(lambda m, l, N_k: m + np.log1p(l))),
    ]


# ---- the logarithm of softmax


@exercise(chapter=CHAPTER, title="The logarithm of softmax", minutes=5, difficulty="easy")
def log_softmax(answer):
    rows = {
        "a single score": [2.0],
        "three scores": [0.0, -1.0, 2.0],
        "a weight that underflows": [0.0, -2000.0, 1000.0],
        "large negative scores": [-1000.0, -1001.0],
        "a masked score": [0.5, -INF, 1.5, -INF],
        "scores up to 10000": [1e4, 9999.0, -1e4, 3.0, 9998.5],
    }
    cases = [Case(words, (x := np.array(row),), x - _lse(x)) for words, row in rows.items()]
    return examine(answer, cases, [Mistake(*mistake) for mistake in _log_softmax_mistakes()])


def _log_softmax_mistakes():
    """Return (sentence, function) of each known mistake in log_softmax."""

    def of(f):
        """Return the function of x that f is of the shifted scores z = x - m, of m and of l."""
        return lambda x: f(x - x.max(), x.max(), np.exp(x - x.max()).sum())

    small = "a small number is added to the weights, or they are cut off at one: subtract lse from x instead"
    sizes = [1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12, 1e-15, 1e-16, 1e-20, 1e-30, 1e-45, 1e-100, 1e-300]
    overflows = "exp(x) and its sum overflow as written: subtract m + log(l)"
    unshifted = "only log(l) is subtracted, with l the sum of exp(x - m): m is missing, lse = m + log(l)"
    late = "it takes the logarithm of a weight that has become 0: subtract lse from x instead"
    quotient = "x is divided by lse: a quotient of exponentials is a difference of scores, x - lse"
    return [
        (late, of(lambda z, m, l: np.log(np.exp(z) / l))),
        *((small, of(lambda z, m, l, e=e: np.log(np.exp(z) / l + e))) for e in sizes),
        *((small, of(lambda z, m, l, e=e: np.log(np.maximum(np.exp(z) / l, e)))) for e in sizes),
        *((small, of(lambda z, m, l, e=e: np.log((np.exp(z) + e) / (l + e)))) for e in sizes),
        (overflows, lambda x: np.log(np.exp(x) / np.exp(x).sum())),
        (overflows, lambda x: x - np.log(np.exp(x).sum())),
        ("only the maximum is subtracted: log(l) is missing, lse = m + log(l)", of(lambda z, m, l: z)),
        (unshifted, of(lambda z, m, l: z + m - np.log(l))),
        ("l is subtracted without its logarithm: subtract m + log(l)", of(lambda z, m, l: z - l)),
        ("log(l) is added: subtract it, as m is, x - (m + log(l))", of(lambda z, m, l: z + np.log(l))),
        (quotient, of(lambda z, m, l: (z + m) / (m + np.log(l)))),
        ("the sign is turned round: it is x - lse, at most 0", of(lambda z, m, l: np.log(l) - z)),
        ("the weights are returned: return their logarithms", of(lambda z, m, l: np.exp(z) / l)),
        ("the logarithm is to base 2: it is natural, x - lse", of(lambda z, m, l: (z - np.log(l)) / np.log(2))),
        ("lse is returned: subtract it from every score, x - lse", of(lambda z, m, l: m + np.log(l))),
    ]


# ---- read only what counts


class _Counted(HBM):
    """Slow memory that knows how often each of its items was read and written."""

    def __array_finalize__(self, parent):
        super().__array_finalize__(parent)
        self.reads = getattr(parent, "reads", None)
        self.writes = getattr(parent, "writes", None)

    @classmethod
    def of(cls, x):
        """Return the row x in slow memory, nothing read or written yet."""
        (X,) = cls.put(x)
        X.reads, X.writes = np.zeros(x.shape, int), np.zeros(x.shape, int)
        return X

    def __getitem__(self, key):
        item = super().__getitem__(key)
        if self.reads is not None and self.reads.shape == self.shape:
            np.add.at(self.reads, key, 1)
        return item

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        if self.writes is not None and self.writes.shape == self.shape:
            np.add.at(self.writes, key, 1)

    def _store(self):
        self.writes += 1
        return super()._store()


class _Empty:
    """Stands for the array p that an answer is given to fill."""

    def __init__(self, N):
        self.N = N

    def __repr__(self):
        return f"an array of {self.N} nan, to be filled"


@exercise(chapter=CHAPTER, title="Read only what counts", minutes=10, difficulty="medium")
def causal_row_passes(answer):
    if problem := not_callable(answer):
        return Verdict("", "wrong", problem)
    rng = np.random.default_rng(0)
    rows = {
        "one score": ([2.0], 1),
        "a visible and a hidden score": ([0.5, 1.5], 1),
        "no hidden score": ([0.0, 1.0, -0.5], 3),
        "no visible score, n = 0": ([0.5, -1.0, 2.0], 0),
        "large scores": ([1000.0, 999.0, 1001.0, 500.0, 998.0], 3),
        "large negative scores": ([-1000.0, -1001.0, -999.5, 0.0], 3),
        "hidden scores far above the visible ones": ([1.0, 2.0, 3.0, 1e4, 5e3], 3),
        "50 scores": (rng.normal(scale=30, size=50), 20),
    }
    cases = []
    for words, (row, n) in rows.items():
        x = np.array(row)
        p = np.append(_weights(x[:n]), np.zeros(len(x) - n))
        cases.append(Case(words, (x, n, _Empty(len(x))), p))
    mistakes = [Mistake(*mistake) for mistake in _row_mistakes()]
    verdict = examine(_filled(answer), cases, mistakes, nan="nan, or not written")
    if not verdict.right:
        return verdict
    for case in cases:
        x, n, p = case.arguments
        announce(describe(answer, case.arguments))
        sentence, given = _about_traffic(*_run(answer, x, n), n)
        if sentence:
            expected = f"each of the first {n} scores read 3 times, {len(x)} weights written once"
            details = (("input", describe(answer, case.arguments)), ("expected", expected), ("given", given))
            return Verdict("", "wrong", sentence, details)
    return Verdict("", "right", f"the weights, 3 n reads and N writes, in all {len(cases)} cases")


def _run(answer, x, n):
    """Return x and p in slow memory after answer(x, n, p)."""
    x, p = _Counted.of(x.copy()), _Counted.of(np.full(len(x), np.nan))
    answer(x, n, p)
    return x, p


def _filled(answer):
    """Return answer as a function that returns p."""

    @wraps(answer)
    def run(x, n, p):
        x, p = _run(answer, x, n)
        if x.writes.any():
            raise Finding("x is written to: leave it as it is, and skip the hidden scores instead")
        if not p.writes.any():
            raise Finding("nothing is written to p: assign to p[j]; an array that is returned is not looked at")
        return p.view(np.ndarray)

    return run


def _about_traffic(x, p, n):
    """Return what is wrong with the reads of x and the writes of p, "" if nothing is, and the counts as text."""
    given = f"reads of x {show(x.reads)}, writes of p {show(p.writes)}"
    hidden = x.reads[n:].max(initial=0)
    if hidden >= 3:
        return "the hidden scores are read too, 3 N items in all: go over range(n), or x[:n]", given
    if hidden and n == 0:
        return "a score is read though n = 0: start m at -inf, not at x[0]", given
    if hidden:
        return f"the hidden scores are read in {hidden} of the passes: go over range(n), or x[:n]", given
    if n and x.reads[0] == 4 and (x.reads[1:n] == 3).all():
        return "x[0] is read once more than the others: start m at -inf, not at x[0]", given
    if (x.reads[:n] > 3).any():
        return "a score is read more than once in a pass: keep x[j] in a variable, or use max(m, x[j])", given
    if (x.reads[:n] < 3).any():
        times = f"{x.reads[:n].min()} times, not 3"
        return (
            f"visible scores are read {times}: a row is too long to be kept on chip, read it in each pass",
            given,
        )
    if p.reads.any():
        return "p is read back: it lies in slow memory too, write each weight when it is complete", given
    if (p.writes > 1).any():
        return "a weight is written more than once: write each p[j] once, when it is complete", given
    return "", given


def _row_mistakes():
    """Return (sentence, function of x, n, p that returns p) of each known mistake in causal_row_passes."""

    def row(visible, hidden=0.0):
        """Return the function that gives `visible` of x and n, and `hidden` for each of the other scores."""
        return lambda x, n, p: np.append(visible(x, n), np.full(len(x), hidden))[: len(x)]

    def weights(x, n, m=None, l=None):
        """Return the terms of x[:n] with m subtracted, divided by l."""
        m = x[:n].max(initial=-INF) if m is None else m
        terms = np.exp(x[:n] - m)
        return terms / (terms.sum() if l is None else l)

    def sum_of_all(x, n):
        return np.exp(x - x[:n].max(initial=-INF)).sum()

    many = "one score too many is visible: the first n are x[0] to x[n - 1]"
    few = "one visible score is missing: the first n are x[0] to x[n - 1]"
    overflow = "the maximum is not subtracted: large scores overflow, take np.exp(x[j] - m)"
    zero = "m starts at 0, which is no maximum of negative scores: start at -inf"
    over_all = "the maximum runs over the hidden scores too: visible terms may all underflow"
    sum_all = "the sum runs over the hidden scores too: l adds up the first n terms"
    apart = "the sum is taken without the maximum: l adds up np.exp(x[j] - m)"
    known = [
        ("the hidden weights are not written: p[j] = 0 for j >= n", row(weights, np.nan)),
        ("the hidden scores count: only the first n are visible", lambda x, n, p: weights(x, len(x))),
        (many, row(lambda x, n: weights(x, n + 1))),
        (few, row(lambda x, n: np.append(weights(x, max(n - 1, 0)), 0) if n else [])),
        (overflow, row(lambda x, n: weights(x, n, m=0.0))),
        (zero, row(lambda x, n: weights(x, n, m=x[:n].max(initial=0.0)))),
        (over_all, row(lambda x, n: weights(x, n, m=x.max()))),
        (sum_all, row(lambda x, n: weights(x, n, l=sum_of_all(x, n)))),
        (apart, row(lambda x, n: weights(x, n, l=np.exp(x[:n]).sum()))),
        ("the terms are not divided by their sum l", row(lambda x, n: weights(x, n, l=1.0))),
    ]

    def with_none(wrong, none):
        """Return `wrong`, but `none` for n = 0."""
        return lambda x, n, p: wrong(x, n, p) if n else none(x)

    nan, raising = (lambda x: np.full(len(x), np.nan)), (lambda x: 1 / 0)
    divided = "for n = 0 nothing is visible: write 0 to all of p, and do not divide by l = 0"
    known += [(sentence, with_none(wrong, none)) for sentence, wrong in known for none in (nan, raising)]
    return [(divided, with_none(row(weights), none)) for none in (nan, raising)] + known
