"""Runs a Gluon kernel on a CPU, which Triton's interpreter does not: the functions of its module as they are.

The Python functions behind `@gluon.jit` are called with other things under the names `gl`, `mbarrier`, `tma` and
`warpgroup_mma`. Tiles are torch tensors. Each role is a thread, of which one runs at a time; what it says to
barriers and units goes to the model in `flashlib.pipeline`, which raises Fault for what a kernel must never do. A
copy fills its slot when it completes, with NaN before, and a product reads its slots when it completes. So what
happens in between is any order that a GPU may take, chosen at random.

It says nothing about layouts, registers or speed.
"""

import functools
import math
import random
import threading
import types
from typing import NamedTuple

import torch
from triton.runtime.jit import JITFunction

from flashlib.kernels.hopper import forward
from flashlib.pipeline import commands as c
from flashlib.pipeline.schedules import Chance, deadlock
from flashlib.pipeline.state import Fault, State
from flashlib.state import Attention

NAMES = ("q", "q_full", "q_empty", "k", "k_full", "k_empty", "v", "v_full", "v_empty", "o", "turn")  # as `forward`


class Layout:
    """Stands for any layout; tiles here have none."""

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


class Role(threading.Thread):
    """A thread that stops at each command until it is told to go on."""

    def __init__(self, name, function, args):
        super().__init__(daemon=True)
        self.role, self.function, self.args = name, function, args
        self.command = self.failed = self.act = None
        self.mine, self.theirs, self.products = threading.Semaphore(0), threading.Semaphore(0), []
        self.given_up, self.state = False, None

    def run(self):
        self.mine.acquire()
        try:
            if not self.given_up:
                self.function(*self.args)
        except GivenUp:
            pass
        except BaseException as error:
            self.failed = error
        self.command = None
        self.theirs.release()

    def go_on(self):
        """Let it run up to its next command, or its end."""
        self.mine.release()
        self.theirs.acquire()
        if self.failed:
            raise self.failed

    def say(self, command, act):
        self.command, self.act = command, act
        self.theirs.release()
        self.mine.acquire()
        if self.given_up:
            raise GivenUp


class GivenUp(BaseException):
    """Ends a thread whose program was given up."""


def say(command, act=None):
    """Hand a command to the schedule; act: what to do when a unit completes it."""
    threading.current_thread().say(command, act)


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
    if any(begun.result is None for begun in deps):
        role = threading.current_thread().role
        raise Fault("registers", role, f"{role} uses a product that may not be done: {pending} may be in flight")
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


class Program:
    """One program of the grid: what `gl` is to it."""

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

    def play(self, kernel, arguments):
        """Run a kernel and its roles, whoever chance picks next, until all have ended. Raises Fault."""
        alike = Role("warps", functools.partial(kernel, **arguments), ())
        alike.start()
        alike.go_on()  # up to its first command; a kernel that names roles ends there
        threads = {role.role: role for role in self.roles or [alike]}
        state = State(c.Program(dict.fromkeys(threads), tuple(self.barriers), tuple(self.slots)), list(threads))
        for name, thread in threads.items():
            thread.state, self.said[name] = state, []
        try:
            for role in self.roles:
                role.start()
                role.go_on()
            self._play(threads, state)
        finally:
            for thread in threads.values():
                if thread.is_alive():
                    thread.given_up = True
                    thread.mine.release()
                thread.join()

    def _play(self, threads, state):
        acts, chance = {}, Chance(self.numbers)
        while True:
            now = [role for role in threads.values() if role.command is not None]
            choices = [role for role in now if state.may(role.role, role.command)] + state.ready()
            if not choices:
                if now:
                    raise deadlock(state, {role.role: role.command for role in now})
                return
            chosen = chance.pick(choices, _who)
            waiting = [(role.role, role.command) for role in now if isinstance(role.command, c.Wait)]
            if not isinstance(chosen, Role):
                acts.pop(chosen.number)()
                state.complete(chosen, waiting)
                continue
            self.said[chosen.role].append(chosen.command)
            if flight := state.do(chosen.role, chosen.command, waiting):
                acts[flight.number] = chosen.act
            chosen.go_on()
            if chosen.command is None:
                state.end(chosen.role)
                if len(now) == 1:
                    state.end_all()


def _who(choice):
    return choice.role if isinstance(choice, Role) else choice.number


def functions(gl, module=forward) -> dict:
    """Return the functions of a module and of those it names, as plain Python over what stands for Gluon here."""
    constant = module.gl.constexpr
    world = {name: x.value if isinstance(x, constant) else x for name, x in vars(module).items()}
    world |= {
        "gl": gl, "mbarrier": MBarrier, "tma": TMA, "warpgroup_mma": warpgroup_mma,
        "warpgroup_mma_wait": warpgroup_mma_wait, "fence_async_shared": fence_async_shared,
    }  # fmt: skip
    for name, value in vars(module).items():
        if isinstance(value, types.ModuleType) and value.__name__.startswith("flashlib.") and _kernels(value):
            world[name] = types.SimpleNamespace(**functions(gl, value))
        if isinstance(value, JITFunction):
            plain = value.fn
            world[name] = types.FunctionType(plain.__code__, world, name, plain.__defaults__, plain.__closure__)
    return world


def _kernels(module):
    return [name for name, value in vars(module).items() if isinstance(value, JITFunction)]


def attention(Q, K, V, *, causal=False, scale=None, consumers=2, stages=2, B_c=128, seed=0) -> Attention:
    """Return O and lse of the kernel's own code, each program under one random schedule."""
    return run(Q, K, V, causal, scale, consumers, stages, B_c, None, 1, seed)[0]


def run(
    Q, K, V, causal, scale, consumers, stages, B_c, programs, section, seed, module=forward, rows=64, names=NAMES
):  # fmt: skip
    """Return what `attention` returns, and the commands that each role of each program gave.

    module: where the kernel is, the function whose name begins with _; rows: of each consumer; names: of what the
    kernel allocates, in order.
    """
    B, H, N_q, d = Q.shape
    N_k = K.shape[2]
    scale_log2e = (d**-0.5 if scale is None else scale) * math.log2(math.e)
    above = 2.0 ** math.ceil(math.log2(abs(scale_log2e))) if scale_log2e else 1.0
    above = math.copysign(above, scale_log2e)
    O, lse = torch.full_like(Q, math.nan), torch.full((B, H, N_q), math.nan)
    T_r = -(-N_q // (rows * consumers))
    n_tiles, numbers, said = B * H * T_r, random.Random(seed), []
    given = {
        "q_desc": Descriptor("Q", Q, rows), "k_desc": Descriptor("K", K, B_c), "v_desc": Descriptor("V", V, B_c),
        "o_desc": Descriptor("O", O, rows), "lse_ptr": Pointer(lse), "scale_log2e": scale_log2e,
        "scale_above": above, "H": H, "group": H // K.shape[1], "N_q": N_q, "N_k": N_k, "T_r": T_r,
        "section": section, "n_tiles": n_tiles,
        "B_R": rows * consumers, "CONSUMERS": consumers, "STAGES": stages, "CAUSAL": causal,
    }  # fmt: skip
    (kernel,) = (name for name in _kernels(module) if name.startswith("_"))
    arguments = {name: given[name] for name in vars(module)[kernel].arg_names}
    programs = n_tiles if programs is None else programs
    for number in range(programs):
        gl = Program(number, programs, numbers, names)
        gl.play(functions(gl, module)[kernel], arguments)
        said.append(gl.said)
    return Attention(O, lse), said
