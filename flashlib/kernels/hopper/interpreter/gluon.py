"""A stub of Gluon for kernels that are interpreted: tiles are torch tensors, and commands go to a schedule.

Names, arguments and meanings are as in `triton.experimental.gluon.language` and its `nvidia.hopper`, as far as our
kernels use them. Layouts say nothing here.
"""

import math
import threading
import types
from typing import NamedTuple

import torch

from flashlib.kernels.hopper.interpreter.threads import Role, say
from flashlib.pipeline import commands as c
from flashlib.pipeline.multiprocessor import Fault, Kind


class Layout:
    """A stub of any layout; tiles here have none."""

    def __init__(self, *args, **kwargs):
        pass

    @property
    def parent(self):
        return self


class Type(NamedTuple):
    shape: tuple
    layout: Layout


class Registers(torch.Tensor):
    """A tile in registers."""

    @property
    def type(self):
        return Type(tuple(self.shape), Layout())


def registers(x):
    return x.as_subclass(Registers)


class Shared(NamedTuple):
    """A slot of shared memory, or all of a ring: its numbers, and the parts of the model behind them."""

    data: torch.Tensor
    parts: tuple

    @property
    def type(self):
        return Type(tuple(self.data.shape), Layout())

    @property
    def dtype(self):
        return self.data.dtype

    def index(self, s):
        return Shared(self.data[s], (self.parts[s],))

    def reshape(self, shape):
        return Shared(self.data.view(shape), self.parts)

    def permute(self, axes):
        return Shared(self.data.permute(axes), self.parts)

    def store(self, x):
        say(c.Write("O", self.parts[0]))
        self.data.copy_(x)


class Descriptor(NamedTuple):
    """What a tensor descriptor says. X: (B, H, N, d); rows: of a tile, one head's."""

    name: str
    X: torch.Tensor
    rows: int
    layout: Layout = Layout()

    @property
    def dtype(self):
        return self.X.dtype

    @property
    def block_shape(self):
        return [1, 1, self.rows, self.X.shape[-1]]

    @property
    def block_type(self):
        return types.SimpleNamespace(nbytes=self.rows * self.X.shape[-1] * self.X.element_size())

    def rows_at(self, at):
        return self.X[at[0], at[1], max(at[2], 0) : max(at[2] + self.rows, 0)]


class Pointer(NamedTuple):
    X: torch.Tensor
    at: object = 0

    def __add__(self, n):
        return Pointer(self.X, self.at + n)


class Begun:
    """A product that was begun; its result is there once a role waited for it."""

    result = None


class MBarrier:
    @staticmethod
    def MBarrierLayout():
        return Layout()

    @staticmethod
    def init(barrier, count):
        barrier.parts[0].count = count

    @staticmethod
    def wait(barrier, phase, pred=True):
        if pred:
            say(c.Wait(barrier.parts[0], int(phase)))

    @staticmethod
    def arrive(barrier, count=1, pred=True):
        assert count == 1  # the model has no others
        if pred:
            say(c.Arrive(barrier.parts[0]))

    @staticmethod
    def expect(barrier, n_bytes, pred=True):
        if pred:
            say(c.Expect(barrier.parts[0], n_bytes))


class TMA:
    @staticmethod
    def async_copy_global_to_shared(desc, at, barrier, slot):
        def arrived():
            slot.data.zero_()
            tile = desc.rows_at(at)
            slot.data[0, 0, : len(tile)] = tile

        say(c.Copy(f"{desc.name}{list(at)}", slot.parts[0], barrier.parts[0]), arrived)
        slot.data.fill_(math.nan)  # no other thread has run since, and no unit has completed anything

    @staticmethod
    def async_copy_shared_to_global(desc, at, slot):
        def read():
            tile = desc.rows_at(at)
            tile.copy_(slot.data[0, 0, : len(tile)])

        say(c.Store("O", slot.parts[0]), read)

    @staticmethod
    def store_wait(pending):
        say(c.FinishStores(pending))


