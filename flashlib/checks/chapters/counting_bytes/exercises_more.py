"""The exercise under More: the best tile that fits."""

from collections.abc import Callable
from itertools import product

from flashlib import cost
from flashlib.checks.engine import Case, Known, Verdict, examine, exercise, random_cases
from flashlib.checks.harness import sizes


@exercise(title="The best tile that fits", minutes=20, difficulty="medium", optional=True)
def best_tile(answer: Callable, known: Known) -> Verdict:
    filled = [  # to the byte by a tile
        _tile(2048, d, cost.sram_bytes(B_r, B_c, d, dtype), dtype)
        for d, dtype, B_r, B_c in (
            (2, "float16", 16, 32),
            (16, "float16", 64, 32),
            (64, "float32", 256, 16),
            (8, "float64", 128, 512),
        )
    ]
    fixed = (
        (256, 64, 18000, "float16"),
        (256, 16, 8 * 1024, "float32"),
        (256, 16, 16 * 1024, "float16"),
        (4096, 64, 48 * 1024, "float16"),
        (4096, 64, 227 * 1024, "float16"),
        (4096, 128, 100 * 1024, "float64"),
        (4096, 16, 227 * 1024, "float16"),
        (100, 16, 8 * 1024 * 1024, "float16"),
    )
    smallest = [_tile(2048, d, cost.sram_bytes(16, 16, d, "float16"), "float16") for d in (2, 64)]
    stages = [[_tile(*size) for size in fixed] + filled + random_cases.cases(_any_tile), smallest]
    right = {case.arguments: case.expected for stage in stages for case in stage}
    return examine(sizes.whole_numbers(answer, lambda *size: right[size]), stages, known, outputs=("B_r", "B_c"))


def _tile(N, d, capacity, dtype):
    """Return the Case of the best tile of powers of two, found by trying each."""
    found = []
    for B_r, B_c in product([2**p for p in range(4, 11)], repeat=2):
        if cost.sram_bytes(B_r, B_c, d, dtype) <= capacity:
            moved = cost.fa2_traffic(N, N, d, B_r=B_r, B_c=B_c, dtype=dtype).total
            found.append((moved, -B_c, B_r))
    _, B_c, B_r = min(found)
    return Case(f"N = {N}, d = {d}, {capacity} bytes, {dtype}", (N, d, capacity, dtype), (B_r, -B_c))


def _any_tile(rng):
    N, d = int(rng.integers(50, 5000)), int(2 ** rng.integers(2, 8))
    dtype = str(rng.choice(["float16", "float32", "float64"]))
    B_r, B_c = (2 ** rng.integers(5, 11, size=2)).tolist()
    return _tile(N, d, cost.sram_bytes(B_r, B_c, d, dtype) + int(rng.integers(-1, 2)), dtype)
