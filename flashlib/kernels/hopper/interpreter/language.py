"""Gluon as a kernel of any learner uses it: tiles with layouts, memory with names, commands for the model.

A copy fills its slot when it completes, with NaN before; a product reads its slots when it completes. What units
and barriers make of the commands is the model's, in `flashlib.pipeline`, which raises Fault.
"""

import math
from collections.abc import Callable, Sequence
from types import CodeType, SimpleNamespace
from typing import Any

import torch
from triton.experimental.gluon import language as real
from triton.experimental.gluon.language.nvidia import hopper

from flashlib.kernels.hopper.interpreter import gluon
from flashlib.kernels.hopper.interpreter.names import Names
from flashlib.kernels.hopper.interpreter.refused import Wrong
from flashlib.kernels.hopper.interpreter.shared import TMA, MBarrier, Memory, View, check_warps
from flashlib.kernels.hopper.interpreter.threads import Role, current, say
from flashlib.kernels.hopper.interpreter.tile import Begun, Tile, applied, common, told
from flashlib.kernels.hopper.interpreter.whole import Whole, whole
from flashlib.pipeline import commands as c
from flashlib.pipeline.multiprocessor import Fault, Kind

ROWS = 64  # of a product, for four warps
REGISTERS = 512  # of a multiprocessor, for each thread of four warps
DTYPES = {
    "float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32, "int1": torch.bool,
    "int32": torch.int32, "int64": torch.int64, "float64": torch.float64,
}  # fmt: skip


def warpgroup_mma(
    a: Any, b: View, acc: Any, *, use_acc: bool = True, precision: str | None = None,
    max_num_imprecise_acc: int | None = None, is_async: bool = False,
) -> Any:  # fmt: skip
    """Begin a product of tiles, or wait for it too."""
    _check_product(a, b, acc)
    begun, role, slots = (
        Begun(acc.layout, tuple(acc.type.shape)),
        current(),
        [x for x in (a, b) if type(x) is View],
    )

    def done():
        left, right = (x.data.float() for x in (a, b))
        added = acc.result if isinstance(acc, Begun) else acc
        begun.result = Tile(left @ right + (added.data if use_acc else 0), acc.layout)

    role.products.append(begun)
    held = tuple((slot.part, slot.held()) for slot in slots)
    name = f"{_sign(a)} x {_sign(b)} #{len(role.products)}"
    say(c.Product(name, held, 2 * math.prod(acc.type.shape) * a.shape[1]), done)
    return begun if is_async else warpgroup_mma_wait(0, (begun,))


def _sign(x):
    return str(x) if isinstance(x, View) else "registers"


def _check_product(a, b, acc):
    """Raise Wrong for operands that `wgmma` does not take."""
    common(a)
    if not isinstance(b, View):
        raise Wrong("right_operand", given=type(b).__name__)
    layout = acc.layout
    if not isinstance(layout, real.NVMMADistributedLayout):
        raise Wrong("accumulator", layout=told(layout))
    if isinstance(acc, Tile) and acc.dtype != torch.float32:
        raise Wrong("sum_dtype", given=acc.dtype)
    if isinstance(a, Tile):
        wanted = real.DotOperandLayout(operand_index=0, parent=layout, k_width=2)
        if a.layout != wanted:
            raise Wrong("operand", layout=told(a.layout), wanted=told(wanted))
    if a.dtype != b.dtype:
        raise Wrong("operand_dtypes", one=a.dtype, other=b.dtype)
    for one in (a, b):
        if len(one.shape) != 2:
            raise Wrong("no_matrix", name=_sign(one), shape=one.shape, n=len(one.shape))
    shapes = a.shape, b.shape, list(acc.type.shape)
    if a.shape[1] != b.shape[0] or shapes[2] != [a.shape[0], b.shape[1]]:
        raise Wrong("shapes", one=shapes[0], other=shapes[1], sum=shapes[2])
    if layout.instr_shape[1] > shapes[2][1]:
        raise Wrong("instruction", given=layout.instr_shape[1], columns=shapes[2][1])


def warpgroup_mma_wait(num_outstanding: int = 0, deps: Sequence = ()) -> Any:
    """Wait until at most so many products are not done; return the tiles of deps."""
    if isinstance(deps, Begun | Tile):
        raise Wrong("deps")
    say(c.Finish(int(num_outstanding)))
    thread = current()
    may_run = thread.products[max(0, len(thread.products) - num_outstanding) :] if num_outstanding else []
    if any(one is product for one in deps for product in may_run):
        said = f"{thread.role} uses a product that may not be done: {num_outstanding} may be in flight"
        raise Fault(Kind.REGISTERS, thread.role, said)
    found = tuple(one.result if isinstance(one, Begun) else one for one in deps)
    return found[0] if len(found) == 1 else found


def _pointer_load(pointer, mask=None, other=None, **options):  # noqa: ARG001
    layout = common(pointer.at, mask)
    at = pointer.at.data if isinstance(pointer.at, Tile) else torch.tensor(pointer.at)
    mask = torch.ones_like(at, dtype=torch.bool) if mask is None else mask.data
    flat = pointer.X.view(-1)
    other = gluon.undefined(flat.dtype) if other is None else other
    return Tile(torch.where(mask, flat[torch.where(mask, at, 0).long()], other), layout)


def _pointer_store(pointer, x, mask=None, **options):  # noqa: ARG001
    common(pointer.at, x, mask)
    at, values, mask = (one.data if isinstance(one, Tile) else one for one in (pointer.at, x, mask))
    masked = mask is not None
    at, values = torch.broadcast_tensors(torch.as_tensor(at), torch.as_tensor(values))
    mask = torch.ones_like(at, dtype=torch.bool) if mask is None else torch.as_tensor(mask).broadcast_to(at.shape)
    flat = pointer.X.view(-1)
    outside = (at[mask] < 0) | (at[mask] >= len(flat))
    if outside.any():
        raise Wrong("stored_past" if masked else "stored_outside", name=pointer.name, n=int(outside.sum()))
    current().stored += int(mask.sum())
    flat[at[mask].long()] = values[mask].to(flat.dtype)


