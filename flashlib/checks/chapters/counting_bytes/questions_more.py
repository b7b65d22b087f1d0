"""Questions about block sizes: break-even, what fits, the lab; and those under More."""

import numpy as np

from flashlib import cost
from flashlib.checks.chapters.counting_bytes.questions import CHANGES
from flashlib.checks.engine.prediction import Question

POWERS = [2**p for p in range(4, 11)]
WORDS = ("standard", "FA1", "FA2")


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
    moved = _moved(4096, 32, 32, 128, "float16")
    factor = max(moved.values()) / min(moved.values())
    nearest = min((2, 5, 20), key=lambda x: abs(np.log(x / factor)))
    return {"fewest": min(moved, key=moved.get), "most": max(moved, key=moved.get), "factor": nearest}


def _other_blocks():
    """Return how the bytes of each order change if B_r is halved and B_c is doubled."""
    before, after = _moved(4096, 64, 64, 64, "float16"), _moved(4096, 64, 32, 128, "float16")
    ratios = {order: after[order] / before[order] for order in ("FA1", "FA2")}
    return {order: min(CHANGES, key=lambda words: abs(CHANGES[words] - x)) for order, x in ratios.items()}


def _break_even():
    """Return the first B_c with which FA1 moves fewer bytes than standard attention, d = 128."""
    return next(
        B for B in range(1, 512) if (moved := _moved(4096, 128, 64, B, "float16"))["FA1"] < moved["standard"]
    )


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
        "three_traffics",
        _three_traffics,
        "B_r = d and B_c = 4 d, so FA1 moves about 3/4 N^2 numbers, FA2 2 N^2, and standard attention 4 N^2. Both "
        "tiled orders are above their break-even sizes, and FA1 by more.",
        hint="Put B_r = d and B_c = 4 d into the formulas of the table in section 3.",
        choices=WORDS,
        wrong={
            ("fewest", "standard"): "both sizes are above break-even, so both tiled orders move less",
            ("fewest", "FA2"): "compare 2 N^2 d / B_r with 3 N^2 d / B_c, for B_r = 32 and B_c = 128",
            ("most", "FA1"): "its B_c = 4 d is above its break-even size, 3 d / 4",
            ("most", "FA2"): "its B_r = d is above its break-even size, d / 2",
            2: "the worst moves about 4 N^2 numbers; put B_c = 4 d into the formula of FA1",
            20: "the worst moves about 4 N^2 numbers; put B_c = 4 d into the formula of FA1",
        },
        tolerance=0.05,  # the factor before rounding is right too
    ),
    Question(
        "fits_48_KB",
        lambda: cost.sram_bytes(64, 64, 64, "float16") / 1024,
        "Q_i, K_j and V_j take 24 KB, O_acc and S_ij 16 KB each in fp32, and m and l half a KB. So it does not "
        "fit into 48.",
        hint="Add up Q_i, K_j and V_j in 2 bytes a number, and S_ij and O_acc in 4.",
        wrong={
            24: "that is Q_i, K_j and V_j; S_ij and O_acc are on chip too",
            40.25: "O_acc and S_ij are two, 16 KB each in fp32",
            32: "that is O_acc and S_ij; Q_i, K_j and V_j are on chip too",
            48: "K_j and V_j are two, 8 KB each",
            72: "P_ij takes the place of S_ij",
            80: "Q_i, K_j and V_j are fp16, 8 KB each",
        },
        tolerance=0.012,  # 56, without m and l, is right too
        unit="KB",
    ),
    Question(
        "small_traffic",
        _small_example,
        "FA2 breaks even at B_r = d / 2 = 2, and B_r = 4 is above that. FA1 breaks even at B_c = 3 d / 4 = 3, "
        "and B_c = 2 is below that: Q, O, m and l pass by for each of 6 column blocks. The players count 3168 "
        "bytes for FA2, 6240 for standard attention and 10848 for FA1.",
        hint="Compare B_r with d / 2 for one order, and B_c with 3 d / 4 for the other. Here d is small.",
        choices=WORDS,
        wrong={
            "FA1": "it reads K and V once, but O, m and l go to memory and back for every tile",
            "standard": "S and P, written and read, are more than what FA2 reads of K and V",
            True: "B_c = 2 is below its break-even size, 3 d / 4 = 3",
        },
    ),
    Question(
        "lab_sliders",
        _other_blocks,
        "FA1 goes over Q and O once for each of half as many column blocks, and FA2 reads K and V once for each "
        "of twice as many row blocks. B_r does not count for FA1, nor B_c for FA2.",
        hint="How many row blocks are there then, and how many column blocks? Over what does each order go again "
        "for each of them?",
        choices=tuple(CHANGES),
        wrong={
            "the same": "the tiles are as many as before, but the row blocks and the column blocks are not",
            ("FA1", "about double"): "B_r decides how often K and V are read, and FA1 reads them once",
            ("FA2", "about half"): "B_c decides how often Q and O are moved, and FA2 moves them once",
            "about four times": "only one of the two sizes counts for each order",
        },
    ),
    Question(
        "lab_break_even",
        _break_even,
        "3 d / B_c = 4 at B_c = 3 d / 4 = 96. The search gives 98, since whole column blocks are counted. The "
        "size grows with d, and hardly changes with N once N is much larger than d.",
        hint="Set 3 N^2 d / B_c equal to 4 N^2 and solve for the block size.",
        tolerance=0.03,
        wrong={
            48: "that is 3 d / 4 for d = 64",
            64: "that is d / 2, for FA2; FA1 moves 3 N d numbers for each column block, not 2",
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
        "FA1 moves the less the larger B_c is. With the smallest B_r, 16, the largest that fits is 256, "
        "since K_j and V_j take two bytes a number and the fp32 accumulator has few rows. It moves 27.9 MB, "
        "less than the 34.6 of FA2. The price is that O, m and l go to HBM and back between two tiles.",
        hint="FA1 moves the less the larger B_c is. With the smallest B_r, how large can B_c be so that all fits?",
        wrong={
            64: "B_r can be made smaller, to make room",
            128: "B_r can be made smaller, to make room",
            288: "it fits, and is the largest multiple of 16 that does, but not a power of two",
            512: "that does not fit into 99 KB, whatever B_r is",
        },
    ),
]
