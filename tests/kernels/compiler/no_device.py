"""Compile launches for a GPU that need not be there, in a process of its own with TRITON_INTERPRET=0."""

import contextlib
import re

import torch

from flashlib.gpus import GPUS
from flashlib.kernels import private_apis
from flashlib.kernels.compiler import worker
from flashlib.kernels.launch import inputs


def prepared(capability, multiprocessors=0):
    """Return the `worker.Launches` that stand in for every launch. Call it before kernels are imported."""
    inputs.check_device = lambda **_: None
    private_apis.show_ptxas()
    launches = worker.Launches()
    private_apis.pretend_gpu(capability)
    torch.cuda.get_device_capability = lambda device=None: divmod(capability, 10)
    room = GPUS["A100" if capability == 80 else "H200"].block_sram
    gpu = worker.tile_sizes.Room(room, multiprocessors, tensor_cores=True, tma=capability >= 90)
    worker.tile_sizes.room = lambda device: gpu
    return launches


def compiled(launches, kernel, call) -> dict:
    """Return what ptxas says of a kernel that call() launches: spilled bytes of a thread, registers, and notes.

    And whether its shared memory fits the GPU.
    """
    launches.prepare(kernel, "cubin")
    with contextlib.redirect_stdout(launches.log):
        call()
    log = launches.log.getvalue()
    return {
        "kernel": kernel,
        "spilled": int(re.search(r"(\d+) bytes spill stores", log)[1]),
        "registers": int(re.search(r"Used (\d+) registers", log)[1]),
        "fits": launches.compiled.metadata.shared <= worker.tile_sizes.room(None).shared,
        "notes": re.findall(r"Potential Performance Loss: (.*)", log),
    }
