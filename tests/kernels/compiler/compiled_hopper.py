"""Compile Hopper's kernels with results in fp32: python -m tests.kernels.compiler.compiled_hopper all

few: one case.

Prints a line of JSON: case, kernel, the result of `no_device.compiled`, in bfloat16, and how many spilled values
move in the loop over tiles.
"""

import json
import sys

import torch

from flashlib.kernels.compiler import kernel_report, listings
from tests.kernels.compiler import no_device

CASES = [("_backward", 128, True), ("_forward", 128, False)]  # kernel, d, causal; the first use most registers
CASES += [
    (kernel, d, causal) for kernel in ("_forward", "_backward") for d in (64, 128) for causal in (False, True)
]
CASES += [("finish", 128, False)] + [
    (kernel, 256, causal) for kernel in ("_dkv", "_dq") for causal in (False, True)
]


def compiled(launches, amount):
    """Yield the compiler's report on each kernel."""
    for kernel, d, causal in list(dict.fromkeys(CASES))[: 1 if amount == "few" else None]:
        Q, K, V, dO = (torch.empty(1, 16, 4096, d, dtype=torch.bfloat16) for _ in range(4))
        lse, options = torch.empty(1, 16, 4096), {"causal": causal, "out_dtype": torch.float32}

        def call(Q=Q, K=K, V=V, dO=dO, lse=lse, kernel=kernel, options=options):
            if kernel == "_forward":
                forward.attention(Q, K, V, **options)
            else:
                backward.backward(Q, K, V, None, lse, dO, delta=lse, **options)

        found = {"case": f"d = {d}, causal = {causal}", **no_device.compiled(launches, kernel, call)}
        loop = listings.inner_loop("sass", kernel_report.sass(launches.compiled))
        yield found | {"in_loop": listings.counts("sass", loop)["spill"]}


if __name__ == "__main__":
    launches = no_device.prepared(90, multiprocessors=132)
    from flashlib.kernels.hopper import backward, forward

    print(json.dumps(list(compiled(launches, sys.argv[1]))))
