"""Verify and time variants of the passes at d = 256 beside cuDNN's backward and the portable one; not to be kept.

    python -u scratch_256.py 0,1,2,3

A variant is `launch_256.OVER`. Prints a line of JSON a size: TFLOP/s, medians of three, and then milliseconds
without one of the passes: what is left of it is the other, and what comes before both.
"""

import json
import sys
from statistics import median

import torch
import triton
from torch.nn.attention import SDPBackend, sdpa_kernel

from flashlib.kernels import backward as portable
from flashlib.kernels import forward
from flashlib.kernels.hopper import backward, launch_256
from tests.kernels import gradients

RAGGED = [(2, 4, 2, 193, 1021), (1, 2, 2, 1021, 193), (1, 2, 1, 517, 771), (1, 1, 1, 1, 65), (1, 2, 2, 1024, 1024)]
TIMED = [(16384 // N, 8, N, causal) for N in (1024, 4096, 16384) for causal in (False, True)]
PASSES = "dkv", "dq"


class Nothing:
    """Stands for a launch that is left out."""

    def __init__(self, launch):
        self.constants = launch.constants

    def __call__(self, *given):
        pass


def ours(variant, *given, without=None, **options):
    """Return the gradients by a variant; without: a pass that is left out."""
    launch_256.OVER = variant
    plan_of = launch_256._plan
    if without:
        launch_256.PLANS.clear()
        launch_256._plan = lambda *given: left_out(plan_of(*given), without)
    try:
        return backward.backward(*given, **options)
    finally:
        launch_256._plan = plan_of


def left_out(plan, name):
    return plan._replace(**{name: Nothing(getattr(plan, name))})


def problem(B, H, H_k, N_q, N_k, device):
    torch.manual_seed(N_q + N_k)
    shapes = (B, H, N_q, 256), (B, H_k, N_k, 256), (B, H_k, N_k, 256), (B, H, N_q, 256)
    return [torch.randn(shape, device=device).bfloat16() for shape in shapes]


def verify(variants, sizes, device):
    for size in sizes:
        for causal in (False, True):
            Q, K, V, dO = problem(*size, device)
            O, lse = forward.attention(Q, K, V, causal=causal)
            for variant in variants:
                for out_dtype in (None, torch.float32):
                    options = {"causal": causal, "out_dtype": out_dtype}
                    found, again = (ours(variant, Q, K, V, O, lse, dO, **options) for _ in range(2))
                    gradients.hold(found, Q, K, V, dO, **options)
                    assert all(torch.equal(one, same) for one, same in zip(found, again, strict=True))
    print("right", flush=True)


def ms(run):
    return triton.testing.do_bench(run, warmup=20, rep=60, return_mode="median")


def measure(variants, B, H, N, causal, device):
    Q, K, V, dO = problem(B, H, H, N, N, device)
    O, lse = forward.attention(Q, K, V, causal=causal)
    leaves = [X.detach().requires_grad_() for X in (Q, K, V)]
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION if device == "cuda" else SDPBackend.MATH):
        out = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal)
    given = Q, K, V, O, lse, dO
    runs = {
        "cudnn": lambda: torch.autograd.grad(out, leaves, dO, retain_graph=True),
        "portable": lambda: portable.backward(*given, causal=causal),
    } | {f"v{n}": lambda n=n: ours(n, *given, causal=causal) for n in variants}
    same = runs["portable"]()
    for n in variants:
        for X, Y in zip(runs[f"v{n}"](), same, strict=True):
            assert (X - Y).abs().max() <= 0.02 * Y.abs().max()
    size, flops = {"N": N, "causal": causal}, 10 * B * H * N * N * 256 / (2 if causal else 1)
    found = {name: [] for name in runs}
    for _ in range(3):
        for name, run in runs.items():
            found[name].append(ms(run))
    print(json.dumps(size | {name: round(flops / median(x) / 1e9, 1) for name, x in found.items()}), flush=True)
    rest = {f"v{n}": round(median(found[f"v{n}"]), 3) for n in variants}
    for n in variants:
        for name in PASSES:
            ours(n, *given, without=name, causal=causal)  # its plan is kept
            rest[f"v{n} without {name}"] = round(ms(runs[f"v{n}"]), 3)
            launch_256.PLANS.clear()
    print(json.dumps(size | rest), flush=True)


def main(variants, ragged=RAGGED, timed=TIMED, device="cuda"):
    versions = torch.__version__, triton.__version__, torch.backends.cudnn.version()
    print(torch.cuda.get_device_name() if device == "cuda" else device, *versions, flush=True)
    verify(variants, ragged, device)
    for size in timed:
        measure(variants, *size, device)


if __name__ == "__main__":
    main([int(n) for n in sys.argv[1].split(",")])
