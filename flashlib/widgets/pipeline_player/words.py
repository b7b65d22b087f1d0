"""The sentences of PipelinePlayer."""

import re
from collections.abc import Sequence
from typing import Any

from flashlib.language.phrases import counted
from flashlib.pipeline import KINDS, PipelineFault, PipelineFaultKind, Timeline
from flashlib.pipeline import commands as c
from flashlib.pipeline.commands import Barrier, Command, Finish, FinishStores, Wait
from flashlib.pipeline.schedules import Action, Report

DONE = "All is done."
OF_SLOT = re.compile(r"([kqv])_(empty|full)\[(\d+)\]")
OF_BACKWARD = {  # barriers of the backward kernel: a pattern of their name, and what is waited for
    r"kv_full": "K and V in their slots",
    r"k_done": "K read by both",
    r"rows_full\[(\d)\]": r"Q in slot \1",
    r"do_full\[(\d)\]": r"dO in slot \1",
    r"ds_full\[(\d)\]": r"dS in slot \1",
    r"dq_full\[(\d)\]": r"dQ in slot \1",
    r"dq_empty\[(\d)\]": r"dQ slot \1 free",
    r"landed\[(\d)\]": r"sums in slot \1",
}


def meaning(barrier: str) -> str:
    """Return what a barrier of the course's kernels means to a role that waits for it; "" for other barriers."""
    if barrier.startswith("turn["):
        return "its turn"
    if not (found := OF_SLOT.fullmatch(barrier)):
        known = (re.fullmatch(pattern, barrier) for pattern in OF_BACKWARD)
        return next((found.expand(OF_BACKWARD[found.re.pattern]) for found in known if found), "")
    tile, slot = found[1].upper(), found[3]
    return f"{tile} slot {slot} free" if found[2] == "empty" else f"{tile} in slot {slot}"


# A timeline in clocks ----------------------------------------------------------------------------------------


def happenings(timeline: Timeline) -> dict[float, list[str]]:
    """Return what happens at each moment, in clocks; the last is the end."""
    events = {}
    begun = {(span.lane, round(span.start, 2)) for span in timeline.spans}
    said = [(span, *_said(span)) for span in timeline.spans if span.end > span.start]
    for span, _, ends in said:
        if ends and not (span.kind == "wait" and (span.lane, round(span.end, 2)) in begun):
            events.setdefault(span.end, []).append(ends)
    for phase in timeline.phases:
        events.setdefault(phase.time, []).append(f"phase {phase.number} of {phase.barrier} completes")
    waited = {(span.lane, span.name, round(span.end, 2)) for span, *_ in said if span.kind == "wait"}
    for span, begins, _ in said:
        goes_on = span.kind == "wait" and (span.lane, span.name, round(span.start, 2)) in waited
        if begins and not goes_on:
            events.setdefault(span.start, []).append(begins)
    return {time: events[time] for time in sorted(events)}


def _said(span):
    """Return the clauses for the beginning and for the end of a span."""
    name, role = span.name, span.role
    if span.lane == "tensor cores":
        return f"the tensor cores begin {name} for {role}", f"{name} of {role} is done"
    if span.lane == "copy unit":
        done = f"{name} is in global memory" if span.kind == "store" else ""
        return f"the copy unit begins to {span.kind} {name}", done
    if span.kind == "fill":
        return "", f"{name} is in {span.lane}"
    if span.lane != role:
        return "", ""
    if span.kind == "wait":
        words = f"{name} ({meaning(name)})" if meaning(name) else name
        return f"{role} waits for {words}", f"{role} goes on"
    if span.kind == "write":
        return f"{role} writes {name} into shared memory", ""
    return f"{role} begins “{name}” on the {span.kind} unit", ""


