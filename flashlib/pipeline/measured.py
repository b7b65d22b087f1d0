"""Timelines recorded on a GPU: from the marks of a kernel's roles to a Timeline like the model's.

A mark is a clock, and what a role had just done; see `kernels.hopper.instrumented`. A kernel's roles issue the
same commands as the protocol's roles, so each mark belongs to one of those, and gets its names of tiles, products
and barriers from it.

Roles are shown as recorded: a span lasts from the previous mark to its own. The marks say less about units: when a
product was issued, and when its role saw that it was done. Between the two it is placed on the tensor cores' lane
where it would be at their peak speed, in the order of issue. So the use of that lane is computed at peak speed, in
the time that the kernel took. A tile has arrived in its slot, at the latest, when the first role that waited for
it goes on. No mark records when the copy unit and barriers did something.
"""

import functools
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

from flashlib.pipeline import commands as c
from flashlib.pipeline import protocol
from flashlib.pipeline.timeline import MACHINE, WAITS, Machine, Span, Timeline
from flashlib.types import Record

MODELS: dict[str, Callable[..., c.Program]] = {
    "r1_alike": protocol.program_alike,
    "r2_producer": functools.partial(protocol.program, consumers=1, turns=False, overlap=False),
    "r3_consumers": functools.partial(protocol.program, turns=False, overlap=False),
    "r3_turns": functools.partial(protocol.program, overlap=False),
    "r4_overlap": protocol.program,
    "r5_registers": protocol.program,
    "r6_persistent": protocol.program,
    "forward": functools.partial(protocol.program, K_first=True),
}
UNMARKED = c.Arrive, c.Expect, c.Compute, c.Write, c.Read, c.Fence
WORK = {"softmax": "exp", "rescale": "fma", "lse": "fma"}  # the unit with most work


class ClockMark(NamedTuple):
    """What a role had just done.

    time: when it was done, in clocks. kind: that of the command, or "Begin" or "Work". what: as in
    `kernels.hopper.instrumented.Point`. command: the model's, None for "Begin" and "Work".
    """

    time: int
    kind: str
    what: str
    command: tuple | None = None


def program(row: Record, number: int) -> c.Program:
    """Return the model of a recorded program: entry `number` of "programs" in a row of the record."""
    rows = row["B_r"] // row["consumers"]
    sizes = protocol.Sizes(rows=rows, d=row["d"], B_c=row["B_c"])
    several = {"consumers": row["consumers"]} if row["consumers"] > 1 else {}  # if there is one, the rung has it
    return MODELS[row["rung"]](row["programs"][number]["blocks"], sizes, stages=row["stages"], **several)


def marks(row: Record, number: int) -> dict[str, list[ClockMark]]:
    """Return the marks of a recorded program by role, with the model's commands that they belong to."""
    said = c.expanded(program(row, number))
    written = row["programs"][number]["marks"]
    if written.keys() != said.keys():
        raise ValueError(f"marks are of {sorted(written)}; the roles are {sorted(said)}")
    return {
        role: _found(role, [ClockMark(time, *row["points"][point]) for time, point in written[role]], said[role])
        for role in said
    }


def _found(role, marks, said):
    """Return a role's marks with their commands; raise ValueError if they do not match the role's commands."""
    found, left = [], iter(said)
    for mark in marks:
        if mark.kind in ("Begin", "Work"):
            found.append(mark)
            continue
        for command in left:
            if (type(command).__name__, _what(command)) == (mark.kind, mark.what):
                found.append(mark._replace(command=command))
                break
            if not isinstance(command, UNMARKED) and not _silent(command):
                raise ValueError(
                    f"{role} says {command}; the mark at clock {mark.time} is {mark.kind} {mark.what}"
                )
        else:
            raise ValueError(f"{role} has said all; there is a mark {mark.kind} {mark.what} at clock {mark.time}")
    for command in left:
        if not isinstance(command, UNMARKED):
            raise ValueError(f"{role} says {command}; there is no mark for it")
    return found


def _what(command):
    """Return what a mark records about a command: a ring, or whether a product is S or PV."""
    if isinstance(command, c.Product):
        return command.name.rstrip("0123456789")
    if isinstance(command, c.Wait | c.Copy):
        part = command.barrier if isinstance(command, c.Wait) else command.slot
        return str(part).partition("[")[0]
    return ""


def _silent(command):
    """Return whether a kernel may skip a command, or have no mark for it.

    With one row block Q is loaded once; in `store_output` there is a mark only after the store.
    """
    return isinstance(command, c.FinishStores) or _what(command) == "q_empty"