def warpgroup_mma(a, b, acc, use_acc=True, is_async=False):
    assert is_async
    begun, slots = Begun(), [x for x in (a, b) if isinstance(x, Shared)]

    def done():
        left, right = ((x.data if isinstance(x, Shared) else x).float() for x in (a, b))
        begun.result = registers(left @ right + (acc if use_acc else 0.0))

    role = threading.current_thread()
    role.products.append(begun)
    held = tuple((slot.parts[0], role.state.slots[slot.parts[0]] or "a tile") for slot in slots)
    flops = 2 * a.type.shape[0] * math.prod(b.type.shape)
    say(c.Product(f"product {len(role.products)}", held, flops), done)
    return begun


def warpgroup_mma_wait(pending, deps):
    say(c.Finish(pending))
    thread = threading.current_thread()
    role, may_run = thread.role, thread.products[len(thread.products) - pending :]
    if any(begun in may_run for begun in deps):
        raise Fault(
            Kind.REGISTERS, role, f"{role} uses a product that may not be done: {pending} may be in flight"
        )
    return deps[0].result if len(deps) == 1 else tuple(begun.result for begun in deps)


def fence_async_shared():
    if threading.current_thread().state:  # else the program sets up its barriers, and nothing runs yet
        say(c.Fence())


def _either(pick, pick_tensors):
    def of(a, b):
        if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
            a, b = (x if isinstance(x, torch.Tensor) else torch.tensor(x) for x in (a, b))
            return registers(pick_tensors(a, b))
        return pick(a, b)

    return of


def _store(pointer, x, mask):
    pointer.X.view(-1)[torch.as_tensor(pointer.at)[mask].long()] = x[mask]


class Gluon:
    """What `gl` is to one program of the grid."""

    constexpr, float32, int32, int64 = object, torch.float32, torch.int32, torch.int64
    NVMMADistributedLayout = SliceLayout = DotOperandLayout = Layout
    minimum, maximum = staticmethod(_either(min, torch.minimum)), staticmethod(_either(max, torch.maximum))
    static_range, where, exp2, log2 = range, torch.where, torch.exp2, torch.log2
    store = staticmethod(_store)

    def __init__(self, number, programs, numbers, names):
        self.number, self.programs, self.numbers = number, programs, numbers
        self.names, self.barriers, self.slots, self.roles, self.said = iter(names), [], [], [], {}

    def program_id(self, axis):
        return self.number

    def num_programs(self, axis):
        return self.programs

    def allocate_shared_memory(self, dtype, shape, layout):
        name = next(self.names)
        if dtype == torch.int64:
            name = "turn" if name == "o" else name  # O goes where Q was
            parts = c.barriers(name, shape[0])
            self.barriers += parts
            return Shared(torch.empty(shape), tuple(parts))
        n_bytes = math.prod(shape[1:]) * dtype.itemsize
        parts = c.ring(name, shape[0], n_bytes)
        self.slots += parts
        return Shared(torch.full(shape, math.nan, dtype=dtype), tuple(parts))

    def arange(self, start, end, layout):
        return registers(torch.arange(start, end, dtype=torch.int32))

    def full(self, shape, value, dtype, layout):
        return registers(torch.full(shape, value, dtype=dtype))

    def zeros(self, shape, dtype, layout):
        return registers(torch.zeros(shape, dtype=dtype))

    def max(self, x, axis):
        return x.amax(axis)

    def sum(self, x, axis):
        return x.sum(axis)

    def convert_layout(self, x, layout, assert_trivial):
        return x

    def inline_asm_elementwise(self, asm, constraints, args, dtype, is_pure, pack):
        return args[0]

    def barrier(self):
        pass

    def static_assert(self, true):
        assert true

    def warp_specialize(self, roles, warps, registers=None):
        names = [f"consumer {at}" for at in range(len(roles) - 1)] + ["producer"]
        self.roles = [Role(name, *role) for name, role in zip(names, roles, strict=True)]
