"""The questions of this chapter."""

import numpy as np

from flashlib import masks
from flashlib.checks.engine.prediction import Question


def _own_key():
    """Return the weight of a query's own key if all scores are equal and the slope is 1/2."""
    e = np.exp(-0.5 * np.arange(3))
    return float(e[0] / e.sum())


def _capped(S, cap=50.0):
    mask = masks.softcap(cap)
    x = np.array([[S]])
    return float(mask.score(x, None, None, None)[0, 0]), float(mask.slope(x, None, None, None)[0, 0])


QUESTIONS = [
    Question(
        "variant_alibi",
        _own_key,
        "the penalties are 0, 1/2 and 1, so the weights are as 1 to e^-0.5 to e^-1, that is 1 : 0.607 : 0.368, "
        "and 1 / 1.974 is 0.51.",
        hint="The penalties are the slope times the distances 0, 1 and 2. Take exp of minus each and normalise.",
        wrong={
            1 / 3: "without a penalty all would weigh the same; the two keys before are lowered by 1/2 and 1",
            4 / 7: "1 : 1/2 : 1/4 would be powers of 1/2; the penalty is in the exponent of e",
            1.0: "the other two keys weigh less, but not nothing",
            0.5: "that is the slope; the weight is 1 over the sum of exp of minus each penalty",
            float(1 / (1 + np.exp(-0.5))): "there are three keys",
        },
        tolerance=0.01,
    ),
    Question(
        "variant_slope",
        lambda: {"capped": _capped(50.0)[0], "slope": _capped(50.0)[1]},
        "50 tanh(1) is 50 * 0.762 = 38.1, and 1 - 0.762^2 is 0.42: less than half of the gradient goes back "
        "through a score as large as the cap.",
        hint="Put S / cap = 1 into the formulas. What does the 1 / cap inside do to the derivative, and what does "
        "the cap in front?",
        wrong={
            ("capped", 50): "that would be a clip; tanh(1) is 0.762",
            ("capped", 0.762): "that is tanh(1); it is multiplied by the cap",
            ("slope", 0.762): "that is tanh(1); the derivative is 1 - tanh^2",
            ("slope", 0): "a clip would have the slope 0; the soft cap only falls",
            ("slope", 1): "the slope is 1 only at S = 0",
            ("slope", 0.58): "that is tanh^2; subtract it from 1",
            ("slope", 0.238): "tanh is not squared: the derivative is 1 - tanh^2",
            ("slope", 0.0084): "the 1 / cap inside tanh makes it smaller, and the cap in front takes that back",
            ("slope", 21): "the cap in front makes it larger, and the 1 / cap inside tanh takes that back",
        },
        tolerance=0.03,
    ),
    Question(
        "variant_hidden",
        lambda: "-cap",
        "tanh of minus infinity is -1. So a hidden key gets the smallest score there can be, and its weight is "
        "e^-50 of that of a score of 0: far too small for a test to see, unless all other keys are as low or the "
        "cap is small.",
        hint="What is tanh of minus infinity? Multiply by the cap.",
        choices=("-inf", "nan", "-cap"),
        wrong={
            "-inf": "tanh never leaves -1 to 1",
            "nan": "tanh(-inf) is -1, a number like others",
        },
    ),
    Question(
        "variant_sink",
        lambda: {"sum_of_weights": 0.75, "lse": float(np.log(4))},
        "l grows from 2 + 1 = 3 to 4, as e^0 = 1 is added. The two weights are 2/4 and 1/4; the sink has the "
        "rest. And lse is the logarithm of the sum, log 4.",
        hint="The sink adds e^0 to the sum of exponentials, but has no key. Compute that sum first.",
        wrong={
            ("sum_of_weights", 1): "that of all three; the sink is one of them, and its value is 0",
            ("sum_of_weights", 2 / 3): "the sum without the sink is e^log 2 + e^0 = 3",
            ("sum_of_weights", 1 / 4): "that is the weight of the sink",
            ("lse", float(np.log(3))): "that is lse without the sink",
            ("lse", 4): "that is the sum; lse is its logarithm",
        },
        labels={"sum_of_weights": "sum of the two weights"},
        tolerance=0.01,
    ),
    Question(
        "variant_cost",
        lambda: {"cap": 16384**2 / (4 * 4096**2), "sink": 16384 / (4 * 4096)},
        "a soft cap takes a second exponential and a division for each score: each query has four times as many "
        "keys, and there are as many queries. A sink is merged once for each row, and there are as many rows.",
        hint="What is done for each score, and what for each row? How many scores and rows does a batch have?",
        wrong={
            ("cap", 16): "a sequence has 16 times as many scores, but there were four sequences",
            ("cap", 1): "the rows are as many, but each has more scores",
            ("cap", 2): "count the scores of all sequences: 4 * 4096^2 and 16384^2",
            ("sink", 4): "a sequence has 4 times as many rows, but there were four sequences",
            ("sink", 16): "a sink is merged into each row when the loop is done, not into each score",
        },
        labels={"cap": "soft cap"},
    ),
    Question(
        "variant_dropout",
        lambda: False,
        "the weight is left out of the product with V only. Its exponential is still in the sum l of its row, so "
        "a higher score lowers all weights that are kept. Its gradient is -P delta.",
        hint="The softmax comes before dropout. If the score of a dropped weight grows, what happens to "
        "the other weights of its row?",
        wrong={True: "it is still in l, by which all other weights of the row are divided"},
    ),
]
