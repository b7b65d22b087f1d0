"""The questions of this chapter."""

import numpy as np

from flashlib.checks.engine.prediction import Question


def _programs(N, B):
    return -(-N // B)


def _owners(N, B):
    return tuple(n // B for n in range(N))


def _sum_of_weights(other):
    """Return the sum of the weights of five scores of -5, in a block of 8 filled up with `other`."""
    block = np.array([-5.0] * 5 + [other] * 3)
    p = np.exp(block - block.max())
    return float((p / p.sum())[:5].sum())


X = 10 * np.arange(6)[:, None] + np.arange(8)[None, :]

QUESTIONS = [
    Question(
        "triton_grid",
        lambda: {"programs": _programs(10, 4), "empty": _programs(10, 4) * 4 - 10},
        "10 / 4 is rounded up to 3 programs; they have 12 places, two more than there are elements.",
        hint="Divide 10 by 4 and round up. Then compare all places with the elements.",
        wrong={
            2.5: "a program is started or it is not: round up",
            ("programs", 2): "two programs have 8 places: the last two elements need a program too",
            ("empty", 0): "the last program has 4 places too, but only two elements are left for it",
        },
    ),
    Question(
        "triton_owner",
        lambda: {"BLOCK_4": _owners(10, 4), "BLOCK_8": _owners(10, 8)},
        "element n belongs to program n // BLOCK, and the last program has only what is left.",
        hint="Element n belongs to program n // BLOCK, the quotient without remainder.",
        wrong={tuple(n % 4 for n in range(10)): "that is the place within the block, not the program"},
        labels={"BLOCK_4": "BLOCK = 4", "BLOCK_8": "BLOCK = 8"},
    ),
    Question(
        "triton_masked_load",
        lambda: "nothing certain",
        "without the argument other these places are undefined: the interpreter happens to put 0 there, a GPU "
        "whatever its registers held. In add_kernel that does no harm, as these places are not stored. In a sum "
        "or a maximum it does: there other must be the value that changes nothing, 0 in a sum, -inf in a maximum.",
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
    Question(
        "triton_turns",
        lambda: {"programs": 4, "turns": _programs(100, 16)},
        "each row has a program, however long it is; its loop takes 16 scores at a time, and 100 / 16 is rounded "
        "up: the seventh block has 4.",
        hint="One program takes one row. Its loop takes BLOCK scores a turn, and the last turn may have fewer.",
        wrong={
            28: "that counts the turns of all rows: a row is one program, which loops",
            6: "the last 4 scores need a turn too",
        },
    ),
    Question(
        "triton_next_power",
        lambda: {f"of_{n}": 1 << (n - 1).bit_length() for n in (10, 50, 64)},
        "16 and 64 are the first powers of two that are not below 10 and 50; 64 is one itself.",
        hint="Which is the smallest power of two that is not below each? A power of two is one itself.",
        wrong={128: "64 is a power of two already", 12: "12 is a multiple of 4, not a power of two"},
    ),
]
