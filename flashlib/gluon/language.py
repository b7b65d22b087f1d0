"""Gluon as a kernel uses it: tiles with layouts, memory with names, commands for the model.

A slot holds NaN until a copy to it completes; a product reads its slots when it completes. How units and barriers
carry out the commands is up to the model, `flashlib.pipeline`, which raises Fault.
"""

from collections.abc import Callable, Sequence
from types import CodeType, SimpleNamespace
from typing import Any

import torch
from triton.experimental.gluon import language as real
from triton.experimental.gluon.language.nvidia import hopper

from flashlib.gluon.assembly import Assembly
from flashlib.gluon.integers import Integer, as_integer
from flashlib.gluon.memory import TMA, MBarrier, Memory, View, check_warps, poison
from flashlib.gluon.names import Names
from flashlib.gluon.pointer import Pointer, add, load, store
from flashlib.gluon.refused import Wrong
from flashlib.gluon.tensor_cores import warpgroup_mma, warpgroup_mma_wait
from flashlib.gluon.threads import Role, current, say
from flashlib.gluon.tile import Begun, Tile, applied, common, told
from flashlib.pipeline import commands as c
from flashlib.private_apis import of_gluon

REGISTERS = 65536  # of a multiprocessor
DTYPES = {
    "float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32, "int1": torch.bool,
    "int8": torch.int8, "int32": torch.int32, "int64": torch.int64, "float64": torch.float64,
    "float8e4nv": torch.float8_e4m3fn,
}  # fmt: skip


def _both(of_tensors: Callable, of_numbers: Callable) -> Callable:
    def chosen(a: Any, b: Any) -> Any:
        if not isinstance(a, Tile | Begun) and not isinstance(b, Tile | Begun):
            found = of_numbers(a, b)
            return as_integer(found) if Integer in (type(a), type(b)) else found
        return applied(lambda x, y: of_tensors(*(torch.as_tensor(z, device="cpu") for z in (x, y))), a, b)

    return chosen


