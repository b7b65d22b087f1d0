"""The questions of the chapter on the Hopper kernel."""

from flashlib.checks.chapters.roles.questions import GPU, SMALL, clocks
from flashlib.checks.engine.prediction import Question


def _launched(warps):
    return GPU.registers // 4 // (32 * warps) // 8 * 8  # 4 bytes each


QUESTIONS = [
    Question(
        "hopper_three",
        lambda: clocks(SMALL),
        "the products are 2 * 2 * 64 * 128 * 64 FLOP: with half of d they take half the time. The scores are as "
        "many as before, so at d = 64 the exponentials alone take as long as the products.",
        hint="The two products have 4 * rows * keys * d FLOPs; there is one exponential for each of the rows * "
        "keys scores.",
        wrong={
            ("products", 256): "there are two products",
            ("products", 1024): "that is at d = 128",
            ("exponentials", 256): "there is one exponential for each of 64 * 128 scores, whatever d is",
            ("exponentials", 1024): "the tile has 64 rows, not 128",
            ("exponentials", 8192): "16 exponentials are done in a clock",
        },
        unit="clocks",
    ),
    Question(
        "hopper_launch_registers",
        lambda: {f"warps_{warps}": _launched(warps) for warps in (12, 20)},
        "12 warps have 384 threads, and 65536 / 384 = 170.7, so 168. 20 warps have 640, and 65536 / 640 = 102.4, "
        "so 96.",
        hint="Divide the registers by the threads and round down to a multiple of 8.",
        wrong={
            ("warps_12", 170): "it must be a multiple of 8",
            ("warps_12", 171): "it must be a multiple of 8, and there are not 171 * 384 registers",
            ("warps_12", 176): "384 threads with 176 registers each need 67584, so round down",
            ("warps_12", 160): "168 * 384 = 64512 registers fit too",
            ("warps_12", 5456): "a warp has 32 threads",
            ("warps_20", 3272): "a warp has 32 threads",
            ("warps_20", 102): "it must be a multiple of 8",
            ("warps_20", 104): "640 threads with 104 registers each need 66560, so round down",
        },
        labels={"warps_12": "12 warps", "warps_20": "20 warps"},
    ),
]
