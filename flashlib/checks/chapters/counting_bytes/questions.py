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


def _written():
    """Return how many times as many bytes FA1 writes as FA2, at the size of the chapter's ledger."""
    fa1, fa2 = (
        form(512, 512, d, B_r=64, B_c=64, dtype="float16").written for form in (cost.fa1_traffic, cost.fa2_traffic)
    )
    return min((2, 9, 60), key=lambda factor: abs(factor - fa1 / fa2))


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
        _written,
        "FA1 stores O, m and l first as zeros and then again for each of 8 column blocks, so nine times. "
        "FA2 stores O once.",
        wrong={
            2: "O is stored again for every column block, of which there are 8",
            60: "there are 64 tiles, but each stores only its own 64 rows of O",
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
        lambda: DRAM[2],
        "K and V of a head are 2 MB. The row blocks of a head run at about the same time, so only a few heads are "
        "read at once. Their K and V stay in the L2 cache, which serves all but the first read.",
        choices=DRAM,
        wrong={
            DRAM[0]: "the formula counts what the programs ask for; the L2 cache lies between them and DRAM",
            DRAM[1]: "the L2 cache serves nearly every repeated read, of which there are 128 for each row of K",
        },
    ),
    Question(
        "chunked_traffic",
        lambda: "no",
        "each line is a kernel of its own, which stores its S_ij or P_ij, and the next loads it again: what is "
        "saved is the room that they take, not the loads and stores.",
        choices=("yes", "no"),
        wrong={"yes": "S and P are never whole, but every tile of them is still stored and loaded again"},
    ),
]
