"""The questions of this chapter."""

from flashlib import cost
from flashlib.checks.engine.prediction import Question

FLOP_PER_CLOCK = 4096  # of the tensor cores of a multiprocessor of the H100, for 16-bit numbers
EXP_PER_CLOCK = 16


def _limit(*ds):
    """Return the percentage of the peak at which products and exponentials take turns, for each d."""
    limits = []
    for d in ds:
        products, exponentials = cost.flops(128, 128, d) / FLOP_PER_CLOCK, 128 * 128 / EXP_PER_CLOCK
        limits.append(100 * products / (products + exponentials))
    return dict(zip(("d64", "d128"), limits, strict=True))


def _launches(n, kernel, launch):
    """Return the microseconds of n kernels one after another: each launched by the CPU, and in a graph."""
    started = done = 0
    for _ in range(n):
        started += launch
        done = max(started, done) + kernel
    return {"launched": done, "graph": n * kernel}


RUNGS = ("r4_exp2", "r5_causal", "r6_tiles", "r7_stages", "r8_descriptors", "ours")

QUESTIONS = [
    Question(  # as recorded in h200_ladder.json: tests/checks/test_recorded_answers.py compares
        "speed_largest_step",
        lambda: {"no_mask": "r7_stages", "causal": "r5_causal"},
        "with tiles loaded ahead the products wait less; under a mask nearly half of the tiles are skipped.",
        hint="What does a program wait for most? And under a mask, which work is done for nothing?",
        choices=RUNGS,
        wrong={
            (
                "no_mask",
                "r4_exp2",
            ): "it saves a few instructions for each score, and waits for tiles as before",
            ("no_mask", "r5_causal"): "without a mask hardly a tile is masked or skipped",
            ("no_mask", "r6_tiles"): "a larger tile by itself still waits until it has arrived",
            ("no_mask", "r8_descriptors"): "descriptors save the computing of addresses, not the waiting",
            ("no_mask", "ours"): "it is rung 8 for all inputs, with two small changes",
            ("causal", "r4_exp2"): "it saves a few instructions for each score, hidden ones too",
            ("causal", "r6_tiles"): "larger tiles waste more work above the diagonal",
            ("causal", "r8_descriptors"): "descriptors save addresses, for the same tiles",
            ("causal", "ours"): "it is rung 8 for all inputs, and computes the same tiles",
            ("causal", "r7_stages"): "waiting less is worth much, and not computing at all is worth more",
        },
    ),
    Question(
        "speed_exp",
        lambda: _limit(64, 128),
        "a tile of 128 x 128 has 4 * 128 * 128 * d FLOPs, at 4096 a clock, and 128 * 128 exponentials, at 16 a "
        "clock. At d = 64 they take equally long; d = 128 has twice the FLOPs for each exponential.",
        hint="How many clocks do the two products of a tile of 128 x 128 take, and how many its exponentials? "
        "The tensor cores work only in the former.",
        wrong={
            ("d64", 100): "while the exponentials are computed, the tensor cores wait",
            ("d128", 100): "while the exponentials are computed, the tensor cores wait",
            ("d64", 33.33): "there are two products, and a multiplication and an addition count as two",
            ("d128", 50): "there are two products, and a multiplication and an addition count as two",
            ("d64", 66.67): "4 * 128 * 128 * 64 FLOPs are those of both products already",
            ("d128", 80): "4 * 128 * 128 * 128 FLOPs are those of both products already",
            ("d128", 33.33): "that is the share of the exponentials: the peak is that of the products",
            ("d64", 0.5): "that is the share itself: give it in percent",
            ("d128", 0.6667): "that is the share itself: give it in percent",
        },
        tolerance=0.01,
        unit="%",
        labels={"d64": "d = 64", "d128": "d = 128"},
    ),
    Question(  # as recorded in h200_ladder.json: tests/checks/test_recorded_answers.py compares
        "speed_ranking",
        lambda: {"second": "64 64 4 3", "slowest": "64 128 4 2"},
        "the slowest has four warps, alone on its multiprocessor: nobody works while they wait. In the second, "
        "two small programs fill each other's waits. The fastest reads K and V half as often, and has a stage "
        "more than the third.",
        hint="How many warps are on a multiprocessor, and what do they do while a tile is on its way?",
        choices=("64 64 4 3", "64 128 4 2", "128 128 8 2"),
        wrong={
            ("second", "64 128 4 2"): "it is alone on its multiprocessor, with four warps",
            (
                "second",
                "128 128 8 2",
            ): "with two stages it waits for its tiles, and no other program fills the waits",
            ("slowest", "64 64 4 3"): "two of its programs share a multiprocessor, and fill each other's waits",
            (
                "slowest",
                "128 128 8 2",
            ): "it is alone, but its eight warps are two groups that fill each other's waits",
        },
    ),
    Question(
        "speed_launch",
        lambda: _launches(100, 5, 40),
        "the GPU is done with a kernel long before the CPU has launched the next one, so the launches take "
        "the time: 100 * 40, and 5 for the last kernel. A graph is launched once, and then the kernels take "
        "100 * 5.",
        hint="Which is longer, the launch or the kernel? The longer one sets the pace.",
        wrong={
            ("launched", 500): "the GPU waits for each launch, which takes 40 microseconds",
            ("launched", 4500): "the CPU does not wait for the kernel: it launches the next one meanwhile",
            ("launched", 540): "the CPU launches each of the 100",
            ("graph", 4000): "the CPU launches the graph, not each kernel",
            ("graph", 5): "the graph holds 100 kernels, one after the other",
        },
        tolerance=0.01,
        unit="microseconds",
    ),
]
