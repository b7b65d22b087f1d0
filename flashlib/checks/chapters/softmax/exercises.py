"""The exercises on the naive softmax."""

import contextlib
from collections.abc import Callable
from functools import wraps

import numpy as np

from flashlib.checks.engine import Case, Known, Verdict, attempt, examine, exercise, random_cases
from flashlib.checks.engine.equality import as_numbers
from flashlib.checks.engine.value_text import show
from flashlib.softmax import naive

DTYPES = (np.float16, np.float32, np.float64)


# ---- softmax backwards


def _up_to_a_shift(answer):
    """Return answer with its scores shifted, since right scores remain right if they are shifted."""

    @wraps(answer)
    def run(p):
        x = answer(p)
        try:
            scores = as_numbers(x)
        except (TypeError, ValueError):
            return x
        return _shifted(scores) if scores.shape == p.shape else x

    return run


def _shifted(x):
    """Return the scores x, shifted so that their exponentials add up to 1."""
    return x - np.logaddexp.reduce(x)


@exercise(title="Softmax backwards", minutes=5, difficulty="easy", model=_up_to_a_shift)
def scores_for(answer: Callable, known: Known) -> Verdict:
    rows = (
        ("a single weight", [1.0]),
        ("two weights", [0.25, 0.75]),
        ("the four weights of the chapter", [0.125, 0.25, 0.125, 0.5]),
        ("equal weights", [0.2] * 5),
        ("weights of very different size", [0.999, 0.0005, 0.0005]),
        ("weights as small as 1e-30", [1 - 2**-20, 2**-20, 1e-30]),
        ("twenty weights", np.arange(1, 21) / 210),
    )
    cases = [_backwards(words, row) for words, row in rows]
    verdict = examine(_up_to_a_shift(answer), cases + random_cases.cases(_any_weights), known)
    if verdict.right or verdict.mistake in ("", "raises", "nothing_returned", "kind", "shape", "argument_changed"):
        return verdict
    return verdict.with_details(("note", "both are shown shifted so that the exponentials add up to 1"))


def _backwards(words, row):
    p = np.array(row)
    return Case(words, (p,), _shifted(np.log(p)), 1e-10)


def _any_weights(rng):
    p = rng.dirichlet(np.ones(rng.integers(17, 60)))
    return _backwards(f"{len(p)} weights", p)


# ---- the last finite exponential


@exercise(title="The last finite exponential", minutes=10, difficulty="easy", optional=True)
def overflow_threshold(answer: Callable, known: Known) -> Verdict:
    right = {dtype: _last(dtype) for dtype in DTYPES}
    cases = [Case(dtype.__name__, (dtype,), float(x), 0.0) for dtype, x in right.items()]
    answer, given = _recorded(answer)
    verdict = examine(answer, cases, known)
    if verdict.mistake != "value":
        return verdict
    values = list(given.values())
    at = next(n for n, x in enumerate(values) if x != float(right[DTYPES[n]]))
    if np.isnan(values[at]):
        return verdict
    if len(set(values)) == 1 and np.isfinite(values[0]):
        return known.wrong("same_for_all", *verdict.details)
    if all(x < 0 for x in values):
        return known.wrong("underflow", *verdict.details)
    id, fields = _about_threshold(DTYPES[at], values[at], right)
    return known.wrong(id, *verdict.details, name=DTYPES[at].__name__, **fields)


def _last(dtype):
    """Return the largest number of the dtype whose exponential is finite."""
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")  # positive numbers are ordered like their bits as integers
    low, high = 0, int(np.array(np.inf, dtype).view(bits))
    while high - low > 1:
        middle = (low + high) // 2
        finite = np.isfinite(attempt(np.exp, np.array(middle, bits).view(dtype)[()]))
        low, high = (middle, high) if finite else (low, middle)
    return np.array(low, bits).view(dtype)[()]


def _recorded(answer):
    """Return answer, and {its arguments: its result as a float, nan if it is not a number}."""
    given = {}

    @wraps(answer)
    def run(*arguments):
        x, given[arguments] = answer(*arguments), np.nan
        with contextlib.suppress(TypeError, ValueError):
            given[arguments] = as_numbers(x).item()
        return x

    return run, given


