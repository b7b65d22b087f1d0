"""The exercise of this chapter: the least time of a kernel, and what takes it."""

from collections.abc import Callable

from flashlib.checks.engine import Case, Known, Verdict, examine, exercise, random_cases
from flashlib.gpus import GPUS

NAMES = "HBM", "L2", "DRAM", "sram"


@exercise(title="The least time", minutes=20, difficulty="medium")
def least_time(answer: Callable, known: Known) -> Verdict:
    gpu = GPUS["A100"]
    one, two = {"HBM": 10.0}, {"HBM": 10.0, "L2": 40.0}
    three = {"sram": 90.0, "L2": 40.0, "DRAM": 10.0}
    cases = [
        _case("HBM alone, 8 FLOPs and 60 bytes", 8, 2.0, {"HBM": 60}, one),
        _case("HBM alone, 80 FLOPs and 60 bytes", 80, 2.0, {"HBM": 60}, one),
        _case("8 FLOPs, most bytes from the L2 cache", 8, 2.0, {"HBM": 60, "L2": 90}, two),
        _case("8 FLOPs, many bytes from the L2 cache", 8, 2.0, {"HBM": 60, "L2": 800}, two),
        _case("100 FLOPs, many bytes from the L2 cache", 100, 2.0, {"HBM": 60, "L2": 800}, two),
        _case("8 FLOPs, most bytes from HBM", 8, 2.0, {"HBM": 90, "L2": 60}, two),
        _case("memories in different orders", 8, 2.0, {"L2": 90, "HBM": 60}, two),
        _case("other memories", 3, 2.0, {"DRAM": 20, "L2": 90, "sram": 99}, three),
        _case("an A100, 10^9 FLOPs and 6 MB", 10**9, gpu.fp16, {"HBM": 6_000_000}, {"HBM": gpu.bandwidth}),
    ]
    return examine(answer, cases + random_cases.cases(_any_case, 4), known, outputs=("seconds", "limit"))


def _case(words, flops, peak, moved, bandwidth):
    """Return the Case of a kernel: the longest of the times that units take which work at once."""
    times = [(moved[name] / bandwidth[name], name) for name in moved]
    return Case(words, (flops, peak, moved, bandwidth), max([*times, (flops / peak, "arithmetic")]))


def _any_case(rng):
    names = rng.permutation(NAMES)[: rng.integers(1, 4)].tolist()
    moved = {name: int(rng.integers(10**6, 10**9)) for name in names}
    bandwidth = {name: float(rng.integers(10**11, 10**13)) for name in rng.permutation(names).tolist()}
    flops, peak = int(rng.integers(10**9, 10**11)), float(rng.integers(10**13, 10**14))
    return _case(f"{' + '.join(names)}, {flops} FLOPs", flops, peak, moved, bandwidth)
