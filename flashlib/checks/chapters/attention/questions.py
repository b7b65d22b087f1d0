"""The questions of this chapter."""

import numpy as np

from flashlib import cost, naive
from flashlib.checks.engine.prediction import Question
from flashlib.gpus import GPUS
from flashlib.memory import HBM

N = 16384  # 16K
LONG = 8192  # of the bars
WORDS = "the", "cat", "drank", "milk", "it", "purred"
OFFERS = (0, 0, 0, 0), (1, 1, 0, 0), (0, 0, 0, 1), (1, 0, 1, 0), (0, 0, 0, 0), (0, 0, 0, 1)  # their keys
ASKS = {"purred": (0, 3, 0, 0), "drank": (0, 2, 2, 0)}  # two queries
SHARE = {  # what is chosen, by the words with the largest weight
    ("cat",): "cat", ("milk",): "milk", ("it",): "it", ("drank",): "drank", ("cat", "milk"): "cat and milk",
    WORDS: "all equally",
}  # fmt: skip
SRAM_SIDE = 0.037  # metres, of one multiprocessor's in the picture of the memories


def _moved():
    """Return how often a matrix the size of S is written and read, measured at a size where all else is small."""
    Q, K, V = HBM.put(*(np.ones((64, 1)) for _ in range(3)))
    naive.attention(Q, K, V)
    S = 64 * 64 * 8
    return {"written": Q.traffic.written // S, "read": Q.traffic.read // S}


def _found():
    scores = {asks: np.dot(OFFERS, query) for asks, query in ASKS.items()}
    return {asks: SHARE[tuple(WORDS[j] for j in np.flatnonzero(row == max(row)))] for asks, row in scores.items()}


def _without_a_key():
    lse = naive.attention(np.ones((5, 1)), *np.ones((2, 2, 1)), causal=True).lse
    return int((lse == -np.inf).sum())


def _share(N, d):
    return 4 * N * N * 2 / cost.standard_traffic(N, N, d, dtype="float16").total


def _hbm_side():
    """Return the metres of a side of HBM, drawn as a square at the scale of one multiprocessor's SRAM."""
    return SRAM_SIDE * (GPUS["H200"].memory / GPUS["H200"].sram) ** 0.5


QUESTIONS = [
    Question(
        "who_is_found",
        _found,
        "purred asks for something alive, and only cat offers that: its score is 3, and all others are 0. drank "
        "scores 2 with cat, which is alive, and 2 with milk, which is a drink.",
        hint="A score is a dot product: multiply a key by the query, number by number, and add up.",
        choices=tuple(SHARE.values()),
        wrong={
            ("purred", "it"): "the sentence says so, but the key of it is all 0: it offers nothing",
            ("purred", "drank"): "it asks for something alive, and drank offers an action",
            ("purred", "cat and milk"): "milk is a thing and a drink, but not alive",
            ("drank", "cat"): "it asks for a drink as well",
            ("drank", "milk"): "it asks for someone alive as well",
            "all equally": "the scores are not all equal, so neither are the weights",
        },
    ),
    Question(
        "hbm_at_scale",
        _hbm_side,
        "HBM has about 650000 times as many bytes, so its square has a side about 800 times as long.",
        hint="Areas show bytes. How many times as many bytes does HBM have? A square's side grows with the root "
        "of its area.",
        wrong={
            24000: "that many times 3.7 cm is for a side that grows as the area does",
            2.6: "that is the scale of the SRAM of all multiprocessors together",
        },
        tolerance=0.2,
        unit="m",
    ),
    Question(
        "size_of_S",
        lambda: {"one_head": N * N * 4 / 1e9, "heads_32": 32 * N * N * 4 / 1e9},
        "16384 * 16384 scores of 4 bytes are 1.07 GB, and each head has its own: 34.36 GB for 32 of them. The "
        "scores of a head take 32 times the bytes of its Q, K, V and O: the largest array by far is neither input "
        "nor output.",
        hint="Each head has N * N scores, each of 4 bytes. Divide the bytes by 10^9.",
        wrong={0.0336: "that is Q, K, V and O together", 0.268: "each score takes 4 bytes"},
        tolerance=0.05,
        labels={"heads_32": "32 heads"},
        unit="GB",
    ),
    Question(
        "shapes",
        lambda: {"S": (5, 7), "P": (5, 7), "O": (5, 16)},
        "S and P have a row for each query and a column for each key; O has a row per query and the width of V.",
        hint="S = Q K^T has a row for each query and a column for each key. O = P V has the width of V.",
        wrong={(7, 5): "a row for each query, a column for each key", (7, 16): "O has a row for each query"},
    ),
    Question(
        "std_unscaled",
        lambda: float(np.sqrt(64)),
        "the variances of d independent terms add up to d = 64, so the standard deviation is its root, 8.",
        hint="Variances of independent terms add up. The standard deviation is the root of the variance.",
        wrong={64: "that is the variance", 1: "that is what the scale makes of it"},
        tolerance=0.05,
    ),
    Question(
        "rows_without_a_key",
        _without_a_key,
        "aligned bottom right, the last query sees both keys, the one before it sees one, and the first "
        "N_q - N_k = 3 see none.",
        hint="The mask is aligned bottom right: the last query sees the last key. Draw the 5 by 2 grid.",
        wrong={
            0: "that is how a mask aligned top left would have it: there each query sees key 0",
            2: "that is the number of keys; the queries without a key are the first N_q - N_k",
        },
    ),
    Question(
        "trips_of_N2",
        _moved,
        "kernel 1 loads Q and K and stores S; kernel 2 loads S and stores P; kernel 3 loads P and V and stores "
        "O. So S and P are each written once and read once; the two other trips carry no N x N matrix.",
        hint="Go through the three kernels. For each, what is loaded and what is stored? Count only S and P.",
        wrong={
            1: "both S and P are written and read",
            3: "that counts the trips; Q, K, V and O are not N x N matrices",
            4: "that is written and read together",
        },
    ),
    Question(
        "share_of_S_and_P",
        lambda: 100 * _share(4096, 64),
        "4 N^2 items against 4 N d + N: for N = 4096 and d = 64, S and P have 64 times as many.",
        hint="Count in items: S and P are moved 4 N^2 times in all, and Q, K, V and O have N d items each.",
        wrong={50: "they would have half where N = d, and N is 64 times as large"},
        tolerance=0.02,
        unit="%",
    ),
    Question(
        "doubling_d",
        lambda: {
            "flops": cost.flops(LONG, LONG, 128) / cost.flops(LONG, LONG, 64),
            "traffic": round(_traffic(128) / _traffic(64), 2),
        },
        "the operations are 4 N^2 d; of the bytes, only the few of Q, K, V and O grow with d.",
        hint="The operations are 4 N^2 d. Which of the arrays moved have d columns, and what part of the bytes is "
        "theirs?",
        wrong={2: "nearly all bytes are those of S and P, whose size has no d in it"},
        tolerance=0.05,
        labels={"flops": "operations", "traffic": "bytes"},
    ),
    Question(
        "trips_over_products",
        lambda: round(_traffic(64) / GPUS["H200"].bandwidth / (cost.flops(LONG, LONG, 64) / GPUS["H200"].fp16), 2),
        "a score costs 4 d = 256 operations and 8 bytes, since S and P are both written and read. That makes 32 "
        "operations for each byte, and the GPU could do about 200.",
        hint="Count for a single score. How many operations do the two products spend on it? How many bytes are "
        "moved because of it, in S and P?",
        wrong={
            0.154: "that is how long the products take, compared with the trips",
            3.2: "S and P are both written and read, so each score is moved four times",
            13: "there are two products: together they do 4 d operations for each score",
        },
        tolerance=0.25,
    ),
]


def _traffic(d):
    return cost.standard_traffic(LONG, LONG, d, dtype="float16").total
