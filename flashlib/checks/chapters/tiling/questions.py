"""The questions of this chapter."""

import numpy as np

from flashlib import tiled
from flashlib.checks.engine.prediction import Question


def _grid():
    rows, cols = list(tiled.blocks(10, 4)), list(tiled.blocks(7, 3))
    last = rows[-1].stop - rows[-1].start, cols[-1].stop - cols[-1].start
    return {"tiles": len(rows) * len(cols), "last": last}


def _ones(N_q, N_k):
    return np.ones((N_q, 1)), *np.ones((2, N_k, 1))


def _causal_tiles():
    steps = list(tiled.steps(*_ones(32, 32), B_r=4, B_c=4, causal=True))
    return {"computed": len(steps), "masked": sum(bool(np.isinf(step.S_ij).any()) for step in steps)}


def _tile_shapes():
    """Return how many of 16 tiles are skipped, for two shapes."""
    shapes = {"wide": (8, 32), "widest": (4, 64)}
    X = _ones(64, 64)
    return {part: 16 - len(list(tiled.steps(*X, B_r=r, B_c=c, causal=True))) for part, (r, c) in shapes.items()}


def _more_queries():
    steps = list(tiled.steps(*_ones(5, 2), B_r=2, B_c=2, causal=True))
    without = any(bool(np.isinf(step.S_ij).all(axis=1).any()) for step in steps)
    return {"tiles": {(step.i, step.j) for step in steps}, "row_without_key": without}


def _padding():
    """Return which of l and O_acc two rows of zeros change, as in the text."""
    rng = np.random.default_rng(0)
    Q, K, V = rng.normal(size=(3, 4)) + 1, rng.normal(size=(10, 4)), rng.normal(size=(10, 4))
    padded = [np.vstack([X, np.zeros((2, 4))]) for X in (K, V)]
    *_, right = tiled.steps(Q, K, V, B_r=3, B_c=4)
    *_, wrong = tiled.steps(Q, *padded, B_r=3, B_c=4)
    same = np.allclose(wrong.l, right.l), np.allclose(wrong.O_acc, right.O_acc)
    return {(False, False): "both", (False, True): "l", (True, False): "O_acc", (True, True): "neither"}[same]


QUESTIONS = [
    Question(
        "tile_shapes",
        _tile_shapes,
        "with tiles of 8 x 32 the second column block begins at key 32. The 4 row blocks of rows 0 to 31 see none "
        "of it, and skip their tiles there. With tiles of 4 x 64 there is one column block, and every query sees "
        "its first key: no tile is skipped.",
        hint="A tile is skipped if its last query does not see its first key. Where do the column blocks begin?",
        labels={"wide": "tiles of 8 × 32", "widest": "tiles of 4 × 64"},
        wrong={
            ("wide", 6): "the shape matters, not only the number of scores",
            ("wide", 8): "the row blocks below the middle see keys of both column blocks",
            ("widest", 6): "these tiles are as wide as S: each begins with the first key, which every query sees",
        },
    ),
    Question(
        "causal_tiles",
        _causal_tiles,
        "row block i computes i + 1 tiles: 1 + 2 + ... + 8 = 36. The diagonal passes through the last tile of "
        "each row block, so these 8 need the mask. In the 28 below it every score is seen.",
        hint="Row block i sees column blocks 0 to i. Through which tile of each row block does the diagonal pass?",
        wrong={
            32: "half of the 64 leaves out the half of the diagonal",
            28: "these are below the diagonal, where all is seen; those on it hold scores of both kinds",
            36: "below the diagonal everything is seen: those tiles need no mask",
            64: "tiles above the diagonal hold no score that is seen",
        },
    ),
    Question(
        "padded_keys",
        _padding,
        "a key of zeros has the score q . 0 = 0, so its weight is exp(0 - m), not 0. Each of the two adds that "
        "to l. To O_acc it adds that times a row of zeros, which is nothing. So O = O_acc / l comes out too "
        "small.",
        hint="A row of zeros in K has the score 0. What does its weight add to each of the two sums?",
        choices=("l", "O_acc", "both", "neither"),
        wrong={
            "both": "V is 0 there too, so nothing is added to O_acc as long as m is the same",
            "O_acc": "V is 0 there, so O_acc gains nothing; l gains exp(0 - m) for each key",
            "neither": "the score of a key of zeros is 0, and exp(0 - m) is not 0",
        },
    ),
    Question(
        "tiled_numpy",
        lambda: "faster",
        "plain NumPy holds three matrices of N x N numbers, and most of its time went into getting memory for "
        "them from the operating system. A tile of 512 x 512 stays in the cache, and is so large that the Python "
        "loop costs next to nothing.",
        hint="How large is S in fp32, and how large is a tile? Where does each of them stay while it is used?",
        choices=("longer", "about as long", "faster"),
        wrong={
            "longer": "the loop has 32 x 32 turns, and each does products of 512 x 512: the calls cost little",
            "about as long": "the operations are nearly as many, but plain NumPy also waits for gigabytes",
        },
    ),
    Question(
        "more_queries",
        _more_queries,
        "past is -3, so rows 0 to 2 see nothing. Row block 0 has no tile at all; its zeros are written "
        "nevertheless. Row 2 shares tile (1, 0) with row 3, and all its scores there are -inf: this is what "
        "the guards shift and divisor are for.",
        hint="Number the rows: which are the first to see a key? A tile is computed if any of its rows sees one "
        "of its keys.",
        choices=((0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)),
        wrong={
            False: "row 2 sees nothing, and is in one block with row 3, which sees key 0",
            frozenset({(0, 0), (1, 0), (2, 0)}): "rows 0 and 1 see nothing, so tile (0, 0) is skipped",
            frozenset({(2, 0)}): "row 3 sees key 0, so tile (1, 0) is computed",
        },
    ),
    Question(
        "grid",
        _grid,
        "ceil(10 / 4) = 3 row blocks by ceil(7 / 3) = 3 column blocks. The last of each is shorter where the "
        "size does not divide: tile (2, 2) holds rows 8 and 9 and column 6.",
        hint="Round up N / B in both directions. The last block holds what the others leave.",
        wrong={
            4: "sizes round up: the shorter blocks at the edges are tiles too",
            6: "sizes round up: the shorter blocks at the edges are tiles too",
            (4, 3): "that is a whole tile; the last one has the remaining rows and columns",
            (1, 2): "rows come first",
            (8, 6): "that is where it starts; its shape is the rest from there",
        },
    ),
]
