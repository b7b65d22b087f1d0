"""The questions of this chapter."""

from flashlib import cost
from flashlib.checks.engine.prediction import Question
from flashlib.gpus import GPUS

N, d = 16384, 64
H200 = GPUS["H200"]
ASKED = ("more", "as many", "fewer")
L2_READ = 8256.7e9  # bytes per second, of h200_ladder.json: tests/checks/test_recorded_answers.py compares


def _bound():
    """Return what limits each method on an H200 according to the closed forms, N = 16384."""
    flops = cost.flops(N, N, d)
    moved = {
        "standard": cost.standard_traffic(N, N, d, dtype="float16"),
        "flash": cost.fa2_traffic(N, N, d, B_r=128, B_c=64, dtype="float16"),
    }
    return {
        name: "memory" if cost.intensity(flops, traffic) < H200.ridge else "arithmetic"
        for name, traffic in moved.items()
    }


QUESTIONS = [
    Question(
        "traffic_bound",
        _bound,
        "989 TFLOP/s over 4.8 TB/s: an H200 can do 206 FLOPs while HBM moves a byte. Standard attention does "
        "4 N^2 d FLOPs for 4 N^2 numbers, d / 2 = 32 a byte. FA2 does them for 2 N^2 d / B_r numbers, which is "
        "B_r = 128 a byte.",
        hint="Divide the 4 N^2 d FLOPs by the bytes that Counting bytes found, 2 a number: 4 N^2 numbers, and "
        "2 N^2 d / B_r. Then compare with the ridge.",
        choices=("memory", "arithmetic"),
        labels={"flash": "FA2"},
        wrong={
            ("standard", "arithmetic"): "it does about 32 FLOPs for each byte, and the bytes take longer",
            ("flash", "arithmetic"): "its 128 FLOPs per byte are four times as many, and still below 206",
        },
    ),
    Question(
        "counter_l2",
        lambda: ASKED[2],
        "row blocks of a head that run at the same time ask for the same K and V at about the same time. A unit "
        "before the cache merges such requests, and one answer goes to several SMs.",
        hint="Several row blocks of a head run at once. What do they load? Must each request be answered alone?",
        choices=ASKED,
        wrong={
            ASKED[0]: "nothing is asked for that no SM wants",
            ASKED[1]: "each SM would then get an answer for itself, but some get the same one",
        },
    ),
    Question(
        "l2_ridge",
        lambda: round(H200.fp16 / L2_READ),
        "989 TFLOP/s over 8.3 TB/s: the ridge of the L2 cache is at 120 FLOPs per byte, and FA2 in fp16 does "
        "about B_r FLOPs for each byte that the SMs receive.",
        hint="The L2 cache has a ridge too. How many FLOPs does FA2 do for each byte that the SMs receive?",
        tolerance=0.1,
        wrong={
            206: "that is the ridge of HBM; these bytes come from the L2 cache, which is faster",
            257: "FA2 does B_r FLOPs per byte in fp16, not B_r / 2",
            64: "FA2 does B_r FLOPs per byte in fp16, not 2 B_r",
            32: "that is d / 2, the intensity of standard attention; FA2's is B_r",
        },
    ),
    Question(
        "chunked_traffic",
        lambda: "no",
        "each line is a kernel, which stores its chunk of S or P, and the next loads it again. "
        "Small chunks make the peak small, not the sum. The L2 cache may hand a chunk on, so that HBM sees "
        "less of it, but the SMs load and store no less. Only one kernel for all lines, in which S_ij never "
        "leaves the chip, spares them that: FlashAttention.",
        hint="Where is the chunk of S between one line and the next?",
        choices=("yes", "no"),
        wrong={"yes": "S and P are never whole, but every tile of them is still stored and loaded again"},
    ),
]
