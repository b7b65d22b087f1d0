"""Verify and time the passes at d = 256 beside cuDNN's backward and the portable one; not to be kept."""

import json
import sys

import torch
import triton
from torch.nn.attention import SDPBackend, sdpa_kernel

from flashlib.kernels import backward as portable
from flashlib.kernels import forward
from flashlib.kernels.hopper import backward, launch_256
from tests.kernels import gradients

VARIANTS = [int(x) for x in sys.argv[1].split(",")] if len(sys.argv) > 1 else [0, 1, 2, 3]


def ours(variant, *given, **options):
    launch_256.OVER = variant
    return backward.backward(*given, **options)


def problem(B, H, H_k, N_q, N_k, dtype=torch.bfloat16):
    torch.manual_seed(N_q + N_k)
    shapes = (B, H, N_q, 256), (B, H_k, N_k, 256), (B, H_k, N_k, 256), (B, H, N_q, 256)
    return [torch.randn(shape, device="cuda").to(dtype) for shape in shapes]


print(torch.cuda.get_device_name(), torch.__version__, triton.__version__, torch.backends.cudnn.version(), flush=True)
for sizes in ((2, 4, 2, 193, 1021), (1, 2, 2, 1021, 193), (1, 2, 1, 517, 771), (1, 1, 1, 1, 65), (1, 2, 2, 1024, 1024)):
    for causal in (False, True):
        Q, K, V, dO = problem(*sizes)
        O, lse = forward.attention(Q, K, V, causal=causal)
        for variant in VARIANTS:
            for out_dtype in (None, torch.float32):
                found = ours(variant, Q, K, V, O, lse, dO, causal=causal, out_dtype=out_dtype)
                gradients.hold(found, Q, K, V, dO, causal=causal, out_dtype=out_dtype)
            again = ours(variant, Q, K, V, O, lse, dO, causal=causal, out_dtype=out_dtype)
            assert all(torch.equal(one, same) for one, same in zip(found, again, strict=True))
print("right", flush=True)


class Nothing:
    """Stands for a launch."""

    constants = {"WIDE": False}

    def __call__(self, *given):
        pass


def ms(run):
    return triton.testing.do_bench(run, warmup=20, rep=80, return_mode="median")


rows = []
for N in (1024, 4096, 16384):
    for causal in (False, True):
        B, H = 16384 // N, 8
        Q, K, V, dO = problem(B, H, H, N, N)
        O, lse = forward.attention(Q, K, V, causal=causal)
        leaves = [X.detach().requires_grad_() for X in (Q, K, V)]
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            out = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal)
        runs = {
            "cudnn": lambda: torch.autograd.grad(out, leaves, dO, retain_graph=True),
            "portable": lambda: portable.backward(Q, K, V, O, lse, dO, causal=causal),
        }
        for variant in VARIANTS:
            runs[f"v{variant}"] = lambda variant=variant: ours(variant, Q, K, V, O, lse, dO, causal=causal)
        same = runs["portable"]()
        for variant in VARIANTS:
            for X, Y in zip(runs[f"v{variant}"](), same, strict=True):
                assert (X - Y).abs().max() <= 0.02 * Y.abs().max()
        flops = 10 * B * H * N * N * 256 / (2 if causal else 1)
        found = {name: [] for name in runs}
        for _ in range(3):
            for name, run in runs.items():
                found[name].append(flops / ms(run) / 1e9)
        row = {"N": N, "causal": causal, **{name: round(sorted(x)[1], 1) for name, x in found.items()}}
        print(json.dumps(row), flush=True)
        row = {}
        for variant in VARIANTS:  # each pass alone, in ms
            runs[f"v{variant}"]()
            (key,) = [k for k, plan in launch_256.PLANS.items() if plan and plan.dkv.constants["OVER"] == variant
                      and not plan.dq.constants["WIDE"] and plan.rows[:2] == (B, H) and plan.dq.constants["CAUSAL"] == causal
                      and plan.dq.sizes[2] == N and plan.dq.sizes[3] == N]  # fmt: skip
            whole = launch_256.PLANS[key]
            for name in ("dkv", "dq"):
                launch_256.PLANS[key] = whole._replace(**{name: Nothing()})
                row[f"v{variant} without {name}, ms"] = round(ms(runs[f"v{variant}"]), 3)
            launch_256.PLANS[key] = whole
        row["whole"] = {f"v{variant}": round(sorted(flops / x / 1e9 for x in found[f"v{variant}"])[1], 3) for variant in VARIANTS}
        print(json.dumps(row), flush=True)
