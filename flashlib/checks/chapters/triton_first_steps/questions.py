"""The questions of this chapter."""

import numpy as np

from flashlib.checks.engine.prediction import Question


def _sum_of_weights(other):
    """Return the sum of the weights of five scores of -5, in a block of 8 filled up with `other`."""
    block = np.array([-5.0] * 5 + [other] * 3)
    p = np.exp(block - block.max())
    return float((p / p.sum())[:5].sum())


X = 10 * np.arange(6)[:, None] + np.arange(8)[None, :]

QUESTIONS = [
    Question(
        "triton_masked_load",
        lambda: "nothing certain",
        "without the argument other these places are undefined: the interpreter happens to put 0 there, a GPU "
        "whatever its registers held. In square_kernel that does no harm, as these places are not stored. In a "
        "sum or a maximum it does: there other must be the value that changes nothing, 0 in a sum, -inf in a "
        "maximum.",
        hint="What does the documentation promise of a masked place if no `other` is given?",
        choices=("0", "nan", "nothing certain"),
        wrong={"0": "it may be 0, but nobody promises it: for a 0 pass other=0.0"},
    ),
    Question(
        "triton_tile",
        lambda: tuple(X.T[1, 2:6].tolist()),
        "row 1 of X.T is column 1 of X, whose elements end in 1; its columns 2 to 5 are the rows 2 to 5 of X.",
        hint="Row r of X.T is column r of X. The tile begins in row 1 and column 2 of X.T.",
        wrong={tuple(X[1, 2:6].tolist()): "that is the row of the tile of X, not of X.T"},
    ),
    Question(
        "triton_other",
        lambda: {"zero": _sum_of_weights(0.0), "minus_inf": _sum_of_weights(-np.inf)},
        "with 0 the three empty places weigh e^0 = 1 each against 5 e^-5 = 0.0337, so the scores are left with "
        "0.0337 / 3.0337; with -inf the empty places weigh 0. The mistake raises no error, and for scores near 0 "
        "its result looks plausible. It comes back in attention, where the last tile of K may be filled up with "
        "zeros.",
        hint="With 0, three more places take part, and the maximum changes. What are they compared with e^-5?",
        wrong={
            5 / 8: "the places do not weigh the same: 0 is 5 above the scores, and weighs e^5 times as much",
            5 * np.exp(-5): "that is the sum of the exponentials; it is divided by itself and the three ones",
        },
        tolerance=0.03,
    ),
]