class Pointer:
    """A pointer to a tensor's numbers, and how far it was moved."""

    def __init__(self, name: str, X: torch.Tensor, at: Any = 0) -> None:
        self.name, self.X, self.at = name, X, at

    def __add__(self, n):
        return Pointer(self.name, self.X, n + self.at if isinstance(n, Tile) else self.at + n)

    __radd__ = __add__

    @property
    def dtype(self) -> SimpleNamespace:
        return SimpleNamespace(element_ty=self.X.dtype)


def _both(of_tensors: Callable, of_numbers: Callable) -> Callable:
    def chosen(a: Any, b: Any) -> Any:
        if not isinstance(a, Tile | Begun) and not isinstance(b, Tile | Begun):
            found = of_numbers(a, b)
            return whole(found) if Whole in (type(a), type(b)) else found
        return applied(lambda x, y: of_tensors(*(torch.as_tensor(z, device="cpu") for z in (x, y))), a, b)

    return chosen


class Language:
    """What `gl` is to one program of the grid."""

    constexpr = staticmethod(lambda x: x)
    static_range = range
    minimum, maximum = staticmethod(_both(torch.minimum, min)), staticmethod(_both(torch.maximum, max))

    def __init__(self, number: tuple, grid: tuple, code: CodeType, warps: int) -> None:
        self.number, self.grid, self.warps = number, grid, warps
        self.barriers, self.slots, self.roles, self.said = [], [], [], {}
        self.registers: dict[str, int] = {}
        self.unfenced, self.names = "", Names(code)
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
        return Whole(self.number[axis])

    def num_programs(self, axis: int) -> int:
        return Whole(self.grid[axis])

    def num_warps(self) -> int:
        return current().warps or self.warps

    def cdiv(self, a: int, b: int) -> int:
        return (a + (b - 1)) // b

    def allocate_shared_memory(self, dtype: torch.dtype, shape: Sequence[int], layout: Any) -> View:
        is_barrier = dtype == torch.int64
        made = self.barriers if is_barrier else self.slots
        memory = Memory(self.names.next(), dtype.itemsize, is_barrier, made)
        if is_barrier:  # all are the program's, whoever uses them
            view = View(memory, torch.empty(tuple(shape), device="cpu"), layout)
            for s in range(shape[0] if len(shape) > 1 else 0):
                view.index(s).part  # noqa: B018
            return view
        data = torch.full(tuple(shape), gluon.poison(dtype), dtype=dtype, device="cpu")
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
            return whole(x if condition else y)
        return applied(_where, condition, x, y)

    def max(self, x: Tile, axis: int) -> Tile:
        return _reduced(x, axis, lambda data: data.amax(axis))

    def sum(self, x: Tile, axis: int) -> Tile:
        return _reduced(x, axis, lambda data: data.sum(axis))

    def expand_dims(self, x: Tile, axis: int) -> Tile:
        return x[None, :] if axis == 0 else x[:, None]

    def convert_layout(self, x: Tile, layout: Any, assert_trivial: bool = False) -> Tile:
        common(x)
        return Tile(x.data, layout)

    def cast(self, x: Any, dtype: torch.dtype) -> Any:
        return x.to(dtype) if isinstance(x, Tile) else x

    load, store = staticmethod(_pointer_load), staticmethod(_pointer_store)

    def barrier(self) -> None:
        pass

    thread_barrier = barrier

    def static_assert(self, true: bool, said: str = "") -> None:
        assert true, said

    device_assert = static_assert

    def inline_asm_elementwise(
        self, asm: str, constraints: str, args: Sequence, dtype: Any, is_pure: bool, pack: int
    ) -> None:
        if not asm.startswith("mov"):
            raise Wrong("unknown", name="inline_asm_elementwise")
        return args[0]

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
        if registers is not None:  # the first role gets what is left; each gets them for four warps or eight
            groups = [-(-count // 4) for count in (self.warps, *warps)]
            given = sum(n * count for n, count in zip(groups[1:], registers, strict=True))
            counts = ((REGISTERS - given) // groups[0], *registers)
            self.registers = dict(zip(named, map(int, counts), strict=True))

    def fence_async_shared(self) -> None:
        self.unfenced = ""
        if current().state:  # else the program sets up its barriers, and nothing runs yet
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
    """Return what stands for the parts of Gluon, by id."""
    mine = {
        "mbarrier": gl.mbarrier, "tma": TMA, "warpgroup_mma": warpgroup_mma,
        "warpgroup_mma_wait": warpgroup_mma_wait, "fence_async_shared": gl.fence_async_shared,
    }  # fmt: skip
    found = {id(getattr(hopper, name)): stub for name, stub in mine.items()}
    of_barriers = {id(getattr(hopper.mbarrier, name)): getattr(gl.mbarrier, name) for name in
                   ("init", "wait", "arrive", "expect", "allocate_mbarrier", "MBarrierLayout")}  # fmt: skip
    copies = ("async_copy_global_to_shared", "async_copy_shared_to_global", "store_wait")
    of_copies = {id(getattr(hopper.tma, name)): getattr(TMA, name) for name in copies}
    whole = {id(real): gl, id(hopper): SimpleNamespace(**mine)}
    parts = {id(getattr(real, name)): getattr(gl, name) for name in DTYPES if hasattr(real, name)}
    return found | of_barriers | of_copies | whole | parts
