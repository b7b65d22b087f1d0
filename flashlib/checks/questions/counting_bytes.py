"""The questions of chapter 07."""

from flashlib import cost
from flashlib.checks.prediction import Question
from flashlib.gpus import GPUS

N, d = 4096, 64
H200 = GPUS["H200"]
CHANGES = {"about a quarter": 0.25, "about half": 0.5, "the same": 1.0, "about double": 2.0}
DRAM = ("as much as the formula", "about half of it", "Q, K and V about once")


def _standard():
    return cost.standard_traffic(N, N, d, dtype="float16").total


def _tiled(form=cost.fa2_traffic, B_r=64):
    return form(N, N, d, B_r=B_r, B_c=64, dtype="float16").total


def _scores_share():
    """Return how many percent of standard attention's bytes are S and P, each written and read."""
    return round(100 * 4 * N * N * cost.ITEMSIZE["float16"] / _standard())


def _order():
    fa1, fa2 = _tiled(cost.fa1_traffic), _tiled(cost.fa2_traffic)
    return "equal" if fa1 == fa2 else "fa1" if fa1 > fa2 else "fa2"


def _nearest(ratio):
    return min(CHANGES, key=lambda words: abs(CHANGES[words] - ratio))


def _twice_the_sram():
    """Return how the bytes change if B_r grows from what fits into 100 KB to what fits into 200 KB."""
    less, more = (
        _tiled(B_r=cost.largest_B_r(kilobytes * 1024, B_c=64, d=d, dtype="float16")) for kilobytes in (100, 200)
    )
    return _nearest(more / less)


def _bound():
    """Return what limits each on an H200 by the closed forms, N = 16384."""
    N = 16384
    flops = cost.flops(N, N, d)
    moved = {
        "standard": cost.standard_traffic(N, N, d, dtype="float16"),
        "flash": cost.fa2_traffic(N, N, d, B_r=128, B_c=64, dtype="float16"),
    }
    return {
        name: "memory" if cost.intensity(flops, traffic) < H200.ridge else "compute"
        for name, traffic in moved.items()
    }


def _dram():
    """Return what DRAM delivers: what all programs read again stays in L2 if K and V of the 16 heads fit there."""
    K_and_V = 16 * 2 * 8192 * 64 * cost.ITEMSIZE["float16"]
    return DRAM[2] if K_and_V <= H200.l2 else DRAM[0]


QUESTIONS = [
    Question(
        "traffic_share",
        _scores_share,
        "S and P are 4 N^2 numbers, each written and read; Q, K, V and O are 4 N d, one part in N / d + 1 = 65.",
        wrong={
            97: "S and P are written and read again, so each is moved twice",
            49: "that is S alone, or each of S and P moved once",
            50: "Q, K, V and O have d = 64 columns, S and P have N = 4096",
            2: "that is the share of all the others",
        },
        tolerance=0.006,
    ),
    Question(
        "traffic_order",
        _order,
        "FA1 reads Q, and reads and writes O, for each column block: 3 N^2 d / B_c numbers. FA2 reads K and V for "
        "each row block: 2 N^2 d / B_r.",
        choices=("fa1", "fa2", "equal"),
        wrong={
            "fa2": "it reads two matrices again, FA1 moves three: Q and O are read, and O is written",
            "equal": "what FA1 keeps for later, O, is written too, not read alone as K and V are in FA2",
        },
    ),
    Question(
        "traffic_double",
        lambda: _nearest(_tiled(B_r=128) / _tiled(B_r=64)),
        "nearly all the bytes are K and V, read once for each of N / B_r row blocks, and those are half as many.",
        choices=tuple(CHANGES),
        wrong={
            "about a quarter": "the number of row blocks is halved; each still reads all of K and V",
            "the same": "B_c would change nothing; B_r decides how often K and V are read",
            "about double": "larger row blocks are fewer, and each reads K and V once",
        },
    ),
    Question(
        "traffic_small",
        lambda: round(_tiled(B_r=16) / _standard(), 1),
        "256 row blocks read K and V, 2 N d numbers each: 8 N^2 in all, against 4 N^2 of standard attention. "
        "Tiling saves bytes only with B_r above about d / 2.",
        wrong={
            0.5: "it is the other way round: with B_r = 16, FA2 moves more",
            1: "they are equal near B_r = d / 2, which is 32",
            4: "S and P are both written and read: 4 N^2 numbers, not 2 N^2",
            8: "that is 8 N^2 numbers; standard attention moves about 4 N^2",
        },
        tolerance=0.03,
    ),
    Question(
        "traffic_sram",
        _twice_the_sram,
        "twice the SRAM holds about twice the rows, so half as many row blocks read K and V: N^2 d^2 / M.",
        choices=tuple(CHANGES)[:3],
        wrong={
            "about a quarter": "M is in the denominator once, not squared",
            "the same": "larger row blocks fit, and fewer of them read K and V",
        },
    ),
    Question(
        "traffic_bound",
        _bound,
        "an H200 can do 206 FLOPs while it moves a byte. Standard attention has about d / 2 = 32 FLOPs per byte, "
        "FA2 in fp16 about B_r = 128. The count knows no L2 cache, which in practice serves most of FA2's reads.",
        choices=("memory", "compute"),
        wrong={
            ("standard", "compute"): "it does about 32 FLOPs for each byte, and the bytes take longer",
            ("flash", "compute"): "its 128 FLOPs per byte are four times as many, and still below 206",
        },
    ),
    Question(
        "counter_dram",
        _dram,
        "K and V of a head are 2 MB, those of all 16 heads 32 MB. They stay in the L2 cache of 60 MB, which "
        "serves all but the first read.",
        choices=DRAM,
        wrong={
            DRAM[0]: "the formula counts what the programs ask for; the L2 cache lies between them and DRAM",
            DRAM[1]: "the L2 cache serves nearly every repeated read, of which there are 128 for each row of K",
        },
    ),
    Question(
        "chunked_traffic",
        lambda: "no",
        "each line is a kernel of its own, which writes S_ij or P_ij to HBM, and the next reads it back: what is "
        "saved is the room that they take, not the bytes that are moved.",
        choices=("yes", "no"),
        wrong={"yes": "S and P are never whole, but every tile of them is still written to HBM and read again"},
    ),
]
