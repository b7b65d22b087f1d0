"""The exercises of chapter 03 on one row, score by score."""

import numpy as np

from flashlib.checks.examine import Case, Finding, Mistake, attempt, examine, same
from flashlib.checks.exercise import exercise
from flashlib.memory import HBM
from flashlib.softmax import logsumexp, safe, summarise

RESCALE = "multiply the old sum by exp(m_old - m)"


@exercise(title="One online step", minutes=5, difficulty="easy")
def online_step(answer):
    cases = []
    for words, seen, x_j in [
        ("the first score", [], 2.0),
        ("a score below the maximum", [2.0], 1.0),
        ("a score above the maximum", [1.0], 2.0),
        ("a second score above the maximum", [0.0, 1.0], 3.0),
        ("scores near 1000", [1000.0, 999.0], 1001.0),
        ("scores near -1000", [-1000.0], -999.0),
        ("a masked score", [2.0, 1.0], -np.inf),
        ("a masked score before any other", [], -np.inf),
    ]:
        before, after = summarise(np.array(seen)), summarise(np.array([*seen, x_j]))
        cases.append(Case(words, (before.m, before.l, x_j), (after.m, after.l)))
    return examine(answer, cases, STEP_MISTAKES, outputs=("m", "l"))


def _step(
    m, l, x_j, *, alpha=lambda old, new: np.exp(old - new), term=lambda x, m, old: np.exp(x - m), larger=max
):
    """Return m and l after one more score, with one of its parts exchanged for a wrong one."""
    if x_j == -np.inf:
        return m, l
    m_old, m = m, larger(m, x_j)
    return m, l * alpha(m_old, m) + term(x_j, m, m_old)


def _step_rescaled_too_much(m, l, x_j):
    if x_j == -np.inf:
        return m, l
    m_old, m = m, max(m, x_j)
    return m, (l + np.exp(x_j - m)) * np.exp(m_old - m)


def _step_unguarded(m, l, x_j):
    m_old, m = m, max(m, x_j)
    return m, l * np.exp(m_old - m) + np.exp(x_j - m)


def _step_masked_counts(m, l, x_j):
    m_old, m = m, max(m, x_j)
    shift = 0.0 if m == -np.inf else m
    return m, l * np.exp(m_old - shift) + (1.0 if x_j == -np.inf else np.exp(x_j - shift))


def _step_overflowing(m, l, x_j):
    if x_j == -np.inf:
        return m, l
    m_old, m = m, max(m, x_j)
    return m, (l + np.exp(x_j - m_old)) * np.exp(m_old - m)


STEP_MISTAKES = [
    Mistake("m and l come back as they were: the new score is not counted", lambda m, l, x: (m, l)),
    Mistake("l and m are exchanged: return m first, then l", lambda *a: _step(*a)[::-1]),
    Mistake(
        "exp(x_j - m_old) is infinite at the first score: rescale l alone, then add exp(x_j - m)",
        _step_overflowing,
    ),
    Mistake(f"l is not rescaled when the maximum grows: {RESCALE}", lambda *a: _step(*a, alpha=lambda *_: 1.0)),
    Mistake(
        "alpha is upside down: it is exp(m_old - m), at most 1, and not exp(m - m_old)",
        lambda *a: _step(*a, alpha=lambda old, new: np.exp(new - old)),
    ),
    Mistake(
        "the new score is measured against the old maximum: its term is exp(x_j - m) with the new m",
        lambda *a: _step(*a, term=lambda x, m, old: np.exp(x - old)),
    ),
    Mistake(
        "the maximum is not subtracted from the new score: its term is exp(x_j - m), not exp(x_j)",
        lambda *a: _step(*a, term=lambda x, m, old: np.exp(x)),
    ),
    Mistake("the new term is rescaled too: only the old sum is multiplied by alpha", _step_rescaled_too_much),
    Mistake(
        "m is the new score alone: take the larger of it and the old m",
        lambda *a: _step(*a, larger=lambda m, x: x),
    ),
    Mistake("the old sum is lost: l is alpha * l + exp(x_j - m)", lambda *a: _step(*a, alpha=lambda *_: 0.0)),
    Mistake("m stays the old maximum: return the larger of it and x_j", lambda m, l, x: (m, _step(m, l, x)[1])),
    Mistake(
        "nan where nothing but -inf was seen, since -inf - (-inf) is nan: a masked score changes nothing",
        _step_unguarded,
    ),
    Mistake("a masked score counts: for x_j = -inf return m and l as they are", _step_masked_counts),
]


