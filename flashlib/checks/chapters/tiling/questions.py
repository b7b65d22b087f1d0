"""The questions of this chapter."""

import numpy as np

from flashlib import cost, tiled
from flashlib.checks.engine.prediction import Question

POWERS = [2**p for p in range(4, 11)]
WORDS = ("standard", "FA1", "FA2")


def _grid():
    rows, cols = list(tiled.blocks(10, 4)), list(tiled.blocks(7, 3))
    last = rows[-1].stop - rows[-1].start, cols[-1].stop - cols[-1].start
    return {"tiles": len(rows) * len(cols), "last": last}


def _ones(N_q, N_k):
    return np.ones((N_q, 1)), *np.ones((2, N_k, 1))


def _causal_tiles():
    steps = list(tiled.steps(*_ones(32, 32), B_r=4, B_c=4, causal=True))
    return {"computed": len(steps), "masked": sum(bool(np.isinf(step.S_ij).any()) for step in steps)}


def _more_queries():
    steps = list(tiled.steps(*_ones(5, 2), B_r=2, B_c=2, causal=True))
    without = any(bool(np.isinf(step.S_ij).all(axis=1).any()) for step in steps)
    return {"tiles": {(step.i, step.j) for step in steps}, "row_without_key": without}


def _padding():
    """Return which of l and O_acc two rows of zeros change, as in section 6."""
    rng = np.random.default_rng(0)
    Q, K, V = rng.normal(size=(3, 4)) + 1, rng.normal(size=(10, 4)), rng.normal(size=(10, 4))
    padded = [np.vstack([X, np.zeros((2, 4))]) for X in (K, V)]
    *_, right = tiled.steps(Q, K, V, B_r=3, B_c=4)
    *_, wrong = tiled.steps(Q, *padded, B_r=3, B_c=4)
    same = np.allclose(wrong.l, right.l), np.allclose(wrong.O_acc, right.O_acc)
    return {(False, False): "both", (False, True): "l", (True, False): "O_acc", (True, True): "neither"}[same]


def _moved(N, d, B_r, B_c, dtype, causal=False):
    """Return {what: bytes moved}."""
    tile = {"B_r": B_r, "B_c": B_c, "dtype": dtype, "causal": causal}
    return {
        "standard": cost.standard_traffic(N, N, d, dtype=dtype).total,
        "FA1": cost.fa1_traffic(N, N, d, **tile).total,
        "FA2": cost.fa2_traffic(N, N, d, **tile).total,
    }


def _small_example():
    moved = _moved(12, 4, 4, 2, "float64")
    return {"fewest": min(moved, key=moved.get), "FA1_below_standard": moved["FA1"] < moved["standard"]}


def _three_traffics():
    moved = _moved(4096, 64, 64, 64, "float16")
    factor = max(moved.values()) / min(moved.values())
    nearest = min((2, 10, 100), key=lambda x: abs(np.log(x / factor)))
    return {"fewest": min(moved, key=moved.get), "most": max(moved, key=moved.get), "factor": nearest}


def _sliders():
    """Return which block size changes the bytes that each order moves without a mask."""
    start = _moved(4096, 64, 64, 64, "float16")
    by_rows, by_cols = _moved(4096, 64, 128, 64, "float16"), _moved(4096, 64, 64, 128, "float16")
    return {
        order: {(True, False): "B_r", (False, True): "B_c"}[
            by_rows[order] != start[order], by_cols[order] != start[order]
        ]
        for order in ("FA1", "FA2")
    }


def _break_even():
    """Return the first block sizes with which each order moves no more than standard attention, d = 128."""
    sizes = range(1, 512)
    return {
        "FA2": next(
            B for B in sizes if (moved := _moved(4096, 128, B, 64, "float16"))["FA2"] <= moved["standard"]
        ),
        "FA1": next(
            B for B in sizes if (moved := _moved(4096, 128, 64, B, "float16"))["FA1"] <= moved["standard"]
        ),
    }


def _shorter():
    without, causal = (_moved(4096, 64, 64, 64, "float16", causal=causal) for causal in (False, True))
    without["standard"] = causal["standard"]  # it stores all of S, causal or not
    return {name: causal[name] < without[name] for name in WORDS}


def _best_B_c():
    """Return the B_c of the tile that fits into 99 KB and moves the fewest bytes in the order FA1, d = 64."""
    tiles = [(r, c) for r in POWERS for c in POWERS if cost.sram_bytes(r, c, 64, "float16") <= 99 * 1024]
    return min(tiles, key=lambda tile: _moved(4096, 64, *tile, "float16")["FA1"])[1]


