"""Compile the kernels under masks for a GPU that need not be there: python -m tests.kernels.compiled_variants 90

Prints a line of JSON: mask, kernel, bytes spilled by a thread, and what ptxas says, at d = 64 in bfloat16. In a
process of its own with TRITON_INTERPRET=0, since Triton decides once whether to interpret.
"""

import contextlib
import json
import re
import sys

import numpy as np
import torch

from flashlib import kernels, masks
from flashlib.gpus import GPUS
from flashlib.kernels import compiling

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
        launches.prepare(kernel, "cubin")
        with contextlib.redirect_stdout(launches.log):
            if kernel == "_forward":
                forward.attention(Q, K, V, mask=MASKS[name](), descriptors=descriptors)
            else:
                backward.backward(Q, K, V, O, lse, dO, mask=MASKS[name](), descriptors=descriptors)
        log = launches.log.getvalue()
        spilled = int(re.search(r"(\d+) bytes spill stores", log)[1])
        notes = re.findall(r"Potential Performance Loss: (.*)", log)
        yield {"mask": name, "kernel": kernel, "spilled": spilled, "notes": notes}


if __name__ == "__main__":
    capability = int(sys.argv[1])
    kernels.check_device = lambda **_: None  # before the kernels import it
    kernels.triton.knobs.compilation.always_compile = kernels.triton.knobs.nvidia.dump_ptxas_log = True
    launches = compiling.Launches()
    kernels.triton.runtime.driver.set_active(compiling.NoDevice(capability))
    torch.cuda.get_device_capability = lambda device=None: divmod(capability, 10)
    room = GPUS["A100" if capability == 80 else "H200"].block_sram
    compiling.tuned.room = lambda device: compiling.tuned.Room(room, 0, tensor_cores=True, tma=capability >= 90)
    from flashlib.kernels import backward, forward
    from tests.kernels import drawn

    print(json.dumps(list(compiled(launches, capability))))
