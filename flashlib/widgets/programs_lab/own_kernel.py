"""A learner's own kernel in ProgramsLab: launched and recorded in another process, by Triton's interpreter."""

import inspect
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flashlib.language.phrases import and_list
from flashlib.widgets.programs_lab.accesses import BlockAccess, Grid, KernelLine, ShownProgram, ShownRun
from flashlib.widgets.programs_lab.kernels import KERNELS
from flashlib.widgets.programs_lab.tensors import LARGEST, Tensor
from flashlib.widgets.settings import is_whole

MOST_PROGRAMS = 256
MOST_PLACES = 2**18  # of all accesses: 4 MB for the page
MOST_LINES = 16  # of a kernel that is shown whole


def run(kernel: Any, arguments: Sequence, grid: Any, meta: dict) -> tuple[ShownRun, list[str]]:
    """Return the ShownRun of kernel[grid](*arguments, **meta), and what there is to say of it.

    Raises TypeError or ValueError, in a sentence, if there is nothing to show.
    """
    check_kernel(kernel)
    from flashlib.learner.kernels.run import recorded  # needs Triton

    name = kernel.fn.__name__
    named = _named(kernel, arguments, meta)
    for argument, value in named.items():
        if isinstance(value, list):
            raise TypeError(f"{argument} is a list; pass a tensor: a kernel gets the address of its first element")
    whole = checked_grid(grid, named)
    shown, said = _first_programs(whole), []
    if shown != whole:
        if "num_programs" in inspect.getsource(kernel.fn):
            raise ValueError(
                f"The grid has {math.prod(whole)} programs, and {name} asks for their number; at most "
                f"{MOST_PROGRAMS} run here: pass a smaller grid"
            )
        said.append(f"Of {math.prod(whole)} programs, the first {math.prod(shown)} ran and are shown.")
    if not math.prod(whole):
        return _run(kernel, _lines(kernel, []), whole, shown, [], {}), said
    recording, _ = recorded(launching(kernel, shown, meta), *arguments)
    if recording.error:
        what = _stopped(name, recording.error)
        if not recording.accesses:
            raise ValueError(what)
        said.append(f"{what}. What ran before that is shown.")
    tensors = {argument.name: _tensor(argument) for argument in recording.launches[-1].tensors}
    lines = _lines(kernel, recording.accesses)
    programs = _programs(recording, lines, shown)
    kept = _few(programs)
    if len(kept) < len(programs):
        said.append(f"Of {len(programs)} programs, the first {len(kept)} are shown: their blocks fill the page.")
    return _run(kernel, lines, whole, shown, kept, tensors), said


def _stopped(name, error):
    """Return why a kernel did not run to its end. The recorder stops a loop without one by an OverflowError."""
    kind, _, what = error.partition(": ")
    if kind == "OverflowError" and "loop" in what:
        return f"{name} was stopped: {what}"
    return f"{name} raised {error}"


def check_kernel(kernel: Any) -> None:
    """Raise TypeError for what is not a kernel that the interpreter runs."""
    kind = type(kernel).__name__
    if kind in ("JITFunction", "InterpretedFunction"):
        return
    name = getattr(kernel, "__name__", None) or getattr(getattr(kernel, "fn", None), "__name__", "the kernel")
    if kind == "Autotuner":
        raise TypeError(
            f"{name} is autotuned, and nothing can be timed in the interpreter; pass the kernel below, {name}.fn, "
            "with one choice of what is tuned, e.g. BLOCK=64"
        )
    if kind == "Heuristics":
        raise TypeError(
            f"{name} is under @triton.heuristics; pass the kernel below, {name}.fn, with what they choose, "
            "e.g. BLOCK=64"
        )
    if kind == "GluonJITFunction":
        raise TypeError(f"{name} is a kernel in Gluon; pass one in Triton, under @triton.jit")
    if inspect.isfunction(kernel):
        raise TypeError(f"{name} is a function; pass a kernel: a function under @triton.jit")
    names = and_list([repr(name) for name in KERNELS])
    raise TypeError(f"kernel is {kernel!r:.60}; there are {names}, or pass a kernel under @triton.jit")


