"""Compile packs and writers of caches without a GPU: python -m tests.kernels.compiler.compiled_rest gfx942

Prints a line of JSON: d, kernel, and the result of `no_device.compiled`.
"""

import json
import sys

import torch

from tests.kernels.compiler import no_device

KERNELS = [
    ("pack", 64, "_forward"),
    ("cache", 128, "_append"),
    ("cache", 80, "_append"),
    ("cache", 128, "_rotate"),
]


def call(what, d):
    """Make one call: attention of a pack, or the writing of new keys into a cache."""
    if what == "pack":
        Q = torch.empty(4096, 8, d, dtype=torch.bfloat16)
        offsets = torch.tensor([0, 1000, 4096], dtype=torch.int32)
        return varlen.attention(Q, Q, Q, offsets, offsets, causal=True)
    K, cache = (torch.empty(2, 3, n, d, dtype=torch.bfloat16) for n in (19, 500))
    lengths, turn = torch.zeros(2, dtype=torch.int64), rotary.angles(500, d, device="cpu")
    append.append(K, K, cache, cache, lengths, rotary=turn)
    return append.rotate(K, lengths, turn)


def compiled(launches):
    """Yield the compiler's report on each kernel."""
    for what, d, kernel in KERNELS:
        yield {"d": d, **no_device.compiled(launches, kernel, lambda what=what, d=d: call(what, d))}


if __name__ == "__main__":
    launches = no_device.prepared(no_device.named(sys.argv[1]), multiprocessors=132)
    from flashlib.kernels import append, varlen
    from flashlib.lm import rotary

    print(json.dumps(list(compiled(launches))))
