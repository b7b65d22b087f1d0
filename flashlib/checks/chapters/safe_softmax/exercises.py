"""The exercises of chapter 02."""

import math
from functools import partial, wraps

import numpy as np

from flashlib.checks.examine import Case, Finding, Mistake, attempt, examine
from flashlib.checks.exercise import exercise
from flashlib.checks.values import describe, show
from flashlib.checks.verdict import Verdict
from flashlib.memory import HBM

INF = np.inf
NO_KEYS = [
    ("it raises for N_k = 0: the maximum of nothing is S.max(axis=1, initial=-np.inf)", lambda S: S.max(axis=1))
]


def _in_stages(answer, stages):
    """Return the Verdict of the first stage, (cases, mistakes to know in them), that the answer fails."""
    for cases, mistakes in stages:
        verdict = examine(answer, cases, [Mistake(*mistake) for mistake in mistakes])
        if not verdict.right:
            return verdict
    return Verdict("", "right", f"in all {sum(len(cases) for cases, _ in stages)} cases")


def _weights(row):
    """Return softmax of a row, the oracle: in plain Python, over the scores that are not masked."""
    seen = [x for x in row.tolist() if x > -INF]
    if not seen:
        return np.zeros(len(row))
    total = math.fsum(math.exp(x - max(seen)) for x in seen)
    return np.array([math.exp(x - max(seen)) / total for x in row.tolist()])


def _lse(row):
    """Return log-sum-exp of a row, the oracle."""
    seen = [x for x in row.tolist() if x > -INF]
    return max(seen) + math.log(math.fsum(math.exp(x - max(seen)) for x in seen)) if seen else -INF


def _matrices():
    """Return the stages, lists of (words, matrix of scores): plain, masked, without keys, and in fp32."""
    rng = np.random.default_rng(0)
    plain = [
        ("one row of two scores", np.array([[0.0, 1.0]])),
        ("two rows", rng.normal(size=(2, 3)).round(2)),
        ("large scores", np.array([[1000.0, 999.0, 998.5]])),
        ("large negative scores", np.array([[-1000.0, -1001.0, -1000.5]])),
        ("scores far apart", np.array([[-3000.0, 0.0, 2000.0]])),
        ("rows of very different size", np.array([[1e4, 9999.0], [-1e4, -9999.5], [0.0, 1.0]])),
    ]
    large = rng.normal(size=(11, 13)).round(2) * 1000
    large[rng.random(large.shape) < 0.3] = -INF
    large[[3, 8]] = -INF
    masked = [
        ("a masked score", np.array([[0.5, -INF, 1.5], [-INF, -1.0, -2.0]])),
        ("a row that is wholly masked", np.array([[-INF, -INF, -INF], [0.0, 1.0, 2.0]])),
        ("rows that are all wholly masked", np.full((2, 3), -INF)),
        ("masked and large scores", large),
    ]
    fp32 = (rng.normal(size=(5, 7)) * 100).astype(np.float32)
    return plain, masked, [("no keys, N_k = 0", np.zeros((3, 0)))], [("float32", fp32)]


def _cases(oracle, matrices):
    """Return the Cases of a function of each row that gives what `oracle` gives in fp64."""
    cases = []
    for words, S in matrices:
        expected = np.array([oracle(row) for row in S.astype(np.float64)])
        cases.append(Case(words, (S,), expected, 1e-5 if S.dtype == np.float32 else 1e-9))
    return cases


# ---- softmax of each row

SLIGHTLY_OFF = "the weights are slightly off: add nothing to l (divide by 1 where it is 0), in the dtype of S"
ONE_MAXIMUM = "one maximum is taken for the whole matrix: a row far below it underflows, each row has its own"
LIMITS = 10, 20, 50, 80, 88, 100, 500, 700, 709
FROM_0 = "m starts at 0, which is no maximum of negative scores: start at -inf"
LARGEST_SIZE = "the largest absolute value is subtracted: the exponentials of negative scores then underflow"


