"""Compile masks for a GPU that need not be present: python -m tests.kernels.compiler.compiled_variants 90

Prints a line of JSON: mask, d, kernel, and the result of `no_device.compiled`, in bfloat16.
"""

import json
import sys

import numpy as np
import torch

from flashlib import masks
from tests.kernels.compiler import no_device

BF16 = torch.bfloat16
N = 4096  # long enough for the tiles of long sequences
MASKS = {
    "documents": lambda: masks.documents(np.arange(N) // 2048),
    "soft cap": lambda: masks.softcap(30.0) & masks.causal(),
    "function": lambda: drawn.stripes(),
    "bits": lambda: drawn.stripes(kernel=False),
    "zigzag part": lambda: part(masks.causal()),
    "part of documents": lambda: part(masks.documents(np.arange(4 * N) // 5000) & masks.alibi(0.5)),
    "part of a function": lambda: part(drawn.stripes()),
    "in fp32": lambda: masks.causal(),
    "bias of distances": lambda: masks.causal() & masks.distance_bias(torch.empty(16, 2 * N - 1, dtype=BF16)),
    "bias of places": lambda: masks.causal() & masks.bias(torch.empty(16, N, N, dtype=BF16)),
    "bias of keys": lambda: masks.causal() & masks.bias(torch.empty(N)) & masks.softcap(30.0),
}
OUT = {"in fp32": torch.float32}  # of O and the gradients, if not in the dtype of Q
KERNELS = {  # by capability: mask, d, kernel; not every combination, as each takes two seconds
    90: [
        ("documents", 64, "_dkv"),
        ("documents", 128, "_forward"),
        ("documents", 64, "_dq"),
        ("soft cap", 64, "_dkv"),
        ("function", 64, "_forward"),
        ("bits", 64, "_forward"),
        ("bits", 128, "_forward"),
        ("bits", 128, "_dkv"),
        ("zigzag part", 128, "_forward"),
        ("zigzag part", 64, "_dq"),
        ("part of documents", 64, "_dkv"),
        ("part of a function", 64, "_forward"),
        ("in fp32", 128, "_forward"),
        ("in fp32", 128, "_dkv"),
        ("in fp32", 64, "_dq"),
        ("bias of distances", 128, "_forward"),
        ("bias of distances", 64, "_dkv"),
        ("bias of distances", 128, "_dbias"),
        ("bias of places", 128, "_forward"),
        ("bias of places", 64, "_dkv"),
        ("bias of places", 128, "_dq"),
        ("bias of places", 64, "_dbias"),
        ("bias of keys", 64, "_dbias"),
    ],
    80: [("documents", 128, "_forward"), ("soft cap", 64, "_dkv"), ("bits", 128, "_forward")],
    "gfx942": [
        ("documents", 64, "_dq"),
        ("soft cap", 64, "_dkv"),
        ("function", 64, "_forward"),
        ("bits", 128, "_forward"),
        ("bias of distances", 128, "_forward"),
        ("bias of distances", 64, "_dbias"),
        ("bias of places", 64, "_dkv"),
        ("bias of keys", 128, "_dbias"),
    ],
}


def part(mask):
    """Return a mask of four times the length, for the rows of one rank and the keys of another."""
    rows, keys = (range(512, 2560), range(13824, 15872)), (range(0, 2048), range(14336, 16384))
    return masks.placed(mask, 4 * N, 4 * N, rows, keys)


def compiled(launches, capability):
    """Yield the compiler's report on each kernel."""
    lse, descriptors = torch.empty(1, 16, N), capability == 90
    for name, d, kernel in KERNELS[capability]:
        mask = MASKS[name]()
        Q, K, V, O, dO = (torch.empty(1, 16, N, d, dtype=torch.bfloat16) for _ in range(5))

        options = {"descriptors": descriptors, "out_dtype": OUT.get(name)}

        def call(Q=Q, K=K, V=V, O=O, dO=dO, kernel=kernel, mask=mask, options=options):
            if kernel == "_forward":
                forward.attention(Q, K, V, mask=mask, **options)
            else:
                d_bias = [torch.empty(T.shape) for T in mask.biases] if kernel == "_dbias" else None
                backward.backward(Q, K, V, O, lse, dO, mask=mask, d_bias=d_bias, **options)

        yield {"case": f"{name}, d = {d}", **no_device.compiled(launches, kernel, call)}


if __name__ == "__main__":
    capability = no_device.named(sys.argv[1])
    launches = no_device.prepared(capability)
    from flashlib.kernels import backward, forward
    from tests.kernels import drawn

    print(json.dumps(list(compiled(launches, capability))))
