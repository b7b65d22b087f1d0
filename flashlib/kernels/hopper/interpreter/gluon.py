"""A stub of Gluon for kernels that are interpreted: tiles are torch tensors, and commands go to a schedule.

Names, arguments and meanings are as in `triton.experimental.gluon.language` and its `nvidia.hopper`, as far as our
kernels use them. Layouts say nothing here.
"""

import math
import random
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch

from flashlib.kernels.hopper.interpreter.threads import Role, current, say
from flashlib.pipeline import commands as c
from flashlib.pipeline.multiprocessor import Fault, Kind

WRITTEN = "what threads wrote"


class Layout:
    """A stub of any layout; tiles here have none."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    @property
    def parent(self) -> "Layout":
        return self


class Type(NamedTuple):
    shape: tuple
    layout: Layout


class Registers(torch.Tensor):
    """A tile in registers."""

    @property
    def type(self) -> Type:  # type: ignore[override]
        return Type(tuple(self.shape), Layout())

    def to(self, dtype: torch.dtype, bitcast: bool = False) -> "Registers":  # type: ignore[override]
        return registers(self.view(dtype) if bitcast else super().to(dtype))


def poison(dtype: torch.dtype) -> float:
    """Return what stands where nothing was written: NaN, or a whole number that no kernel of ours writes."""
    return math.nan if dtype.is_floating_point else torch.iinfo(dtype).min


def registers(x: torch.Tensor) -> Registers:
    return x.as_subclass(Registers)


class Shared(NamedTuple):
    """A slot of shared memory, or all of a ring: its numbers, and the parts of the model behind them."""

    data: torch.Tensor
    parts: tuple

    @property
    def type(self) -> Type:
        return Type(tuple(self.data.shape), Layout())

    @property
    def dtype(self) -> torch.dtype:
        return self.data.dtype

    def index(self, s: int) -> "Shared":  # type: ignore[override]
        return Shared(self.data[s], (self.parts[s],))

    def reshape(self, shape: Sequence[int]) -> "Shared":
        return Shared(self.data.view(shape), self.parts)

    def permute(self, axes: tuple[int, ...]) -> "Shared":
        return Shared(self.data.permute(axes), self.parts)

    def slice(self, start: int, n: int, dim: int = 0) -> "Shared":
        return Shared(self.data.narrow(dim, start, n), self.parts)

    def load(self, layout: "Layout") -> "Registers":
        slots = current().state.slots
        say(c.Read(slots[self.parts[0]] or "a tile", self.parts[0]))
        return registers(self.data.clone())

    def store(self, x: torch.Tensor) -> None:
        say(c.Write(WRITTEN, self.parts[0]))
        self.data.copy_(x)


class Descriptor(NamedTuple):
    """What a tensor descriptor says. X: (B, H, N, d), or (heads, N); rows: of a tile, one head's.

    lines: X is (n, 32), and a tile has `rows` of these n. columns: X is (B, H, d, N), and a tile has so many of N.
    """

    name: str
    X: torch.Tensor
    rows: int
    layout: Layout = Layout()
    lines: bool = False
    columns: int = 0

    @property
    def dtype(self) -> torch.dtype:
        return self.X.dtype

    @property
    def block_shape(self) -> list[int]:
        if self.lines:
            return [self.rows, self.X.shape[1]]
        block = [1, 1, self.rows, self.columns or self.X.shape[-1]]
        return block if self.X.ndim == 4 else block[1:3]

    @property
    def block_type(self) -> types.SimpleNamespace:
        return types.SimpleNamespace(nbytes=math.prod(self.block_shape) * self.X.element_size())

    def rows_at(self, at: Sequence[int]) -> torch.Tensor:
        if self.columns:  # whole tiles
            return self.X[at[0], at[1], :, at[3] : at[3] + self.columns]
        *head, start = at[:3] if self.X.ndim == 4 else at[: 2 - self.lines]
        return self.X[tuple(head)][max(start, 0) : max(start + self.rows, 0)]

    def rows_of(self, slot: Shared) -> torch.Tensor:
        """Return what lies in a slot for such tiles, without the axes of size 1."""
        return slot.data if self.lines else slot.data[0, 0] if self.X.ndim == 4 else slot.data[0]


class Pointer(NamedTuple):
    X: torch.Tensor
    at: object = 0

    def __add__(self, n):
        return Pointer(self.X, self.at + n)

    @property
    def dtype(self) -> types.SimpleNamespace:
        return types.SimpleNamespace(element_ty=self.X.dtype)


class Begun:
    """A product that was begun; its result is there once a role waited for it."""

    result: Any = None


class MBarrier:
    @staticmethod
    def MBarrierLayout() -> Layout:
        return Layout()

    @staticmethod
    def init(barrier: Shared, count: int) -> None:
        barrier.parts[0].count = count

    @staticmethod
    def wait(barrier: Shared, phase: int | torch.Tensor, pred: bool = True) -> None:
        if pred:
            say(c.Wait(barrier.parts[0], int(phase)))

    @staticmethod
    def arrive(barrier: Shared, count: int = 1, pred: bool = True) -> None:
        assert count == 1  # the model has no others
        if pred:
            say(c.Arrive(barrier.parts[0]))

    @staticmethod
    def expect(barrier: Shared, n_bytes: int, pred: bool = True) -> None:
        if pred:
            say(c.Expect(barrier.parts[0], n_bytes))


class TMA:
    @staticmethod
    def async_copy_global_to_shared(desc: Descriptor, at: Sequence[int], barrier: Shared, slot: Shared) -> None:
        def arrived():
            slot.data.zero_()
            tile = desc.rows_at(at)
            desc.rows_of(slot)[: len(tile)] = tile

        say(c.Copy(f"{desc.name}{list(at)}", slot.parts[0], barrier.parts[0]), arrived)
        slot.data.fill_(poison(slot.dtype))  # no other thread has run since, and no unit has completed anything

    @staticmethod
    def async_copy_shared_to_global(desc: Descriptor, at: Sequence[int], slot: Shared) -> None:
        def read():
            tile = desc.rows_at(at)
            tile.copy_(desc.rows_of(slot)[: len(tile)])

        say(c.Store(WRITTEN, slot.parts[0]), read)

    @staticmethod
    def async_add_shared_to_global(desc: Descriptor, at: Sequence[int], slot: Shared) -> None:
        def read():
            desc.rows_at(at).add_(slot.data)

        say(c.Store(WRITTEN, slot.parts[0]), read)

    @staticmethod
    def store_wait(pending: int) -> None:
        say(c.FinishStores(pending))


def warpgroup_mma(
    a: Registers | Shared, b: Shared, acc: "torch.Tensor | Begun", use_acc: bool = True, is_async: bool = False
) -> Begun:
    assert is_async
    begun, slots = Begun(), [x for x in (a, b) if isinstance(x, Shared)]

    def done():
        added = acc.result if isinstance(acc, Begun) else acc  # of a product before it: they are done in order
        dtype = torch.int32 if added.dtype == torch.int32 else torch.float32
        left, right = ((x.data if isinstance(x, Shared) else x).to(dtype) for x in (a, b))
        begun.result = registers(left @ right + (added if use_acc else 0))

    role = current()
    role.products.append(begun)
    held = tuple((slot.parts[0], role.state.slots[slot.parts[0]] or "a tile") for slot in slots)
    flops = 2 * a.type.shape[0] * math.prod(b.type.shape)
    say(c.Product(f"product {len(role.products)}", held, flops), done)
    return begun


def warpgroup_mma_wait(pending: int, deps: Sequence[Begun]) -> Registers | tuple[Registers, ...]:
    say(c.Finish(pending))
    thread = current()
    role, may_run = thread.role, thread.products[len(thread.products) - pending :]
    if any(begun in may_run for begun in deps):
        raise Fault(
            Kind.REGISTERS, role, f"{role} uses a product that may not be done: {pending} may be in flight"
        )
    return deps[0].result if len(deps) == 1 else tuple(begun.result for begun in deps)


def fence_async_shared() -> None:
    if current().state:  # else the program sets up its barriers, and nothing runs yet
        say(c.Fence())


def _either(pick, pick_tensors):
    def of(a, b):
        if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
            a, b = (x if isinstance(x, torch.Tensor) else torch.tensor(x, device="cpu") for x in (a, b))
            return registers(pick_tensors(a, b))
        return pick(a, b)

    return of


def _store(pointer, x, mask=None):
    mask = True if mask is None else mask
    at, mask = torch.broadcast_tensors(torch.as_tensor(pointer.at, device="cpu"), torch.as_tensor(mask))
    pointer.X.view(-1)[at[mask].long()] = x[mask]


def undefined(dtype: torch.dtype) -> float | int:
    """Return what a load without other gives where its mask is False, where the GPU gives anything."""
    return torch.nan if dtype.is_floating_point else torch.iinfo(dtype).max // 2


def _load(pointer, mask=None, other=None):
    at = torch.as_tensor(pointer.at, device="cpu")
    mask = torch.ones_like(at, dtype=torch.bool) if mask is None else mask
    other = undefined(pointer.X.dtype) if other is None else other
    return registers(torch.where(mask, pointer.X.view(-1)[torch.where(mask, at, 0).long()], other))


def _atomic_add(pointer, x, sem):
    if isinstance(x, torch.Tensor):
        assert sem == "relaxed"
        at = pointer.at.long().flatten()
        pointer.X.view(-1).index_add_(0, at, x.as_subclass(torch.Tensor).flatten())
    else:  # a count, of what others wait for
        assert sem == "release"
        pointer.X[pointer.at] += x


class Gluon:
    """What `gl` is to one program of the grid."""

    constexpr, float32, int32, int64 = object, torch.float32, torch.int32, torch.int64
    float8e4nv, int8 = torch.float8_e4m3fn, torch.int8
    NVMMADistributedLayout = SliceLayout = DotOperandLayout = BlockedLayout = Layout
    NVMMASharedLayout = SwizzledSharedLayout = DistributedLinearLayout = Layout
    minimum, maximum = staticmethod(_either(min, torch.minimum)), staticmethod(_either(max, torch.maximum))
    static_range, where, exp2, log2 = range, torch.where, torch.exp2, torch.log2
    load, store, atomic_add = staticmethod(_load), staticmethod(_store), staticmethod(_atomic_add)

    def __init__(
        self, number: int, programs: int, numbers: random.Random, names: Iterable[str | Sequence[str]]
    ) -> None:
        self.number, self.programs, self.numbers = number, programs, numbers
        self.names, self.barriers, self.slots, self.roles, self.said = iter(names), [], [], [], {}
        self.asked = None  # the count that a role waits for: none changes, as programs run one after the other

    def program_id(self, axis: int) -> int:
        return self.number

    def num_programs(self, axis: int) -> int:
        return self.programs

    def num_warps(self) -> int:
        return 2  # of the one role that asks, the reducer

    def cast(self, x: object, dtype: torch.dtype) -> object:
        return x

    def allocate_shared_memory(self, dtype: torch.dtype, shape: Sequence[int], layout: Layout) -> Shared:
        name: Any = next(self.names)
        if dtype == torch.int64:
            name = "turn" if name == "o" else name  # O goes where Q was
            parts = c.barriers(name, shape[0]) if isinstance(name, str) else [c.Barrier(one) for one in name]
            self.barriers += parts
            return Shared(torch.empty(shape, device="cpu"), tuple(parts))
        n_bytes = math.prod(shape[1:]) * dtype.itemsize
        parts = c.ring(name, shape[0], n_bytes)
        self.slots += parts
        return Shared(torch.full(shape, poison(dtype), dtype=dtype, device="cpu"), tuple(parts))

    def arange(self, start: int, end: int, layout: Layout) -> Registers:
        return registers(torch.arange(start, end, dtype=torch.int32, device="cpu"))

    def full(self, shape: Sequence[int], value: float, dtype: torch.dtype, layout: Layout) -> Registers:
        return registers(torch.full(shape, value, dtype=dtype, device="cpu"))

    def zeros(self, shape: Sequence[int], dtype: torch.dtype, layout: Layout) -> Registers:
        return registers(torch.zeros(shape, dtype=dtype, device="cpu"))

    def max(self, x: torch.Tensor, axis: int) -> torch.Tensor:
        return x.amax(axis)

    def sum(self, x: torch.Tensor, axis: int) -> torch.Tensor:
        return x.sum(axis)

    def convert_layout(self, x: torch.Tensor, layout: Layout, assert_trivial: bool) -> torch.Tensor:
        return x

    def inline_asm_elementwise(
        self, asm: str, constraints: str, args: Sequence[Any], dtype: torch.dtype, is_pure: bool, pack: int,
    ) -> Any:  # fmt: skip
        if not args:  # it orders what others see
            return 0
        if "satfinite.e4m3x2" in asm:
            return args[0].clamp(-448, 448).to(dtype)
        if "ld.acquire" not in asm:
            return args[0]
        if self.asked == args[0].at:
            raise Fault(Kind.DEADLOCK, current().role, "a program waits for a later one")
        self.asked = args[0].at
        return int(args[0].X.view(-1)[args[0].at])

    def barrier(self) -> None:
        pass

    def static_assert(self, true: bool) -> None:
        assert true

    def warp_specialize(
        self, roles: Sequence[tuple[Callable, tuple]], warps: Sequence[int], registers: Sequence[int] | None = None
    ) -> None:
        consumers = sum(function.__name__ == "consumer" for function, _ in roles)
        others = "producer", "reducer", "finisher"
        names = [*(f"consumer {at}" for at in range(consumers)), *others[: len(roles) - consumers]]
        self.roles = [Role(name, *role) for name, role in zip(names, roles, strict=True)]
