"""The questions of this chapter."""

import numpy as np

from flashlib import cost, ring
from flashlib.checks.engine.prediction import Question
from flashlib.gpus import GPUS
from flashlib.ring import Receive, Send, Times, Wait, layouts
from flashlib.ring import cost as of_ranks

MILLION = 2**20
GROWS, STAYS, SHRINKS = "it grows", "it stays", "it shrinks"


def _pairs(N, P, r, layout, source=None):
    """Return how many scores rank r computes under a causal mask, with the keys of `source` or of all ranks."""
    rows = layouts.positions(N, P, r, layout)
    keys = np.arange(N) if source is None else layouts.positions(N, P, source, layout)
    return int((rows[:, None] >= keys).sum())


def _busy(layout, N=1024, P=4):
    """Return the percentage of time that ranks compute, if all wait for the one with the most work."""
    work = [_pairs(N, P, r, layout) for r in range(P)]
    return 100 * sum(work) / (P * max(work))


def _waits_twice(me):
    """The program of a rank that sends, and then receives, and waits after each."""
    for command in (Send(me.next, me.own), Receive(me.previous, me.buffer("kv"))):
        yield command
        yield Wait()
    return me.finish(me.nothing())


def _rank_0_receives(me):
    """The same program, but rank 0 receives first."""
    commands = [Send(me.next, me.own), Receive(me.previous, me.buffer("kv"))]
    for command in reversed(commands) if me.r == 0 else commands:
        yield command
        yield Wait()
    return me.finish(me.nothing())


def _run(program, P=4):
    """Return the RingRun of a program, if each copy takes a time of 1."""
    return ring.events(*np.zeros((3, P, 1)), ranks=P, program=program, times=Times(byte=0, copy=1))


def _finish(program):
    """Return how many ranks finish."""
    return sum(event.kind == "end" for event in _run(program).events)


def _at_once(program):
    """Return how many copies run at the same time, at most."""
    starts = [event.start for event in _run(program).events if event.kind == "copy"]
    return max(map(starts.count, starts))


def _ratio(H_k):
    """Return the bytes that a rank of 8 sends in a ring over those in Ulysses."""
    problem = of_ranks.Problem(8192, 8192, 128, "bfloat16", H=32, H_k=H_k)
    return of_ranks.ring(problem, 8).sent[0] / of_ranks.ulysses(problem, 8).sent[0]


