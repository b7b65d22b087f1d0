"""Kernels whose output has memory on both sides: what they store in it, and how much next to it.

So that a missing mask or a wrong stride can be named, a model in NumPy must store next to the output too.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from flashlib.checks.engine import Finding, Measured
from flashlib.checks.harness.strided import Out, extent, offsets_of, strides_of

ROOM = 8192  # elements on each side of the output


class StoredOutput:
    """The memory of an output in a model of a kernel. It begins as nan; what is stored beyond ROOM is lost."""

    def __init__(self, out: Out) -> None:
        self.out, self.size = out, extent(out) + 2 * ROOM
        self.memory, self.written = np.full(self.size, np.nan), np.zeros(self.size, bool)

    def put(self, offsets: np.ndarray, values: np.ndarray, mask: np.ndarray | bool = True) -> None:
        """Store values at offsets from the first element of the output, where the mask is True."""
        offsets, values, mask = np.broadcast_arrays(ROOM + offsets, values, mask)
        here = mask & (offsets >= 0) & (offsets < self.size)
        self.memory[offsets[here]] = values[here]
        self.written[offsets[here]] = True

    def result(self) -> tuple[np.ndarray, int]:
        """Return the output, and how many elements next to it were stored."""
        at = ROOM + offsets_of(self.out.shape, strides_of(self.out))
        return self.memory[at].astype(np.float32), int(self.written.sum() - self.written[at].sum())


def with_room(launch: Callable) -> Callable:
    """Return launch as a function of arrays, Strideds, numbers and an Out that has room on both sides.

    launch: takes tensors and numbers. The function returns the output and how many elements next to it were
    stored, as a Measured, with a Finding if that is not 0.
    """
    names = list(inspect.signature(launch).parameters)

    def run(*arguments: Any) -> Measured:
        from flashlib.checks.harness.launches import UNWRITTEN, launched

        (at,) = (n for n, x in enumerate(arguments) if isinstance(x, Out))
        out: Out = arguments[at]

        def launch_in_room(*given):
            view = given[at][ROOM:].as_strided(out.shape, strides_of(out))
            launch(*given[:at], view, *given[at + 1 :])

        launch_in_room.__signature__ = inspect.signature(launch)  # type: ignore[attr-defined]
        room = Out((extent(out) + 2 * ROOM,))
        memory, found = launched(launch_in_room)(*arguments[:at], room, *arguments[at + 1 :])
        model = StoredOutput(out)
        model.memory, model.written = memory, memory.view(np.int32) != np.int32(UNWRITTEN)
        result, outside = model.result()
        missing = int(np.prod(out.shape)) - int(model.written.sum()) + outside
        if found and found.id == "partly_written":  # the room is to stay as it is
            found = missing and Finding("partly_written", name=names[at], n=missing, size=result.size) or None
        return Measured((result, outside), Finding("written_outside", name=names[at]) if outside else found)

    run.__signature__ = inspect.signature(launch)  # type: ignore[attr-defined]
    return run