class Language:
    """The `gl` of one program of the grid."""

    constexpr = staticmethod(lambda x: x)
    static_range = range
    minimum, maximum = staticmethod(_both(torch.minimum, min)), staticmethod(_both(torch.maximum, max))

    def __init__(self, number: tuple, grid: tuple, code: CodeType, warps: int) -> None:
        self.number, self.grid, self.warps = number, grid, warps
        self.barriers, self.slots, self.roles, self.said = [], [], [], {}
        self.registers: dict[str, int] = {}
        self.unfenced, self.names = "", Names(code)
        self.assembly, self.added = Assembly(), False
        self.mbarrier, self.functions = MBarrier(self), {}
        for name in ("exp2", "exp", "log2", "log", "abs", "sqrt", "rsqrt"):
            function = getattr(torch, name)
            setattr(self, name, lambda x, function=function: applied(function, x))

    def __getattr__(self, name):
        if name in DTYPES:
            return DTYPES[name]
        found = getattr(real, name, None)
        if name.endswith("Layout") and found:
            return found
        raise Wrong("unknown", name=name)

    def program_id(self, axis: int) -> int:
        return Integer(self.number[axis])

    def num_programs(self, axis: int) -> int:
        return Integer(self.grid[axis])

    def num_warps(self) -> int:
        return current().warps or self.warps

    def cdiv(self, a: int, b: int) -> int:
        return (a + (b - 1)) // b

    def allocate_shared_memory(self, dtype: torch.dtype, shape: Sequence[int], layout: Any) -> View:
        is_barrier = dtype == torch.int64
        made = self.barriers if is_barrier else self.slots
        memory = Memory(self.names.next(), dtype.itemsize, is_barrier, made)
        if is_barrier:  # all belong to the program, whoever uses them
            view = View(memory, torch.empty(tuple(shape), device="cpu"), layout)
            for s in range(shape[0] if len(shape) > 1 else 0):
                view.index(s).part  # noqa: B018
            return view
        data = torch.full(tuple(shape), poison(dtype), dtype=dtype, device="cpu")
        return View(memory, data, layout)

    def arange(self, start: int, end: int, layout: Any = None) -> Tile:
        check_warps(layout)
        if layout is not None and not isinstance(layout, real.SliceLayout | real.BlockedLayout):
            raise Wrong("row_layout", what="arange", layout=told(layout))
        return Tile(torch.arange(start, end, dtype=torch.int32, device="cpu"), layout)

    def full(self, shape: Sequence[int], value: float, dtype: torch.dtype, layout: Any = None) -> Tile:
        check_warps(layout)
        if layout is not None and hasattr(layout, "rank") and layout.rank != len(shape):
            raise Wrong("rank", shape=list(shape), layout=told(layout))
        return Tile(torch.full(tuple(shape), value, dtype=dtype, device="cpu"), layout)

    def zeros(self, shape: Sequence[int], dtype: torch.dtype, layout: Any = None) -> Tile:
        return self.full(shape, 0, dtype, layout)

    def full_like(self, x: Tile, value: float) -> Tile:
        return self.full(x.shape, value, x.dtype, x.layout)

    def zeros_like(self, x: Tile) -> Tile:
        return self.full_like(x, 0)

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        if not any(isinstance(one, Tile | Begun) for one in (condition, x, y)):
            return as_integer(x if condition else y)
        return applied(_where, condition, x, y)

    def max(self, x: Tile, axis: int) -> Tile:
        return _reduced(x, axis, lambda data: data.amax(axis))

    def sum(self, x: Tile, axis: int) -> Tile:
        return _reduced(x, axis, lambda data: data.sum(axis))

    def expand_dims(self, x: Tile, axis: int) -> Tile:
        return x[None, :] if axis == 0 else x[:, None]

    def split(self, x: Tile) -> tuple[Tile, Tile]:
        return Tile(x.data[..., 0], None), Tile(x.data[..., 1], None)

    def convert_layout(self, x: Tile, layout: Any, assert_trivial: bool = False) -> Tile:
        common(x)
        return Tile(x.data, layout)

    def cast(self, x: Any, dtype: torch.dtype) -> Any:
        return x.to(dtype) if isinstance(x, Tile) else x

    load, store = staticmethod(load), staticmethod(store)

    def barrier(self) -> None:
        pass

    thread_barrier = barrier

    def static_assert(self, true: bool, said: str = "") -> None:
        assert true, said

    device_assert = static_assert

    def atomic_add(self, pointer: Pointer, value: Any, mask: Any = None, sem: str = "acq_rel") -> None:  # noqa: ARG002
        self.added = True
        add(pointer, value, mask)

    def inline_asm_elementwise(
        self,
        asm: str,
        constraints: str,
        args: Sequence,
        dtype: Any,
        is_pure: bool,
        pack: int,  # noqa: ARG002
    ) -> Any:
        return self.assembly.run(asm, args, dtype)

    def warp_specialize(
        self, roles: Sequence[tuple[Callable, tuple]], warps: Sequence[int], registers: Sequence[int] | None = None
    ) -> None:
        for counts in (warps, registers):
            if counts is not None and len(counts) != len(roles) - 1:
                raise Wrong("role_counts", n=len(roles), given=len(counts))
        if self.unfenced:
            raise Wrong("barriers_unfenced", name=self.unfenced)
        names = [function.__name__.removeprefix("my_") for function, _ in roles]
        named = [
            f"{name} {names[:n].count(name)}" if names.count(name) > 1 else name for n, name in enumerate(names)
        ]
        self.roles = [Role(name, *role) for name, role in zip(named, roles, strict=True)]
        for role, count in zip(self.roles, (self.warps, *warps), strict=True):
            role.warps = count
        if registers is not None:  # registers move in groups of four warps
            groups = [-(-count // 4) for count in (self.warps, *warps)]
            given = sum(n * count for n, count in zip(groups[1:], registers, strict=True))
            at_launch = REGISTERS // (128 * sum(groups)) // 8 * 8  # of each thread
            rest = max(0, sum(groups) * at_launch - given) // groups[0]  # the first role gets it
            self.registers = dict(zip(named, map(int, (rest, *registers)), strict=True))

    def fence_async_shared(self) -> None:
        self.unfenced = ""
        if current().state:  # otherwise the program is setting up its barriers, and no role runs yet
            say(c.Fence())


def _where(condition, x, y):
    condition, x, y = (torch.as_tensor(one, device="cpu") for one in (condition, x, y))
    return torch.where(condition, x, y)


def _reduced(x, axis, reduce):
    layout = common(x)
    if not isinstance(x, Tile) or axis is None:
        raise Wrong("axis")
    return Tile(reduce(x.data), layout and real.SliceLayout(axis, layout))


def stubs(gl: Language) -> dict[int, Any]:
    """Return the stubs for the parts of Gluon, by id."""
    mine = {
        "mbarrier": gl.mbarrier, "tma": TMA, "warpgroup_mma": warpgroup_mma,
        "warpgroup_mma_wait": warpgroup_mma_wait, "fence_async_shared": gl.fence_async_shared,
    }  # fmt: skip
    found = {id(getattr(hopper, name)): stub for name, stub in mine.items()}
    of_barriers = {id(getattr(hopper.mbarrier, name)): getattr(gl.mbarrier, name) for name in
                   ("init", "wait", "arrive", "expect", "allocate_mbarrier", "MBarrierLayout")}  # fmt: skip
    copies = ("async_copy_global_to_shared", "async_copy_shared_to_global", "store_wait")
    of_copies = {id(getattr(hopper.tma, name)): getattr(TMA, name) for name in copies}
    of_copies[id(of_gluon.async_add_shared_to_global)] = TMA.async_add_shared_to_global
    whole = {id(real): gl, id(hopper): SimpleNamespace(**mine)}
    parts = {id(getattr(real, name)): getattr(gl, name) for name in DTYPES if hasattr(real, name)}
    return found | of_barriers | of_copies | whole | parts