def _about_threshold(dtype, x, right):
    """Return the id and fields of the mistake in the value for one dtype."""
    formats = {other.__name__: float(y) for other, y in right.items() if other is not dtype}
    formats["bfloat16"] = np.floor(np.log(float(np.finfo(np.float32).max)) * 2) / 2  # near 88, multiples of 1/2
    with np.errstate(all="ignore"):
        rounded = dtype(x)
        for other, y in formats.items():
            if x in (y, float(dtype(y))):
                return "other_dtype", {"other": other}
        if np.isfinite(x) and float(rounded) != x:
            return "not_of_dtype", {"x": f"{x:.9g}"}
        if not np.isfinite(np.exp(rounded)):
            return "too_high", {"x": rounded}
        return "too_low", {"next": np.nextafter(rounded, dtype(np.inf))}


# ---- which scores are safe


@exercise(title="Which scores are safe?", minutes=10, difficulty="medium", optional=True)
def safe_bound(answer: Callable, known: Known) -> Verdict:
    runs = [(dtype, n) for n in (1, 3, 30, 100, 1000, 16384) for dtype in DTYPES]
    cases = [_bound(dtype, n) for dtype, n in runs] + random_cases.cases(_any_bound)
    answer, given = _recorded(answer)
    verdict = examine(answer, cases, known)
    if not verdict.right:
        return verdict
    bounds = [(*case.arguments, given[case.arguments], case.expected) for case in cases]
    for dtype, n, b, best in sorted(bounds, key=lambda bound: bound[1] == 1):  # first those in which n matters
        if problem := _about_bound(known, dtype, n, b, best):
            problem = _about_bounds(known, bounds) or problem
            input = f"dtype = {dtype.__name__}\nn = {n}"
            expected = f"a bound from {0.95 * best:.4f} to {best:.4f}"
            return problem.with_details(("input", input), ("expected", expected), ("given", show(b)))
    return verdict


def _bound(dtype, n):
    """Return the Case of the best bound; it accepts any number, which is judged later."""
    info = np.finfo(dtype)
    best = min(np.log(float(info.max) / n), -np.log(float(info.smallest_subnormal)))
    return Case(f"{dtype.__name__}, n = {n}", (dtype, n), float(best), np.inf)


def _any_bound(rng):
    return _bound(np.float16, int(rng.integers(4, 8000)))  # where n matters most


def _about_bound(known, dtype, n, b, best):
    """Return the Verdict on a wrong bound, or None."""
    with np.errstate(all="ignore"):
        x = dtype(b)
        if b < 0:
            return known.wrong("below_0")
        if not (_works(n, x) and _works(n, -x)):
            return known.wrong("sum_overflows", n=n)
    return known.wrong("small", share=f"{b / best:.0%}") if b < 0.949999 * best else None


def _works(n, x):
    """Return whether the weights of the naive softmax of n scores x add up to 1."""
    return bool(np.isclose(float(naive(np.full(n, x)).sum()), 1, atol=0.01))


def _about_bounds(known, bounds):
    """Return the Verdict of the mistake that explains all bounds, or None."""
    if all(-b > 0.9 * best for _, _, b, best in bounds):
        return known.wrong("sign")
    for mistake in known.mistakes():
        for way in mistake.ways:
            wrong = known.function(known.program.edited(way))
            guesses = [(b, attempt(wrong, dtype, n)) for dtype, n, b, _ in bounds]
            if all(b == x or 0.94 <= b / x <= 1.003 for b, x in guesses):  # answers leave different margins
                return known.wrong(mistake.id)
    if len({b for _, _, b, _ in bounds}) == 1:
        return known.wrong("same_for_all")
    if len({(dtype, b) for dtype, _, b, _ in bounds}) == len(DTYPES):
        return known.wrong("same_for_n")
    if len({(n, b) for _, n, b, _ in bounds}) == len({n for _, n, _, _ in bounds}):
        return known.wrong("same_for_dtypes")
    ratios = [b / best for _, _, b, best in bounds]
    if 0.95 <= min(ratios) and max(ratios) <= 1.01:
        return known.wrong("no_room")
    if 0 < max(ratios) < 0.95 and max(ratios) - min(ratios) < 0.02:
        return known.wrong("small_everywhere", share=f"{max(ratios):.0%}")
    return None
