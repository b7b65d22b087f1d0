"""A row of scores in a floating-point format: its exponentials, sums and weights, and where they break.

Everything shown is computed in the format itself. Its reference is computed in decimals of 40 digits.
"""

from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from functools import cache, partial
from math import ceil, floor, isinf, isnan, log, log10, nan
from typing import Any, NamedTuple

import numpy as np

from flashlib import softmax

NAMES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
EXACT = Context(prec=40)
WEIGHTS = ("naive", "safe")
COLUMNS = ("x", "e", "naive", "shifted", "e_safe", "safe", "exact")


def tidy(text: str) -> str:
    """Return a number's text with true minus signs and exponents without padding."""
    mantissa, e, exponent = text.lower().partition("e")
    return (mantissa + (f"e{int(exponent)}" if e else "")).replace("-", "−")


class FloatFormat(NamedTuple):
    """A dtype, and softmax in it. `array` makes an array of this dtype; its library `lib` is numpy or torch."""

    dtype: str
    lib: Any
    array: Callable
    naive: Callable
    safe: Callable
    largest: float
    normal: float  # the smallest positive number with all its digits
    eps: float

    @property
    def smallest(self) -> float:
        """The smallest positive number."""
        return self.normal * self.eps

    def nearest(self, x: float) -> float:
        return self.array([x]).tolist()[0] + 0.0  # no -0

    def neighbour(self, x: float, towards: float) -> float:
        return self.lib.nextafter(self.array([x]), self.array([towards])).tolist()[0] + 0.0

    def text(self, x: float) -> str:
        """Return x with all digits that distinguish it from its neighbours."""
        return tidy(repr(x).removesuffix(".0") if self.dtype == "float64" else f"{x:.9g}")


@cache
def format_of(dtype: str) -> FloatFormat:
    """Return the FloatFormat of a dtype of NAMES; raise ValueError if its library is missing."""
    if dtype != "bfloat16":
        info = np.finfo(dtype)
        limits = (float(info.max), float(info.smallest_normal), float(info.eps))
        return FloatFormat(dtype, np, partial(np.array, dtype=dtype), softmax.naive, softmax.safe, *limits)
    try:
        import torch
    except ImportError:
        raise ValueError(
            "bfloat16 needs PyTorch, since NumPy has no bf16, and torch is not installed here: run make setup, or "
            "choose another dtype"
        ) from None

    def naive(x):
        p = torch.exp(x)
        return p / p.sum()

    info = torch.finfo(torch.bfloat16)
    limits = (info.max, info.smallest_normal, info.eps)
    array = partial(torch.tensor, dtype=torch.bfloat16)
    return FloatFormat(dtype, torch, array, naive, lambda x: naive(x - x.max()), *limits)


class RowSoftmax(NamedTuple):
    """The softmax of a row that repeats n scores `copies` times. Fields up to `exact` are lists of n floats."""

    x: list  # the scores
    e: list  # exp(x)
    naive: list  # the weights exp(x) / l
    shifted: list  # x - m
    e_safe: list  # exp(x - m)
    safe: list  # the weights exp(x - m) / l
    exact: list  # the weights in exact arithmetic
    m: float
    l: float
    l_safe: float
    log_l: float  # what log(l) should be
    copies: int


def compute(f: FloatFormat, x: float, offsets: Sequence[float], copies: int) -> RowSoftmax:
    """Return the softmax of the scores x + offsets, repeated `copies` times, in the FloatFormat f."""
    with np.errstate(all="ignore"):
        scores = f.array([x]) + f.array(offsets)  # (n,)
        row = f.lib.tile(scores, (copies,))
        m = scores.max()
        e, e_safe = f.lib.exp(scores), f.lib.exp(scores - m)
        sums = [f.lib.tile(terms, (copies,)).sum() for terms in (e, e_safe)]
        weights = [function(row)[: len(offsets)] for function in (f.naive, f.safe)]
        naive, safe, e, e_safe, shifted, scores = (
            array.tolist() for array in (*weights, e, e_safe, scores - m, scores)
        )
    m, l, l_safe = (float(number) for number in (m, *sums))
    terms = [EXACT.exp(EXACT.subtract(Decimal(x_j), Decimal(m))) for x_j in scores]
    total = sum(terms) * copies
    exact = [float(term / total) for term in terms]
    return RowSoftmax(
        scores, e, naive, shifted, e_safe, safe, exact, m, l, l_safe, m + float(EXACT.ln(total)), copies
    )


def error(weights: Sequence[float], exact: Sequence[float]) -> float:
    """Return the largest difference of two rows of weights over the largest weight; NaN if any weight is NaN."""
    differences = [abs(p - q) for p, q in zip(weights, exact, strict=True)]
    return nan if any(map(isnan, differences)) else max(differences) / max(exact)


def digits(f: FloatFormat, error: float) -> int:
    """Return how many digits of a weight an error leaves right, at most those of the format."""
    return floor(-log10(max(error, f.eps)))


def is_right(f: FloatFormat, error: float) -> bool:
    """Return whether rounding explains an error: each weight is rounded four times, by at most eps / 2."""
    return error <= 4 * f.eps


def marks(f: FloatFormat, row: RowSoftmax) -> dict:
    """Return for each column and sum the words that mark its numbers, "" for a number without a mark."""

    def term(e):
        return "overflow" if isinf(e) else "underflow" if e == 0 else "subnormal" if e < f.normal else ""

    def weight(p, q):
        return term(p) if is_right(f, abs(p - q) / max(row.exact)) else "wrong"

    found = {name: [term(e) for e in getattr(row, name)] for name in ("e", "e_safe")}
    for name in WEIGHTS:
        weights = getattr(row, name)
        found[name] = [weight(p, q) for p, q in zip(weights, row.exact, strict=True)]
        found[f"{name}_total"] = ["" if is_right(f, abs(sum(weights) * row.copies - 1)) else "wrong"]
    return found | {name: [term(getattr(row, name))] for name in ("l", "l_safe")}


# ---- where it breaks


def x_range(f: FloatFormat, offsets: Sequence[float]) -> list:
    """Return the range of x in which anything happens, with a margin on either side: two integers [low, high]."""
    low, high = log(f.smallest) - max(offsets), log(f.largest) - max(offsets)
    more = (high - low) / 10
    return [floor(low - more), ceil(high + more)]


@cache
def thresholds(f: FloatFormat, offsets: Sequence[float], copies: int) -> dict:
    """Return the last x, going outwards, at which l is positive, l is finite, and every exp is finite."""
    low, high = x_range(f, offsets)

    def exps(x):
        return f.lib.exp(f.array([x]) + f.array(offsets))

    with np.errstate(all="ignore"):
        return {
            "positive": _last(f, lambda x: any(e > 0 for e in exps(x).tolist()), high, low),
            "sum": _last(f, lambda x: not isinf(f.lib.tile(exps(x), (copies,)).sum()), low, high),
            "terms": _last(f, lambda x: not any(map(isinf, exps(x).tolist())), low, high),
        }


def _last(f, holds, good, bad):
    """Return the last number of the format, going from good to bad, at which `holds` is still true."""
    good, bad = f.nearest(good), f.nearest(bad)
    while (middle := f.nearest((good + bad) / 2)) not in (good, bad):
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good
