"""Record kernels as Triton's interpreter runs them: what they load and store, and the turns of their loops."""

# ruff: noqa: I001  flashlib.kernels before triton
import re
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
import torch

import flashlib.kernels  # noqa: F401  before triton
from flashlib.learner.error_text import error_text
from flashlib.learner.kernels.recording import (
    MemoryAccess,
    Argument,
    RecordedLaunch,
    Loop,
    RecordedProgram,
    Recording,
    LoopTurn,
)
from flashlib.private_apis import of_loops, of_watching
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

MOST = 2**23  # numbers in a Recording
TURNS = 1000  # of a loop in one program
NO_GRID = "a kernel is called without a grid: kernel[grid](...)"
WITHOUT_GRID = re.compile(  # the last two: in the interpreter once it has run another kernel, and with options
    r"grid_idx|scope of a kernel|object has no attribute 'scalar'|unexpected keyword argument 'num_(warps|stages)'"
)
TILE_IN_IF = (
    "a Python if, and, or, or not asks a tile, and the compiler refuses that: "
    "choose with tl.where, join with & and |"
)


def record(launch: Callable, *arguments: Any, **options: Any) -> Recording:
    """Return the Recording of launch(*arguments, **options), run in this process until it raises, if it does."""
    recorder, result, error = KernelRecorder(), None, ""
    with (
        of_watching.notified(recorder, interpreted=True),
        of_loops.turns_seen(recorder),
        of_watching.conditions_refused(_refuse_tile_in_if),
    ):
        try:
            result = launch(*arguments, **options)
        except Exception as raised:
            cause = cause_of(raised)
            error = NO_GRID if is_without_grid(cause) else error_text(cause)
        sources = of_loops.sources()
    given = result if isinstance(result, tuple | list) else (result,)
    results = tuple((recorder.name_of(X), _numbers(X)) for X in given if isinstance(X, torch.Tensor))
    seen = recorder.launches, recorder.programs, recorder.accesses, recorder.turns
    return Recording(*seen, results, error, sources)


def cause_of(error: BaseException) -> BaseException:
    """Return the error that one of Triton's hides."""
    while isinstance(error, triton.errors.TritonError) and error.__cause__ is not None:
        error = error.__cause__
    return error


def is_without_grid(error: BaseException) -> bool:
    """Return whether an error comes of a kernel that was called as a function, without a grid."""
    return WITHOUT_GRID.search(str(error)) is not None


def _refuse_tile_in_if(line):  # noqa: ARG001
    raise TypeError(TILE_IN_IF)


