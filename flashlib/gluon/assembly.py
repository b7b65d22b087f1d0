"""The few lines of PTX that a kernel may have, by what they do."""

from collections.abc import Sequence
from typing import Any

import torch

from flashlib.gluon.integers import Integer
from flashlib.gluon.pointer import Pointer
from flashlib.gluon.refused import Wrong
from flashlib.gluon.threads import current
from flashlib.gluon.tile import Tile
from flashlib.pipeline.multiprocessor import PipelineFault, PipelineFaultKind

LARGEST = 448  # of e4m3
ORDERS = "fence.", "cp.async.bulk.wait_group"  # makes writes visible to others; here everything is visible


class Assembly:
    """What PTX does in one program."""

    def __init__(self) -> None:
        self.clocks = 0  # how often the clock was read, so that no two readings are the same
        self.waited_for: tuple | None = None

    def run(self, ptx: str, args: Sequence[Any], dtype: torch.dtype) -> Any:
        """Return the result of an instruction for these arguments; raise Wrong for unknown text."""
        if ptx.startswith("mov.b") and args:
            return args[0]
        if "%clock64" in ptx:
            self.clocks += 1
            return Integer(self.clocks)
        if ptx.startswith(ORDERS):
            return Integer(0)
        if "max.f32" in ptx:  # as integers where that gives the same
            return Tile(torch.stack([part.data for part in args]).amax(0), None)
        if "mul.f32" in ptx:  # skipped where it changes nothing
            return args[0] * args[1]
        if "cvt.rn.satfinite.e4m3x2" in ptx:
            return Tile(args[0].data.clamp(-LARGEST, LARGEST).to(dtype), args[0].layout)
        if ptx.startswith("ld.acquire"):
            return self._acquired(args[0])
        raise Wrong("unknown", name="inline_asm_elementwise")

    def _acquired(self, pointer: Pointer) -> Integer:
        """Return a number that another program writes; it cannot change during this, as programs take turns."""
        place = pointer.name, int(pointer.at)
        if self.waited_for == place:
            raise PipelineFault(
                PipelineFaultKind.DEADLOCK,
                current().role,
                f"a program waits for a later one at {place[0]}[{place[1]}]",
            )
        self.waited_for = place
        return Integer(pointer.X.view(-1)[place[1]])
