"""The state of a multiprocessor while roles run on it: barriers, slots, copies and products in flight.

`may` says whether a command can be executed now, `do` executes it, `ready` lists what the units could complete,
and `complete` completes it. The order of these calls is a schedule: `schedules` tries many, `timeline` uses the
one that results from the speeds of the units. What a kernel must never do raises PipelineFault.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from flashlib.pipeline import commands as c


class PipelineFaultKind(StrEnum):
    """What a kernel must never do, in a few words; KINDS says what each means."""

    DEADLOCK = "deadlock"
    OVERWRITTEN = "overwritten"
    READ_TOO_EARLY = "read too early"
    TWO_PHASES_AHEAD = "two phases ahead"
    TOO_MANY_ARRIVALS = "too many arrivals"
    OUT_OF_TURN = "out of turn"
    REGISTERS = "registers"
    NOT_VISIBLE = "not visible"
    LEFT_BEHIND = "left behind"

    @property
    def id(self) -> str:
        return self.name.lower()


KINDS = {
    PipelineFaultKind.DEADLOCK: "nobody can go on",
    PipelineFaultKind.OVERWRITTEN: "a slot is filled while it is still read",
    PipelineFaultKind.READ_TOO_EARLY: "a tile is read that is not there",
    PipelineFaultKind.TWO_PHASES_AHEAD: "a barrier completes another phase before a role saw the last one",
    PipelineFaultKind.TOO_MANY_ARRIVALS: "a barrier gets more arrivals than a phase takes",
    PipelineFaultKind.OUT_OF_TURN: "a role issues a product before it is its turn",
    PipelineFaultKind.REGISTERS: "the result of a product is used before the role waited for it",
    PipelineFaultKind.NOT_VISIBLE: "a slot that threads wrote is read by a unit without a fence",
    PipelineFaultKind.LEFT_BEHIND: "a role ends while something of its own is in flight",
}


class PipelineFault(Exception):
    """A kernel did what it must never do. role: who did it; said: a sentence; slot: or None."""

    def __init__(self, kind, role, said, slot=None):
        super().__init__(said)
        self.kind, self.role, self.said, self.slot = kind, role, said, slot


class Flight(NamedTuple):
    """What a unit is working on. number: in order of issue."""

    role: str
    command: object
    number: int


NOBODY = MappingProxyType({})


class MultiprocessorState:
    """Barriers, slots and what is in flight, of a program whose roles are `names`."""

    def __init__(self, program, names=None):
        self.barriers = {b: (b.count, 0, 0) for b in program.barriers}  # arrivals and bytes to come, completed
        self.slots = dict.fromkeys(program.slots)  # the tile in it
        self.unfenced = frozenset()  # (slot, role that wrote)
        self.copies, self.products, self.stores = (), (), ()  # Flights
        self.waited = dict.fromkeys(names or program.roles, ((), ()))  # products, stores, not known to be done
        self.seen = {}  # (role, barrier): the last phase it waited for
        self.issued, self.turn = 0, -1  # flights; the highest turn of a product

    def copy(self) -> "MultiprocessorState":
        twin = object.__new__(MultiprocessorState)
        twin.barriers, twin.slots = dict(self.barriers), dict(self.slots)
        twin.waited, twin.seen = dict(self.waited), dict(self.seen)
        twin.unfenced, twin.issued, twin.turn = self.unfenced, self.issued, self.turn
        twin.copies, twin.products, twin.stores = self.copies, self.products, self.stores
        return twin

    def key(self) -> tuple:
        """Return a key that distinguishes states, in addition to how far each role is."""
        flights = [
            tuple([(f.role, f.command) for f in group]) if group else ()
            for group in (self.copies, self.products, self.stores)
        ]
        return (*self.barriers.values(), *self.slots.values(), self.unfenced, *flights)

    # What may be executed ------------------------------------------------------------------------------------

    def may(self, role: str, command: c.Command) -> bool:
        """Return whether a role can get past a command now."""
        if isinstance(command, c.Wait):
            return self.barriers[command.barrier][2] % 2 != command.phase
        if isinstance(command, c.Finish):
            return len(_of(self.products, role)) <= command.pending
        if isinstance(command, c.FinishStores):
            return len(_of(self.stores, role)) <= command.pending
        return True

    def target(self, role: str, wait: c.Wait) -> int:
        """Return the number of the phase that a Wait means: after the role's last one; -1 before all phases."""
        k = self.seen.get((role, wait.barrier), -2) + 1
        return k if k % 2 == wait.phase else k + 1

    def ready(self) -> list[Flight]:
        """Return what could complete next: any copy, and the oldest product and store of each role."""
        found = list(self.copies)
        for group in (self.products, self.stores):
            if len(group) < 2:
                found += group
                continue
            first = {}
            for flight in group:
                first.setdefault(flight.role, flight)
            found += first.values()
        return found

    # What is executed ----------------------------------------------------------------------------------------

    def do(self, role: str, command: c.Command, now: Mapping[str, c.Command | None] = NOBODY) -> "Flight | None":
        """Execute a command; return its Flight if a unit goes on with it. now: {role: its command, or None}."""
        return DO[type(command)](self, role, command, now)

    def complete(self, flight: Flight, now: Mapping[str, c.Command | None] = NOBODY) -> None:
        """Let a unit complete its work."""
        command = flight.command
        if isinstance(command, c.Copy):
            self.copies = _without(self.copies, flight)
            self.slots[command.slot] = command.tile
            self._count(command.barrier, flight.role, 0, -command.slot.n_bytes, now)
        elif isinstance(command, c.Product):
            self.products = _without(self.products, flight)
        else:
            self.stores = _without(self.stores, flight)

    def end(self, role: str) -> None:
        """Record that a role has yielded its last command."""
        for name in (*self.waited[role][0], *self.waited[role][1]):
            raise PipelineFault(
                PipelineFaultKind.LEFT_BEHIND, role, f"{role} ends, and never waited until {name} is done"
            )

    def end_all(self) -> None:
        """Record that all roles have ended: shared memory goes to another program."""
        for flight in self.copies:
            said = f"all roles end while the copy of {flight.command.tile} into {flight.command.slot} is under way"
            raise PipelineFault(PipelineFaultKind.LEFT_BEHIND, flight.role, said)

    def _wait(self, role, command, now):
        self.seen[role, command.barrier] = self.target(role, command)

    def _arrive(self, role, command, now):
        self._count(command.barrier, role, -1, 0, now)

    def _expect(self, role, command, now):
        self._count(command.barrier, role, -1, command.n_bytes, now)

    def _count(self, barrier, role, arrivals, n_bytes, now):
        left, missing, completed = self.barriers[barrier]
        left, missing = left + arrivals, missing + n_bytes
        if left < 0:
            said = f"{role} arrives at {barrier}, where phase {completed} already has all {barrier.count} arrivals"
            raise PipelineFault(PipelineFaultKind.TOO_MANY_ARRIVALS, role, said)
        if left or missing:
            self.barriers[barrier] = left, missing, completed
            return
        waiting = [(other, at) for other, at in now.items() if type(at) is c.Wait and at.barrier is barrier]
        passed = [pair for pair in waiting if self.may(*pair)]
        self.barriers[barrier] = barrier.count, 0, completed + 1
        for other, wait in passed:
            said = f"phase {completed} of {barrier} completes before {other}, which waits for parity {wait.phase}"
            if completed:
                said = f"{said}, has seen phase {completed - 1}"
            else:
                said = f"{said} and could pass at once, has gone on"
            raise PipelineFault(
                PipelineFaultKind.TWO_PHASES_AHEAD,
                other,
                f"{said}; from now on it waits for phase {completed + 1}",
            )

    def _copy(self, role, command, now):
        self._check_free(role, command.slot, f"the copy of {command.tile}")
        self._check_fenced(role, command.slot, f"the copy of {command.tile}")
        self.slots[command.slot] = None
        return self._fly("copies", role, command)

    def _write(self, role, command, now):
        self._check_needs(role, command.tile, command.needs)
        self._check_free(role, command.slot, f"{role}'s {command.tile}")
        self.slots[command.slot] = command.tile
        self.unfenced |= {(command.slot, role)}

    def _read(self, role, command, now):
        self._check_there(role, command.slot, command.tile, f"a load of {command.tile}")

    def _fence(self, role, command, now):
        self.unfenced = frozenset(pair for pair in self.unfenced if pair[1] != role)

    def _store(self, role, command, now):
        self._check_read(role, command.slot, command.tile, f"the store of {command.tile}")
        self._note(role, 1, command.tile)
        return self._fly("stores", role, command)

    def _product(self, role, command, now):
        for slot, tile in command.reads:
            self._check_read(role, slot, tile, command.name)
        self._check_needs(role, command.name, command.needs)
        self._check_turn(role, command)
        self._note(role, 0, command.name)
        return self._fly("products", role, command)

    def _compute(self, role, command, now):
        self._check_needs(role, command.name, command.needs)

    def _finish(self, role, command, now):
        self._forget(role, 0, command.pending)

    def _finishstores(self, role, command, now):
        self._forget(role, 1, command.pending)

    def _fly(self, group, role, command):
        flight = Flight(role, command, self.issued)
        self.issued += 1
        setattr(self, group, (*getattr(self, group), flight))
        return flight

    def _note(self, role, kind, name):
        names = list(self.waited[role])
        names[kind] = (*names[kind], name)
        self.waited[role] = tuple(names)

    def _forget(self, role, kind, pending):
        names = list(self.waited[role])
        names[kind] = names[kind][max(0, len(names[kind]) - pending) :]
        self.waited[role] = tuple(names)

    # What must not be ----------------------------------------------------------------------------------------

    def _check_free(self, role, slot, what):
        for flight in self.products:
            if any(read is slot for read, _ in flight.command.reads):
                said = f"{what} goes into {slot} while {flight.role}'s product {flight.command.name} reads it"
                raise PipelineFault(PipelineFaultKind.OVERWRITTEN, role, said)
        for flight in self.stores:
            if flight.command.slot is slot:
                raise PipelineFault(
                    PipelineFaultKind.OVERWRITTEN, role, f"{what} goes into {slot} while the copy unit stores it"
                )
        for flight in self.copies:
            if flight.command.slot is slot:
                said = f"{what} goes into {slot} while the copy of {flight.command.tile} into it is under way"
                raise PipelineFault(PipelineFaultKind.OVERWRITTEN, role, said)

    def _check_read(self, role, slot, tile, what):
        self._check_fenced(role, slot, what)
        self._check_there(role, slot, tile, what)

    def _check_there(self, role, slot, tile, what):
        held = self.slots[slot]
        if held == tile:
            return
        coming = next((f.command.tile for f in self.copies if f.command.slot is slot), None)
        there = (
            f"the copy of {coming} is under way" if coming else f"there is {held}" if held else "nothing is there"
        )
        raise PipelineFault(
            PipelineFaultKind.READ_TOO_EARLY, role, f"{what} of {role} reads {tile} from {slot}, where {there}"
        )

    def _check_fenced(self, role, slot, what):
        if any(written is slot for written, _ in self.unfenced):
            said = f"{what} uses {slot}, which threads wrote, without a fence between"
            raise PipelineFault(PipelineFaultKind.NOT_VISIBLE, role, said, slot)

    def _check_needs(self, role, what, needs):
        for name in needs:
            if name in self.waited[role][0]:
                said = f"{what} of {role} uses {name} before a Finish says that this product is done"
                raise PipelineFault(PipelineFaultKind.REGISTERS, role, said)

    def _check_turn(self, role, command):
        if command.turn is None:
            return
        if command.turn < self.turn:
            said = f"{role} issues {command.name}, of turn {command.turn}, after a product of turn {self.turn}"
            raise PipelineFault(PipelineFaultKind.OUT_OF_TURN, role, said)
        self.turn = command.turn


def _of(flights, role):
    return [flight for flight in flights if flight.role == role]


def _without(flights, one):
    return tuple(flight for flight in flights if flight is not one)


DO = {kind: getattr(MultiprocessorState, f"_{kind.__name__.lower()}") for kind in c.COMMANDS}
