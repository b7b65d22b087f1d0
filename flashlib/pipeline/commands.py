"""What the warps of a program say: the commands that a role yields, and the barriers and slots that they name.

A role is a generator: a producer warp, or a group of four warps that computes. It yields one command after the
other, in the order in which its instructions stand in a kernel. In Gluon, Triton's lower level, `mbarrier.wait` is
Wait, `mbarrier.arrive` Arrive, `mbarrier.expect` Expect, `tma.async_copy_global_to_shared` Copy, `warpgroup_mma`
Product and `warpgroup_mma_wait` Finish.
"""

from collections.abc import Callable
from typing import NamedTuple

from flashlib.state import check_counts


class Barrier:
    """A number in shared memory that counts arrivals, and bytes of copies: `mbarrier` in PTX.

    A phase completes when `count` roles have arrived and all bytes that were expected have come; the next begins
    at once. Phases are numbered 0, 1, 2, ...; a role waits for one by its parity, 0 or 1.
    """

    __slots__ = ("name", "count")

    def __init__(self, name, count=1):
        check_counts(at_least=1, count=count)
        self.name, self.count = name, count

    def __repr__(self):
        return self.name


class Slot:
    """Room for a tile in shared memory, in bytes."""

    __slots__ = ("name", "n_bytes")

    def __init__(self, name, n_bytes):
        check_counts(at_least=1, n_bytes=n_bytes)
        self.name, self.n_bytes = name, n_bytes

    def __repr__(self):
        return self.name


def barriers(name, n, count=1) -> list[Barrier]:
    """Return n barriers, each of `count` arrivals: of a ring, one for each slot."""
    return [Barrier(f"{name}[{s}]", count) for s in range(n)]


def ring(name, n, n_bytes) -> list[Slot]:
    """Return n slots of n_bytes each, which are used in turns."""
    return [Slot(f"{name}[{s}]", n_bytes) for s in range(n)]


class Wait(NamedTuple):
    """Go on once the phase of this parity has completed. Of a fresh barrier that of parity 1 counts as complete.

    Source: PTX ISA, mbarrier.test_wait: with .parity, 0 and 1 stand for the phases of even and odd number; it
    waits for the current phase or the one just before it, and no others can be told apart.
    """

    barrier: Barrier
    phase: int


class Arrive(NamedTuple):
    """One of the arrivals that a phase takes."""

    barrier: Barrier


class Expect(NamedTuple):
    """Arrive, and add to the bytes that must come before the phase completes."""

    barrier: Barrier
    n_bytes: int


class Copy(NamedTuple):
    """Ask the copy unit (TMA) for a tile, and go on; once it is in the slot, its bytes count on the barrier."""

    tile: str
    slot: Slot
    barrier: Barrier


class Product(NamedTuple):
    """Begin a product of tiles (wgmma); the tensor cores read the slots until it is done.

    reads: pairs of a slot and the tile that must be in it. needs: products whose results it takes from registers.
    """

    name: str
    reads: tuple
    flops: float
    needs: tuple = ()


class Finish(NamedTuple):
    """Wait until at most `pending` of this role's products are not done: the oldest are done first."""

    pending: int = 0


class Compute(NamedTuple):
    """Arithmetic in registers. unit: "exp" or "fma"; amount: how many results. needs: products that it reads."""

    name: str
    unit: str
    amount: float
    needs: tuple = ()


class Write(NamedTuple):
    """Put a tile from registers into a slot, by the threads of the role."""

    tile: str
    slot: Slot


class Fence(NamedTuple):
    """Make what this role wrote into slots visible to the copy unit and the tensor cores (fence.proxy.async)."""


class Store(NamedTuple):
    """Ask the copy unit to write a tile out of a slot into global memory."""

    tile: str
    slot: Slot


class FinishStores(NamedTuple):
    """Wait until at most `pending` of this role's stores still read their slots."""

    pending: int = 0


COMMANDS = (Wait, Arrive, Expect, Copy, Product, Finish, Compute, Write, Fence, Store, FinishStores)


class Program(NamedTuple):
    """What runs on one multiprocessor. roles: a function that returns a fresh generator, by name.

    barriers, slots: all that the roles use, in the order in which they are shown.
    """

    roles: dict[str, Callable]
    barriers: tuple
    slots: tuple


def expanded(program, most=100_000) -> dict[str, list]:
    """Return the commands of each role; what a role yields does not depend on when it runs.

    Raises TypeError for what is no command, and ValueError for a barrier or slot that the program does not list, a
    phase other than 0 and 1, or a role that yields more than `most`.
    """
    return {name: list(_checked(name, make(), program, most)) for name, make in program.roles.items()}


def _checked(role, commands, program, most):
    known = {id(part) for part in (*program.barriers, *program.slots)}
    for n, command in enumerate(commands):
        if n >= most:
            raise ValueError(f"{role} yields more than {most} commands; does its loop end?")
        check(role, command, known)
        yield command


def check(role, command, known):
    """Raise TypeError or ValueError unless it is a command about barriers and slots whose ids are known."""
    if not isinstance(command, COMMANDS):
        names = ", ".join(kind.__name__ for kind in COMMANDS)
        raise TypeError(f"{role} yields {command!r}; a role yields {names}")
    kind = type(command).__name__
    for field, wanted in (("barrier", Barrier), ("slot", Slot)):
        part = getattr(command, field, None)
        if hasattr(command, field):
            _check_part(role, kind, part, wanted, known)
    for pair in getattr(command, "reads", ()):
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise TypeError(f"{role}: {kind} reads {pair!r}; pass pairs of a slot and the tile that is in it")
        _check_part(role, kind, pair[0], Slot, known)
    if isinstance(command, Wait) and (isinstance(command.phase, bool) or command.phase not in (0, 1)):
        raise ValueError(f"{role} waits for phase {command.phase!r} of {command.barrier}; a parity is 0 or 1")
    if isinstance(command, Compute) and command.unit not in ("exp", "fma"):
        raise ValueError(f'{role}: {kind} on unit {command.unit!r}; accepted are "exp" and "fma"')


def _check_part(role, kind, part, wanted, known):
    if not isinstance(part, wanted):
        raise TypeError(f"{role}: {kind} takes a {wanted.__name__}, and was given {part!r}")
    if id(part) not in known:
        raise ValueError(f"{role}: {kind} uses {part}, which is not among the program's")
