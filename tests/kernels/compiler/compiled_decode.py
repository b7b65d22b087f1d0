"""Compile decoding for a GPU that need not be present: python -m tests.kernels.compiler.compiled_decode 90

Prints a line of JSON: case, kernel, what `no_device.compiled` returns, and how many instructions copy keys ahead.
"""

import functools
import json
import sys

import torch

from flashlib import masks
from tests.kernels.compiler import no_device

H_K = 8
FEW_LONG, MANY_SHORT, OTHERS = (4, 4096), (64, 512), (32, 512)  # B and N
CASES = {  # group, N_q, d, tokens of a page or 0, dtype of the cache, options
    "plain": (4, 1, 128, 0, torch.bfloat16, {}),
    "whole sequences in turn": (4, 1, 128, 0, torch.bfloat16, {}),
    "the same in fp8": (4, 1, 128, 16, torch.float8_e4m3fn, {}),
    "two whole sequences": (4, 1, 128, 0, torch.bfloat16, {}),
    "pages of 16": (4, 1, 128, 16, torch.float16, {"causal": True}),
    "pages of 64": (4, 1, 64, 64, torch.bfloat16, {}),
    "fp8 in pages of 256": (1, 4, 128, 256, torch.float8_e4m3fn, {"causal": True}),
    "many rows": (8, 16, 128, 0, torch.bfloat16, {"mask": masks.window(1000, 0)}),
    "shared": (4, 1, 256, 0, torch.bfloat16, {"shared": 2048, "mask": masks.softcap(30.0), "sink": 0.5}),
    "distances": (4, 1, 128, 16, torch.bfloat16, {"mask": masks.distance_bias(torch.empty(32, FEW_LONG[1]))}),
    "tree": (4, 7, 80, 16, torch.bfloat16, {"mask": masks.tree([-1, 0, 0, 1, 1, 2, 2])}),
}
SIZES = {"whole sequences in turn": MANY_SHORT, "the same in fp8": MANY_SHORT, "two whole sequences": OTHERS}
KERNELS = {
    90: dict.fromkeys(CASES, ["_partial"])
    | {"plain": ["_partial", "_merge", "_partial_and_merge"], "shared": ["_partial", "_merge"]},
    80: {"pages of 16": ["_partial"], "plain": ["_partial"]},
    "gfx942": {case: ["_partial"] for case in CASES if "fp8" not in case} | {"plain": ["_partial", "_merge"]},
}


def call(attention, size, group, N_q, d, page, dtype, options):
    B, N = size
    of_q = torch.bfloat16 if dtype == torch.float8_e4m3fn else dtype
    shape = (B * N // page, H_K, page, d) if page else (B, H_K, N, d)
    scales = {X: torch.empty(shape[:3]) for X in ("k_scale", "v_scale")} if dtype != of_q else {}
    table = torch.arange(B * N // page, dtype=torch.int32).view(B, -1) if page else None  # its numbers are checked
    K, V = torch.empty(shape, dtype=dtype), torch.empty(shape, dtype=dtype)
    Q, lengths = torch.empty(B, H_K * group, N_q, d, dtype=of_q), torch.full((B,), N, dtype=torch.int32)
    attention(Q, K, V, lengths, table, **options, **scales)


def compiled(launches, capability):
    """Yield the compiler's report on each kernel."""
    for case, kernel in ((case, kernel) for case, of in KERNELS[capability].items() for kernel in of):
        module = ablated if kernel == "_partial_and_merge" else decode
        found = no_device.compiled(
            launches, kernel, functools.partial(call, module.attention, SIZES.get(case, FEW_LONG), *CASES[case])
        )
        if kernel == "_partial" and capability != "gfx942":
            found["in_flight"] = launches.compiled.asm["ptx"].count("cp.async.c")
        yield {"case": case, **found}


if __name__ == "__main__":
    capability = no_device.named(sys.argv[1])
    launches = no_device.prepared(capability, multiprocessors=132)
    from flashlib.kernels import decode
    from flashlib.kernels.ablations import decode as ablated

    print(json.dumps(list(compiled(launches, capability))))
