"""The questions of this chapter."""

import numpy as np

from flashlib import masks
from flashlib.checks.engine.prediction import Question
from flashlib.masks import Mask
from flashlib.tiled import blocks

GB = 1e9


def kinds(mask: Mask, N: int, B: int) -> dict[str, int]:
    """Return how many tiles of B x B are hidden, whole and cut."""
    tiles, found = mask.on(N, N), {"hidden": 0, "whole": 0, "cut": 0}
    for rows in blocks(N, B):
        for cols in blocks(N, B):
            name = "hidden" if tiles.hidden(rows, cols) else "cut" if tiles.cut(rows, cols) else "whole"
            found[name] += 1
    return found


def _window_tiles():
    """Return how many tiles a row block far from the beginning computes, and how many are whole."""
    B, i = 128, 64
    rows, tiles = slice(i * B, (i + 1) * B), masks.window(1023, 0).on(16384, 16384)
    computed = [cols for cols in blocks(16384, B) if not tiles.hidden(rows, cols)]
    return {"computed": len(computed), "whole": sum(not tiles.cut(rows, cols) for cols in computed)}


def _padding():
    lengths = np.array([2, 3, 7])
    return {
        "padded": int(len(lengths) * lengths.max() ** 2),
        "packed": int(lengths.sum() ** 2),
        "needed": int((lengths**2).sum()),
    }


def _own_key():
    """Return the weight of a query's own key if all scores are equal and the slope is 1/2."""
    e = np.exp(-0.5 * np.arange(3))
    return float(e[0] / e.sum())


def _capped(S, c=50.0):
    mask = masks.softcap(c)
    x = np.array([[S]])
    return float(mask.score(x, None, None, None)[0, 0]), float(mask.slope(x, None, None, None)[0, 0])


QUESTIONS = [
    Question(
        "variant_kinds",
        lambda: kinds(masks.window(4, 0), 12, 4),
        "on the diagonal the causal bound cuts, and in the tiles next to it the left bound: row 4 sees key 0, "
        "row 5 does not. Row 8 sees keys 4 to 8, so tile (2, 0) is hidden, as are the three above the diagonal. "
        "No tile is whole: for that a window must hold B_r + B_c keys, 8 here.",
        hint="For each tile, look at its first and its last row: which keys does each of them see?",
        wrong={
            ("hidden", 3): "these are above the diagonal; the left bound hides tile (2, 0) too",
            ("hidden", 6): "row 4 sees key 0, and row 8 sees key 4",
            ("whole", 2): "row 4 sees all of keys 0 to 3, but row 5 does not see key 0",
            ("whole", 3): "row 4 sees all of keys 0 to 3, but row 5 does not see key 0",
            ("cut", 3): "the left bound cuts too: in the two tiles next to the diagonal",
        },
    ),
    Question(
        "variant_window",
        _window_tiles,
        "the rows of block i see keys from 128 i - 1023 to 128 i + 127. Key 128 i - 1023 lies in tile i - 8, so "
        "there are nine, i - 8 to i. All rows see keys from 128 i + 127 - 1023 = 128 (i - 7) to 128 i: tiles "
        "i - 7 to i - 1 are whole.",
        hint="Which is the first key that the first row of a block sees? And the last row? In which tiles are "
        "these?",
        wrong={
            ("computed", 8): "1024 / 128 is 8, but 128 rows see 1151 keys together, which begin in tile i - 8",
            ("computed", 1024): "that counts keys; a tile has 128",
            ("computed", 10): "the first key that a row of the block sees is 128 i - 1023, in tile i - 8",
            ("whole", 8): "the left bound cuts tile i - 8, and the causal bound tile i",
            ("whole", 9): "the left bound cuts the first of them, and the causal bound the last",
            ("whole", 6): "the last row's first key, 128 i - 896, is the first of its tile: that tile is whole",
        },
    ),
    Question(
        "variant_table",
        lambda: 128 * 128 // 4,
        "a tile has 128 * 128 = 16384 scores, of a byte each, and one number of 4 bytes in the table.",
        hint="How many scores has a tile, and how many bytes has its entry in the table?",
        wrong={
            16384: "the numbers of the table take 4 bytes each",
            128: "a tile has 128 rows and 128 columns",
            32: "a tile has 128 rows and 128 columns",
            65536: "the table has the larger items: 4 bytes against 1",
        },
    ),
    Question(
        "variant_padding",
        _padding,
        "3 times 7 * 7; 12 * 12; and 4 + 9 + 49. Packing alone saves next to nothing here: the scores between "
        "documents are nearly as many as those of the padding. The gain comes from tiles that are hidden.",
        hint="A sequence of n tokens has n * n scores. Which n counts in each of the three cases?",
        wrong={
            ("padded", 49): "each of the three sequences is padded to 7",
            ("padded", 21): "that counts tokens; the scores of a sequence are 7 * 7",
            ("packed", 12): "that counts tokens; the scores are 12 * 12",
            ("packed", 62): "those are needed; without skipping, the pack computes all pairs of its 12 tokens",
            ("needed", 144): "those are all pairs of tokens; documents do not see each other",
            ("needed", 12): "that counts tokens; a document of n tokens has n * n scores",
        },
    ),
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
            float(1 / (1 + np.exp(-0.5))): "there are three keys",
        },
        tolerance=0.02,
    ),
    Question(
        "variant_slope",
        lambda: {"capped": _capped(50.0)[0], "slope": _capped(50.0)[1]},
        "50 tanh(1) is 50 * 0.762 = 38.1, and 1 - 0.762^2 is 0.42: less than half of the gradient goes back "
        "through a score as large as the cap.",
        hint="Put S / c = 1 into both formulas. You need tanh(1), about 0.762.",
        wrong={
            ("capped", 50): "that would be a clip; tanh(1) is 0.762",
            ("capped", 0.762): "that is tanh(1); it is multiplied by c",
            ("slope", 0.762): "that is tanh(1); the derivative is 1 - tanh^2",
            ("slope", 0): "a clip would have the slope 0; the soft cap only falls",
            ("slope", 1): "the slope is 1 only at S = 0",
        },
        tolerance=0.03,
    ),
    Question(
        "variant_hidden",
        lambda: "-c",
        "tanh of minus infinity is -1. So a hidden key gets the smallest score there can be, and its weight is "
        "e^-50 of that of a score of 0: far too small for a test to see, unless all other keys are as low or c is "
        "small.",
        hint="What is tanh of minus infinity? Multiply by c.",
        choices=("-inf", "nan", "-c"),
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
        "variant_dropout",
        lambda: 32 * 16384**2 / GB,
        "32 * 16384 * 16384 bytes. In 32 layers that would be 275 GB, for one sequence. Kept as bits it is an "
        "eighth, and still grows with N^2.",
        hint="There is a weight for each pair of tokens, in each head.",
        wrong={
            0.27: "that is one head",
            1.07: "that is a bit for each weight",
            17.2: "that is two bytes for each weight",
        },
        tolerance=0.03,
        unit="GB",
    ),
]
