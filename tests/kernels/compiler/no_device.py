"""Compile launches for a GPU that need not be there, in a process of its own with TRITON_INTERPRET=0."""

import contextlib

from flashlib.kernels.compiler import said, worker
from flashlib.kernels.compiler.launches import Launches
from flashlib.kernels.compiler.makers import maker_of
from flashlib.kernels.compiler.occupancy import MULTIPROCESSORS
from flashlib.kernels.launch import inputs
from flashlib.private_apis import of_compiler


def named(word):
    """Return what the compiler knows a GPU by, of a word on the command line: 90, or "gfx942"."""
    return int(word) if word.isdigit() else word


def prepared(capability, multiprocessors=0):
    """Return the `Launches` that stand in for every launch. Call it before kernels are imported."""
    inputs.check_device = lambda **_: None
    of_compiler.show_ptxas()
    launches = Launches()
    worker.pretend(capability, MULTIPROCESSORS[capability].gpu.block_sram, multiprocessors)
    launches.capability = capability
    return launches


def compiled(launches, kernel, call) -> dict:
    """Return what is said of a kernel that call() launches: spilled bytes of a thread, registers, and notes.

    And whether its shared memory fits the GPU.
    """
    launches.prepare(kernel, "cubin")
    with contextlib.redirect_stdout(launches.log):
        call()
    found = said.OF[maker_of(launches.capability).name](launches.compiled, launches.log.getvalue(), False)
    fits = launches.compiled.metadata.shared <= worker.tile_sizes.room(None).shared
    return {"kernel": kernel, "fits": fits} | {name: found[name] for name in ("spilled", "registers", "notes")}
