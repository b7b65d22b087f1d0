"""The exercises of chapter 03."""

import numpy as np

from flashlib.checks.examine import Case, Finding, Mistake, attempt, examine, same
from flashlib.checks.exercise import exercise
from flashlib.checks.verdict import Verdict
from flashlib.memory import HBM
from flashlib.softmax import State, logsumexp, safe, summarise

CHAPTER = "03_online_softmax"
FIELDS = "m", "l", "O_acc"
RESCALE = "multiply the old sum by exp(m_old - m)"


@exercise(chapter=CHAPTER, title="One online step", minutes=5, difficulty="easy")
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


@exercise(chapter=CHAPTER, title="Merge two states", minutes=15, difficulty="medium")
def merge(answer):
    def parts(x, V, cut):
        return summarise(x[:cut], V[:cut]), summarise(x[cut:], V[cut:])

    rng = np.random.default_rng(0)
    x, V = np.log([1.0, 2.0, 1.0, 4.0]), np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0]])
    nothing = State(-np.inf, 0.0, np.zeros(2))
    cases = [
        _merged("the larger maximum in b", *parts(x, V, 2)),
        _merged("the larger maximum in a", *parts(x[::-1].copy(), V, 2)),
        _merged("the identity as b", summarise(x, V), nothing),
        _merged("the identity as a", nothing, summarise(x, V)),
        _merged("the identity twice", nothing, nothing),
        _merged("scores near 1000", *parts(x + 1000, V, 1)),
        _merged("a b that counts for nearly nothing", *parts(np.array([900.0, 0.0]), V[:2], 1)),
    ]
    many = [
        [summarise(rng.normal(scale=30, size=n), rng.normal(size=(n, 2))) for n in (2, 5, 1)] for _ in range(2)
    ]
    a, b = (State(*(np.array(field) for field in zip(*some, strict=True))) for some in many)
    a.m[1], a.l[1], a.O_acc[1] = -np.inf, 0, 0
    cases.append(_merged("three rows at once, one of them empty in a", a, b))
    verdict = examine(_as_tuple(answer), cases, MERGE_MISTAKES, outputs=FIELDS)
    broken = _broken_law(answer) if verdict.right else ""
    return Verdict("", "wrong", broken) if broken else verdict