@exercise(title="Safe softmax of a matrix", minutes=10, difficulty="medium")
def safe_softmax(answer):
    plain, masked, empty, fp32 = (_cases(_weights, matrices) for matrices in _matrices())
    mistakes = _softmax_mistakes(_softmax) + _softmax_mistakes(partial(_softmax, guarded=True))
    mistakes += [(sentence, lambda S, wrong=wrong: np.nan_to_num(wrong(S))) for sentence, wrong in mistakes]
    verdict = _in_stages(answer, [(plain, mistakes), (masked, _mask_mistakes()), (empty, NO_KEYS), (fp32, [])])
    if verdict.right or verdict.sentence == SLIGHTLY_OFF:
        for dtype in (np.float32, np.float64):
            S = np.array([[0.0, 1.0], [2.0, 1.0]], dtype)
            given = np.asarray(attempt(answer, S.copy())).dtype
            if given != dtype:
                sentence = f"the result is {given} for scores in {S.dtype}: keep the dtype of S"
                return Verdict("", "wrong", sentence, (("input", describe(answer, (S,))),))
    return verdict


def _softmax(S, m=None, axis=1, eps=0.0, guarded=False):
    """Return softmax of each row of S with m, by default its maximum, subtracted; guarded: 0 / 0 is 0."""
    m = S.max(axis=1, keepdims=True) if m is None else m
    P = np.exp(S - np.where(m == -INF, 0, m))
    l = P.sum(axis=axis, keepdims=True)
    return P / (np.where((l == 0) & (guarded | (m == -INF)), 1, l) + eps)


def _softmax_mistakes(softmax):
    """Return (sentence, function) of each known mistake in safe_softmax."""
    rows = {"axis": 1, "keepdims": True}
    none = "the maximum is not subtracted: large scores overflow, take np.exp(S - m)"
    down = "the maximum is taken down each column: it is one for each row, S.max(axis=1, keepdims=True)"
    cut = "scores are cut off at a limit, which changes the weights: subtract the maximum instead"
    mean = "the mean is subtracted: only the maximum keeps every exponential at 1 or below"
    return [
        (none, lambda S: softmax(S, np.zeros(1))),
        (none, lambda S: np.exp(S - np.log(np.exp(S).sum(**rows)))),
        (ONE_MAXIMUM, lambda S: softmax(S, S.max())),
        (down, lambda S: softmax(S, S.max(axis=0))),
        ("softmax is taken down each column: a row is along the last axis, axis=1", lambda S: softmax(S.T).T),
        ("the sum runs over the whole matrix: each row has its own l", lambda S: softmax(S, axis=None)),
        ("the sum runs down each column: each row has its own l, sum(axis=1)", lambda S: softmax(S, axis=0)),
        ("the exponentials are not divided by their sum l", lambda S: np.exp(S - S.max(**rows))),
        ("the logarithms of the weights are returned: return the weights", lambda S: np.log(softmax(S))),
        (LARGEST_SIZE, lambda S: softmax(S, np.abs(S).max(**rows))),
        (FROM_0, lambda S: softmax(S, S.max(**rows, initial=0))),
        (mean, lambda S: softmax(S, S.mean(**rows))),
        *((cut, lambda S, c=c: _softmax(np.clip(S, -c, c), np.zeros(1))) for c in LIMITS),
        *((SLIGHTLY_OFF, lambda S, e=e: softmax(S, eps=e)) for e in (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)),
    ]


def _mask_mistakes():
    """Return (sentence, function) of each known mistake with masked scores."""

    def masked(S, value):
        return np.where((S == -INF).all(axis=1, keepdims=True), value, _softmax(S))

    def all_if_any(S):
        return np.zeros_like(S) if (S == -INF).all(axis=1).any() else _softmax(S)

    nan = "a wholly masked row is nan: -inf - (-inf) is nan, so shift it by 0, and divide by 1 where l is 0"
    return [
        (nan, lambda S: masked(S, np.nan)),
        (nan, lambda S: masked(S, np.nan if (S > -INF).any() else 0)),  # the guard looks at all rows at once
        ("one wholly masked row makes all rows 0: look at each row by itself", all_if_any),
        ("a wholly masked row gets equal weights: it gets 0", lambda S: masked(S, 1 / S.shape[1])),
        ("a masked score counts as 0: leave it at -inf", lambda S: _softmax(np.where(S == -INF, 0, S))),
    ]


# ---- log-sum-exp of each row


