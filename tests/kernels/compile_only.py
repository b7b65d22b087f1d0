"""Compile the kernels for GPUs that are not here, and print what became of each as a line of JSON.

Run in a process of its own with TRITON_INTERPRET=0: `python -m tests.kernels.compile_only`. The launch code runs
as it is, on CPU tensors, under a driver that knows a target and has no device; only the launch is left out.
"""

import itertools
import json
import re
import subprocess
import tempfile

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptxas

from flashlib import kernels
from flashlib.kernels import forward, ladder, softmax
from flashlib.kernels.ladder import r3_flash, r4_exp2, r5_causal

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}


class NoDevice:
    """What Triton asks of a driver while it compiles."""

    def __init__(self, capability):
        self.capability = capability

    def get_current_device(self):
        return self.capability  # the key of Triton's cache of compiled kernels

    def get_current_stream(self, device):
        return 0

    def get_current_target(self):
        return GPUTarget("cuda", self.capability, 32)


class CompileOnly:
    """A kernel that is compiled where it would be launched."""

    def __init__(self, kernel):
        self.kernel = kernel

    def __getitem__(self, grid):
        def compile(*args, **kwargs):
            self.compiled = self.kernel.warmup(*args, grid=grid, **kwargs)

        return compile


def report(compiled, **what):
    ptx = compiled.asm["ptx"]
    target = re.search(r"\.target (\w+)", ptx).group(1)
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        ptxas = get_ptxas(what["capability"]).path
        command = [ptxas, "-v", f"--gpu-name={target}", file.name, "-o", "/dev/null"]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    spilled = int(re.search(r"(\d+) bytes spill stores", told).group(1))
    registers = int(re.search(r"Used (\d+) registers", told).group(1))
    instructions = {name: name in ptx for name in ("wgmma", "tf32")}
    became = {"registers": registers, "spilled": spilled, "shared": compiled.metadata.shared, **instructions}
    print(json.dumps(what | became))


def main():
    kernels.check_device = softmax.check_device = lambda **_: None
    forward._forward = CompileOnly(forward._forward)
    softmax._softmax = CompileOnly(softmax._softmax)
    for capability in (80, 90):
        triton.runtime.driver.set_active(NoDevice(capability))
        softmax.softmax(torch.zeros(4, 1000))
        report(softmax._softmax.compiled, kernel="softmax", capability=capability)
        rungs = (r3_flash._flash, r4_exp2._flash_exp2, r5_causal._flash_causal)
        for rung, d, causal in itertools.product(rungs, (64, 128), (False, True)):
            kernel, X = CompileOnly(rung), torch.zeros(1, 2, 256, d, dtype=torch.float16)
            ladder.launch(kernel, X, X, X, causal=causal, scale=None, B_r=64, B_c=64)
            report(kernel.compiled, kernel=rung.__name__, capability=capability)
        for (name, dtype), d, causal in itertools.product(DTYPES.items(), kernels.HEAD_DIMS, (False, True)):
            X = torch.zeros(1, 2, 256, d, dtype=dtype)
            by_default = capability >= 90 and name != "float32"
            also = d == 64 and causal  # allowed everywhere, so it must compile everywhere
            for descriptors in (False, True) if by_default or also else (False,):
                forward.attention(X, X, X, causal=causal, descriptors=descriptors)
                what = {"dtype": name, "d": d, "causal": causal, "descriptors": descriptors}
                report(forward._forward.compiled, kernel="forward", capability=capability, **what)


if __name__ == "__main__":
    main()
