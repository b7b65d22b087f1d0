"""Shared memory, barriers and the copy unit, as a kernel uses them.

A slot holds NaN until a copy to it completes. How the commands are carried out is up to the model,
`flashlib.pipeline`.
"""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from triton.experimental.gluon.language.nvidia import hopper

from flashlib.gluon.refused import Wrong
from flashlib.gluon.threads import current, say
from flashlib.gluon.tile import Begun, Tile, Type, common
from flashlib.pipeline import commands as c

WRITTEN = "what threads wrote"


def poison(dtype: torch.dtype) -> float:
    """Return the value of memory that was never written: NaN, or an integer that none of our kernels writes."""
    return math.nan if dtype.is_floating_point else torch.iinfo(dtype).min


class Memory:
    """One allocation of shared memory: its name, and a Slot or Barrier for each part that is used."""

    def __init__(self, name: str, item: int, is_barrier: bool, made: list) -> None:
        self.name, self.item, self.is_barrier = name, item, is_barrier
        self.made, self.parts = made, {}
        self.written: dict[Any, int] = {}  # how often threads have written to each part

    def part(self, at: tuple, shape: Sequence[int]) -> Any:
        if at not in self.parts:
            name = self.name + "".join(f"[{n}]" for n in at)
            self.parts[at] = c.Barrier(name) if self.is_barrier else c.Slot(name, math.prod(shape) * self.item)
            self.made.append(self.parts[at])
            state = getattr(current(), "state", None)
            if state and not self.is_barrier:
                state.slots.setdefault(self.parts[at], None)
        return self.parts[at]


class View:
    """A slot of shared memory, or a whole ring. at: the indices that selected it."""

    def __init__(self, memory: Memory, data: torch.Tensor, layout: Any, at: tuple = ()) -> None:
        self.memory, self.data, self.layout, self.at = memory, data, layout, at
        self.origin = tuple(data.shape)

    def _like(self, data):
        view = View(self.memory, data, self.layout, self.at)
        view.origin = self.origin
        return view

    @property
    def part(self) -> Any:
        return self.memory.part(self.at, self.origin)

    @property
    def type(self) -> Type:
        return Type(Axes(self), self.layout)

    @property
    def shape(self) -> list[int]:
        return list(self.data.shape)

    @property
    def dtype(self) -> torch.dtype:
        return self.data.dtype

    def __str__(self) -> str:
        return self.memory.name + "".join(f"[{n}]" for n in self.at)

    def index(self, s: int) -> "View":
        if isinstance(s, Tile | Begun) or not 0 <= s < len(self.data):
            alone = self.memory.is_barrier and len(self.data) == 1
            raise Wrong("one_barrier" if alone else "no_slot", name=self.memory.name, n=len(self.data), given=s)
        return View(self.memory, self.data[s], self.layout, (*self.at, int(s)))

    def reshape(self, shape: Sequence[int]) -> "View":
        if math.prod(shape) != self.data.numel():
            raise Wrong("reshaped", name=str(self), shape=self.shape, given=list(shape))
        return self._like(self.data.view(*shape))

    def permute(self, axes: Sequence[int]) -> "View":
        if sorted(axes) != list(range(self.data.ndim)):
            raise Wrong("permuted", name=str(self), shape=self.shape, n=self.data.ndim, given=tuple(axes))
        return self._like(self.data.permute(*axes))

    def slice(self, start: int, n: int, dim: int = 0) -> "View":
        return self._like(self.data.narrow(dim, start, n))

    def held(self) -> str:
        """Return the name of the tile that is there now."""
        return current().state.slots[self.part] or "a tile"

    def load(self, layout: Any) -> Tile:
        check_warps(layout)
        say(c.Read(self.held(), self.part))
        return Tile(self.data.clone(), layout)

    def store(self, x: Tile) -> None:
        common(x)
        if x.data.shape != self.data.shape or x.dtype != self.dtype:
            raise Wrong("stored", given=f"{x.dtype} {x.shape}", slot=f"{self.dtype} {self.shape}")
        times = self.memory.written[self.part] = self.memory.written.get(self.part, 0) + 1
        say(c.Write(WRITTEN if times == 1 else f"{WRITTEN} #{times}", self.part))
        self.data.copy_(x.data)


class Axes(tuple):
    """The sizes of a view. An error for a missing axis says which axes there are."""

    def __new__(cls, view: View) -> "Axes":
        return super().__new__(cls, view.data.shape)

    def __init__(self, view: View) -> None:
        self.name = str(view)

    def __getitem__(self, axis: Any) -> Any:
        if isinstance(axis, int) and axis >= len(self):
            raise Wrong("no_axis", name=self.name, shape=list(self), n=len(self), axis=axis)
        return super().__getitem__(axis)


