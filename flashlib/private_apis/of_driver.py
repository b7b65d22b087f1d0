"""Private parts of Triton's launches: the driver, the compiled kernel, tensor descriptors."""

import copy
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from triton import knobs
from triton.runtime import driver

if TYPE_CHECKING:
    from triton.compiler import CompiledKernel

Describe = Sequence[Callable[[Any], Any] | None]  # see `described`
ADDRESSES = 256  # of one argument of a kernel, for which its descriptor is kept


def interpreted() -> bool:
    """Return whether Triton interprets the kernels that are decorated now."""
    return bool(knobs.runtime.interpret)


def relaunch(
    compiled: "CompiledKernel", grid: tuple[int, int, int], last: tuple, describe: Describe = ()
) -> Callable[..., None]:  # fmt: skip
    """Return launch(given, sizes, stream), which launches a compiled kernel with these arguments, and then `last`.

    describe: see `described`. stream: see `current_stream`; None for that of the current device. Without hooks it
    leaves out their arguments, which saves the CPU a third of the time.
    """
    begin, before, arguments = _launcher(compiled, grid, describe)
    hooks = knobs.runtime

    def launch(given, sizes, stream=None):
        if hooks.launch_enter_hook.calls or hooks.launch_exit_hook.calls:
            compiled[grid](*described(given, describe), *sizes, *last)
        else:
            if stream is None:
                stream = current_stream(driver.active.get_current_device())
            begin(*grid, stream, *before, (*arguments(given), *sizes, *last))

    return launch


def described(given: Sequence, describe: Describe) -> list:
    """Return arguments in which tensors are replaced by their descriptors.

    describe: for each of the first arguments a function that returns the descriptor of a tensor; None for another
    argument.
    """
    return [f(X) if f else X for f, X in zip_longest(describe, given)]


def _launcher(compiled, grid, describe):
    """Return begin, and its arguments between grid and stream and the kernel's own, in one tuple; no hooks.

    Also a function that returns the first of the kernel's own. If no scratch memory is needed, begin is what
    Triton's launcher for NVIDIA GPUs calls in the end, with the arguments that it was seen to pass on: leaving the
    launcher out saves half a us.
    """
    run, nothing = compiled.run, (None, None, None)  # the argument of hooks, and the hooks before and after
    before, args, stream, seen = (compiled.function, compiled.packed_metadata, *nothing), ("args",), object(), []
    if type(run).__name__ == "CudaLauncher" and not (run.global_scratch_size or run.profile_scratch_size):
        alike = copy.copy(run)
        alike.launch = lambda *handed: seen.append(handed)
        alike(*grid, stream, *before, *args)
        (handed,) = seen
        if handed[:4] == (*grid, stream) and handed[-1] == args:  # not before Triton 3.7
            tiles = getattr(compiled.metadata, "tensordesc_meta", None) if any(describe) else None
            if tiles:
                return driver.active.utils.launch, handed[4:-1], _encoder(describe, tiles)
            return run.launch, handed[4:-1], lambda given: described(given, describe)
    return (lambda *given: run(*given[:-1], *given[-1])), before, lambda given: described(given, describe)


def _encoder(describe, tiles):
    """Return a function of arguments that returns them as the driver takes them, descriptors encoded.

    A descriptor depends only on the tensor's address, so what it was encoded to is kept: in a training loop torch
    hands out the same addresses again. tiles: what the compiler says of each descriptor.
    """
    from triton.backends.nvidia.driver import make_tensordesc_arg  # only here: it needs NVIDIA's driver

    rest = iter(tiles)
    ways = [(f, next(rest), {}) if f else None for f in describe]

    def encoded(given):
        found = []
        for X, way in zip(given, ways, strict=False):
            if way is None:
                found.append(X)
                continue
            f, tile, known = way
            address = X.data_ptr()
            if address not in known:
                if len(known) >= ADDRESSES:
                    known.clear()
                known[address] = make_tensordesc_arg(f(X), tile)
            found += known[address]
        found += given[len(ways) :]
        return found

    return encoded


def current_stream(index: int) -> int:
    """Return torch's current stream on a GPU, for several launches of one call."""
    return driver.active.get_current_stream(index)


def device_properties(index: int) -> dict:
    """Return the driver's properties of a GPU."""
    return driver.active.utils.get_device_properties(index)


def unchecked(descriptor: type) -> type:
    """Return a tensor descriptor class without checks on construction, which take the CPU 4 us."""
    return type(f"Unchecked{descriptor.__name__}", (descriptor,), {"__post_init__": lambda self: None})
