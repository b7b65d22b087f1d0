"""Compile launches for a GPU that need not be present, in a separate process with TRITON_INTERPRET=0."""

import contextlib

from flashlib.kernels.compiler import kernel_report, worker
from flashlib.kernels.compiler.compiling_launcher import CompilingLauncher
from flashlib.kernels.compiler.makers import maker_of
from flashlib.kernels.compiler.occupancy import MULTIPROCESSORS
from flashlib.kernels.launch import inputs
from flashlib.private_apis import of_compiler


def named(word):
    """Return the compiler's name of a GPU from a word of the command line: 90, or "gfx942"."""
    return int(word) if word.isdigit() else word


def prepared(capability, multiprocessors=0):
    """Return the CompilingLauncher that replaces every launch. Call it before kernels are imported."""
    inputs.check_device = lambda **_: None
    of_compiler.show_ptxas()
    launches = CompilingLauncher()
    worker.pretend(capability, MULTIPROCESSORS[capability].gpu.block_sram, multiprocessors)
    launches.capability = capability
    return launches


def compiled(launches, kernel, call) -> dict:
    """Return the spilled bytes of a thread, registers and notes of a kernel that call() launches.

    And whether its shared memory fits the GPU.
    """
    launches.prepare(kernel, "cubin")
    with contextlib.redirect_stdout(launches.log):
        call()
    report = kernel_report.REPORTS[maker_of(launches.capability).name]
    found = report(launches.compiled, launches.log.getvalue(), False)
    fits = launches.compiled.metadata.shared <= worker.tile_sizes.room(None).shared
    return {"kernel": kernel, "fits": fits} | {name: found[name] for name in ("spilled", "registers", "notes")}