def timeline(row: Record, number: int = 0, machine: Machine = MACHINE) -> Timeline:
    """Return the timeline of a recorded program. row: of the record; number: of a program in it, from 0."""
    found, spans, products = marks(row, number), [], []
    for role, mine in found.items():
        spans += _of_role(role, mine)
        products += _products(role, mine)
    on_cores = _on_cores(products, machine)
    clocks = max([mine[-1].time for mine in found.values()] + [span.end for span, _ in on_cores])
    spans += [span for span, _ in on_cores] + _of_slots(found, on_cores, clocks)
    return Timeline(spans, [], clocks)


def _of_role(role, marks):
    """Return what a role did from one mark to the next. After requesting a copy there is nothing to show."""
    found, tile, before = [], "", marks[0].time  # tile: the index of the last S
    for mark in marks:
        command = mark.command
        if mark.kind == "Wait":
            span = "wait", command.barrier
        elif type(command) in WAITS:
            span = "wait", WAITS[type(command)]
        elif mark.kind == "Product":
            number = command.name.removeprefix(mark.what)
            tile = number if mark.what == "S" else tile
            span = ("wait", f"issue {command.name}") if mark.what == "S" else ("fma", f"rescale {number}")
        elif mark.kind == "Work":
            span = WORK[mark.what], f"softmax {tile}" if mark.what == "softmax" else mark.what
        else:
            span = ("write", command.tile) if mark.kind == "Store" else None
        if span:
            found.append(Span(role, span[0], str(span[1]), before, mark.time, role))
        before = mark.time
    return found


def _products(role, marks):
    """Return a role's products: when each was issued, when it was seen to be done, the role and the command."""
    found, open_ = [], []
    for mark in marks:
        if mark.kind == "Product":
            open_.append((mark.time, mark.command))
        if mark.kind == "Finish":
            done = len(open_) - mark.command.pending
            found += [(issued, mark.time, role, command) for issued, command in open_[:done]]
            open_ = open_[done:]
    return found


def _on_cores(products, machine):
    """Return the products on the tensor cores at peak speed: from issue, or from the end of the previous one.

    A mark follows the issue, which can take as long as the product. So a product that was seen to be done sooner
    began before its mark, if the previous one leaves room.
    """
    found, free = [], 0
    for issued, done, role, command in sorted(products, key=lambda product: product[0]):
        takes = command.flops / machine.tensor
        start = max(min(issued, done - takes), free)
        free = start + takes
        found.append((Span("tensor cores", "product", command.name, start, free, role), command))
    return found


def _of_slots(found, on_cores, clocks):
    """Return when tiles arrived in slots, how long they stayed, and when they were read."""
    seen, spans, copies = {}, [], {}  # seen: when each waiting role saw the nth phase of a barrier
    for marks in found.values():
        counts = {}
        for mark in marks:
            if mark.kind == "Wait":
                barrier = mark.command.barrier.name
                nth = counts[barrier] = counts.get(barrier, 0) + 1
                seen.setdefault((barrier, nth), []).append(mark.time)
    for role, marks in found.items():
        for mark in marks:
            if mark.kind == "Copy":
                copies.setdefault(mark.command.slot.name, []).append((mark.time, mark.command, role))
    for slot, asked in copies.items():
        ends = [time for time, _, _ in asked[1:]] + [clocks]
        for nth, ((time, command, role), end) in enumerate(zip(asked, ends, strict=True), 1):
            there = min(seen[command.barrier.name, nth])
            spans.append(Span(slot, "fill", command.tile, time, there, role))
            spans.append(Span(slot, "hold", command.tile, there, end, role))
    for span, command in on_cores:
        spans += [span._replace(lane=str(slot), kind="read", name=tile) for slot, tile in command.reads]
    return spans


def order(timeline: Timeline) -> list[tuple]:
    """Return which role began which product, in order."""
    return [(span.role, span.name) for span in timeline.lane("tensor cores")]


def softmaxes(timeline: Timeline) -> list[float]:
    """Return the clocks of a tile's softmax, for each consumer: the median over its tiles.

    A model's timeline has a span for each operation of a softmax; a recorded one has a single span.
    """
    found = []
    for role in sorted({product.role for product in timeline.lane("tensor cores")}):
        tiles: dict[str, float] = {}
        for span in timeline.lane(role):
            if span.kind in ("exp", "fma") and not span.name.startswith(("rescale", "lse")):
                tile = span.name.split()[-1]
                tiles[tile] = tiles.get(tile, 0) + span.end - span.start
        found.append(median(tiles.values()))
    return found
