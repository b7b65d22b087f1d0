"""Compile the kernels under masks for a GPU that need not be there: python -m tests.kernels.compiled_variants 90

Prints a line of JSON: mask, kernel, and what `no_device.compiled` returns, at d = 64 in bfloat16.
"""

import json
import sys

import numpy as np
import torch

from flashlib import masks
from tests.kernels import no_device

N, D = 512, 64
MASKS = {
    "window": lambda: masks.window(200, 0),
    "documents": lambda: masks.documents(np.arange(N) // 150),
    "soft cap": lambda: masks.softcap(30.0) & masks.causal(),
    "function": lambda: drawn.stripes(),
}
KERNELS = {  # by capability; not each of them, as each takes two seconds
    90: {
        "window": ["_forward"],
        "documents": ["_forward", "_dkv", "_dq"],
        "soft cap": ["_dkv"],
        "function": ["_forward"],
    },
    80: {"documents": ["_forward"], "soft cap": ["_dkv"]},
}


def compiled(launches, capability):
    """Yield what the compiler says of each kernel."""
    Q, K, V, O, dO = (torch.empty(2, 2, N, D, dtype=torch.bfloat16) for _ in range(5))
    lse, descriptors = torch.empty(2, 2, N), capability >= 90
    for name, kernel in [(name, kernel) for name, of in KERNELS[capability].items() for kernel in of]:
        mask = MASKS[name]()

        def call(kernel=kernel, mask=mask):
            if kernel == "_forward":
                forward.attention(Q, K, V, mask=mask, descriptors=descriptors)
            else:
                backward.backward(Q, K, V, O, lse, dO, mask=mask, descriptors=descriptors)

        yield {"mask": name, **no_device.compiled(launches, kernel, call)}


if __name__ == "__main__":
    capability = int(sys.argv[1])
    launches = no_device.prepared(capability)
    from flashlib.kernels import backward, forward
    from tests.kernels import drawn

    print(json.dumps(list(compiled(launches, capability))))