@exercise(title="A stream that cannot be rewound", minutes=10, difficulty="medium")
def stream_lse(answer):
    rng = np.random.default_rng(0)
    rows = [
        ("one score", np.array([2.0])),
        ("four scores", np.log([1.0, 2.0, 1.0, 4.0])),
        ("scores whose maximum comes first", np.array([3.0, 1.0, 2.0])),
        ("no scores", np.zeros(0)),
        ("masked scores among others", np.array([-np.inf, 2.0, -np.inf, 3.0])),
        ("nothing but masked scores", np.full(3, -np.inf)),
        ("scores far below 0", np.array([-1000.0, -1001.0])),
        ("scores near 1000", np.array([1000.0, 1001.0])),
        ("scores of hundreds", rng.normal(scale=300, size=30)),
    ]
    cases = [Case(words, (x,), logsumexp(x)) for words, x in rows]
    return examine(_streamed(answer), cases, STREAM_MISTAKES)


class _Stream:
    """Gives scores one by one, once, as a generator does, and counts how often it was asked at its end."""

    def __init__(self, x):
        self.x, self.at, self.ended = x, 0, 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.at == len(self.x):
            self.ended += 1
            raise StopIteration
        self.at += 1
        return float(self.x[self.at - 1])


def _streamed(answer):
    """Return answer as a function of a row, which it gets as a stream; finds out what it holds on to."""
    import tracemalloc

    def f(stream):
        given = _Stream(stream)
        twice = Finding("the stream is gone through twice: the second time there is nothing left")
        try:
            result = answer(given)
        except Exception:
            if given.ended > 1:
                raise twice from None
            raise
        if given.ended > 1 and not same(result, logsumexp(stream), 1e-6):
            raise twice
        if not f.measured:
            f.measured, many = True, _Stream(np.zeros(20000))
            tracemalloc.start()
            attempt(answer, many)
            held = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            if held > 50_000:
                raise Finding(f"20000 scores take {held / 1000:.0f} kB of memory: keep only single numbers")
        return result

    f.measured = False
    return f


def _until_masked(x):
    """Return x up to its first score of -inf."""
    masked = np.flatnonzero(x == -np.inf)
    return x[: masked[0]] if len(masked) else x


def _lse(x, *, start=-np.inf, skip=True, alpha=True, log_only=False, end=None):
    m, l = start, 0.0
    for x_j in x:
        if skip and x_j == -np.inf:
            continue
        m_old, m = m, max(m, x_j)
        l = l * (np.exp(m_old - m) if alpha else 1.0) + np.exp(x_j - m)
    if end is not None and not l:
        return end
    return np.log(l) if log_only else m + np.log(l) if l else -np.inf


STREAM_MISTAKES = [
    Mistake(
        "the maximum is not subtracted: exp overflows or underflows",
        lambda x: np.log(sum(np.exp(x_j) for x_j in x)),
    ),
    Mistake(f"l is not rescaled when the maximum grows: {RESCALE}", lambda x: _lse(x, alpha=False)),
    Mistake("m is missing: log-sum-exp is m + log(l)", lambda x: _lse(x, log_only=True, end=-np.inf)),
    Mistake("0 is returned where no score came: the log of an empty sum is -inf", lambda x: _lse(x, end=0.0)),
    Mistake("nan for masked scores, since -inf - (-inf) is nan: pass over them", lambda x: _lse(x, skip=False)),
    Mistake("it stops at the first masked score: pass over it, with continue", lambda x: _lse(_until_masked(x))),
    Mistake("m starts at 0: scores far below it underflow, and l is 0", lambda x: _lse(x, start=0.0, end=-np.inf)),
    Mistake("the sum is returned: log-sum-exp is its logarithm", lambda x: np.exp(_lse(x))),
    Mistake("the maximum is returned: log-sum-exp is m + log(l)", lambda x: x.max(initial=-np.inf)),
]


