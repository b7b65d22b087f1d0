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
    """Return begin, and its arguments between grid and stream and the kernel's own, in one tuple; no hooks.

    If no scratch memory is needed, this is the function that Triton's launcher for NVIDIA GPUs calls in the end,
    with the arguments that it was seen to pass on: leaving the launcher out saves half a us.
    """
    run, nothing = compiled.run, (None, None, None)  # the argument of hooks, and the hooks before and after
    before, args, stream, seen = (compiled.function, compiled.packed_metadata, *nothing), ("args",), object(), []
    if type(run).__name__ == "CudaLauncher" and not (run.global_scratch_size or run.profile_scratch_size):
        alike = copy.copy(run)
        alike.launch = lambda *handed: seen.append(handed)
        alike(*grid, stream, *before, *args)
        (handed,) = seen
        if handed[:4] == (*grid, stream) and handed[-1] == args:  # not before Triton 3.7
            return run.launch, handed[4:-1]
    return lambda *given: run(*given[:-1], *given[-1]), before


def current_stream(index: int) -> int:
    """Return torch's current stream on a GPU, for several launches of one call."""
    return driver.active.get_current_stream(index)


def device_properties(index: int) -> dict:
    """Return the driver's properties of a GPU."""
    return driver.active.utils.get_device_properties(index)


def unchecked(descriptor: type) -> type:
    """Return a tensor descriptor class without checks on construction, which take the CPU 4 us."""
    return type(f"Unchecked{descriptor.__name__}", (descriptor,), {"__post_init__": lambda self: None})
