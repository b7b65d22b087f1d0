"""What the warps of a program do: the commands that a role yields, and the barriers and slots that they use.

A role is a generator: a producer warp, or a group of four warps that computes. It yields one command after
another, in the order of its instructions in a kernel. In Gluon, Triton's lower level, `mbarrier.wait` is Wait,
`mbarrier.arrive` Arrive, `mbarrier.expect` Expect, `tma.async_copy_global_to_shared` Copy, `warpgroup_mma` Product
and `warpgroup_mma_wait` Finish.
"""

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import NamedTuple

from flashlib.inputs import check_counts


class Barrier:
    """A counter in shared memory of arrivals and of copied bytes: `mbarrier` in PTX.

    A phase completes when `count` roles have arrived and all expected bytes have come; the next phase begins
    immediately. Phases are numbered 0, 1, 2, ...; a role waits for one by its parity, 0 or 1.
    """

    __slots__ = ("name", "count")

    def __init__(self, name, count=1):
        check_counts(at_least=1, count=count)
        self.name, self.count = name, count

    def __repr__(self):
        return self.name


class Slot:
    """Space for a tile in shared memory, in bytes."""

    __slots__ = ("name", "n_bytes")

    def __init__(self, name, n_bytes):
        check_counts(at_least=1, n_bytes=n_bytes)
        self.name, self.n_bytes = name, n_bytes

    def __repr__(self):
        return self.name


def barriers(name: str, n: int, count: int = 1) -> list[Barrier]:
    """Return n barriers, each of `count` arrivals: for a ring, one for each slot."""
    return [Barrier(f"{name}[{s}]", count) for s in range(n)]


def ring(name: str, n: int, n_bytes: int) -> list[Slot]:
    """Return n slots of n_bytes each, which are used in turn."""
    return [Slot(f"{name}[{s}]", n_bytes) for s in range(n)]


class Ring(NamedTuple):
    """Slots that are used in turn, each with a barrier for those who wait until it is full, and one for empty."""

    slots: list
    full: list
    empty: list

    @classmethod
    def of(cls, name: str, n: int, n_bytes: int, readers: int = 1) -> "Ring":
        """Return a ring of n slots of n_bytes, each empty again once this many readers have arrived."""
        return cls(ring(name, n, n_bytes), barriers(f"{name}_full", n), barriers(f"{name}_empty", n, readers))


class Wait(NamedTuple):
    """Continue once the phase of this parity has completed. A fresh barrier counts as having completed parity 1.

    Source: PTX ISA, mbarrier.test_wait: with .parity, 0 and 1 mean phases of even and odd number; it waits for the
    current phase or the one just before it, as no others can be distinguished.
    """

    barrier: Barrier
    phase: int


class Arrive(NamedTuple):
    """One of the arrivals that complete a phase."""

    barrier: Barrier


class Expect(NamedTuple):
    """Arrive, and add to the bytes that must come before the phase completes."""

    barrier: Barrier
    n_bytes: int


class Copy(NamedTuple):
    """Request a tile from the copy unit (TMA), and go on; once it is there, its bytes count at the barrier."""

    tile: str
    slot: Slot
    barrier: Barrier


class Product(NamedTuple):
    """Begin a product of tiles (wgmma); the tensor cores read the slots until it is done.

    reads: pairs of a slot and the tile that must be in it. needs: products whose results it reads from registers.
    turn: a number; nobody may issue a product of a lower turn after it; None for any order.
    """

    name: str
    reads: tuple
    flops: float
    needs: tuple = ()
    turn: int | None = None


class Finish(NamedTuple):
    """Wait until at most `pending` of this role's products are unfinished; the oldest finish first."""

    pending: int = 0


class Compute(NamedTuple):
    """Arithmetic in registers. unit: "exp" or "fma"; amount: how many results. needs: products that it reads."""

    name: str
    unit: str
    amount: float
    needs: tuple = ()


class Write(NamedTuple):
    """Write a tile from registers to a slot, with the threads of the role. needs: as in Compute."""

    tile: str
    slot: Slot
    needs: tuple = ()


class Read(NamedTuple):
    """Read a tile from a slot into registers, with the threads of the role, which are done when it ends."""

    tile: str
    slot: Slot


class Fence(NamedTuple):
    """Make what this role wrote into slots visible to the copy unit and the tensor cores (fence.proxy.async)."""


class Store(NamedTuple):
    """Request that the copy unit write a tile from a slot to global memory."""

    tile: str
    slot: Slot


class FinishStores(NamedTuple):
    """Wait until at most `pending` of this role's stores are still reading their slots."""

    pending: int = 0


COMMANDS = (Wait, Arrive, Expect, Copy, Product, Finish, Compute, Write, Read, Fence, Store, FinishStores)
Command = Wait | Arrive | Expect | Copy | Product | Finish | Compute | Write | Read | Fence | Store | FinishStores