@exercise(title="Carry one number more", minutes=10, difficulty="medium")
def weighted_mean(answer):
    rng = np.random.default_rng(0)
    v = np.array([10.0, 20.0, 30.0, 40.0])
    rows = [
        ("one score", np.zeros(1), v[:1]),
        ("two scores", np.array([0.0, 1.0]), v[:2]),
        ("four scores", np.log([1.0, 2.0, 1.0, 4.0]), v),
        ("scores that fall", np.array([3.0, 2.0, 1.0, 0.0]), v),
        ("scores near 1000", np.array([1000.0, 1001.0, 999.0]), v[:3]),
        ("scores near -1000", np.array([-1000.0, -1001.0]), v[:2]),
        ("scores of hundreds", rng.normal(scale=300, size=30), rng.normal(size=30)),
    ]
    cases = [Case(words, (x, v), safe(x) @ v) for words, x, v in rows]
    return examine(_metered(answer), cases, MEAN_MISTAKES)


class _Single(HBM):
    """Slow memory that remembers the most numbers loaded at once."""

    def __array_finalize__(self, parent):
        super().__array_finalize__(parent)
        self.most = getattr(parent, "most", None) or [0]

    def __getitem__(self, key):
        loaded = super().__getitem__(key)
        self.most[0] = max(self.most[0], loaded.size)
        return loaded


def _metered(answer):
    """Return answer with its arguments in metered memory; finds out if they are read twice, or a row is kept."""
    import tracemalloc

    def f(x, v):
        placed = {"x": _Single.put(x)[0], "v": _Single.put(v)[0]}
        result = answer(*placed.values())
        for name, X in placed.items():
            if X.traffic.read > X.nbytes:
                raise Finding(f"{name} is read {X.traffic.read / X.nbytes:.1f} times: read each number once")
            if X.most[0] > 1 and len(X) > 4:
                raise Finding(f"{X.most[0]} numbers of {name} are loaded at once: take one at a time")
        if not same(result, safe(x) @ v, 1e-6):
            return result
        for name, X in placed.items():
            if X.traffic.read < X.nbytes:
                raise Finding(
                    f"{name} is read past the meter, as by np.asarray: take {name}[j], or loop over {name}"
                )
        if not f.measured and len(x) > 4:
            f.measured, many = True, _Single.put(np.zeros(8000), np.zeros(8000))
            tracemalloc.start()
            attempt(answer, *many)
            held = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            if held > 40_000:
                raise Finding(f"8000 scores take {held / 1000:.0f} kB of memory: keep m, l and one sum, no row")
        return result

    f.measured = False
    return f


def _mean(x, v, *, alpha_l=True, alpha_acc=True, divide=True, start=-np.inf, each=False):
    m, l, acc = start, 0.0, 0.0
    for x_j, v_j in zip(x, v, strict=True):
        m_old, m = m, max(m, x_j)
        alpha, p = np.exp(m_old - m), np.exp(x_j - m)
        l = (alpha if alpha_l else 1) * l + p
        acc = (alpha if alpha_acc else 1) * acc + p * v_j
        acc = acc / l if each else acc
    return acc / l if divide else acc


MEAN_MISTAKES = [
    Mistake(
        "the weighted sum is not rescaled when the maximum grows: it takes the same alpha as l",
        lambda x, v: _mean(x, v, alpha_acc=False),
    ),
    Mistake(
        "l is not rescaled when the maximum grows: it takes the same alpha as the weighted sum",
        lambda x, v: _mean(x, v, alpha_l=False),
    ),
    Mistake(
        "nothing is rescaled when the maximum grows: multiply both sums by exp(m_old - m)",
        lambda x, v: _mean(x, v, alpha_l=False, alpha_acc=False),
    ),
    Mistake("the final division by l is missing", lambda x, v: _mean(x, v, divide=False)),
    Mistake(
        "the weighted sum is divided by l at every score: divide once, at the end",
        lambda x, v: _mean(x, v, divide=False, each=True),
    ),
    Mistake("m starts at 0: scores far below it underflow, and 0 / 0 is nan", lambda x, v: _mean(x, v, start=0.0)),
    Mistake(
        "the maximum is not subtracted: exp overflows or underflows", lambda x, v: np.exp(x) @ v / np.exp(x).sum()
    ),
    Mistake("the plain mean of the values is taken: weight each by exp(x_j - m)", lambda x, v: v.mean()),
]
