"""The questions of this chapter."""

from flashlib import cost
from flashlib.checks.engine.prediction import Question
from flashlib.gpus import GPUS

N, d = 16384, 64
H200 = GPUS["H200"]
DRAM = ("as much as the formula", "about half of it", "Q, K and V about once")


def _bound():
    """Return what limits each method on an H200 according to the closed forms, N = 16384."""
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
        "traffic_bound",
        _bound,
        "989 TFLOP/s over 4.8 TB/s: an H200 can do 206 FLOPs while it moves a byte. Standard attention has "
        "about d / 2 = 32 FLOPs per byte, FA2 in fp16 about B_r = 128. The count knows no L2 cache, which in "
        "practice serves most of FA2's reads.",
        hint="First the ridge of the H200, FLOP/s divided by bytes per second. Then the intensities: d / 2 and "
        "B_r.",
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
        hint="Row blocks of a head run at about the same time. Compare the size of their K and V with the L2 "
        "cache.",
        choices=DRAM,
        wrong={
            DRAM[0]: "the formula counts what the programs ask for; the L2 cache is between them and DRAM",
            DRAM[1]: "the L2 cache serves nearly every repeated read, of which there are 128 for each row of K",
        },
    ),
    Question(
        "chunked_traffic",
        lambda: "no",
        "each line is a kernel of its own, which stores its chunk of S or P, and the next loads it again. "
        "Small chunks make the peak small, not the sum. The L2 cache may hand a chunk on, so that DRAM sees "
        "less of it, but the SMs load and store no less. Only one kernel for all lines, in which S_ij never "
        "leaves the chip, spares them that: FlashAttention.",
        hint="Where is the chunk of S between one line and the next?",
        choices=("yes", "no"),
        wrong={"yes": "S and P are never whole, but every tile of them is still stored and loaded again"},
    ),
]
