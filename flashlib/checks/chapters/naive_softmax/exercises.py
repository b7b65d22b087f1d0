"""The exercises of chapter 01."""

from functools import wraps

import numpy as np

from flashlib.checks.examine import Case, Mistake, attempt, examine, find_problem
from flashlib.checks.exercise import exercise
from flashlib.checks.process import announce
from flashlib.checks.values import as_numbers, show
from flashlib.checks.verdict import Verdict
from flashlib.softmax import naive

DTYPES = (np.float16, np.float32, np.float64)


# ---- softmax backwards


@exercise(title="Softmax backwards", minutes=5, difficulty="easy")
def scores_for(answer):
    rows = {
        "a single weight": [1.0],
        "two weights": [0.25, 0.75],
        "the four weights of the chapter": [0.125, 0.25, 0.125, 0.5],
        "equal weights": [0.2] * 5,
        "weights of very different size": [0.999, 0.0005, 0.0005],
        "weights as small as 1e-30": [1 - 2**-20, 2**-20, 1e-30],
    }
    cases = []
    for words, row in rows.items():
        p = np.array(row)
        cases.append(Case(words, (p,), _shifted(np.log(p)), 1e-6))
    mistakes = [Mistake(sentence, _up_to_a_shift(wrong)) for sentence, wrong in _backwards()]
    verdict = examine(_up_to_a_shift(answer), cases, mistakes)
    if verdict.outcome != "wrong" or not any(label == "given" for label, _ in verdict.details):
        return verdict
    if verdict.sentence.startswith("the result"):  # has another shape, or is no array
        return verdict
    return verdict.with_details(("note", "both are shown shifted so that the exponentials add up to 1"))


def _backwards():
    """Return (sentence, function) of each known mistake in scores_for."""
    found = [
        ("the weights are returned as they are: softmax of p is not p, undo its exponential", lambda p: p),
        ("the sign is turned round: -log(p) gives the smallest weight the highest score", lambda p: -np.log(p)),
        ("softmax is taken once more: it has to be undone, with a logarithm", naive),
        ("the exponential is taken: it has to be undone, with a logarithm", np.exp),
        ("the logarithm is to base 2: softmax takes powers of e, undo them with np.log", np.log2),
        ("the logarithm is to base 10: softmax takes powers of e, undo them with np.log", np.log10),
        ("np.log1p is the logarithm of 1 + p: take that of p", np.log1p),
        ("log(p / (1 - p)) undoes the sigmoid of one number: softmax divides by a sum, take log(p)", _logit),
        ("1 / p turns the order round: undo the exponential, with a logarithm", lambda p: 1 / p),
        ("all scores are equal: the weights are not", np.zeros_like),
        ("the logarithm is rounded to fp16: keep the dtype of p", lambda p: np.log(p).astype(np.float16)),
    ]
    sentence = "a small number is added to the weights before the logarithm: they are positive, take log(p)"
    for eps in (1e-3, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12, 1e-15, 1e-16, 1e-20):
        found.append((sentence, lambda p, eps=eps: np.log(p + eps)))
        found.append((sentence, lambda p, eps=eps: np.log(np.maximum(p, eps))))
    return found


def _logit(p):
    return np.log(p / (1 - p))


def _shifted(x):
    """Return the scores x shifted so that their exponentials add up to 1."""
    return x - np.logaddexp.reduce(x)


def _up_to_a_shift(answer):
    """Return answer with its scores shifted: any shift of right scores is right."""

    @wraps(answer)
    def run(p):
        x = answer(p)
        try:
            scores = as_numbers(x)
        except (TypeError, ValueError):
            return x
        return _shifted(scores) if scores.shape == p.shape else x

    return run


# ---- the last finite exponential


@exercise(title="The last finite exponential", minutes=10, difficulty="easy")
def overflow_threshold(answer):
    given = []
    for dtype in DTYPES:
        announce(f"dtype = {dtype.__name__}")
        given.append(attempt(answer, dtype))
        if getattr(given[-1], "unsolved", False):
            return Verdict("", "not solved yet", "")
    right = [_last(dtype, lambda x: np.isfinite(np.exp(x))) for dtype in DTYPES]
    for dtype, x, y in zip(DTYPES, given, right, strict=True):
        problem = find_problem(x, Case(dtype.__name__, (dtype,), float(y), 0.0), ("result",))
        if not problem:
            continue
        details = [("input", f"dtype = {dtype.__name__}"), ("expected", f"{y}")]
        if problem.startswith("wrong"):
            values = [_value(x) for x in given]
            problem = _about_thresholds(values, right) or _about_threshold(dtype, _value(x), right)
            details.append(("given", f"{x}"))
        return Verdict("", "wrong", problem, tuple(details))
    return Verdict("", "right", "exactly, in fp16, fp32 and fp64")