@exercise(title="Log-sum-exp of each row", minutes=10, difficulty="easy")
def logsumexp(answer):
    plain, masked, empty, fp32 = (_cases(_lse, matrices) for matrices in _matrices())
    guarded = lambda l: np.log(np.where(l == 0, 1, l))  # noqa: E731
    mistakes = _lse_mistakes(np.log) + _lse_mistakes(guarded)
    return _in_stages(answer, [(plain, mistakes), (masked, _masked_lse_mistakes()), (empty, NO_KEYS), (fp32, [])])


def _rows_lse(S):
    return np.array([_lse(row) for row in S])


def _lse_mistakes(log):
    """Return (sentence, function) of each known mistake; log: the logarithm that is taken."""

    def of(f):  # of m and l
        return lambda S: f(S.max(axis=1), np.exp(S - S.max(axis=1, keepdims=True)).sum(axis=1))

    def shifted(S, m):
        return m + log(np.exp(S - np.reshape(m, (-1, 1))).sum(axis=1))

    overflows = "it is computed as written, log(sum(exp)), and overflows: subtract m, and add it at the end"
    cut = "scores are cut off at a limit, which changes the sum: subtract the maximum instead"
    return [
        (overflows, lambda S: shifted(S, np.zeros(1))),
        ("m is not added again: l is the sum of exp(S - m), lse = m + log(l)", of(lambda m, l: log(l))),
        ("it returns the maximum alone: lse = m + log(l)", of(lambda m, l: m)),
        ("the logarithm of l is missing: lse = m + log(l)", of(lambda m, l: m + l)),
        (ONE_MAXIMUM, lambda S: shifted(S, S.max())),
        (LARGEST_SIZE, lambda S: shifted(S, np.abs(S).max(axis=1))),
        (FROM_0, lambda S: shifted(S, S.max(axis=1, initial=0))),
        *((cut, lambda S, c=c: shifted(np.clip(S, -c, c), np.zeros(1))) for c in LIMITS),
        ("the mean of the exponentials is taken, not their sum", lambda S: _rows_lse(S) - np.log(S.shape[1])),
        ("the logarithm is to base 2: take np.log", of(lambda m, l: m + np.log2(l))),
    ]


def _masked_lse_mistakes():
    """Return (sentence, function) of each known mistake with rows that are wholly masked."""

    def masked(value):
        return lambda S: np.where((S == -INF).all(axis=1), value(S), _rows_lse(S))

    nan = "a wholly masked row gives nan: -inf - (-inf) is nan, so shift it by 0"
    finite = "a wholly masked row gives a finite number: it weighs nothing, and log(0) is -inf"
    values = [0.0, -1e4, -1e5, -1e6, -1e9, -1e10, -1e30, np.finfo(np.float64).min]
    values += [np.log(x) for x in (1e-6, 1e-8, 1e-9, 1e-10, 1e-12, 1e-15, 1e-16, 1e-20, 1e-30, 1e-300)]
    return [
        (nan, masked(lambda S: np.nan)),
        (finite, masked(lambda S: np.log(S.shape[1]))),
        *((finite, masked(lambda S, x=x: x)) for x in values),
    ]


# ---- the logarithm of softmax


@exercise(title="The logarithm of softmax", minutes=5, difficulty="easy")
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
    return _in_stages(answer, [(cases, _log_softmax_mistakes())])