QUESTIONS = [
    Question(
        "million_time",
        lambda: cost.flops(MILLION, MILLION, 128, causal=True) * 32 / GPUS["H200"].fp16,  # and bf16
        "4 * 32 * 128 * 2^40 operations, and half of them under the mask, are 9e15. At 989e12 a second that "
        "is 9.1 "
        "seconds for one layer, and no kernel reaches the peak. With 32 layers it is nearly 5 minutes before "
        "the first word is written.",
        hint="4 H N^2 d operations, half of them under a causal mask. Divide by the peak.",
        wrong={
            18.2: "under the causal mask half of the scores are computed",
            4.55: "Q K^T and P V are two products, and each multiplication comes with an addition",
            0.284: "that is one head of 32",
            9100: "give it in seconds",
            291: "that is all 32 layers: the question is about one",
        },
        tolerance=0.03,
    ),
    Question(
        "ring_copies",
        lambda: {"sent": 7, "held": 3},
        "after 7 hops it has seen the keys of the 7 others, and it has passed on as many. It holds its own K "
        "and V and "
        "two buffers: one is read while the other is filled.",
        hint="How many others are there? And what must be in memory in the middle of a hop?",
        wrong={
            ("sent", 8): "its own keys need not come home",
            ("sent", 1): "it passes on what comes: each hop but the last sends once",
            ("sent", 56): "that is what all ranks send together",
            ("held", 8): "a block that has been used and passed on may be overwritten",
            ("held", 2): "its own are kept, and in addition one buffer is read while another is filled",
            ("held", 1): "copies are under way while it computes: where do they go?",
        },
        labels={"sent": "GB sent", "held": "GB of K and V held"},
    ),
    Question(
        "who_ends",
        lambda: {
            "all_send": _finish(_waits_twice),
            "one_receives": _finish(_rank_0_receives),
            "at_once": _at_once(_rank_0_receives),
        },
        "a Send ends when the other side receives. If all wait for that, nobody comes to receive. If rank 0 "
        "receives, rank 3 gets rid of its keys and receives those of rank 2, which then receives those of rank 1, "
        "and so on. All end, but each copy waits for the one before it.",
        hint="A Send ends when the other side receives. Who receives first, and who can then go on?",
        wrong={
            ("all_send", 4): "nothing is stored in between: each waits until the next one receives",
            ("all_send", 1): "each rank waits for the next one, and all of them are in the same place",
            ("all_send", 3): "each rank waits for the next one, and all of them are in the same place",
            ("one_receives", 1): "rank 3, whose keys were taken, now receives, and so helps rank 2",
            ("one_receives", 2): "rank 3 then receives too, so that rank 2 goes on, and so forth",
            ("one_receives", 0): "rank 0 takes the keys of rank 3, which can then go on",
            ("at_once", 4): "rank 2 can send only once rank 3 has sent, and receives",
            ("at_once", 3): "rank 2 can send only once rank 3 has sent, and receives",
            ("at_once", 2): "one rank after the other goes on: the copies do not overlap",
        },
        labels={
            "all_send": "ranks that finish, all send first",
            "one_receives": "ranks that finish, rank 0 receives first",
            "at_once": "copies at the same time then",
        },
    ),
    Question(
        "contiguous_busy",
        lambda: _busy("contiguous"),
        "count whole blocks as 1 and the blocks on the diagonal as 1/2. Rank 0 has 1/2, rank 1 has 3/2, and "
        "so on to "
        "7/2: the mean is 2, and all wait for 7/2. With more ranks it comes near to a half.",
        hint="Draw the four by four blocks of S. How many does each rank compute, the diagonal ones as a half?",
        wrong={
            50: "that is for very many ranks; here the ranks have 1/2, 3/2, 5/2 and 7/2 blocks",
            62.5: "blocks on the diagonal count as a half: 1/2, 3/2, 5/2 and 7/2",
            100: "rank 0 has nothing to do after its own keys",
            25: "that is if one rank had all the work",
            43: "that is the part of the time in which they wait",
        },
        tolerance=0.02,
        unit="%",
    ),
    Question(
        "zigzag_pairs",
        lambda: {
            "own": _pairs(8, 2, 0, "zigzag", 0),
            "hop": _pairs(8, 2, 0, "zigzag", 1),
            "other": _pairs(8, 2, 1, "zigzag", 0),
        },
        "rank 0 has the rows 0, 1, 6, 7, and rank 1 has 2, 3, 4, 5. With its own keys rank 0 computes 1 + 2 "
        "+ 3 + 4 = "
        "10. Rows 6 and 7 see all four keys of rank 1. And the four rows of rank 1 see the keys 0 and 1.",
        hint="Write down the four rows of rank 0 and of rank 1. Which of them see which keys?",
        wrong={
            ("own", 16): "the own keys are masked: the first of the rows sees one of them",
            ("own", 8): "rows 0, 1, 6, 7 see 1, 2, 3 and 4 of the keys 0, 1, 6, 7",
            ("hop", 16): "rows 0 and 1 come before all keys of rank 1",
            ("hop", 0): "rows 6 and 7 come after all keys of rank 1",
            ("hop", 4): "rows 6 and 7 see all four keys",
            ("other", 16): "keys 6 and 7 come after all rows of rank 1",
            ("other", 4): "all four rows see the keys 0 and 1",
            ("other", 0): "keys 0 and 1 come before all rows of rank 1",
        },
        labels={
            "own": "rank 0 with its own keys",
            "hop": "rank 0 with the keys of 1",
            "other": "rank 1 with the keys of 0",
        },
    ),
    Question(
        "ring_lead",
        lambda: SHRINKS,
        "the time of the copies grows with the tokens per rank, and that of the products with their square. So "
        "with many tokens copies are a small part of the time, hidden or not.",
        hint="How does the time of the copies grow with the tokens per rank, and how that of the products?",
        choices=(GROWS, STAYS, SHRINKS),
        wrong={
            GROWS: "there are more bytes to hide, but the products grow faster than the bytes",
            STAYS: "copies and products grow differently with the tokens per rank",
        },
    ),
    Question(
        "ulysses_ratio",
        lambda: {"each_its_own": _ratio(32), "groups_of_4": _ratio(8)},
        "a ring brings K and V of 7 other ranks: 7 * 2 H_k for each row held and each d. Ulysses sends 7/8 "
        "of Q, K, V and O: "
        "7/8 * (2 H + 2 H_k), and a little for lse. With H_k = 32 that is 448 to 112, with H_k = 8 it is 112 "
        "to 70.",
        hint="For each row that a rank holds: a ring sends 7 times 2 H_k d numbers. How many does Ulysses send?",
        wrong={
            ("each_its_own", 8.0): "Q and O are sent too, and they are as large as K and V",
            ("each_its_own", 7.0): "a rank keeps one eighth of the heads for itself, and sends O too",
            ("each_its_own", 0.25): "that is Ulysses over the ring",
            ("each_its_own", 2.0): "a ring sends K and V 7 times, and Ulysses sends 7/8 of what it has",
            ("each_its_own", 1.0): "a ring sends K and V of each rank 7 times",
            ("groups_of_4", 4.0): "K and V have a quarter of the heads, and Q and O do not",
            ("groups_of_4", 1.0): "K and V shrink to a quarter for both, and Q and O of Ulysses stay as they were",
            ("groups_of_4", 0.625): "that is Ulysses over the ring",
        },
        tolerance=0.03,
        labels={"each_its_own": "times, 32 heads of K and V", "groups_of_4": "times, 8 heads of K and V"},
    ),
]