def _last(dtype, holds):
    """Return the largest number of the dtype for which `holds`, which is true of 0 and at some point ends."""
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")  # positive numbers have the order of their bits, as integers
    low, high = 0, int(np.array(np.inf, dtype).view(bits))
    with np.errstate(all="ignore"):
        while high - low > 1:
            middle = (low + high) // 2
            x = np.array(middle, bits).view(dtype)[()]
            low, high = (middle, high) if holds(x) else (low, middle)
    return np.array(low, bits).view(dtype)[()]


def _value(x):
    """Return x as a float; nan if it is no number."""
    try:
        return float(as_numbers(x))
    except (TypeError, ValueError):
        return np.nan


def _about_thresholds(values, right):
    """Return the sentence of the mistake that gives these values in all dtypes, or ""."""
    largest = [np.finfo(dtype).max for dtype in DTYPES]
    floors = [np.floor(float(y)) for y in right]
    known = [
        ("it returns the first number whose exp is inf: step back down once", [_next(y, np.inf) for y in right]),
        (
            "it stops one number too early: the next one up has a finite exp too",
            [_next(y, -np.inf) for y in right],
        ),
        ("it steps by whole numbers: np.nextafter steps to the next number of the dtype", floors),
        ("it steps by whole numbers: np.nextafter steps to the next number of the dtype", [y + 1 for y in floors]),
        (
            "log(largest) is no number of fp16 or fp32: go from there to the last number whose exp is finite",
            [np.log(float(x)) for x in largest],
        ),
        (
            "log(largest), rounded to the dtype, may overflow: from there, step down while exp is inf",
            [dtype(np.log(float(x))) for dtype, x in zip(DTYPES, largest, strict=True)],
        ),
        ("it returns the largest number: return the x whose exponential is the largest", largest),
        ("it returns the exponential: return the x that it was taken of", [np.exp(y) for y in right]),
    ]
    for base, log in ((2, np.log2), (10, np.log10)):
        sentence = f"it takes the logarithm to base {base}: exp is a power of e, its inverse is np.log"
        wrong = [log(float(x)) for x in largest]
        known += [(sentence, wrong), (sentence, [dtype(x) for dtype, x in zip(DTYPES, wrong, strict=True)])]
    for sentence, wrong in known:
        pairs = zip(values, wrong, strict=True)
        if all(x == float(y) for x, y in pairs):
            return sentence
    if len(set(values)) == 1:
        return "it gives the same number for every dtype: take the exponential in that dtype, np.exp(dtype(x))"
    if all(x < 0 for x in values):
        return "it looks for the underflow, where exp becomes 0: overflow is at the other end, above 0"
    return ""


def _about_threshold(dtype, x, right):
    """Return what is wrong with a value for one dtype."""
    name = dtype.__name__
    with np.errstate(over="ignore"):
        rounded = dtype(x)
    formats = {other.__name__: float(y) for other, y in zip(DTYPES, right, strict=True)}
    formats["bfloat16"] = np.floor(np.log(float(np.finfo(np.float32).max)) * 2) / 2  # it has halves near 88
    for other, y in formats.items():
        if x in (y, float(dtype(y))) and other != name:
            return f"that is the last x of {other}, not of {name}: take the exponential in the dtype that is given"
    if np.isfinite(x) and float(rounded) != x:
        return f"{x:.9g} is no number of {name}: go through the numbers of the dtype, dtype(x), with np.nextafter"
    if not np.isfinite(np.exp(rounded)):
        return f"too high: the exponential of {rounded} is inf in {name}"
    return f"too low: {_next(rounded, np.inf)} is the next number of {name}, and its exponential is finite too"


def _next(x, towards):
    """Return the neighbour of x in its dtype."""
    with np.errstate(over="ignore"):
        return np.nextafter(x, type(x)(towards))


# ---- which scores are safe


@exercise(title="Which scores are safe?", minutes=10, difficulty="medium")
def safe_bound(answer):
    runs = [(dtype, n) for n in (1, 3, 100, 1000, 16384) for dtype in DTYPES]
    given = []
    for dtype, n in runs:
        announce(_run(dtype, n))
        given.append(attempt(answer, dtype, n))
        if getattr(given[-1], "unsolved", False):
            return Verdict("", "not solved yet", "")
    best = [float(_last(dtype, lambda x, n=n: _works(n, x) and _works(n, -x))) for dtype, n in runs]
    for (dtype, n), b, most in zip(runs, given, best, strict=True):
        words = f"{dtype.__name__}, n = {n}"
        problem = find_problem(b, Case(words, (dtype, n), most, np.inf), ("result",))
        if not problem:
            problem = _about_bound(dtype, n, _value(b), most)
            problem = problem and (_about_bounds(runs, [_value(b) for b in given], best) or problem)
        if problem:
            expected = f"a bound from {0.95 * most:.4f} to {most:.4f}"
            details = (("input", _run(dtype, n)), ("expected", expected), ("given", show(b)))
            return Verdict("", "wrong", problem, details[:2] if hasattr(b, "unsolved") else details)
    return Verdict("", "right", f"large enough and small enough, in all {len(runs)} cases")


def _run(dtype, n):
    return f"dtype = {dtype.__name__}\nn = {n}"


