"""The exercises of chapter 03 on merging the parts of a row."""

import numpy as np

from flashlib.checks.examine import Case, Finding, Mistake, attempt, examine, same
from flashlib.checks.exercise import exercise
from flashlib.checks.verdict import Verdict
from flashlib.softmax import State, logsumexp, safe, summarise

FIELDS = "m", "l", "O_acc"


@exercise(title="Merge two states", minutes=15, difficulty="medium")
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


@exercise(title="Merge finished outputs", minutes=10, difficulty="medium")
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
