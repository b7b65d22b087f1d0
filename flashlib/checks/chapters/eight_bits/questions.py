"""The questions of this chapter."""

import math

import numpy as np

from flashlib import lowbit
from flashlib.checks.engine.prediction import Question
from flashlib.lowbit import sums

ROTATION, LEVELS, MEANS = "rotation", "two levels", "means"


def _count(low, high):
    numbers = lowbit.numbers("e4m3")
    return int(((numbers >= low) & (numbers < high)).sum())


def _gain(format, size=1.0):
    """Return, in words, how much a scale reduces the error of normal numbers times `size`."""
    X = size * np.random.default_rng(0).normal(size=(64, 64))
    without, scaled = (lowbit.quantised(X, format, share=share).X for share in ("none", "tensor"))
    return "many times" if lowbit.error(without, X) > 2 * lowbit.error(scaled, X) else "hardly"


def _vanishes(format):
    """Return the size below which numbers become 0 if the largest, 100, is scaled to the format's maximum."""
    numbers = lowbit.numbers(format)
    return float(numbers[numbers > 0][0] / 2 * 100 / lowbit.FORMATS[format].largest)


def _below_the_maximum(times):
    """Return how far below the largest score of a row a score must be for its weight to become 0."""
    numbers = lowbit.numbers("e4m3")
    return math.log(times / (numbers[numbers > 0][0] / 2))


def _largest_when_turned(vector):
    return float(np.abs(vector @ lowbit.hadamard(64) / 8).max())


def _changed_by_a_constant():
    """Return whether S, P, lse and O change when the same row is subtracted from each key."""
    rng = np.random.default_rng(0)
    Q, K, V = rng.normal(size=(3, 7, 4))
    S, other = Q @ K.T, Q @ (K - K.mean(axis=0)).T
    lse, other_lse = np.logaddexp.reduce(S, axis=1), np.logaddexp.reduce(other, axis=1)
    P, other_P = np.exp(S - lse[:, None]), np.exp(other - other_lse[:, None])
    pairs = {"S": (S, other), "P": (P, other_P), "lse": (lse, other_lse), "O": (P @ V, other_P @ V)}
    return {name: not np.allclose(x, y) for name, (x, y) in pairs.items()}


def _sum(term):
    *_, total = sums.running(np.full(16384, term))
    return round(float(total))


def _largest_causes():
    """Return which two causes alone have the largest errors in the plain way, on positive values."""
    rng = np.random.default_rng(0)
    Q, K, V = rng.normal(size=(64, 64)), rng.normal(size=(4096, 64)), np.abs(rng.normal(size=(4096, 64))) + 1
    causes = lowbit.by_cause(Q, K, V, lowbit.OUTPUT_TOO._replace(p_times=1.0))
    del causes["all"]
    largest, second = sorted(causes, key=causes.__getitem__, reverse=True)[:2]
    return {"largest": lowbit.CAUSE_NAMES[largest], "second": lowbit.CAUSE_NAMES[second]}


