"""Private parts of Triton's launches: the driver, the compiled kernel, tensor descriptors."""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING

from triton import knobs
from triton.runtime import driver

if TYPE_CHECKING:
    from triton.compiler import CompiledKernel


def interpreted() -> bool:
    """Return whether Triton interprets the kernels that are decorated now."""
    return bool(knobs.runtime.interpret)


def relaunch(compiled: "CompiledKernel", grid: tuple[int, int, int], last: tuple) -> Callable[..., None]:
    """Return launch(given, sizes, stream), which launches a compiled kernel with these arguments, and then `last`.

    Without hooks it leaves out their arguments, which saves the CPU a third of the time. stream: see
    `current_stream`; None for that of the current device.
    """
    begin, before = _launcher(compiled, grid)
    hooks = knobs.runtime

    def launch(given, sizes, stream=None):
        if hooks.launch_enter_hook.calls or hooks.launch_exit_hook.calls:
            compiled[grid](*given, *sizes, *last)
        else:
            if stream is None:
                stream = current_stream(driver.active.get_current_device())
            begin(*grid, stream, *before, (*given, *sizes, *last))

    return launch


def _launcher(compiled, grid):
    """Return begin, and what it takes between grid and stream and the kernel's arguments, in one tuple; no hooks.

    Where no scratch memory is to be found, that is what Triton's launcher for NVIDIA's GPUs calls in the end, with
    what it was seen to hand on: to leave the launcher out saves half a us.
    """
    run, nothing = compiled.run, (None, None, None)  # what hooks get, and those before and after
    before, args, stream, seen = (compiled.function, compiled.packed_metadata, *nothing), ("args",), object(), []
    if type(run).__name__ == "CudaLauncher" and not (run.global_scratch_size or run.profile_scratch_size):
        alike = copy.copy(run)
        alike.launch = lambda *handed: seen.append(handed)
        alike(*grid, stream, *before, *args)
        (handed,) = seen
        if handed[:4] == (*grid, stream) and handed[-1] == args:  # before Triton 3.7 it was otherwise
            return run.launch, handed[4:-1]
    return lambda *given: run(*given[:-1], *given[-1]), before


def current_stream(index: int) -> int:
    """Return the stream on which torch works on a GPU now, for several launches of one call."""
    return driver.active.get_current_stream(index)


def device_properties(index: int) -> dict:
    """Return what the driver says of a GPU."""
    return driver.active.utils.get_device_properties(index)


def unchecked(descriptor: type) -> type:
    """Return a kind of tensor descriptor that is not checked as it is made, which takes the CPU 4 us."""
    return type(f"Unchecked{descriptor.__name__}", (descriptor,), {"__post_init__": lambda self: None})