def _log_softmax_mistakes():
    """Return (sentence, function) of each known mistake in log_softmax."""

    def of(f):  # of z = x - m, m and l
        return lambda x: f(x - x.max(), x.max(), np.exp(x - x.max()).sum())

    small = "a small number is added to the weights, or they are cut off at one: subtract lse from x instead"
    sizes = [1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12, 1e-15, 1e-16, 1e-20, 1e-30, 1e-45, 1e-100, 1e-300]
    overflows = "exp(x) and its sum overflow as written: subtract m + log(l)"
    late = "it takes the logarithm of a weight that has become 0: subtract lse from x instead"
    return [
        (late, of(lambda z, m, l: np.log(np.exp(z) / l))),
        *((small, of(lambda z, m, l, e=e: np.log(np.exp(z) / l + e))) for e in sizes),
        *((small, of(lambda z, m, l, e=e: np.log(np.maximum(np.exp(z) / l, e)))) for e in sizes),
        *((small, of(lambda z, m, l, e=e: np.log((np.exp(z) + e) / (l + e)))) for e in sizes),
        (overflows, lambda x: np.log(np.exp(x) / np.exp(x).sum())),
        (overflows, lambda x: x - np.log(np.exp(x).sum())),
        ("only the maximum is subtracted: log(l) is missing, lse = m + log(l)", of(lambda z, m, l: z)),
        ("only log(l) is subtracted: m is missing, lse = m + log(l)", of(lambda z, m, l: z + m - np.log(l))),
        ("l is subtracted without its logarithm: subtract m + log(l)", of(lambda z, m, l: z - l)),
        ("log(l) is added: subtract it, as m is, x - (m + log(l))", of(lambda z, m, l: z + np.log(l))),
        ("x is divided by lse: subtract it", of(lambda z, m, l: (z + m) / (m + np.log(l)))),
        ("the sign is turned round: it is x - lse, at most 0", of(lambda z, m, l: np.log(l) - z)),
        ("the weights are returned: return their logarithms", of(lambda z, m, l: np.exp(z) / l)),
        ("the logarithm is to base 2: it is natural, x - lse", of(lambda z, m, l: (z - np.log(l)) / np.log(2))),
    ]


# ---- read only what counts


class _Counted(HBM):
    """A row in slow memory that knows how often each of its items was read and written."""

    def __array_finalize__(self, parent):
        super().__array_finalize__(parent)
        self.reads = getattr(parent, "reads", np.zeros(self.shape, int))
        self.writes = getattr(parent, "writes", np.zeros(self.shape, int))

    def __getitem__(self, key):
        np.add.at(self.reads, key, 1)
        return super().__getitem__(key)

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        np.add.at(self.writes, key, 1)

    def _store(self):
        self.writes += 1
        return super()._store()


@exercise(title="Read only what counts", minutes=10, difficulty="medium")
def causal_row_passes(answer):
    rows = {
        "one score": ([2.0], 1),
        "a visible and a hidden score": ([0.5, 1.5], 1),
        "no hidden score": ([0.0, 1.0, -0.5], 3),
        "large scores": ([1000.0, 999.0, 1001.0, 500.0, 998.0], 3),
        "large negative scores": ([-1000.0, -1001.0, -999.5, 0.0], 3),
        "hidden scores far above the visible ones": ([1.0, 2.0, 3.0, 1e4, 5e3], 3),
        "50 scores": (np.random.default_rng(0).normal(scale=30, size=50), 20),
        "no visible score, n = 0": ([0.5, -1.0, 2.0], 0),
    }
    cases = []
    for words, (row, n) in rows.items():
        p = np.append(_weights(np.array(row[:n])), np.zeros(len(row) - n))
        cases.append(Case(words, (np.array(row), n, np.full(len(row), np.nan)), p, 1e-7))
    nothing = "for n = 0 nothing is visible: write 0 to all of p, and do not divide by l = 0"
    none = [(nothing, lambda x, n, p: p), (nothing, lambda x, n, p: 1 / 0), (nothing, lambda x, n, p: x[:n].max())]
    verdict = _in_stages(_filled(answer), [(cases[:-1], _row_mistakes()), (cases[-1:], none)])
    return _with_traffic(answer, cases) if verdict.right else verdict


def _run(answer, x, n):
    """Return x and p in slow memory after answer(x, n, p)."""
    x, p = x.copy().view(_Counted), np.full(len(x), np.nan).view(_Counted)
    answer(x, n, p)
    return x, p


def _filled(answer):
    """Return answer as a function that returns p."""

    @wraps(answer)
    def run(x, n, p):
        x, p = _run(answer, x, n)
        if x.writes.any():
            raise Finding("x is written to: leave it as it is, and skip the hidden scores instead")
        if n and not p.writes.any():
            raise Finding("nothing is written to p: assign to p[j]; an array that is returned is not looked at")
        return p.view(np.ndarray)

    return run


