"""The questions on the safe softmax."""

import numpy as np

from flashlib.checks.engine.prediction import Question
from flashlib.softmax import naive, safe

FP16 = np.float16
SHIFTS = (-800, -300, -5, 0.1, 7, 300, 800)  # the same as in the chapter's cell
X = np.log([1.0, 2.0, 1.0, 4.0])


def _largest_score():
    """Return the largest finite fp16 score for which softmax is right after subtracting the maximum."""
    x = np.finfo(FP16).max
    assert abs(naive(np.array([x, 0], FP16) - x).sum() - 1) < 0.01
    return int(x)


def _shifts():
    with np.errstate(all="ignore"):
        return {c for c in SHIFTS if not np.allclose(naive(X - c), naive(X))}


def _range_of_l():
    far_apart, equal = np.append(0.0, np.full(999, -np.inf)), np.zeros(1000)
    sums = [np.exp(x - x.max()).sum() for x in (far_apart, equal)]
    return {"smallest": int(sums[0]), "largest": int(sums[1])}


def _is_right(softmax, x):
    """Return whether the weights of 65536 equal fp16 scores x add up to 1."""
    with np.errstate(all="ignore"):
        return bool(abs(softmax(np.full(65536, x, FP16)).sum(dtype=float) - 1) < 0.01)


def _row_of_equal_scores():
    tried = np.linspace(-2, 2, 17)
    return {name: any(_is_right(f, x) for x in tried) for name, f in (("naive", naive), ("safe", safe))}


def _masked_row():
    x = np.array([0.3, 1.1, 0.7])
    rows = {
        "inf": np.full(3, -np.inf),
        "overwritten": np.full(3, -1e6),
        "added": x.astype(np.float32) + np.float32(-1e6),
    }
    kinds = {"zeros": np.zeros(3), "equal": np.full(3, 1 / 3), "unmasked": safe(x)}
    return {
        name: min(kinds, key=lambda kind, row=row: abs(safe(row) - kinds[kind]).max())
        for name, row in rows.items()
    }


QUESTIONS = [
    Question(
        "largest_safe_score",
        _largest_score,
        "after the subtraction the largest score is 0 and no other is above it, so no exponential is above 1. "
        "Every finite fp16 score works, up to the very last. With scores far apart the largest takes all the "
        "weight, which is right.",
        hint="After the subtraction the largest score is always 0. So what limits the score that goes in?",
        wrong={
            11.09: "that is the limit without the subtraction",
            22.18: "the subtraction does not double the range: it takes the size of the scores away",
            65536: "fp16 ends at 65504",
        },
        tolerance=0.0003,
    ),
    Question(
        "shifts_that_fail",
        _shifts,
        "in fp64 exp overflows above 709.78 and becomes 0 below -745.13. Subtracting -800 makes scores near 800: "
        "all terms are inf, and inf / inf is nan. Subtracting 800 makes scores near -800: all terms are 0, and 0 "
        "/ 0 is nan. For the other five the weights are right.",
        hint="In fp64 exp overflows above about 709 and becomes 0 below about -745. Subtracting c moves the "
        "scores to about -c.",
        choices=SHIFTS,
        wrong={
            frozenset({-800}): "for c = 800 all terms become 0, and 0 / 0 is nan too",
            frozenset({800}): "for c = -800 the terms become inf, and inf / inf is nan too",
            frozenset({-800, -300, 300, 800}): "exp(300) is about 1e130, and fp64 reaches from 1e-323 to 1e308",
            frozenset({-800, -300}): "exp(300) is about 1e130, and fp64 reaches up to 1e308",
        },
    ),
    Question(
        "range_of_l",
        _range_of_l,
        "every exponent x - m is at most 0, so every term is at most exp(0) = 1: no exponential overflows, and l "
        "is at most 1000, for equal scores. The largest score gives the term 1 exactly, so l is at least 1 and "
        "0/0 cannot happen. It is 1 if all other terms underflow.",
        hint="Each term is exp(x - m). How large is the term of the largest score? When are all terms as large as "
        "they can be?",
        wrong={
            0: "the largest score itself gives the term exp(0) = 1",
            1001: "there are 1000 terms, each at most 1",
            999: "all 1000 terms can be 1, if all scores are equal",
        },
    ),
    Question(
        "equal_scores_in_the_lab",
        _row_of_equal_scores,
        "the safe softmax subtracts x from every score, so its l is 65536 for every x, too large for fp16. The "
        "naive one has l = 65536 exp(x), which fp16 can hold when x is a little below 0.",
        hint="What is l in each of the two, as a formula in x? For which x does fp16 hold it?",
    ),
    Question(
        "masked_row",
        _masked_row,
        "safe guards only -inf. Equal scores have equal weights, at -1e6 as at 0, so things that should not be "
        "seen are weighted equally. Adding -1e6 to all scores is a shift, and a shift cancels: the weights are "
        "those of the raw scores, as if there were no mask. They are only coarser, as near 1e6 the numbers of "
        "fp32 lie 1/16 apart.",
        hint="Remember that softmax does not change if one number is added to all scores. What are the three "
        "scores in each case?",
        choices=("zeros", "equal", "unmasked", "nan"),
        wrong={"nan": "safe returns zeros before -inf - (-inf) can happen, and -1e6 is a finite number"},
    ),
]