class KernelRecorder:
    """Notes what kernels do while they run; is told by `of_watching.notified` and `of_loops.turns_seen`.

    Lanes that are beside all memory of the tensors are left out, so that nothing is read or written there.
    """

    def __init__(self) -> None:
        self.launches: list[RecordedLaunch] = []
        self.programs: list[RecordedProgram] = []
        self.accesses: list[MemoryAccess] = []
        self.turns: list[LoopTurn] = []
        self._places, self._given, self._open, self._kept = [], {}, [], 0
        self._numbers: dict[tuple[int, Loop], int] = {}

    def name_of(self, X: torch.Tensor) -> str:
        """Return the name of the argument of the last launch that has a tensor's memory, or ""."""
        return self._given.get(storage_of(X), "")

    def launched(self, function: FunctionType) -> None:
        self.launches.append(RecordedLaunch(function.__name__, (), {}))

    def let(self, names: Iterable[str], given: Iterable, moved: Iterable) -> None:
        arguments = list(zip(names, given, moved, strict=False))
        numbers = {name: x for name, x, _ in arguments if isinstance(x, bool | int | float)}
        pairs = [
            (name, x, y) for name, X, Y in arguments for x, y in zip(tensors_in(X), tensors_in(Y), strict=True)
        ]
        self._places = [_Place(name, y) for name, _, y in pairs]
        self._given = {storage_of(x): name for name, x, _ in pairs}
        tensors = tuple(Argument(name, y.stride(), _numbers(y)) for name, _, y in pairs)
        self.launches[-1] = self.launches[-1]._replace(tensors=tensors, numbers=numbers)

    def begun(self, program: tuple[int, int, int]) -> None:
        self.programs.append(RecordedProgram(len(self.launches) - 1, program))
        self._open.clear()

    def multiplied(self, sizes: tuple[int, int, int], *, rounded: bool) -> None:  # noqa: ARG002
        if self._open:
            self._open[-1].products.append(sizes)

    def lanes(
        self, pointers: np.ndarray, size: int, mask: np.ndarray, *, store: bool = False, masked: bool = True
    ) -> np.ndarray:
        at, mask = np.broadcast_arrays(pointers.astype(np.int64), np.asarray(mask, bool))
        first = int(at[mask][0] if mask.any() else at.flat[0])
        place = min(self._places, key=lambda place: place.distance(first), default=None)
        offsets = (at - place.first) // size if place else at
        outside = mask & ~place.has(offsets) if place else mask
        self._keep(offsets.size)
        function, line = of_loops.running_line()
        self.accesses.append(
            MemoryAccess(
                len(self.programs) - 1,
                function,
                line,
                place.name if place else "",
                store,
                offsets,
                mask.copy(),
                outside,
                masked,
            )  # fmt: skip
        )
        held = np.zeros_like(mask)
        for place in self._places:
            held |= (at >= place.start) & (at + size <= place.end)
        return mask & held

    def hidden(self, pointers: np.ndarray, mask: np.ndarray, dtype: np.dtype, name: str) -> None:
        """Lanes that a mask hides hold 0."""

    def turn_begun(self, function: str, line: int) -> None:
        loop = Loop(function, line)
        self._close(loop)  # if a `break` or a `return` has left it
        self._open.append(_Open(loop, [], len(self.accesses)))

    def turn_ended(self, function: str, line: int, names: dict[str, np.ndarray], carried: tuple[str, ...]) -> None:
        loop, program = Loop(function, line), len(self.programs) - 1
        ended = self._close(loop)
        if ended is None:
            return
        number = self._numbers.get((program, loop), 0)
        if number == TURNS:
            raise OverflowError(f"the loop in line {line} of {function} goes on after {TURNS} turns")
        self._numbers[program, loop] = number + 1
        self._keep(sum(array.size for array in names.values()))
        accesses = ended.first, len(self.accesses)
        inside = tuple(outer.loop for outer in self._open)
        self.turns.append(LoopTurn(program, loop, number, inside, names, carried, tuple(ended.products), accesses))

    def _close(self, loop):
        """Forget a loop that goes on, and all inside it; return it, or None if it does not go on."""
        at = next((n for n, outer in enumerate(self._open) if outer.loop == loop), None)
        if at is None:
            return None
        found = self._open[at]
        del self._open[at:]
        return found

    def _keep(self, n):
        self._kept += n
        if self._kept > MOST:
            raise OverflowError(f"its loops hold more than {MOST} numbers in all: pass fewer rows")


class _Open(NamedTuple):
    """A turn that goes on: its loop, the sizes of its products so far, its first access."""

    loop: Loop
    products: list
    first: int


class _Place:
    """Where the elements of a tensor are: its first address, the start and the end of its memory."""

    def __init__(self, name, X):
        self.name, self.first, self.size = name, X.data_ptr(), X.element_size()
        self.start = storage_of(X)
        self.end = self.start + X.untyped_storage().nbytes()
        steps = [stride * np.arange(n) for n, stride in zip(X.shape, X.stride(), strict=True)]
        offsets = np.asarray(sum(np.ix_(*steps)) if steps else 0)
        self.own = np.zeros(int(offsets.max(initial=-1)) + 1, bool)
        self.own[offsets] = True

    def has(self, offsets):
        """Return which offsets are those of elements."""
        known = (offsets >= 0) & (offsets < len(self.own))
        return known & self.own[np.where(known, offsets, 0)] if len(self.own) else known

    def distance(self, address):
        """Return how many bytes lie between an address and the elements."""
        return max(self.first - address, address + 1 - self.first - len(self.own) * self.size, 0)


def storage_of(X: torch.Tensor) -> int:
    """Return the address of the memory of a tensor, which others may share."""
    return X.untyped_storage().data_ptr()


def tensors_in(x: Any) -> list[torch.Tensor]:
    """Return the tensors in an argument of a launch."""
    if isinstance(x, tuple | list):
        return [X for part in x for X in tensors_in(part)]
    x = x.base if isinstance(x, TensorDescriptor | triton.TensorWrapper) else x
    return [x] if hasattr(x, "untyped_storage") else tensors_in(x.base) if hasattr(x, "base") else []


def _numbers(X):
    """Return a copy of a tensor's numbers."""
    X = X.detach().cpu()
    return (X.float() if X.dtype == torch.bfloat16 else X).numpy().copy()