QUESTIONS = [
    Question(
        "e4m3_count",
        lambda: {"from_1": _count(1, 2), "from_256": _count(256, 1000)},
        "three fraction bits give 8 numbers in each power of two: 1, 1.125, up to 1.875. From 256 on "
        "they would be 256, 288, up to 480, but the code of 480 means nan.",
        hint="How many patterns have three bits? And which is the last number?",
        wrong={
            ("from_1", 3): "three bits have more than three patterns",
            ("from_1", 7): "1 itself is among them",
            ("from_1", 9): "2 belongs to the next power of two",
            ("from_1", 16): "the sign and the exponent are given: three bits are left",
            ("from_256", 8): "the last number is 448: one pattern of bits is taken for nan",
            ("from_256", 193): "they are 32 apart",
        },
        labels={"from_1": "at least 1 and less than 2", "from_256": "at least 256"},
    ),
    Question(
        "scale_gain",
        lambda: {"e4m3": _gain("e4m3"), "int8": _gain("int8"), "small": _gain("e4m3", size=1e-3)},
        "numbers of e4m3 lie as dense, for their size, in every power of two. A scale moves all numbers "
        "by the same factor, and that changes little. Those of int8 lie 1 apart: without a scale normal numbers "
        "become -3 to 3. Numbers near 1/1000 are less than the smallest of e4m3, 2^-9: most become 0 without a "
        "scale.",
        hint="How far apart, for their size, are the numbers of each format near 1, near 100, and near 1/1000?",
        choices=("hardly", "many times"),
        wrong={
            ("e4m3", "many times"): "e4m3 has as many numbers from 1 to 2 as from 128 to 256",
            ("int8", "hardly"): "between -3 and 3 int8 has seven numbers",
            ("small", "hardly"): "below 2^-6 the numbers of e4m3 are 2^-9 apart, which is more than 1/1000",
        },
        labels={"e4m3": "e4m3", "int8": "int8", "small": "e4m3, a thousandth as large"},
    ),
    Question(
        "outlier_zeros",
        lambda: {name: _vanishes(name) for name in ("int8", "e4m3")},
        "the scale of int8 is 100 / 127, and what is less than half of it becomes 0: a third of "
        "normal numbers. The scale of e4m3 is 100 / 448, and its smallest number is 2^-9, so the bound is "
        "2^-10 of that.",
        hint="What is the scale? What is the smallest number above 0, and what is rounded to 0?",
        wrong={
            ("int8", 0.787): "half of a step is rounded to 0, not a whole one",
            ("int8", 0.5): "100 becomes 127, so a step is 100 / 127",
            ("e4m3", 0.000436): "half of the smallest number is rounded to 0, not all of it",
            ("e4m3", 0.1116): "e4m3 has numbers below 1: the smallest is 2^-9",
            ("e4m3", 0.00349): "2^-6 is the smallest that is not subnormal; the smallest of all is 2^-9",
        },
        tolerance=0.03,
    ),
    Question(
        "lost_weights",
        lambda: {"once": _below_the_maximum(1), "times_256": _below_the_maximum(256)},
        "weights of 2^-10 or less become 0, and ln 2^10 is 6.9. Times 256 it is 2^-18, and ln 2^18 is 12.5: the "
        "weights of 8 more powers of two are seen.",
        hint="Which weights are rounded to 0? The smallest number is 2^-9. What "
        "score, below the largest, gives them?",
        wrong={
            ("once", 6.238): "half of the smallest number is rounded to 0, so it is 2^-10",
            ("once", 4.159): "below 2^-6 the numbers are subnormal, and not 0",
            ("once", 10.0): "that is the power of two: the score is its natural logarithm",
            ("times_256", 6.931): "the weight times 256 must be below 2^-10",
            ("times_256", 18.0): "that is the power of two: the score is its natural logarithm",
            ("times_256", 11.78): "half of the smallest number is rounded to 0",
        },
        tolerance=0.02,
        labels={"once": "P as it is", "times_256": "P times 256"},
    ),
    Question(
        "rotated_pair",
        lambda: {
            "one": _largest_when_turned(100.0 * np.eye(64)[5]),
            "equal": _largest_when_turned(np.full(64, 5.0)),
        },
        "H has entries of 1 and -1, and R is H / 8. The 100 becomes 64 entries of 12.5, some of them negative. "
        "Equal numbers add up where H has only ones, to 320 / 8, and cancel everywhere else. R keeps the length: "
        "what was spread evenly may end up in one entry.",
        hint="Each entry of q R is a sum of entries of q, with signs, over 8. Which signs are in column 0 of H?",
        wrong={
            ("one", 100.0): "each entry of H is 1 or -1, and H is divided by the root of 64",
            ("one", 1.5625): "H is divided by the root of d, not by d",
            ("equal", 5.0): "in one column of H all entries are 1: there equal numbers add up",
            ("equal", 0.625): "in one column of H all entries are 1: there equal numbers add up",
            ("equal", 0.0): "they cancel in all places but one: one column of H has only ones",
            ("equal", 320.0): "R is H over the root of 64",
        },
        labels={"one": "one 100 among zeros", "equal": "64 times 5"},
        tolerance=0.01,
    ),
    Question(
        "mean_of_keys",
        _changed_by_a_constant,
        "each score of a row becomes less by q b. Softmax does not see what is added to a whole row, so P "
        "and O stay. lse, which is the logarithm of the sum, becomes less by q b too.",
        hint="q (k - b) = q k - q b, and q b is the same for all keys of a row.",
        wrong={
            ("S", False): "q (k - b) is q k - q b",
            ("P", True): "softmax does not change when a number is added to a whole row",
            ("lse", False): "lse grows by the number that is added to all scores",
            ("O", True): "O is made of P and V",
        },
        labels={"S": "S changes", "P": "P changes", "lse": "lse changes", "O": "O changes"},
    ),
    Question(
        "equal_terms",
        lambda: {"ones": _sum(1.0), "larger": _sum(1.875)},
        "as long as the sum is below 2^13 its unit is less than 1, and ones fit. From 8192 to 16384 the unit is "
        "1. Of a 1.875 it then leaves 1, and once the sum has reached 16384 the unit is 2, and leaves nothing: "
        "the sum stands still. It should be 30720.",
        hint="A sum between 2^e and 2^(e + 1) has multiples of 2^(e - 13). What is left "
        "of a term, for e = 12, 13, 14?",
        wrong={
            ("ones", 8192.0): "up to 16384 the unit is 1: nothing of a 1 is lost",
            ("ones", 0.0): "a small sum loses nothing",
            ("larger", 30720.0): "that is the exact sum: how much of 1.875 is added when the sum is 9000?",
            ("larger", 8192.0): "from 8192 on the unit is 1, and 1 is left of each term",
            ("larger", 24576.0): "once the sum is 16384, the unit is 2",
        },
        tolerance=0.01,
        labels={"ones": "16384 terms of 1", "larger": "16384 terms of 1.875"},
    ),
    Question(
        "largest_cause",
        _largest_causes,
        "the values have one sign, and so the sums grow with N and lose more and more. O is rounded once, at "
        "the end, to three fraction bits, and nothing averages that out. All else averages out over 4096 keys.",
        hint="Which of these errors have one sign, and do not cancel over 4096 keys? Which comes after the sum "
        "over keys?",
        choices=tuple(lowbit.CAUSE_NAMES.values()),
        wrong={
            **{
                (
                    which,
                    lowbit.CAUSE_NAMES[cause],
                ): f"errors of {words} have both signs, and over many keys they cancel"
                for which in ("largest", "second")
                for cause, words in (("inputs", "scores"), ("P", "weights"), ("V", "values"))
            },
            ("largest", "sums of Q K^T"): "these sums have 64 terms of both signs",
            ("second", "sums of Q K^T"): "these sums have 64 terms of both signs",
            ("largest", "O"): "O is rounded once, to three fraction bits: about 3 %. The sums of P V lose more",
            ("second", "sums of P V"): "4096 terms of one sign lose more bits than one rounding of O",
        },
        labels={"largest": "largest", "second": "second largest"},
    ),
    Question(  # as recorded in h200_fp8.json: tests/checks/test_recorded_answers.py compares
        "left_out",
        lambda: {"drifting": LEVELS, "positive": MEANS},
        "where the mean drifts, and is 0 over all keys, nothing is subtracted, and only two levels are left. Of "
        "positive values the subtraction leaves both signs, so that one sum is enough. With their mean left in, "
        "two levels keep a small bias.",
        hint="Which error does each kind cause? Which of the three repair it, and does one of these remain?",
        choices=(ROTATION, LEVELS, MEANS),
        wrong={
            ("drifting", ROTATION): "Q and K have no outliers here",
            ("drifting", MEANS): "over all keys the mean is 0: nothing is subtracted anyway",
            ("positive", ROTATION): "Q and K have no outliers here",
            ("positive", LEVELS): "without their mean the values have both signs, and one sum stays small too",
        },
        labels={"drifting": "drifting means", "positive": "positive"},
    ),
]