class Described:
    """A tensor descriptor in a kernel."""

    def __init__(self, name: str, desc: Any) -> None:
        self.name, self.layout = name.removesuffix("_desc"), desc.layout
        self.X = desc.base.as_strided(tuple(desc.shape), tuple(desc.strides))
        self.shape, self.block_shape, self.dtype = list(desc.shape), list(desc.block_shape), desc.base.dtype
        n_bytes = math.prod(self.block_shape) * self.X.element_size()
        self.block_type = SimpleNamespace(nbytes=n_bytes, shape=self.block_shape)

    def windows(self, at: Sequence[int], slot: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the part that a tile and a slot have in common, as slices of the tensor and of the slot."""
        outer, inner = [], []
        for start, size, n in zip(at, self.block_shape, self.X.shape, strict=True):
            first, last = min(max(start, 0), n), max(min(start + size, n), 0)
            outer.append(slice(first, max(first, last)))
            inner.append(slice(first - start, max(first, last) - start))
        return self.X[tuple(outer)], slot[tuple(inner)]

    def check(self, at: Sequence[int], slot: View) -> list[int]:
        if len(at) != len(self.block_shape):
            raise Wrong("coordinates", name=self.name, given=len(at), n=len(self.block_shape))
        if slot.shape != self.block_shape or slot.dtype != self.dtype:
            given, tile = f"{slot.dtype} {slot.shape}", f"{self.dtype} {self.block_shape}"
            raise Wrong("slot_shape", name=slot.memory.name, given=given, tile=tile)
        return [int(n) for n in at]


class MBarrier:
    """`mbarrier` of the module `hopper`."""

    MBarrierLayout = staticmethod(hopper.mbarrier.MBarrierLayout)

    def __init__(self, gl: Any) -> None:
        self.gl = gl

    def allocate_mbarrier(self, batch: int | None = None) -> View:
        return self.gl.allocate_shared_memory(torch.int64, [1] if batch is None else [batch, 1], None)

    def init(self, mbarrier: View, count: int) -> None:
        _barrier(mbarrier).count = int(count)
        self.gl.unfenced = mbarrier.memory.name

    def wait(self, mbarrier: View, phase: int, pred: bool = True, deps: Sequence = ()) -> None:  # noqa: ARG002
        if pred and int(phase) not in (0, 1):
            raise Wrong("no_parity", name=_barrier(mbarrier).name, given=int(phase))
        if pred:
            say(c.Wait(_barrier(mbarrier), int(phase)))

    def arrive(self, mbarrier: View, *, count: int = 1, pred: bool = True) -> None:
        for _ in range(int(count) if pred else 0):
            say(c.Arrive(_barrier(mbarrier)))

    def expect(self, mbarrier: View, bytes_per_cta: int, pred: bool = True) -> None:
        if pred:
            say(c.Expect(_barrier(mbarrier), int(bytes_per_cta)))


def _barrier(view):
    if not isinstance(view, View) or not view.memory.is_barrier:
        raise Wrong("no_barrier", given=view.memory.name if isinstance(view, View) else type(view).__name__)
    if len(view.origin) > 1 and view.origin[0] > 1:
        raise Wrong("whole_ring", name=view.memory.name)
    return view.part


class TMA:
    """`tma` of the module `hopper`."""

    @staticmethod
    def async_copy_global_to_shared(
        tensor_desc: Described, coord: Sequence[int], barrier: View, result: View, pred: bool = True
    ) -> None:
        if not pred:
            return
        part = _barrier(barrier)
        at = tensor_desc.check(coord, result)

        def arrived():
            result.data.zero_()
            tile, room = tensor_desc.windows(at, result.data)
            room.copy_(tile)

        say(c.Copy(f"{tensor_desc.name}{at}", result.part, part), arrived)
        result.data.fill_(poison(result.dtype))  # no unit has completed anything since then

    @staticmethod
    def async_copy_shared_to_global(tensor_desc: Described, coord: Sequence[int], src: View) -> None:
        at = tensor_desc.check(coord, src)
        current().stored += tensor_desc.windows(at, src.data)[0].numel()

        def read():
            tile, room = tensor_desc.windows(at, src.data)
            tile.copy_(room)

        say(c.Store(src.held(), src.part), read)

    @staticmethod
    def async_add_shared_to_global(tensor_desc: Described, coord: Sequence[int], src: View) -> None:
        at = tensor_desc.check(coord, src)

        def read():
            tile, room = tensor_desc.windows(at, src.data)
            tile.add_(room)

        say(c.Store(src.held(), src.part), read)

    @staticmethod
    def store_wait(pendings: int) -> None:
        say(c.FinishStores(int(pendings)))


def check_warps(layout: Any) -> None:
    """Raise Wrong for a layout whose number of warps is not the role's."""
    of = layout
    while of is not None and not hasattr(of, "warps_per_cta") and hasattr(of, "parent"):
        of = of.parent
    there = current().warps
    if hasattr(of, "warps_per_cta") and there and math.prod(of.warps_per_cta) != there:
        raise Wrong("warps", role=current().role, there=there, given=math.prod(of.warps_per_cta))
