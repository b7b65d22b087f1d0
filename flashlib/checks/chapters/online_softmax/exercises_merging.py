"""The exercises on merging the parts of a row."""

from collections.abc import Callable
from functools import wraps

import numpy as np

from flashlib.checks.engine import (
    Case,
    Finding,
    Known,
    Measured,
    Verdict,
    attempt,
    examine,
    exercise,
    random_cases,
)
from flashlib.checks.engine.equality import same
from flashlib.softmax import State, logsumexp, safe, summarise_rows
from flashlib.softmax import merge as true_merge

INF = np.inf
CLOSE = 1e-10  # relative error: less than if 1e-9 is added to a sum
EXACT = 1e-13  # less than if a weight of exp(-25) is left out
COARSE = 1e-3  # for scores near -2e12, whose lse has so few digits
FOUR = np.log([1.0, 2.0, 1.0, 4.0])


@exercise(title="Merge two states", minutes=15, difficulty="medium")
def merge(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    V = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0]])
    far, equal = np.array([900.0, 0.0]), np.array([1.0, 2.0, 2.0, 0.0])
    one_side = [
        _merged("one score each, the larger in b", *_cut(np.array([0.0, 1.0]), V[:2, :1], 1)),
        _merged("the larger maximum in b", *_cut(FOUR, V, 2)),
        _merged("the larger maximum in a", *_cut(FOUR[::-1].copy(), V, 2)),
        _merged("two equal maxima", *_cut(equal, V, 2)),
        _merged("the identity as b", *_cut(FOUR, V, 4)),
        _merged("the identity as a", *_cut(FOUR, V, 0)),
        _merged("scores near 1000", *_cut(FOUR + 1000, V, 1)),
        _merged("two equal maxima near 1000", *_cut(equal + 1000, V, 2)),
        _merged("scores near -1000", *_cut(FOUR - 1000, V, 1)),
        _merged("scores near -2e12", *_cut(FOUR - 2e12, V, 2))._replace(tolerance=COARSE),
        _merged("values that are 0 in a", *_cut(FOUR, V * [[0], [0], [1], [1]], 2)),
        _merged("values that are 0 in b", *_cut(FOUR, V * [[1], [1], [0], [0]], 2)),
        _merged("a b with nearly no weight", *_cut(far, V[:2], 1)),
        _merged("an a with nearly no weight", *_cut(far[::-1].copy(), V[:2], 1)),
        _merged("two rows of two values", *_rows(rng, 2, 2)),
        _merged("three rows at once, one of them empty in a", *_rows(rng, 3, 2, a=1)),
        _merged("three rows at once, one of them empty in b", *_rows(rng, 3, 2, b=0)),
        _merged("rows 2000 apart, one of them empty in a", *_apart(_rows(rng, 3, 2, a=1))),
        _merged("rows 2000 apart, one of them empty in b", *_apart(_rows(rng, 3, 2, b=1))),
        _merged("a maximum of 0 in a", *_cut(np.array([0.0, -1.0, 1.0, 0.0]), V, 2)),
        _merged("a maximum of 0 in b", *_cut(np.array([1.0, 0.0, 0.0, -1.0]), V, 2)),
        _merged("a b 25 below a", *_cut(np.array([1.0, 0.0, -25.0, -24.0]), V, 2))._replace(tolerance=EXACT),
        _merged("an a 25 below b", *_cut(np.array([-25.0, -24.0, 1.0, 0.0]), V, 2))._replace(tolerance=EXACT),
    ]
    empty = [
        _merged("the identity twice", *_cut(FOUR[:0], V[:0], 0)),
        _merged("three rows at once, one of them empty in a and in b", *_rows(rng, 3, 2, a=2, b=2)),
        _merged("rows that are all empty in a and in b", *_rows(rng, 2, 3, a=slice(None), b=slice(None))),
        _merged("rows 2000 apart, one of them empty in a and in b", *_apart(_rows(rng, 3, 2, a=1, b=1))),
    ]
    stages = [one_side + random_cases.cases(_any_rows), empty]
    verdict = examine(_as_tuple(answer), stages, known, outputs=State._fields)
    broken = verdict.right and _broken_law(answer)
    return known.wrong(broken) if broken else verdict


def _merged(words, a, b):
    return Case(words, (a, b), tuple(true_merge(a, b)), CLOSE)


def _cut(x, V, cut):
    """Return the States of the scores before a cut and after it."""
    return [summarise_rows(*part) for part in ((x[:cut], V[:cut]), (x[cut:], V[cut:]))]


def _rows(rng, n, d, a=(), b=(), scale=30):
    """Return two States of n rows at once; a, b: the rows that are empty in the first and in the second."""
    some = [
        [summarise_rows(rng.normal(scale=scale, size=k), rng.uniform(1, 5, size=(k, d))) for k in (2, 5)]
        for _ in range(n)
    ]
    states = [State(*(np.array(field) for field in zip(*part, strict=True))) for part in zip(*some, strict=True)]
    for state, rows in zip(states, (a, b), strict=True):
        if rows != ():
            state.m[rows], state.l[rows], state.O_acc[rows] = -INF, 0, 0
    return states


