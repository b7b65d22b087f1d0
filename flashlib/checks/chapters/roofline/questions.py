"""The questions of this chapter."""

from flashlib import cost
from flashlib.checks.engine.prediction import Question
from flashlib.gpus import GPUS

N, d = 16384, 64
H200 = GPUS["H200"]
DRAM = ("as much as the formula", "about half of it", "Q, K, V and O about once")
ASKED = ("more", "as many", "fewer")


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
        "about d / 2 = 32 FLOPs per byte, FA2 in fp16 about B_r = 128. The count leaves out the L2 cache, "
        "which in practice serves most of FA2's reads.",
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
        lambda: DRAM[0],
        "S alone is 2 GB for 16 heads, and so is P. Each is written whole before the next kernel reads it, so by "
        "then the L2 cache holds the end of it at most. A cache serves what is read again soon, as K and V are in "
        "a tiled kernel.",
        hint="How large is S for all heads, and when is it read again?",
        choices=DRAM,
        wrong={
            DRAM[1]: "S of all heads is 2 GB, and 60 MB of it fit into the cache",
            DRAM[2]: "that is what a tiled kernel moves; here S and P are written and read as well",
        },
    ),
    Question(
        "counter_l2",
        lambda: ASKED[2],
        "row blocks of a head that run at the same time ask for the same K and V at about the same time. A unit "
        "before the cache merges such requests, and one answer goes to several SMs.",
        hint="Several row blocks of a head run at once. What do they load, and when?",
        choices=ASKED,
        wrong={
            ASKED[0]: "nothing is asked for that no SM wants",
            ASKED[1]: "each SM would then get an answer for itself, but some get the same one",
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