def moments(timeline: Timeline) -> list[list]:
    """Return [clocks, sentence] for each moment at which something happens, from 0 to the end."""
    products, found = timeline.lane("tensor cores"), {}
    for time, events in happenings(timeline).items():
        found.setdefault(round(time, 2), (time, []))[1].extend(events)
    if 0.0 not in found:
        found = {0.0: (0.0, ["nothing has happened yet"])} | found
    last, sentences = max(found), []
    for time, (exact, events) in found.items():
        now = next((p for p in products if p.start < exact - 0.01 and exact + 0.01 < p.end), None)
        if now:
            events = [*events, f"the tensor cores multiply {now.name} for {now.role}"]
        end = f" {DONE}" if time == last else ""
        said = "; ".join(events)
        first = said[0] if said[1:2].isupper() else said[0].upper()  # a name stays as it is: dP2
        sentences.append([time, f"{first}{said[1:]}.{end}"])
    return sentences


def total(timeline: Timeline) -> str:
    return f"{clocks(timeline.clocks)} clocks; tensor cores busy for {100 * timeline.use():.1f}% of them"


def recorded(timeline: Timeline) -> str:
    need = f"{clocks(timeline.use() * timeline.clocks)} of them, {100 * timeline.use():.1f}%"
    return f"Recorded: {clocks(timeline.clocks)} clocks. At full speed the tensor cores need {need}."


def clocks(x: float) -> str:
    return f"{x:.0f}"


# A schedule in actions ---------------------------------------------------------------------------------------


def command(one: Command) -> str:
    """Return a command in a few words, as they appear in its role's lane."""
    match one:
        case c.Wait():
            return f"sees {one.barrier}"
        case c.Arrive() | c.Expect():
            return f"arrives at {one.barrier}"
        case c.Copy():
            return f"asks for {one.tile}"
        case c.Product():
            return f"begins {one.name}"
        case c.Compute():
            return f"computes “{one.name}”"
        case c.Write():
            return f"writes {one.tile}"
        case c.Read():
            return f"loads {one.tile}"
        case c.Store():
            return f"stores {one.tile}"
        case c.Fence():
            return "puts a fence"
    return f"has seen {awaited(one)}"


def awaited(one: Wait | Finish | FinishStores) -> str:
    """Return what a command waits for."""
    if isinstance(one, c.Wait):
        return str(one.barrier)
    return "its products" if isinstance(one, c.Finish) else "its stores"


def action(one: Action, phases: list[Barrier]) -> str:
    """Return what an action does. phases: the barriers of which it completes a phase."""
    done = _done(one)
    for barrier in phases:
        done = f"{done}; a phase of {barrier} completes"
    return f"{done}."


def _done(one):
    made: Any = one.command
    if one.flight and isinstance(made, c.Copy):
        return f"{made.tile} is in {made.slot}"
    if one.flight and isinstance(made, c.Product):
        return f"{made.name} of {one.role} is done"
    if one.flight:
        return f"{made.tile} is in global memory"
    acts = f"{one.role} {command(made)}"
    if isinstance(made, c.Copy | c.Write):
        return f"{acts} into {made.slot}"
    return f"{acts} and expects {made.n_bytes} bytes" if isinstance(made, c.Expect) else acts


def acted(actions: Sequence[str], found: PipelineFault) -> list[list]:
    """Return [action, sentence] for each action, with the fault at the end."""
    sentences = [[0.0, "Nothing has happened yet."]]
    for n, one in enumerate(actions, 1):
        sentences.append([float(n), f"Action {n}: {one}"])
    if actions and found.kind != PipelineFaultKind.DEADLOCK:
        sentences[-1][1] = f"{sentences[-1][1]} Here it goes wrong: {fault(found)}"
    if found.kind == PipelineFaultKind.DEADLOCK:
        sentences.append([len(actions) + 1.0, f"Nobody can go on: {found.said}."])
    return sentences


def fault(found: PipelineFault) -> str:
    return f"{found.kind}, {KINDS[found.kind]}: {found.said}."


def faults(found: PipelineFault) -> list[str]:
    """Return a fault as sentences: for a deadlock, one for each role, on what it waits for."""
    if found.kind != PipelineFaultKind.DEADLOCK:
        return [fault(found)]
    return [f"{found.kind}, {KINDS[found.kind]}.", *(f"{said}." for said in found.said.split("; "))]


def schedule(report: Report) -> str:
    how = "the shortest schedule that goes wrong" if report.all else "a schedule that goes wrong"
    n = len(report.actions)
    return f"{report.fault.kind} after {counted(n, 'action', 'actions')}, {how}"
