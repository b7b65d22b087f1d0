"""Time the forward kernel with many tiles, warps and stages on your GPU, and print the fastest.

    python -m flashlib.bench.tune --d 128 --N 4096 --causal

Every choice is verified before it is timed; those that do not fit the GPU are left out, and counted. Pass the best
choice to `forward.attention` as B_r, B_c, num_warps and num_stages, or enter it in `kernels/launch/tile_sizes.py`.
"""

import argparse
import itertools
import math
import sys

import torch

from flashlib.bench.common import harness
from flashlib.bench.common.problem import BenchProblem, Size

CHOICES = {"B_r": (64, 128), "B_c": (32, 64, 128), "num_warps": (4, 8), "num_stages": (2, 3, 4)}
HEADS = 16


def rank(d: int, N: int, causal: bool, dtype: torch.dtype, *, tokens: int = 16384) -> list[tuple[float, dict]]:
    """Return (TFLOP/s, options) for every choice that fits the GPU, the fastest first."""
    from flashlib.kernels import forward

    problem = BenchProblem(Size(max(1, tokens // N), HEADS, HEADS, N, d, causal), dtype=dtype)
    found = []
    for values in itertools.product(*CHOICES.values()):
        options = dict(zip(CHOICES, values, strict=True))

        def run(options=options):
            return forward.attention(*problem.tensors, causal=causal, **options).O

        try:
            given = run()
        except ValueError:  # it does not fit
            continue
        problem.verify(str(options), given)
        found.append((problem.flops / harness.median_ms(run, rep_ms=50) / 1e9, options))
    return sorted(found, key=lambda pair: -pair[0])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.bench.tune", description=__doc__)
    parser.add_argument("--d", type=int, default=128)
    parser.add_argument("--N", type=int, default=4096)
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--dtype", choices=("float16", "bfloat16", "float32"), default="bfloat16")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("There is no CUDA device to tune for.")
    ranked = rank(args.d, args.N, args.causal, getattr(torch, args.dtype))
    n_choices = math.prod(map(len, CHOICES.values()))
    print(f"{harness.environment()['gpu']}, d={args.d}, N={args.N}, causal={args.causal}, {args.dtype}")
    print("".join(f"{name:>11}" for name in CHOICES) + "    TFLOP/s")
    for tflops, options in ranked[:12]:
        print("".join(f"{value:11}" for value in options.values()) + f"{tflops:11.1f}")
    print(f"{len(ranked)} of {n_choices} choices fit this GPU")


if __name__ == "__main__":
    main()