class Program(NamedTuple):
    """What runs on one multiprocessor. roles: by name, a function that returns a fresh generator.

    barriers, slots: all that the roles use, in the order in which they are shown.
    """

    roles: dict[str, Callable]
    barriers: tuple
    slots: tuple


UNITS = ("copy unit", "tensor cores", "exp", "fma")


def expanded(program: Program, most: int = 100_000) -> dict[str, list]:
    """Return the commands of each role; what a role yields does not depend on when it runs.

    Raises TypeError for something other than a program or a command, and ValueError for a barrier or slot that the
    program does not list, two things with one name, a phase other than 0 and 1, amounts that are not numbers of at
    least 0, a needed product that was never begun, or a role that yields nothing or more than `most`.
    """
    if not isinstance(program, Program) or not isinstance(program.roles, dict) or not program.roles:
        raise TypeError(f"the program is {program!r}; pass a Program, whose roles are a dict of functions by name")
    names = [*UNITS, *program.roles, *(part.name for part in (*program.barriers, *program.slots))]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"{name!r} names two things: roles, units, barriers and slots need names of their own"
            )
    return {role: _commands(role, make, program, most) for role, make in program.roles.items()}


def _commands(role, make, program, most):
    given = make() if callable(make) else make
    if not callable(make) or not hasattr(given, "__next__"):
        raise TypeError(f"{role} is {make!r}; pass a function without arguments that returns a generator")
    known = {id(part) for part in (*program.barriers, *program.slots)}
    found, begun = [], set()
    for command in given:
        if len(found) >= most:
            raise ValueError(f"{role} yields more than {most} commands; does its loop end?")
        check(role, command, known, begun)
        if isinstance(command, Product):
            begun.add(command.name)
        found.append(command)
    if not found:
        raise ValueError(f"{role} yields nothing: a generator is used up once; return a fresh one at each call")
    return found


def check(role: str, command: object, known: set[int], begun: set[str]) -> None:
    """Raise TypeError or ValueError unless it is a command about known objects.

    known: ids of barriers and slots. begun: names of the role's products so far.
    """
    if not isinstance(command, COMMANDS):
        names = ", ".join(kind.__name__ for kind in COMMANDS)
        raise TypeError(f"{role} yields {command!r}; a role yields {names}")
    what = f"{role}: {type(command).__name__}"
    for field, value in zip(command._fields, command, strict=True):
        CHECKS[field](what, value, known, begun)


def _check_part(wanted):
    def check(what, part, known, begun):
        if not isinstance(part, wanted):
            raise TypeError(f"{what} takes a {wanted.__name__}, and was given {part!r}")
        if id(part) not in known:
            raise ValueError(f"{what} uses {part}, which is not among the program's")

    return check


def _check_phase(what, phase, known, begun):
    if isinstance(phase, bool) or not isinstance(phase, Integral) or phase not in (0, 1):
        raise ValueError(f"{what} is for phase {phase!r}; a parity is 0 or 1")


def _check_count(what, n, known, begun):
    if isinstance(n, bool) or not isinstance(n, Integral) or n < 0:
        raise ValueError(f"{what} has {n!r}; pass a whole number of at least 0")


def _check_turn(what, turn, known, begun):
    if turn is not None:
        _check_count(what, turn, known, begun)


def _check_amount(what, amount, known, begun):
    if isinstance(amount, bool) or not isinstance(amount, Real) or not 0 <= amount < math.inf:
        raise ValueError(f"{what} has the amount {amount!r}; pass a number of at least 0")


def _check_name(what, name, known, begun):
    if not isinstance(name, str) or not name:
        raise TypeError(f"{what} is named {name!r}; pass a string, such as 'K0'")


def _check_unit(what, unit, known, begun):
    if unit not in ("exp", "fma"):
        raise ValueError(f'{what} on unit {unit!r}; accepted are "exp" and "fma"')


def _check_reads(what, reads, known, begun):
    if not isinstance(reads, tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in reads):
        raise TypeError(f"{what} reads {reads!r}; pass pairs of a slot and the tile that is in it, in a tuple")
    for slot, tile in reads:
        CHECKS["slot"](what, slot, known, begun)
        _check_name(what, tile, known, begun)


def _check_needs(what, needs, known, begun):
    if not isinstance(needs, tuple):
        raise TypeError(f"{what} needs {needs!r}; pass names of products in a tuple, such as ('S0',)")
    for name in needs:
        if name not in begun:
            raise ValueError(f"{what} needs {name!r}, and this role has begun no such product")


CHECKS = {
    "barrier": _check_part(Barrier), "slot": _check_part(Slot), "phase": _check_phase, "n_bytes": _check_count,
    "pending": _check_count, "flops": _check_amount, "amount": _check_amount, "name": _check_name,
    "tile": _check_name, "unit": _check_unit, "reads": _check_reads, "needs": _check_needs,
    "turn": _check_turn,
}  # fmt: skip
