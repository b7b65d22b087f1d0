"""The questions of this chapter."""

from flashlib import cost
from flashlib.checks.engine.prediction import Question
from flashlib.gpus import KB

d = 64
CHANGES = {"about half": 0.5, "the same": 1.0, "about double": 2.0, "about four times": 4.0}


def _scores_share():
    """Return the percentage of standard attention's bytes for writing and reading S and P, at N = 512."""
    return round(100 * 4 * 512**2 * 2 / cost.standard_traffic(512, 512, d, dtype="float16").total)


def _written():
    """Return the bytes that FA1 writes divided by those of FA2, at the size of the chapter's ledger."""
    fa1, fa2 = (
        form(512, 512, d, B_r=64, B_c=64, dtype="float16").written for form in (cost.fa1_traffic, cost.fa2_traffic)
    )
    return round(fa1 / fa2)


def _twice_the_length_and_SRAM():
    """Return how FA2's bytes change from N = 16384 and 64 KB to twice as much of both."""
    moved = []
    for times in (1, 2):
        B_r = cost.largest_B_r(times * 64 * KB, B_c=16, d=d, dtype="float16")
        moved.append(cost.fa2_traffic(times * 16384, times * 16384, d, B_r=B_r, B_c=16, dtype="float16").total)
    return min(CHANGES, key=lambda words: abs(CHANGES[words] - moved[1] / moved[0]))


def _small_blocks():
    """Return the bytes of FA2 with B_r = 32 divided by those of standard attention, N = 4096 and d = 128."""
    tiled = cost.fa2_traffic(4096, 4096, 128, B_r=32, B_c=64, dtype="float16").total
    return round(tiled / cost.standard_traffic(4096, 4096, 128, dtype="float16").total, 1)


QUESTIONS = [
    Question(
        "traffic_share",
        _scores_share,
        "S and P are 4 N^2 numbers, each written and read; Q, K, V and O are 4 N d, one part in N / d + 1 = 9. At "
        "N = 4096, as in Attention, it is one part in 65.",
        hint="S and P are 4 N^2 numbers moved. How many numbers are Q, K, V and O, and what part of all is that?",
        wrong={
            80: "S and P are written and read again, so each is moved twice",
            44: "that is only S, or each of S and P moved once",
            50: "Q, K, V and O have d = 64 columns, S and P have N = 512",
            98: "that is the share at N = 4096",
            11: "that is the share of all the others",
        },
        tolerance=0.006,
        unit="%",
    ),
    Question(
        "traffic_order",
        _written,
        "FA1 fills O, m and l first, and stores them again for each of 8 column blocks, so nine times. "
        "FA2 stores O once.",
        hint="FA2 writes each row of O once. How often is it written if the loop over column blocks is outside?",
        wrong={
            8: "O, m and l are filled once before the loops, which is a write too",
            10: "eight column blocks, and one fill before them",
            2: "O is stored again for every column block, of which there are 8",
            64: "there are 64 tiles, but each stores only its own 64 rows of O",
        },
        tolerance=0.05,  # the quotient before rounding is right too
    ),
    Question(
        "traffic_sram",
        _twice_the_length_and_SRAM,
        "a block holds about twice as many rows, so there are as many row blocks as before, and each reads K and "
        "V of twice the length.",
        hint="How many row blocks are there then, and how much does each of them read?",
        choices=tuple(CHANGES),
        wrong={
            "about half": "that is the effect of the SRAM on a sequence of the same length",
            "the same": "there are as many row blocks as before, but K and V have twice the length",
            "about four times": "that is only the effect of the length; with twice the SRAM B_r is larger too",
        },
    ),
    Question(
        "traffic_small",
        _small_blocks,
        "128 row blocks read K and V, 2 N d numbers each: 8 N^2 in all, against 4 N^2 of standard attention, "
        "whose S and P do not depend on d.",
        hint="How many row blocks are there, and what does each read? Divide by the 4 N^2 numbers of standard "
        "attention.",
        wrong={
            0.5: "it is the other way round: with B_r = 32, FA2 moves more",
            1: "that is for d = 64; here K and V are twice as wide, and S and P are as large as before",
            4: "S and P are both written and read: 4 N^2 numbers, not 2 N^2",
            8: "that is 8 N^2 numbers; standard attention moves about 4 N^2",
        },
        tolerance=0.03,
    ),
]