QUESTIONS = [
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
        "small_traffic",
        _small_example,
        "FA2 breaks even at B_r = d / 2 = 2, and B_r = 4 is above that. FA1 breaks even at B_c = 3 d / 4 = 3, "
        "and B_c = 2 is below that: Q, O, m and l pass by for each of 6 column blocks. The players count 3168 "
        "bytes for FA2, 6240 for standard attention and 10848 for FA1.",
        hint="Section 9: compare B_r with d / 2 for one order, and B_c with 3 d / 4 for the other. Here d is "
        "small.",
        choices=WORDS,
        wrong={
            "FA1": "it reads K and V once, but O, m and l go to memory and back for every tile",
            "standard": "S and P, written and read, are more than what FA2 reads of K and V",
            True: "B_c = 2 is below its break-even size, 3 d / 4 = 3",
        },
    ),
    Question(
        "three_traffics",
        _three_traffics,
        "standard attention moves about 4 N^2 items. Since B_r = B_c = d here, FA1 moves about 3 N^2 and FA2 2 "
        "N^2: three quarters and half as many.",
        hint="Put B_r = B_c = d into the three formulas of the table.",
        choices=WORDS,
        wrong={
            "FA1": "its 3 N^2 items are between the 2 N^2 of FA2 and the 4 N^2 of standard attention",
            10: "K and V are read again for each row block, which with B_r = 64 is 64 times",
            100: "K and V are read again for each row block, which with B_r = 64 is 64 times",
        },
    ),
    Question(
        "fits_48_KB",
        lambda: cost.sram_bytes(64, 64, 64, "float16") <= 48 * 1024,
        "Q_i, K_j and V_j take 24 KB, and O_acc and S_ij 16 KB each in fp32; with m and l it is 56.5 KB.",
        hint="Add up Q_i, K_j and V_j in 2 bytes a number, and S_ij and O_acc in 4.",
        wrong={True: "O_acc and S_ij are fp32, 16 KB each"},
    ),
    Question(
        "lab_sliders",
        _sliders,
        "FA2 reads K and V once for each row block, N / B_r times; FA1 goes over Q and O N / B_c times. The "
        "other size changes how many tiles there are, not how many bytes move. So the map has rows of one "
        "colour for FA2 and columns of one colour for FA1.",
        hint="Look at the formulas of section 9: which block size is in each of them?",
        choices=("B_r", "B_c"),
        wrong={
            "B_r": "B_r decides how often K and V are read, and FA1 reads them once",
            "B_c": "B_c decides how often Q and O are moved, and FA2 moves them once",
        },
    ),
    Question(
        "lab_break_even",
        _break_even,
        "2 d / B_r = 4 at B_r = d / 2 = 64, and 3 d / B_c = 4 at B_c = 3 d / 4 = 96, or 98 with m and l "
        "counted. Both move with d, and hardly with N once N is much larger than d.",
        hint="Set 2 N^2 d / B_r and 3 N^2 d / B_c equal to 4 N^2 and solve for the block size.",
        tolerance=0.03,
        wrong={
            32: "that is d / 2 for d = 64",
            48: "that is 3 d / 4 for d = 64",
            64: "that is d / 2; FA1 moves 3 N d items for each column block, not 2",
            128: "the break-even size is below d",
        },
    ),
    Question(
        "lab_causal",
        _shorter,
        "the tiled orders skip tiles that are all hidden: they are neither loaded nor computed. This standard "
        "attention stores all of S, masked or not.",
        hint="Which of them decides tile by tile what to load, and which stores all of S?",
        wrong={
            True: "this standard attention stores all of S, masked or not",
            False: "tiles that are all hidden are neither loaded nor computed",
        },
    ),
    Question(
        "lab_best",
        _best_B_c,
        "FA1 moves the less the larger B_c is. Beside the smallest B_r, 16, the largest that fits is 256, "
        "since K_j and V_j take two bytes a number and the fp32 accumulator has few rows. It moves 27.9 MB, "
        "less than the 34.6 of FA2. The price is that each column block waits for the one before it.",
        hint="FA1 moves the less the larger B_c is. With the smallest B_r, how large can B_c be so that all fits?",
        wrong={
            64: "B_r can be made smaller, to make room",
            128: "B_r can be made smaller, to make room",
            512: "that does not fit into 99 KB, whatever B_r is",
        },
    ),
]