def _broken_law(answer):
    """Return which law of a monoid does not hold for random parts of rows, or ""."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        x, V = rng.normal(scale=30, size=9), rng.normal(size=(9, 2))
        x[rng.random(9) < 0.3] = -np.inf
        cuts = np.sort(rng.integers(0, 10, size=2))
        parts = zip(np.split(x, cuts), np.split(V, cuts), strict=True)
        states = [summarise(*part) for part in parts]
        a, b, c = (State(s.m, s.l, np.zeros(2) + s.O_acc) for s in states)
        ab, ba, bc = attempt(answer, a, b), attempt(answer, b, a), attempt(answer, b, c)
        left, right = attempt(answer, ab, c), attempt(answer, a, bc)
        if not all(hasattr(state, "O_acc") for state in (ab, ba, bc, left, right)):
            return "it raises for a State that it has returned: m, l and O_acc must be as those of its arguments"
        if not _are_same(ab, ba):
            return "it is not commutative: merge(a, b) is not merge(b, a)"
        if not _are_same(left, right):
            return "it is not associative: merge(merge(a, b), c) is not merge(a, merge(b, c))"
    return ""


def _are_same(a, b):
    return all(same(getattr(a, field), getattr(b, field), 1e-9) for field in FIELDS)


def _merged(words, a, b):
    return Case(words, (a, b), _merge(a, b))


def _merge(a, b, *, own=False, factor=lambda old, m: np.exp(old - m), O_factor=None, larger=np.maximum):
    """Return m, l and O_acc of two States together, with one of the parts exchanged for a wrong one."""
    m = larger(a.m, b.m)
    shift = np.where(np.isneginf(m), 0, m)
    O_factor = O_factor or factor
    l = factor(a.m, shift) * a.l + factor(b.m, shift) * b.l
    O_a, O_b = (np.asarray(O_factor(x.m, shift))[..., None] * x.O_acc for x in (a, b))
    return m, l, O_a + O_b


def _merge_unguarded(a, b):
    m = np.maximum(a.m, b.m)
    alpha_a, alpha_b = np.exp(a.m - m), np.exp(b.m - m)
    l = alpha_a * a.l + alpha_b * b.l
    return m, l, np.asarray(alpha_a)[..., None] * a.O_acc + np.asarray(alpha_b)[..., None] * b.O_acc


def _merge_one_side(a, b):
    m, l, O_acc = _merge(a, b)
    alpha = np.exp(a.m - np.where(np.isneginf(m), 0, m))
    return m, alpha * a.l + b.l, np.asarray(alpha)[..., None] * a.O_acc + b.O_acc


def _merge_normalised(a, b):
    m, l, O_acc = _merge(a, b)
    return m, l, O_acc / np.where(l == 0, 1, l)[..., None]


def _merge_mean(a, b):
    m, l, _ = _merge(a, b)
    O_a, O_b = (x.O_acc / np.where(x.l == 0, 1, x.l)[..., None] for x in (a, b))
    return m, l, (O_a + O_b) / 2


def _merge_other_side(a, b):
    return _merge_one_side(b, a)


MERGE_MISTAKES = [
    Mistake("only b is rescaled: a may be the part with the smaller maximum", _merge_other_side),
    Mistake("m is the smaller of the two: take the larger", lambda a, b: _merge(a, b, larger=np.minimum)),
    Mistake(
        "nothing is rescaled: multiply l and O_acc of each part by exp(its m - m)",
        lambda a, b: _merge(a, b, factor=lambda old, m: np.ones_like(old)),
    ),
    Mistake(
        "O_acc is not rescaled: it takes the same factors as l",
        lambda a, b: _merge(a, b, O_factor=lambda old, m: np.ones_like(old)),
    ),
    Mistake(
        "l is not rescaled: it takes the same factors as O_acc",
        lambda a, b: (_merge(a, b)[0], a.l + b.l, _merge(a, b)[2]),
    ),
    Mistake("only a is rescaled: b may be the part with the smaller maximum", _merge_one_side),
    Mistake(
        "the factors are upside down: exp(a.m - m), at most 1, and not exp(m - a.m)",
        lambda a, b: _merge(a, b, factor=lambda old, m: np.exp(m - old)),
    ),
    Mistake("the maxima are added: m is the larger of the two", lambda a, b: _merge(a, b, larger=np.add)),
    Mistake("m is that of a: take the larger of the two", lambda a, b: _merge(a, b, larger=lambda x, y: x)),
    Mistake(
        "nan where both parts are empty, since -inf - (-inf) is nan: shift by 0 where m is -inf", _merge_unguarded
    ),
    Mistake(
        "O_acc is divided by l: a State keeps the sum, the division comes after the last merge", _merge_normalised
    ),
    Mistake(
        "the plain mean of the outputs is taken: a part with a larger l exp(m) must count for more", _merge_mean
    ),
]


def _as_tuple(answer):
    """Return answer on copies of its arguments, its State as a plain tuple, so that outputs are told apart."""
    if not callable(answer):
        return answer

    def f(a, b):
        given = [State(*map(np.copy, s)) for s in (a, b)]  # arrays too where numbers were: [()] makes them numbers
        given = [State(*(x[()] for x in s)) for s in given]
        state = answer(*given)
        for name, before, after in zip("ab", (a, b), given, strict=True):
            for field, x, y in zip(FIELDS, before, after, strict=True):
                if not np.array_equal(x, y):
                    raise Finding(f"{field} of {name} is changed: make a new array, the part may be merged again")
        if type(state) in (tuple, list) and len(state) == len(FIELDS):
            raise Finding(f"returns a plain {type(state).__name__}: return State(m, l, O_acc)")
        if state is None or not hasattr(state, "O_acc"):
            return state
        O_acc = np.asarray(state.O_acc, dtype=float)
        return state.m, state.l, O_acc

    return f


@exercise(chapter=CHAPTER, title="A stream that cannot be rewound", minutes=10, difficulty="medium")
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


@exercise(chapter=CHAPTER, title="Merge finished outputs", minutes=10, difficulty="medium")
def merge_outputs(answer):
    rng = np.random.default_rng(0)
    x, V = np.log([1.0, 2.0, 1.0, 4.0]), np.array([[10.0], [20.0], [30.0], [40.0]])
    rows = [
        ("two halves of four scores", x, V, [2]),
        (
            "three parts of unlike length",
            np.array([0.0, 1.0, 3.0, 2.0, 5.0]),
            rng.normal(size=(5, 2)).round(1),
            [1, 2],
        ),
        ("one part", x, V, []),
        ("scores near 1000", x + 1000, V, [1]),
        ("scores near -1000", x - 1000, V, [3]),
        ("a part that is fully masked", np.append(x, [-np.inf, -np.inf]), np.vstack([V, V[:2]]), [2, 4]),
        ("parts that are all fully masked", np.full(3, -np.inf), V[:3], [1, 2]),
    ]
    cases = []
    for words, x, V, cuts in rows:
        some = list(zip(np.split(x, cuts), np.split(V, cuts), strict=True))
        O = np.array([safe(part) @ values for part, values in some])
        lse = np.array([logsumexp(part) for part, _ in some])
        cases.append(Case(words, (O, lse), (safe(x) @ V, logsumexp(x))))
    return examine(answer, cases, OUTPUT_MISTAKES, outputs=("O", "lse"))


def _weighted(O, lse, weights, total=None):
    return weights @ O, logsumexp(lse) if total is None else total


OUTPUT_MISTAKES = [
    Mistake(
        "the plain mean of the outputs is taken: weight each by exp(its lse - lse)",
        lambda O, lse: (O.mean(axis=0), logsumexp(lse)),
    ),
    Mistake(
        "the plain mean of the outputs is taken, and of the lse too", lambda O, lse: (O.mean(axis=0), lse.mean())
    ),
    Mistake(
        "the outputs are weighted by their lse: the weights are exp(its lse - lse)",
        lambda O, lse: _weighted(O, lse, lse / lse.sum()),
    ),
    Mistake(
        "the outputs are summed with weights that do not add up to 1: divide by the sum of all",
        lambda O, lse: _weighted(O, lse, np.exp(lse - lse.max())),
    ),
    Mistake(
        "exp of an lse overflows: subtract the largest lse first",
        lambda O, lse: (np.exp(lse) @ O / np.exp(lse).sum(), np.log(np.exp(lse).sum())),
    ),
    Mistake(
        "lse is the largest of the parts: it is the log-sum-exp of them",
        lambda O, lse: _weighted(O, lse, safe(lse), lse.max()),
    ),
    Mistake(
        "the largest lse is missing in lse: it was subtracted, so add it to the logarithm",
        lambda O, lse: _weighted(
            O, lse, safe(lse), logsumexp(lse - lse.max()) if lse.max() > -np.inf else -np.inf
        ),
    ),
    Mistake(
        "lse is the sum of those of the parts: it is the log-sum-exp of them",
        lambda O, lse: _weighted(O, lse, safe(lse), lse.sum()),
    ),
    Mistake(
        "lse is the mean of those of the parts: it is the log-sum-exp of them",
        lambda O, lse: _weighted(O, lse, safe(lse), lse.mean()),
    ),
    Mistake(
        "nan where all parts are masked: -inf - (-inf) is nan, so give zeros and -inf there",
        lambda O, lse: _unguarded_outputs(O, lse),
    ),
    Mistake(
        "only the part with the largest lse counts: the others have weights too",
        lambda O, lse: (O[lse.argmax()], logsumexp(lse)),
    ),
]


def _unguarded_outputs(O, lse):
    m = lse.max()
    weights = np.exp(lse - m)
    return weights @ O / weights.sum(), m + np.log(weights.sum())


@exercise(chapter=CHAPTER, title="Carry one number more", minutes=10, difficulty="medium")
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

    if not callable(answer):
        return answer

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
