"""The questions of this chapter."""

import numpy as np

from flashlib import masks
from flashlib.checks.engine.prediction import Question
from flashlib.masks import Mask
from flashlib.tiled import blocks


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


QUESTIONS = [
    Question(
        "variant_kinds",
        lambda: kinds(masks.window(4, 0), 12, 4),
        "on the diagonal the causal bound cuts, and in the tiles next to it the left bound: row 4 sees key 0, "
        "row 5 does not. Row 8 sees keys 4 to 8, so tile (2, 0) is hidden, as are the three above the diagonal. "
        "No tile is whole: here that takes a window of 8 keys.",
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
        "variant_functions",
        lambda: {
            "first": kinds(masks.from_function(lambda r, c: (r - c) % 4 == 0), 24, 4)["hidden"],
            "second": kinds(masks.from_function(lambda r, c: (r // 4 - c // 4) % 4 == 0), 24, 4)["hidden"],
        },
        "a row of a tile has four keys side by side, and 4 divides the distance of one of them: the first hides "
        "no tile. In the second, tile (i, j) is whole if 4 divides i - j: six tiles on the diagonal, and two on "
        "each side of it. The other 26 are hidden.",
        hint="For the first, which of its four keys does a row of a tile see? For the second, r // 4 and c // 4 "
        "are the tile's numbers: which tiles are seen?",
        wrong={
            ("first", 27): "three quarters of the scores are hidden, but which tiles have none that is seen?",
            ("first", 26): "look inside one tile: every row of it sees one of its four keys",
            ("second", 27): "count the diagonals: 6 tiles have i = j, 2 have i = j + 4, and 2 have j = i + 4",
            ("second", 30): "tiles with i - j = 4 or -4 are seen too",
            ("second", 28): "there are two sides: i - j may be 4 or -4",
            ("second", 10): "those are whole; the question is how many are hidden",
            ("second", 0): "a tile with i - j = 1, for example, has no score that is seen",
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
]
