"""How long a program takes on one multiprocessor: the schedule that follows from its units' speeds, in clocks.

Each unit does one thing at a time, in the order of requests. Arithmetic slows down while another role multiplies
or computes, and stops while the role's own products are in flight. This was measured; the reason is not known. No
number was chosen to fit a kernel's timeline. The model leaves out what a program does before its first copy, bank
conflicts in shared memory, and tiles that come from HBM.
"""

import heapq
import itertools
import math
from typing import NamedTuple

from flashlib.gpus import GPUS, SRAM_BYTES
from flashlib.pipeline import commands as c
from flashlib.pipeline.schedules import Action, Walk

H200 = GPUS["H200"]


class Machine(NamedTuple):
    """A multiprocessor's units: amounts per clock, and latencies in clocks.

    tensor: FLOPs of the tensor cores, bf16. exp: results of the special function units. fma: fp32 multiply-adds.
    copy: bytes from the L2 cache. sram: bytes that threads write to shared memory. arrival: clocks until a role
    sees a change of a barrier. arrives: until the bytes of a copy begin to come. finish: until a role sees that
    its products are done. beside, under: the fraction of its speed that arithmetic keeps while the tensor cores
    work for another role, and for its own role.
    """

    tensor: float = 4096
    exp: float = 16
    fma: float = 128
    copy: float = 36.5
    sram: float = SRAM_BYTES
    arrival: float = 69
    arrives: float = 449
    finish: float = 53
    beside: float = 0.57
    under: float = 0.0


MACHINE = Machine()
ALONE = "measured alone, h200_clocks.json"
SOURCES = {
    "tensor": f"{H200.sources['bf16']}; over 132 multiprocessors at 1.83 GHz",
    "exp": "CUDA C++ Programming Guide, table of arithmetic throughput, column 9.0: 16 results a clock",
    "fma": "CUDA C++ Programming Guide, table of arithmetic throughput, column 9.0: 128 results a clock",
    "copy": f"{ALONE}: all multiprocessors copy tiles that lie in the L2 cache; the median of four sizes",
    "sram": "CUDA C++ Programming Guide: 32 banks of 4 bytes a clock",
    "arrival": f"{ALONE}: a turn, from one group's arrival until the other goes on",
    "arrives": f"{ALONE}: a program's first tile, while all multiprocessors ask for one, less its bytes at `copy`",
    "finish": f"{ALONE}: a product that is waited for, less its FLOP at `tensor`",
    "beside": f"{ALONE}: a softmax alone over one beside another group's softmax or products; the median of eight",
    "under": f"{ALONE}: a softmax and a product of its own under way take as long as one after the other",
}
LANES = c.UNITS


LATENCIES = ("arrival", "arrives", "finish", "under")
WAITS = {c.Finish: "its products", c.FinishStores: "its stores"}  # waits that are not for a barrier


class Span(NamedTuple):
    """Something that lasts from start to end, in clocks, on a lane: a unit, a role or a slot.

    kind: "copy", "product", "store", "exp", "fma", "write"; of a role also "wait"; of a slot "fill", "hold" and
    "read". role: who requested it. name: of the tile, product or barrier.
    """

    lane: str
    kind: str
    name: str
    start: float
    end: float
    role: str


class Phase(NamedTuple):
    """A barrier completed a phase."""

    time: float
    barrier: str
    number: int


class Timeline(NamedTuple):
    """What happened when.

    clocks: the total. work: for each unit of arithmetic, the clocks that all of its work would take at full speed.
    """

    spans: list
    phases: list
    clocks: float
    work: dict = {}

    def lane(self, name: str) -> list:
        """Return the spans of a lane, in the order of their starts."""
        return sorted((span for span in self.spans if span.lane == name), key=lambda span: span.start)

    def use(self, lane: str = "tensor cores") -> float:
        """Return the fraction of the time that a lane was busy, without waits; arithmetic counts at full speed."""
        busy = self.work.get(lane, sum(s.end - s.start for s in self.lane(lane) if s.kind != "wait"))
        return busy / self.clocks if self.clocks else 0.0