def _apart(states):
    """Return States of several rows whose scores differ by 2000 from one row to the next."""
    return [state._replace(m=state.m + 2000.0 * np.arange(len(state.m))) for state in states]


def _any_rows(rng):
    n, d = rng.integers(1, 7, size=2)
    return _merged(f"{n} rows of {d} values", *_rows(rng, n, d, scale=rng.choice([1, 30, 1000])))


def _broken_law(answer):
    """Return the id of a law of merge that does not hold for random parts of rows, or ""."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        x, V = rng.normal(scale=30, size=9), rng.normal(size=(9, 2))
        x[rng.random(9) < 0.3] = -INF
        cuts = np.sort(rng.integers(0, 10, size=2))
        a, b, c = (summarise_rows(*part) for part in zip(np.split(x, cuts), np.split(V, cuts), strict=True))
        ab, ba, bc = attempt(answer, a, b), attempt(answer, b, a), attempt(answer, b, c)
        left, right = attempt(answer, ab, c), attempt(answer, a, bc)
        if not all(hasattr(state, "O_acc") for state in (ab, ba, bc, left, right)):
            return "raises_for_own"
        if not _are_same(ab, ba):
            return "not_commutative"
        if not _are_same(left, right):
            return "not_associative"
    return ""


def _are_same(a, b):
    return all(same(getattr(a, field), getattr(b, field), 1e-9) for field in State._fields)


def _as_tuple(answer):
    """Return answer with its State as a plain tuple, so that a verdict shows each output."""

    @wraps(answer)
    def run(a, b):
        before = [[np.copy(x) for x in state] for state in (a, b)]
        state, found = answer(a, b), None
        for name, old, new in zip("ab", before, (a, b), strict=True):
            for field, x, y in zip(State._fields, old, new, strict=True):
                if x.tobytes() != np.asarray(y).tobytes():
                    found = found or Finding("part_changed", field=field, name=name)
        if hasattr(state, "m") and hasattr(state, "l") and hasattr(state, "O_acc"):
            state = state.m, state.l, state.O_acc
        elif isinstance(state, tuple | list) and len(state) == len(State._fields):
            found = found or Finding("no_state", given=type(state).__name__)
        return Measured(state, found)

    return run


@exercise(title="Merge finished outputs", minutes=10, difficulty="medium")
def merge_outputs(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    V, W = np.array([[10.0], [20.0], [30.0], [40.0]]), rng.normal(size=(5, 2)).round(1)
    some_lse = [
        _outputs("one part", FOUR, V, []),
        _outputs("two equal parts", FOUR[[0, 1, 0, 1]], V, [2]),
        _outputs("two halves of four scores", FOUR, V, [2]),
        _outputs("three parts of different lengths", np.array([0.0, 1.0, 3.0, 2.0, 5.0]), W, [1, 2]),
        _outputs("scores near 1000", FOUR + 1000, V, [1]),
        _outputs("scores near -1000", FOUR - 1000, V, [3]),
        _outputs("scores near -20000", FOUR - 20000, V, [3]),
        _outputs("scores near -1000000", FOUR - 1e6, V, [3]),
        _outputs("parts of lse 0", np.zeros(2), V[:2], [1]),
        _outputs("parts of lse 0 and 1", np.array([0.0, 1.0]), V[:2], [1]),
        _outputs("a part 20 below the other", np.array([-19.0, 1.0]), V[[3, 0]], [1])._replace(tolerance=EXACT),
        _outputs("values that are 0 in one part", FOUR, V * [[1], [1], [0], [0]], [2]),
        _outputs("values that are all 0", FOUR, 0 * V, [2]),
        _outputs("scores that rise by 1000", 1000.0 * np.arange(-2, 3), W, [1, 2, 3, 4]),
        _outputs("scores that fall by 1000", -1000.0 * np.arange(-2, 3), W, [1, 2, 3, 4]),
        _outputs("a part that is fully masked", np.array([0.0, 1.0, -INF, -INF, 2.0]), W, [2, 4]),
        _outputs("a first part that is fully masked", np.array([-INF, -INF, 1.0, 2.0, 0.0]), W, [2, 3]),
    ]
    none = [
        _outputs("parts that are all fully masked", np.full(3, -INF), W[:3], [1, 2]),
        _outputs("one part that is fully masked", np.full(2, -INF), V[:2], []),
    ]
    return examine(answer, [some_lse + random_cases.cases(_any_outputs), none], known, outputs=("O", "lse"))


def _outputs(words, x, V, cuts):
    parts = list(zip(np.split(x, cuts), np.split(V, cuts), strict=True))
    O = np.array([safe(scores) @ values for scores, values in parts])
    lse = np.array([logsumexp(scores) for scores, _ in parts])
    return Case(words, (O, lse), (safe(x) @ V, logsumexp(x)), CLOSE)


def _any_outputs(rng):
    n, d = rng.integers(1, 7, size=2)
    x, V = rng.normal(scale=rng.choice([1, 30, 1000]), size=2 * n), rng.uniform(1, 5, size=(2 * n, d)).round(1)
    return _outputs(f"{n} parts and {d} values", x, V, np.arange(2, 2 * n, 2))