def checked_grid(grid: Any, arguments: dict) -> Grid:
    """Return a grid as three whole numbers; raise TypeError or ValueError if it is not one.

    arguments: those of the launch by name, for a grid that is a function of them, as Triton takes it.
    """
    accepted = "pass one to three whole numbers, e.g. grid=(3,), or grid=(3, 2)"
    if grid is None:
        raise TypeError(f"grid is missing; {accepted}")
    if callable(grid):
        try:
            grid = grid(arguments)
        except Exception as error:
            raise ValueError(f"grid raised {type(error).__name__}: {error}; {accepted}") from None
    if not isinstance(grid, tuple | list) or not 1 <= len(grid) <= 3 or not all(map(is_whole, grid)):
        raise TypeError(f"grid is {grid!r:.60}; {accepted}")
    if min(grid) < 0:
        raise ValueError(f"grid is {grid!r:.60}; {accepted}, not below 0")
    x, y, z = (*map(int, grid), 1, 1)[:3]
    return x, y, z


def launching(kernel: Any, grid: Grid, meta: dict) -> Callable:
    """Return a function that launches a kernel; it goes by the kernel's name."""

    def launch(*arguments):
        kernel[grid](*arguments, **meta)

    launch.__name__ = kernel.fn.__name__
    return launch


def _named(kernel, arguments, meta):
    """Return the arguments of a launch by name."""
    names = list(inspect.signature(kernel.fn).parameters)
    return dict(zip(names, arguments, strict=False)) | meta


def _first_programs(grid):
    """Return how many programs along each axis run, of a grid that may have too many."""
    x = min(grid[0], MOST_PROGRAMS)
    y = min(grid[1], MOST_PROGRAMS // max(x, 1))
    return x, y, min(grid[2], MOST_PROGRAMS // max(x * y, 1))


def _run(kernel, lines, grid, shown, programs, tensors):
    axes = max([axis + 1 for axis, n in enumerate(grid) if n != 1], default=1)
    launch = f"{kernel.fn.__name__}[{grid[:axes]}](...)"
    return ShownRun(dict(enumerate(lines.values())), launch, grid, shown, programs, tensors)


def _tensor(argument):
    """Return the Tensor behind a pointer; raise ValueError for one that is too large to be drawn."""
    tensor = Tensor(argument.numbers.shape, tuple(argument.strides))
    if (span := tensor.span[1] - tensor.span[0]) > LARGEST:
        raise ValueError(
            f"{argument.name} spans {span} elements; pass a smaller tensor: at most {LARGEST} are shown"
        )
    return tensor


def _lines(kernel, accesses):
    """Return {(function, line): KernelLine} of a kernel, and of the functions that it calls which access memory.

    Of a long kernel, the lines that access memory, ask for a program_id, or begin a loop.
    """
    touched = {(access.function, access.line) for access in accesses}
    found = {}
    for name in dict.fromkeys([kernel.fn.__name__, *(name for name, _ in touched)]):
        function = (
            kernel.fn if name == kernel.fn.__name__ else getattr(kernel.fn.__globals__.get(name), "fn", None)
        )
        texts, first = inspect.getsourcelines(function) if function else ([], 0)
        for number, text in enumerate(texts, first):
            shown = (name, number) in touched or re.match(r"\s*(def|for|while)\b", text)
            if shown or "program_id" in text or (len(texts) <= MOST_LINES and function is kernel.fn):
                found[name, number] = KernelLine(number, text.rstrip())
    for name, number in sorted(touched - found.keys()):
        found[name, number] = KernelLine(number, f"{name}, line {number}")
    return found


def _programs(recording, lines, shown):
    """Return the Programs of a recording, the first axis of the grid running fastest."""
    numbers = {line: number for number, line in enumerate(lines)}
    programs = [ShownProgram(program.at, [], []) for program in recording.programs]
    turns: Counter = Counter()
    for access in recording.accesses:
        if not access.pointer:
            continue
        line = numbers[access.function, access.line]
        shape = access.offsets.shape
        offsets, mask = access.offsets.ravel(), np.broadcast_to(access.mask, shape).ravel()
        key = access.program, line, access.pointer, access.is_store
        kind = "store" if access.is_store else "load"
        programs[access.program].accesses.append(
            BlockAccess(access.pointer, kind, line, turns[key], shape, offsets, mask)
        )
        turns[key] += 1
    return sorted(programs, key=lambda program: program.number[::-1])


def _few(programs):
    """Return the first programs, as many as can be sent to a page."""
    places = np.cumsum([sum(access.offsets.size for access in program.accesses) for program in programs])
    return programs[: max(1, int((places <= MOST_PLACES).sum()))]