def run(program: c.Program, machine: Machine = MACHINE) -> Timeline:
    """Run a program at a machine's speeds. Raises Fault, and what `commands.expanded` raises."""
    for name, value in machine._asdict().items():
        if not (isinstance(value, int | float) and 0 <= value < math.inf and (value or name in LATENCIES)):
            raise ValueError(
                f"{name} is {value!r}; a machine's speeds are positive numbers, its latencies not negative"
            )
    return _Run(program, machine).timeline()


class _Work:
    """What a unit of arithmetic is working on. left: remaining clocks at full speed, counted `since` a time."""

    def __init__(self, role, command, start, left):
        self.role, self.command, self.start, self.left = role, command, start, left
        self.since, self.speed, self.plan = start, 0.0, None


class _Run:
    def __init__(self, program, machine):
        self.machine, self.walk = machine, Walk(program)
        self.now, self.free = 0.0, dict.fromkeys(LANES, 0.0)
        self.products, self.queues, self.work = [], {"exp": [], "fma": []}, {}
        self.full = {"exp": 0.0, "fma": 0.0}  # clocks at full speed
        self.spans, self.phases = [], []
        self.since, self.blocked = {}, set()  # when a role began to wait, for those that wait
        self.holds, self.coming = {}, []  # since when a slot holds its tile; future events
        self.order = itertools.count()

    def timeline(self):
        for role in self.walk.lists:
            self._at(0.0, self._go, role)
        while self.coming:
            self.now, _, act, what = heapq.heappop(self.coming)
            act(what)
        self.walk.stop()
        clocks = max((span.end for span in self.spans), default=0.0)
        for slot, (since, tile, role) in self.holds.items():
            self._span(slot, "hold", tile, since, clocks, role)
        return Timeline(self.spans, self.phases, clocks, self.full)

    def _at(self, time, act, what):
        heapq.heappush(self.coming, (time, next(self.order), act, what))

    def _span(self, lane, kind, name, start, end, role):
        self.spans.append(Span(str(lane), kind, str(name), start, end, role))

    def _go(self, role):
        """Execute a role's commands until one takes time."""
        while (command := self.walk.now[role]) is not None:
            if not self.walk.state.may(role, command):
                self.since.setdefault(role, self.now)
                self.blocked.add(role)
                return
            if role in self.since:
                what = getattr(command, "barrier", WAITS.get(type(command)))
                self._span(role, "wait", what, self.since.pop(role), self.now, role)
            if self._do(role, command):
                return

    def _do(self, role, command):
        """Execute one command, and return whether the role itself is busy with it and goes on afterwards."""
        state, before = self.walk.state, self._completed()
        self.walk.take(Action(role, command, None))
        self._note_phases(before)
        if isinstance(command, c.Wait):
            return self._busy(role, "wait", command.barrier, self.machine.arrival)
        if isinstance(command, c.Copy | c.Store):
            self._move(state, role, command)
        elif isinstance(command, c.Product):
            start, end = self._on("tensor cores", command.flops / self.machine.tensor)
            self._span("tensor cores", "product", command.name, start, end, role)
            for slot, tile in command.reads:
                self._span(slot, "read", tile, start, end, role)
            self.products.append((end, role))
            self._pace()
            self._at(end, self._pace, None)
            self._at(end + self.machine.finish, self._complete, state.products[-1])
        elif isinstance(command, c.Compute):
            self.queues[command.unit].append((role, command, self.now))
            self._next(command.unit)
            return True
        elif isinstance(command, c.Write):
            self._hold(command.slot, command.tile, role)
            return self._busy(role, "write", command.tile, command.slot.n_bytes / self.machine.sram)
        elif isinstance(command, c.Read):
            takes = command.slot.n_bytes / self.machine.sram
            self._span(command.slot, "read", command.tile, self.now, self.now + takes, role)
            return self._busy(role, "load", command.tile, takes)
        return False

    def _busy(self, role, kind, name, takes):
        self._span(role, kind, name, self.now, self.now + takes, role)
        self._at(self.now + takes, self._go, role)
        return True

    def _next(self, unit):
        """Begin what a role has requested from a unit of arithmetic, if the unit is free."""
        if unit in self.work or not self.queues[unit]:
            return
        role, command, asked = self.queues[unit].pop(0)
        if self.now > asked:
            self._span(role, "wait", unit, asked, self.now, role)
        takes = command.amount / getattr(self.machine, unit)
        self.full[unit] += takes
        self.work[unit] = _Work(role, command, self.now, takes)
        self._pace()

    def _pace(self, _=None):
        """A unit begins or ends something, so arithmetic continues at a different speed."""
        for unit in self.work:
            self._plan(unit)

    def _plan(self, unit):
        """Schedule the end of what a unit is working on, at its current speed."""
        work = self.work[unit]
        work.left -= (self.now - work.since) * work.speed
        work.since, work.speed = self.now, self._speed(work.role)
        work.plan = next(self.order)
        if work.speed:
            self._at(self.now + work.left / work.speed, self._end, (unit, work.plan))

    def _speed(self, role):
        asked = [by for end, by in self.products if self.now < end]
        if role in asked:
            return self.machine.under
        alone = not asked and all(work.role == role for work in self.work.values())
        return 1.0 if alone else self.machine.beside

    def _end(self, what):
        unit, plan = what
        if unit not in self.work or self.work[unit].plan != plan:
            return  # its speed has changed since then
        work = self.work.pop(unit)
        for lane in (unit, work.role):
            self._span(lane, unit, work.command.name, work.start, self.now, work.role)
        self._next(unit)
        self._pace()
        self._go(work.role)

    def _move(self, state, role, command):
        """Perform a copy or a store with the copy unit."""
        kind = "copy" if isinstance(command, c.Copy) else "store"
        start, end = self._on("copy unit", command.slot.n_bytes / self.machine.copy)
        self._span("copy unit", kind, command.tile, start, end, role)
        if kind == "store":
            self._span(command.slot, "read", command.tile, start, end, role)
            self._at(end, self._complete, state.stores[-1])
            return
        self._hold(command.slot, None, role)
        self._span(command.slot, "fill", command.tile, self.now, end + self.machine.arrives, role)
        self._at(end + self.machine.arrives, self._complete, state.copies[-1])

    def _on(self, unit, takes):
        start = max(self.now, self.free[unit])
        self.free[unit] = start + takes
        return start, start + takes

    def _hold(self, slot, tile, role):
        """Put a tile into a slot, or None while one is in flight."""
        if slot in self.holds:
            since, held, by = self.holds.pop(slot)
            self._span(slot, "hold", held, since, self.now, by)
        if tile is not None:
            self.holds[slot] = self.now, tile, role

    def _complete(self, flight):
        before = self._completed()
        self.walk.take(Action(flight.role, flight.command, flight))
        if isinstance(flight.command, c.Copy):
            self._hold(flight.command.slot, flight.command.tile, flight.role)
        self._note_phases(before)
        self._wake()

    def _completed(self):
        return {barrier: value[2] for barrier, value in self.walk.state.barriers.items()}

    def _note_phases(self, before):
        for barrier, value in self.walk.state.barriers.items():
            if value[2] != before[barrier]:
                self.phases.append(Phase(self.now, str(barrier), before[barrier]))
                self._wake()

    def _wake(self):
        for role in sorted(self.blocked):
            if self.walk.state.may(role, self.walk.now[role]):
                self.blocked.discard(role)
                self._at(self.now, self._go, role)
