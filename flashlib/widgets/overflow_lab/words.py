"""The sentences of OverflowLab on a row of scores."""

from decimal import Decimal
from math import isinf

from flashlib.language.phrases import counted
from flashlib.widgets.overflow_lab.row_softmax import (
    EXACT,
    NAMES,
    FloatFormat,
    RowSoftmax,
    digits,
    error,
    is_right,
    tidy,
)


def apart(a: Decimal, b: float) -> list:
    """Return two different numbers as texts of six digits, or as many as it takes to distinguish them."""
    for count in range(6, EXACT.prec):
        texts = [tidy(f"{number:.{count}g}") for number in (Decimal(a), Decimal(b))]
        if texts[0] != texts[1]:
            return texts
    return texts


def explain(f: FloatFormat, row: RowSoftmax) -> list:
    """Return two texts: what happens to the naive softmax, and what happens to the safe one."""
    return [_explain_naive(f, row), _explain_safe(f, row)]


def _explain_naive(f, row):
    name, m = NAMES[f.dtype], f.text(row.m)
    wrong = error(row.naive, row.exact)
    if isinf(max(row.e)):
        term, largest = apart(EXACT.exp(Decimal(row.m)), f.largest)
        first = f"exp({m}) = {term} is more than {largest}, the largest {name} number"
        if isinf(min(row.e)):
            return f"{first}: it is inf, and so is the sum l. inf/inf is NaN."
        return f"{first}: it is inf, and so is the sum l. inf/inf is NaN, and finite/inf is 0."
    if isinf(row.l):
        total, largest = apart(sum(map(Decimal, row.e)) * row.copies, f.largest)
        return (
            f"No exp(x_j) is inf, but their sum, {total}, is more than {largest}, the largest {name} number: l is "
            "inf. finite/inf is 0: all naive weights are 0, and no NaN shows that something is wrong."
        )
    if row.l == 0:
        term, smallest = apart(EXACT.exp(Decimal(row.m)), f.smallest)
        return (
            f"exp({m}) = {term}, the largest term, is less than half of {smallest}, the smallest positive {name} "
            "number: it is rounded to 0, as all terms are. l is 0, and 0/0 is NaN."
        )
    if not is_right(f, wrong):
        normal, smallest = (tidy(f"{x:.3e}") for x in (f.normal, f.smallest))
        return (
            f"Below {normal}, {name} has only the multiples of {smallest}: terms so small lose digits, and a "
            f"naive weight is wrong by {100 * wrong:.2g}% of the largest weight."
        )
    reason = f"no exp(x_j) is too large or too small for {name}"
    if 0 in row.e:
        reason = "nothing overflows, and what underflows does not count next to the largest term"
    if isinf(row.l_safe):
        return f"The naive weights are right to {_count(digits(f, wrong))}: {reason}, nor is their sum."
    between = error(row.naive, row.safe)
    agree = "in every digit" if between == 0 else f"to {_count(digits(f, between))}"
    return f"Naive and safe agree {agree}: {reason}."


def _explain_safe(f, row):
    if isinf(row.l_safe):
        total, largest = apart(sum(map(Decimal, row.e_safe)) * row.copies, f.largest)
        return (
            f"Safe fails too: no term is above 1, but {len(row.x) * row.copies} of them add up to {total}, more "
            f"than {largest}. l is inf and all weights are 0. The remedy: add in fp32."
        )
    right = _count(digits(f, error(row.safe, row.exact)))
    return (
        f"Safe: m = {f.text(row.m)} is subtracted first, so the largest term is exp(0) = 1. The weights are "
        f"right to {right}."
    )


def _count(digits):
    return counted(digits, "digit", "digits")