def _with_traffic(answer, cases):
    """Return the Verdict on reads and writes: of the smallest failure, with the sentence for the longest row."""
    sentences = []
    for case in cases:
        x, n, _ = case.arguments
        x, p = _run(answer, x, n)
        if sentence := _about_traffic(x.reads[:n], x.reads[n:], p):
            counts = f"reads of x {show(x.reads)}, writes of p {show(p.writes)}"
            sentences.append(
                (len(x), sentence, (("input", describe(answer, case.arguments)), ("counted", counts)))
            )
    if not sentences:
        return Verdict("", "right", f"weights, 3 n reads and N writes, in all {len(cases)} cases")
    return Verdict("", "wrong", max(sentences)[1], sentences[0][2])


def _about_traffic(visible, hidden, p):
    """Return what is wrong with the reads of the visible and hidden scores and with p, or ""."""
    most = hidden.max(initial=0)
    if most >= 3:
        return "the hidden scores are read too, 3 N items in all: go over range(n), or x[:n]"
    if most and not len(visible):
        return "a score is read though n = 0: start m at -inf, not at x[0]"
    if most:
        return f"hidden scores are read, in {most} of the passes: go over range(n), or x[:n]"
    if len(visible) and visible[0] == 4 and (visible[1:] == 3).all():
        return "x[0] is read once more than the others: start m at -inf, not at x[0]"
    if (visible > 3).any():
        return "a score is read more than once in a pass: keep x[j] in a variable, or use max(m, x[j])"
    if (visible < 3).any():
        return f"scores are read {visible.min()} times, not 3: for maximum, sum and output, none kept on chip"
    if p.reads.any():
        return "p is read back: it lies in slow memory too, write each weight when it is complete"
    return "a weight is written twice: write p[j] once, when it is complete" if (p.writes > 1).any() else ""


def _row_mistakes():
    """Return (sentence, function of x, n, p that returns p) of each known mistake in causal_row_passes."""

    def row(visible, hidden=0.0):
        """Return the function that gives `visible` of x and n, and `hidden` for each of the other scores."""
        return lambda x, n, p: np.append(visible(x, n), np.full(len(x), hidden))[: len(x)]

    def weights(x, n, m=None, l=None):
        """Return the terms of x[:n] with m subtracted, divided by l."""
        terms = np.exp(x[:n] - (x[:n].max(initial=-INF) if m is None else m))
        return terms / (terms.sum() if l is None else l)

    def l_of(x, n, over):
        return np.exp(x[:over] - x[:n].max()).sum()

    over_all = "the maximum runs over the hidden scores too: visible terms may all underflow"
    apart = "the sum is taken without the maximum: l adds up np.exp(x[j] - m)"
    counted = "the hidden scores get weights too: p[j] = 0 for j >= n"
    small = "a small number is added to l: the weights no longer add up to 1"
    too_many = "one score too many is visible: the first n are x[0] to x[n - 1]"
    return [
        ("the hidden weights are not written: p[j] = 0 for j >= n", row(weights, np.nan)),
        ("the hidden scores count: only the first n are visible", lambda x, n, p: weights(x, len(x))),
        (too_many, row(lambda x, n: weights(x, n + 1))),
        (too_many, row(lambda x, n: weights(x, n + 1, x[:n].max(), l_of(x, n, n)))),
        ("one visible score is missing: x[n - 1]", row(lambda x, n: weights(x, n - 1).tolist() + [0])),
        (counted, lambda x, n, p: weights(x, len(x), x[:n].max(), l_of(x, n, n))),
        ("the maximum is not subtracted: large scores overflow", row(lambda x, n: weights(x, n, 0.0))),
        (FROM_0, row(lambda x, n: weights(x, n, x[:n].max(initial=0.0)))),
        (over_all, row(lambda x, n: weights(x, n, x.max()))),
        ("the sum runs over the hidden scores too", row(lambda x, n: weights(x, n, None, l_of(x, n, len(x))))),
        (apart, row(lambda x, n: weights(x, n, None, np.exp(x[:n]).sum()))),
        ("the terms are not divided by their sum l", row(lambda x, n: weights(x, n, None, 1.0))),
        *(
            (small, row(lambda x, n, e=e: weights(x, n, None, l_of(x, n, n) + e)))
            for e in (1e-3, 1e-4, 1e-5, 1e-6)
        ),
    ]
