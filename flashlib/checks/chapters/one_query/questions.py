"""The questions of this chapter."""

import numpy as np

from flashlib.checks.engine.prediction import Question
from flashlib.gpus import GPUS
from flashlib.softmax import State, merge


def _intensity(group):
    """Return operations per byte of K and V, for a head with `group` heads of Q and one query each, in bf16."""
    N, d = 4096, 128
    return 4 * N * d * group / (2 * N * d * 2)


def _bytes(tokens, H_k=8, d=128, itemsize=2, layers=1):
    return 2 * layers * tokens * H_k * d * itemsize


def _two_parts():
    a, b = (State(np.array([lse]), np.ones(1), np.array([[O]])) for lse, O in ((2.0, 1.0), (0.0, 0.0)))
    joined = merge(a, b)
    return float(joined.O_acc[0, 0] / joined.l[0])


QUESTIONS = [
    Question(
        "decode_intensity",
        lambda: {"one_head": _intensity(1), "group_of_4": _intensity(4)},
        "a key takes 2 d operations for its score and its value 2 d more; both together are 2 d numbers of 2 "
        "bytes. So it is 4 N d operations for 4 N d bytes. Four heads that share K and V do four times the work "
        "with the same bytes.",
        hint="Count operations and bytes for one key and its value. Sharing does more work with the same bytes.",
        wrong={
            ("one_head", 2): "K and V are both read: 2 N d numbers of 2 bytes",
            ("one_head", 0.5): "a multiplication and an addition count as two operations",
            ("one_head", 128): "d is in the operations and in the bytes, and cancels",
            ("group_of_4", 1): "K and V are read once for the four heads, and used four times",
            ("group_of_4", 0.25): "the work grows, and the bytes do not",
        },
        labels={"one_head": "one head of Q", "group_of_4": "four heads of Q"},
        unit="FLOP/byte",
    ),
    Question(
        "decode_time",
        lambda: {name: B * _bytes(32768) / GPUS["H200"].bandwidth * 1e6 for name, B in (("one", 1), ("eight", 8))},
        "2 * 32768 * 8 * 128 numbers of 2 bytes are 134 MB, and 134 MB / 4.8 TB/s is 28 microseconds. Eight "
        "sequences have eight caches.",
        hint="How many bytes are K and V of this layer? Which of them do the sequences of a batch share?",
        wrong={
            ("one", 13.98): "K and V are both read",
            ("one", 3.495): "that is one of the 8 heads",
            ("one", 111.8): "there are 8 heads of K and V, not 32: a group of heads of Q shares one",
            ("eight", 27.96): "each sequence has its own K and V, and all of them are read",
            ("eight", 111.8): "K and V are both read",
        },
        labels={"one": "one sequence", "eight": "eight sequences"},
        tolerance=0.03,
        unit="microseconds",
    ),
    Question(
        "idle_gpu",
        lambda: {"unsplit": 1, "split": 32 / 8},
        "with 8 heads of K and V there is a quarter of the bytes, but also a quarter of the programs, and each "
        "reads as many keys as before, at the same rate. Only with all programs at work do fewer bytes take less "
        "time.",
        hint="How many bytes does one program read in each model, and at what rate?",
        wrong={
            ("unsplit", 4): "a quarter of the bytes, but also a quarter of the programs that read them",
            ("unsplit", 0.25): "each program reads as many keys in both models, and as fast",
            ("split", 1): "both use all of the memory's rate now, and one has a quarter of the bytes",
            ("split", 16.5): "that compares the second model with itself, not split: compare both models, split",
            ("split", 0.25): "that is the share of the time: how many times as fast is it?",
        },
        labels={"unsplit": "times as fast, not split", "split": "times as fast, split"},
        tolerance=0.02,
    ),
    Question(
        "two_parts",
        _two_parts,
        "the weights are as e^2 to e^0, that is 7.389 to 1, and 7.389 / 8.389 is 0.88.",
        hint="lse is the logarithm of a sum: of what? How large are the two sums, compared with each other?",
        wrong={
            0.5: "that is the plain mean; the part with the larger lse counts for more",
            1.0: "the second part weighs less, but not nothing",
            2 / 3: "the weights are e^2 and e^0, not 2 and 1",
            0.8: "the powers are those of e: 4 / 5 would be base 2",
            float(1 / (1 + np.exp(-1))): "lse differs by 2",
            float(1 / (1 + np.exp(2))): "the weights are exchanged: the part with the larger lse counts for more",
        },
        tolerance=0.01,
    ),
]
