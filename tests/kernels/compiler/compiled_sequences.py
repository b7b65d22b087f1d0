"""Compile the options of packs and caches that differ between sequences, for a GPU that need not be present:

python -m tests.kernels.compiler.compiled_sequences 90

Prints a line of JSON: case, kernel, and the result of `no_device.compiled`.
"""

import functools
import json
import sys

import torch

from flashlib import masks
from tests.kernels.compiler import no_device

B, H, H_K, N = 4, 8, 2, 4096
PASSES = "_dkv", "_dq", "_forward"
PACKS = {  # d, dtype, options
    "dropout": (128, torch.bfloat16, {"dropout": 0.1, "causal": True}),
    "dropout, d = 64": (64, torch.float16, {"dropout": 0.1}),
    "slopes of each": (128, torch.bfloat16, {"slopes": torch.empty(B, H), "causal": True}),
    "all at once": (
        128, torch.bfloat16,
        {"dropout": 0.1, "slopes": torch.empty(B, H), "mask": masks.window(1000, 0) & masks.softcap(30.0)},
    ),
}  # fmt: skip
CACHES = {
    "padding": {"padding": torch.zeros(B, dtype=torch.int32)},
    "slopes of a cache": {"slopes": torch.empty(B, H)},
    "padding and slopes": {"padding": torch.zeros(B, dtype=torch.int32), "slopes": torch.empty(B, H)},
    "padding as a bias": {"mask": masks.bias(torch.empty(B, 1, 1, N))},  # of generate, in transformers
}
TURNS = ("turned in pairs", 128), ("turned in pairs, d = 80", 80)


def pack(d, dtype, options):
    """Launch both passes of a pack."""
    shapes = ((4096, n, d) for n in (H, H_K, H_K))
    leaves = [torch.empty(shape, dtype=dtype, requires_grad=True) for shape in shapes]
    offsets = torch.arange(B + 1, dtype=torch.int32) * (4096 // B)
    O = varlen.attention(*leaves, offsets, offsets, **options).O
    torch.autograd.grad(O, leaves, torch.empty_like(O))


def cache(options):
    """Launch decoding of one token."""
    K = torch.empty(B, H_K, N, 128, dtype=torch.bfloat16)
    Q, lengths = torch.empty(B, H, 1, 128, dtype=torch.bfloat16), torch.zeros(B, dtype=torch.int32)
    decode.attention(Q, K, K, lengths, causal=True, **options)


def turned(d):
    """Launch the rotation of pairs of neighbours."""
    K, lengths = torch.empty(2, 3, 19, d, dtype=torch.bfloat16), torch.zeros(2, dtype=torch.int64)
    append.rotate(K, lengths, rotary.angles(500, d, device="cpu"), interleaved=True)


def calls():
    """Yield each case, its kernel and its call."""
    for case, given in PACKS.items():
        for kernel in PASSES:
            yield case, kernel, functools.partial(pack, *given)
    for case, options in CACHES.items():
        yield case, "_partial", functools.partial(cache, options)
    for case, d in TURNS:
        yield case, "_rotate", functools.partial(turned, d)


if __name__ == "__main__":
    launches = no_device.prepared(no_device.named(sys.argv[1]), multiprocessors=132)
    from flashlib.kernels import append, decode, varlen
    from flashlib.lm import rotary

    found = [{"case": case, **no_device.compiled(launches, kernel, call)} for case, kernel, call in calls()]
    print(json.dumps(found))