def _works(n, x):
    """Return whether the naive softmax of n scores x gives weights that add up to 1."""
    return bool(np.isclose(float(naive(np.full(n, x)).sum()), 1, atol=0.01))


def _about_bound(dtype, n, b, best):
    """Return what is wrong with one bound, or ""."""
    with np.errstate(all="ignore"):
        x = dtype(b)
        if b < 0:
            return "the bound is below 0: there are no scores between -b and b"
        if not _works(n, x):
            return f"too large: with n = {n} and all scores at b, the sum of the exponentials overflows"
        if not _works(n, -x):
            return f"too large: with n = {n} and all scores at -b, the exponentials are all 0"
    if b < 0.95 * best:
        return f"needlessly small: it is {b / best:.0%} of the best bound, and at least 95% are asked for"
    return ""


def _about_bounds(runs, given, best):
    """Return the sentence of the mistake that explains all bounds, or ""."""
    if all(-b > 0.9 * most for b, most in zip(given, best, strict=True)):
        return "the sign is wrong: b is the upper end, above 0"
    for sentence, wrong in _BOUNDS:
        with np.errstate(all="ignore"):
            guesses = [wrong(np.finfo(dtype), n) for dtype, n in runs]
        if all(0.94 <= b / guess <= 1.003 for b, guess in zip(given, guesses, strict=True)):
            return sentence
    if len(set(given)) == 1:
        return "it gives the same bound for every dtype and n: it depends on both"
    by_run = {(dtype.__name__, n): b for (dtype, n), b in zip(runs, given, strict=True)}
    if all(by_run[name, n] == by_run[name, 1] for name, n in by_run):
        return _NO_N
    if all(by_run[name, n] == by_run["float16", n] for name, n in by_run):
        return "it gives the same bound for every dtype: np.finfo(dtype) knows the largest number of each"
    if all(0.95 * most <= b <= 1.01 * most for b, most in zip(given, best, strict=True)):
        return "no room is left for rounding: the exact limit, rounded to the dtype, may overflow; take 99% of it"
    ratios = [b / most for b, most in zip(given, best, strict=True)]
    if 0 < max(ratios) < 0.95 and max(ratios) - min(ratios) < 0.02:
        return f"needlessly small: about {max(ratios):.0%} of the best bound everywhere; 95% are asked for"
    return ""


def _overflow(info, n):
    return np.log(float(info.max) / n)


def _smallest(info):
    return float(info.smallest_subnormal)


_NO_N = "n is ignored: n terms overflow in their sum before a single one does, at log(largest / n)"
_BOUNDS = (  # (sentence, the bound that the mistake gives)
    (_NO_N, lambda info, n: np.log(float(info.max))),
    (
        "only the underflow is looked at, or the larger of two limits taken: the sum overflows earlier",
        lambda info, n: -np.log(_smallest(info)),
    ),
    (
        "only the underflow is looked at, or the larger of two limits taken: the sum overflows earlier",
        lambda info, n: -np.log(float(info.smallest_normal)),
    ),
    ("the logarithm is to base 2: exp is a power of e, take np.log", lambda info, n: np.log2(float(info.max) / n)),
    (
        "the logarithm is to base 10: exp is a power of e, take np.log",
        lambda info, n: np.log10(float(info.max) / n),
    ),
    (
        "the logarithm is divided by n: n belongs inside it, log(largest / n) = log(largest) - log(n)",
        lambda info, n: np.log(float(info.max)) / n,
    ),
    (
        "n is subtracted from the logarithm: log(largest / n) is log(largest) - log(n)",
        lambda info, n: np.log(float(info.max)) - n,
    ),
    (
        "n has the wrong sign: more terms leave less room, log(largest / n) is log(largest) - log(n)",
        lambda info, n: np.log(float(info.max)) + np.log(n),
    ),
    (
        "n has the wrong sign: more terms leave less room, log(largest / n) is log(largest) - log(n)",
        lambda info, n: min(np.log(float(info.max)) + np.log(n), -np.log(_smallest(info))),
    ),
    (
        "n has the wrong sign: more terms leave less room, log(largest / n) is log(largest) - log(n)",
        lambda info, n: min(np.log(float(info.max) * n), -np.log(_smallest(info))),
    ),
    ("that bounds exp(b), not b: take its logarithm", lambda info, n: float(info.max) / n),
    (
        "smallest_normal, or tiny, is not the smallest positive number: that is smallest_subnormal",
        lambda info, n: min(_overflow(info, n), -np.log(float(info.smallest_normal))),
    ),
    (
        "finfo.eps is the step from 1 to its neighbour: the smallest positive number is smallest_subnormal",
        lambda info, n: min(_overflow(info, n), -np.log(float(info.eps))),
    ),
    (
        "whole numbers are needlessly coarse: b need not be one",
        lambda info, n: np.floor(_overflow(info, n)),
    ),
)
"""What is up to 6% below one of these in every case is taken for it: answers leave different room for rounding."""
