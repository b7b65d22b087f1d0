"""How long a program takes on one multiprocessor: the schedule that the speeds of its units give, in clocks.

Each unit does one thing at a time, in the order of requests. Speeds are peaks, and latencies are an idle GPU's, so
this is a bound with the waits in it, not a measurement: the clocks of warps that issue instructions,
conflicts in shared memory and other multiprocessors are left out.
"""

import heapq
import itertools
import math
from typing import NamedTuple

from flashlib.gpus import GPUS, SRAM_BYTES
from flashlib.pipeline import commands as c
from flashlib.pipeline.schedules import Action, Walk

H200, CLOCK = GPUS["H200"], 1.296e9  # Hz, see SOURCES


class Machine(NamedTuple):
    """A multiprocessor's units: amounts a clock, and latencies in clocks.

    tensor: FLOP of tensor cores, bf16. exp: results of the special function units. fma: fp32 multiply-adds.
    copy: bytes from the L2 cache. sram: bytes that threads write into shared memory.
    arrival: clocks until a role sees what happened to a barrier. arrives: until the bytes of a copy begin to come.
    """

    tensor: float = 4096
    exp: float = 16
    fma: float = 128
    copy: float = 45
    sram: float = SRAM_BYTES
    arrival: float = 29
    arrives: float = 263


MACHINE = Machine()
SOURCES = {
    "clock": "measured, h200_ladder.json: a matrix product has 700.9 TFLOP/s, 4096 FLOP a clock on each of 132 "
    "multiprocessors at 1.296 GHz; busy tensor cores do not keep the clock of the datasheet",
    "tensor": f"{H200.sources['bf16']}; over 132 multiprocessors at 1.83 GHz",
    "exp": "CUDA C++ Programming Guide, table of arithmetic throughput, column 9.0: 16 results a clock",
    "fma": "CUDA C++ Programming Guide, table of arithmetic throughput, column 9.0: 128 results a clock",
    "copy": "measured, h200_ladder.json: the L2 cache gives all 132 multiprocessors 7.7 TB/s; at that clock",
    "sram": "CUDA C++ Programming Guide: 32 banks of 4 bytes a clock",
    "arrival": GPUS["H100"].sources["latency"] + ": shared memory",
    "arrives": GPUS["H100"].sources["latency"] + ": L2 cache; the copy unit adds to it what is not known here",
}
LANES = c.UNITS


LATENCIES = ("arrival", "arrives")
WAITS = {c.Finish: "its products", c.FinishStores: "its stores"}  # waits that are not for a barrier


class Span(NamedTuple):
    """Something that takes from start to end, in clocks, on a lane: a unit, a role or a slot.

    kind: "copy", "product", "store", "exp", "fma", "write"; of a role also "wait"; of a slot "fill", "hold" and
    "read". role: who asked for it. name: of the tile, product or barrier.
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
    """What happened when. clocks: in all."""

    spans: list
    phases: list
    clocks: float

    def lane(self, name: str) -> list:
        """Return the spans of a lane, in the order of their starts."""
        return sorted((span for span in self.spans if span.lane == name), key=lambda span: span.start)

    def use(self, lane: str = "tensor cores") -> float:
        """Return the part of the time that a lane was busy; waits do not count."""
        return (
            sum(s.end - s.start for s in self.lane(lane) if s.kind != "wait") / self.clocks if self.clocks else 0.0
        )


def run(program: c.Program, machine: Machine = MACHINE) -> Timeline:
    """Run a program at a machine's speeds. Raises Fault, and what `commands.expanded` raises."""
    for name, value in machine._asdict().items():
        if not (isinstance(value, int | float) and 0 <= value < math.inf and (value or name in LATENCIES)):
            raise ValueError(
                f"{name} is {value!r}; a machine's speeds are positive numbers, its latencies not negative"
            )
    return _Run(program, machine).timeline()


class _Run:
    def __init__(self, program, machine):
        self.machine, self.walk = machine, Walk(program)
        self.now, self.free = 0.0, dict.fromkeys(LANES, 0.0)
        self.spans, self.phases = [], []
        self.since, self.blocked = {}, set()  # when a role began to wait; who does
        self.holds, self.coming = {}, []  # since when a slot holds its tile; what will happen
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
        return Timeline(self.spans, self.phases, clocks)

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
            if takes := self._do(role, command):
                self._at(self.now + takes, self._go, role)
                return

    def _do(self, role, command):
        """Execute one command and return how long the role itself is busy with it."""
        state, before = self.walk.state, self._completed()
        self.walk.take(Action(role, command, None))
        self._note_phases(before)
        if isinstance(command, c.Wait):
            self._span(role, "wait", command.barrier, self.now, self.now + self.machine.arrival, role)
            return self.machine.arrival
        if isinstance(command, c.Copy | c.Store):
            self._move(state, role, command)
        elif isinstance(command, c.Product):
            start, end = self._on("tensor cores", command.flops / self.machine.tensor)
            self._span("tensor cores", "product", command.name, start, end, role)
            for slot, tile in command.reads:
                self._span(slot, "read", tile, start, end, role)
            self._at(end, self._complete, state.products[-1])
        elif isinstance(command, c.Compute):
            start, end = self._on(command.unit, command.amount / getattr(self.machine, command.unit))
            if start > self.now:
                self._span(role, "wait", command.unit, self.now, start, role)
            for lane in (command.unit, role):
                self._span(lane, command.unit, command.name, start, end, role)
            return end - self.now
        elif isinstance(command, c.Write):
            end = self.now + command.slot.n_bytes / self.machine.sram
            self._span(role, "write", command.tile, self.now, end, role)
            self._hold(command.slot, command.tile, role)
            return end - self.now
        return 0.0

    def _move(self, state, role, command):
        """A copy or a store by the copy unit."""
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
        """A slot gets a tile, or None while one is on its way."""
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
