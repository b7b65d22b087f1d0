"""The questions of this chapter."""

import numpy as np

from flashlib.cache.pages import Pages
from flashlib.checks.engine.prediction import Question
from flashlib.gpus import GPUS
from flashlib.softmax import State, merge

PAGE = 16


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


def _waste(*lengths):
    """Return how many rows hold no token: in pages, and if the longest length is reserved for each sequence."""
    pages = Pages(64, PAGE)
    for length in lengths:
        pages.append(pages.start()[0], length)
    return {"pages": pages.waste, "reserved": max(lengths) * len(lengths) - sum(lengths)}


def _forked():
    """Return how many pages are owned after 40 tokens were forked and each copy has got one more token."""
    pages = Pages(64, PAGE)
    one, _ = pages.start()
    pages.append(one, 40)
    for sequence in (pages.fork(one), one):
        pages.append(sequence, 1)
    return pages.used


def _steps(*answers, slots=2):
    """Return how many steps answers take, at one token per step, if slots are filled in batches and one by one."""
    batches = sum(max(answers[k : k + slots]) for k in range(0, len(answers), slots))
    ends = [0] * slots
    for answer in answers:
        ends[ends.index(min(ends))] += answer
    return {"static": batches, "continuous": max(ends)}


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
        lambda: _bytes(32768) / GPUS["H200"].bandwidth * 1e6,
        "2 * 32768 * 8 * 128 numbers of 2 bytes are 134 MB, and 134 MB / 4.8 TB/s is 28 microseconds. No kernel "
        "can be faster, whatever it computes.",
        hint="How many bytes are K and V of this layer? Divide by the bytes per second.",
        wrong={
            13.98: "K and V are both read",
            3.495: "that is one of the 8 heads",
            111.8: "there are 8 heads of K and V, not 32: a group of heads of Q shares one",
        },
        tolerance=0.03,
        unit="microseconds",
    ),
    Question(
        "idle_gpu",
        lambda: {"share": 100 * 8 / 132, "parts": -(-132 // 8)},
        "8 heads of K and V are 8 programs, for 132 multiprocessors. With 16 parts of each head there are 128 "
        "programs, which leaves 4 without work.",
        hint="How many programs are there without splitting? Then round up 132 / programs.",
        wrong={
            ("share", 24.24): "that is a program for each head of Q: the heads of a group share one",
            ("share", 0.0606): "that is the share itself: give it in percent",
            ("parts", 16): "16 parts of 8 heads are 128 programs: 4 multiprocessors have none",
            ("parts", 16.5): "parts are whole: round up",
            ("parts", 132): "there are 8 heads, and each is split",
            ("parts", 5): "that is for 32 programs; there is one for each head of K and V",
        },
        labels={"share": "percent that work", "parts": "parts of each head"},
        tolerance=0.02,
        unit={"share": "%"},
    ),
    Question(
        "two_parts",
        _two_parts,
        "the weights are as e^2 to e^0, that is 7.389 to 1, and 7.389 / 8.389 is 0.88.",
        hint="Each output is weighted by exp(lse), divided by the sum of both weights.",
        wrong={
            0.5: "that is the plain mean; the part with the larger lse counts for more",
            1.0: "the second part weighs less, but not nothing",
            2 / 3: "the weights are e^2 and e^0, not 2 and 1",
            0.8: "the powers are those of e: 4 / 5 would be base 2",
            float(1 / (1 + np.exp(-1))): "lse differs by 2",
        },
        tolerance=0.01,
    ),
    Question(
        "pages_waste",
        lambda: _waste(5, 17, 40),
        "the sequences have 1, 2 and 3 pages, which is 96 rows for 62 tokens. Reserved are 3 * 40 = 120 rows. In "
        "pages less than a page is lost for each sequence, however long it grows. And to reserve, one must know "
        "the 40 beforehand.",
        hint="Round each length up to whole pages of 16. For the other case compare with 3 times 40.",
        wrong={
            ("pages", 18): "sequence 5 leaves 11 rows, 17 leaves 15, and 40 leaves 8",
            ("pages", 96): "that is all rows of the 6 pages; 62 of them hold a token",
            ("pages", 6): "that is the number of pages",
            ("pages", 2): "each sequence has its own pages: 1, 2 and 3",
            ("reserved", 120): "that is all rows that are reserved; 62 of them hold a token",
            ("reserved", 40): "three times 40 rows are reserved",
            ("reserved", 82): "48 would be rows of whole pages; here 40 rows are reserved for each",
        },
        labels={"pages": "empty rows in pages", "reserved": "empty rows if the longest is reserved"},
    ),
    Question(
        "fork_pages",
        _forked,
        "40 tokens have 3 pages, which the fork shares. The first of the two that writes copies the last page, so "
        "there are 4. Then the old page has one owner, who writes into it without a copy.",
        hint="How many pages do 40 tokens take? Which page is written by the first of the two, and who else owns "
        "it?",
        wrong={
            3: "both write into the third page, and their tokens differ: one of them needs a copy",
            5: "once one of the two has its copy, the other is the only owner of the old page",
            6: "that would be without sharing: the first two pages stay shared",
        },
    ),
    Question(
        "fp8_error",
        lambda: 2.0**-3 / 2,
        "between 1 and 2 the numbers lie 2^-3 = 1/8 apart, and rounding moves a number by half of that at most, "
        "1/16. bf16, with 7 bits, moves it by 1/256.",
        hint="How far apart are the numbers between 1 and 2? Rounding moves a number by half of that at most.",
        wrong={
            1 / 8: "that is the distance of two neighbours: rounding moves by half of it",
            1 / 32: "3 bits make 8 steps from 1 to 2, and half a step is 1/16",
            1 / 448: "448 is the largest number; numbers of all sizes have 3 bits",
            1 / 256: "e4m3 has 3 bits of mantissa; that is bf16",
            6.25: "that is in percent",
        },
        tolerance=0.06,
    ),
    Question(
        "shared_reads",
        lambda: 64 * (8192 + 512) / (8192 + 64 * 512),
        "64 * 8704 = 557056 tokens are read if each sequence reads its own prompt, and 8192 + 64 * 512 = 40960 if "
        "it is read once.",
        hint="Count the tokens read each way: the prompt 64 times or once, and the own tokens of each.",
        wrong={
            64: "the prompt is read 64 times less, but the 512 tokens of each sequence are read as before",
            17: "8704 / 512 would be without reading the prompt at all",
            16: "8192 / 512 compares the prompt with the rest of one sequence",
            12.8: "the prompt of 64 sequences has 524288 tokens, and their own are read too",
        },
        tolerance=0.02,
    ),
    Question(
        "batching_steps",
        lambda: _steps(8, 2, 2, 2),
        "in batches it is 8 steps for the first two, and 2 for the others. If the next one joins at once, the "
        "three short answers take one slot for 6 steps, while the long one has the other for 8.",
        hint="Draw the two slots step by step. When is a slot free in each case?",
        wrong={
            ("static", 8): "the last two begin only when the first two are done, after 8 steps",
            ("static", 14): "two requests run at a time, and each writes a token in a step",
            ("static", 7): "14 tokens in two slots are 7 steps only if no slot is ever empty",
            ("static", 12): "the last two run at the same time: 2 steps for both",
            ("continuous", 7): "one request writes one token per step, so the long answer by itself takes 8",
            ("continuous", 10): "that is in batches: here a slot is filled again when an answer is done",
            ("continuous", 6): "that is the slot of the three short answers; the long one takes 8",
            ("continuous", 14): "two requests run at a time, and each writes a token in a step",
        },
        labels={"static": "steps if both are awaited", "continuous": "steps if the next one joins"},
    ),
]
