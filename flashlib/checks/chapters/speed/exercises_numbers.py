"""The calculations of this chapter: TFLOP/s, and how many programs a multiprocessor of the H100 can hold."""

from collections.abc import Callable

from flashlib import cost
from flashlib.checks.engine import Known, Verdict, examine, exercise
from flashlib.checks.harness import sizes


@exercise(title="TFLOP/s by the convention", minutes=5, difficulty="easy")
def tflops(answer: Callable, known: Known) -> Verdict:
    fixed = """
        1 1 1000 250 False 1.0, 1 1 1000 250 True 1.0, 1 1 1000 64 False 0.25, 2 3 1000 64 False 0.5,
        2 3 1000 64 True 0.5, 3 2 777 40 True 0.3, 4 16 4096 128 True 0.8, 4 32 16384 64 False 43.0,
        1 1 8 16 True 5.0
    """

    def right(B, H, N, d, causal, ms):
        return B * H * cost.flops(N, N, d, causal=causal) / (ms * 1e9)

    def draw(rng):
        return *rng.integers(1, (9, 33, 5000, 257)), rng.random() < 0.5, rng.integers(1, 5000) / 100

    return examine(answer, sizes.cases(right, fixed, draw), known)


@exercise(title="Programs on a multiprocessor", minutes=20, difficulty="medium")
def programs(answer: Callable, known: Known) -> Verdict:
    fixed = """
        128 128 4, 64 128 4, 168 128 4, 169 128 4, 133 128 4, 33 128 4, 39 128 4, 20 128 8, 51 128 8, 32 128 8,
        32 58368 4, 32 115712 4, 32 77312 4, 32 14464 4, 32 20224 4, 64 49152 8, 255 98304 8, 128 231424 16,
        32 232448 4, 255 32768 16, 32 266240 4, 40 1024 4
    """

    def right(registers, shared, num_warps):
        from flashlib.kernels.compiler import occupancy  # here: Triton is missing on macOS and Windows

        return min(occupancy.programs(registers, shared, num_warps, 90))

    def draw(rng):
        return rng.integers(16, 256), 128 * rng.integers(1, 600), rng.choice([4, 8, 16])

    return examine(sizes.whole_numbers(answer, right), sizes.cases(right, fixed, draw, count=6), known)
