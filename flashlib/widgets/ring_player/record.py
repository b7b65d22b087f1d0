"""What RingPlayer shows of a RingRun, as plain lists: when each rank computes, copies, holds and idles."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from flashlib import masks, ring
from flashlib.ring import FaultKind
from flashlib.ring.commands import BufferContent
from flashlib.types import Attention
from flashlib.widgets.ring_player import choices
from flashlib.widgets.ring_player.runs import D

AT_THE_END = (
    FaultKind.DEADLOCK,
    FaultKind.UNTAKEN,
    FaultKind.NEVER_SENT,
    FaultKind.LEFT_BEHIND,
)  # detected when nothing can happen any more
GRID = 96  # positions of a run, in addition to those at which something happens
NOBODY = -1
AT_FIRST = 0.6  # of the axis: by then a second hop is merged, so that alpha is more than 0


class RingTimeline(NamedTuple):
    """A RingRun over time. All times are rounded the same way, so that equal times compare equal.

    computes: of each rank [source, hop, start, stop, tiles]. copies: [from, to, whose, start, stop, bytes]. held:
    of each rank [whose, start, stop], own keys first. asked: [rank, other, "send" or "receive", when] for requests
    that were never completed. idle: of each rank [start, stop, hop that it computes next, -1 for none]. total:
    when the last rank ended, or the run stopped; end: of the axis, later if ranks wait forever.
    """

    computes: list[list[list]]
    copies: list[list]
    held: list[list[list]]
    asked: list[list]
    idle: list[list[list]]
    total: float
    end: float


def record(run: ring.RingRun, tile: float) -> RingTimeline:
    """Return the timeline of a run. tile: the time of a tile, by which the axis of a faulty run is extended."""
    P, total = run.plan.P, stopped(run)
    end = total + tile if run.fault else total
    events = [event for event in run.events if event.start <= end]
    computes: list[list[list]] = [[] for _ in range(P)]
    for event in events:
        if event.kind == "compute":
            computes[event.rank].append(
                [event.block.rank, event.hop, _t(event.start), _t(event.stop), event.tiles]
            )
    copies = [
        [event.rank, event.other, _whose(event.block), _t(event.start), _t(event.stop), event.n_bytes]
        for event in events
        if event.kind == "copy"
    ]
    held = [_held(events, r, _t(end)) for r in range(P)]
    idle = [_idle(own, _t(end)) for own in computes]
    return RingTimeline(
        computes, sorted(copies, key=lambda one: one[3:]), held, _asked(events), idle, _t(total), _t(end)
    )


def stopped(run: ring.RingRun) -> float:
    """Return when a RingRun ended, or went wrong."""
    own = [
        event.stop
        for event in run.events
        if run.fault is None
        or run.fault.kind in AT_THE_END
        or (event.rank, event.kind != "copy") == (run.fault.rank, True)
    ]
    return max(own, default=0.0)


def _t(time):
    return round(float(time), 6)


def _whose(block):
    return block.rank if isinstance(block, BufferContent) else NOBODY


def _held(events, r, end):
    """Return whose blocks are in a rank's buffers, and from when to when."""
    held, now = [], {"own": [r, 0.0]}
    mine = [e for e in events if (e.kind == "receive" and e.rank == r) or (e.kind == "copy" and e.other == r)]
    for event in mine:  # in the order in which they end
        if event.kind == "copy":
            now[event.buffer] = [_whose(event.block), _t(event.stop)]
        elif event.buffer in now:  # the old contents are overwritten from now on
            held.append([*now.pop(event.buffer), _t(event.start)])
    held += [[*one, end] for one in now.values()]
    return sorted([one for one in held if one[1] < one[2]], key=lambda one: (one[1], one[0] != r))


def _asked(events):
    """Return the requests that were never completed: the n-th request of two ranks belongs to their n-th copy."""
    open_: dict[tuple, list] = {}
    for event in events:
        if event.kind in ("send", "receive"):
            pair = (event.rank, event.other) if event.kind == "send" else (event.other, event.rank)
            open_.setdefault((event.kind, pair), []).append([event.rank, event.other, event.kind, _t(event.start)])
    for event in events:
        if event.kind == "copy":
            for kind in ("send", "receive"):
                open_[kind, (event.rank, event.other)].pop(0)
    return [one for all_of_a_pair in open_.values() for one in all_of_a_pair]


def _idle(computes, end):
    """Return when a rank computes nothing, and which hop it computes next."""
    idle, at = [], 0.0
    for _, hop, start, stop, _ in computes:
        if start > at:
            idle.append([at, start, hop])
        at = stop
    return [*idle, [at, end, NOBODY]] if end > at else idle


# Sums ------------------------------------------------------------------------------------------------------------


def sums(found: RingTimeline) -> dict[str, Any]:
    """Return sums over a timeline: time, idle share, bytes in all and from the busiest rank, copies, hidden share.

    hidden: the share of the copies' time during which the receiving rank computes; None without copies.
    """
    P = len(found.computes)
    idle = sum(stop - start for own in found.idle for start, stop, _ in own)
    sent = [sum(one[5] for one in found.copies if one[0] == r) for r in range(P)]
    copying = sum(stop - start for *_, start, stop, _ in found.copies)
    under = sum(_overlap(found.computes[to], start, stop) for _, to, _, start, stop, _ in found.copies)
    return {
        "total": found.total,
        "idle": idle / (P * found.end) if found.end else 0.0,
        "sent": sum(sent),
        "most_sent": max(sent),
        "copies": len(found.copies),
        "hidden": under / copying if copying else None,
    }


def _overlap(computes, start, stop):
    return sum(max(0.0, min(stop, end) - max(start, begin)) for _, _, begin, end, _ in computes)


# When ------------------------------------------------------------------------------------------------------------


def moments(found: RingTimeline) -> list[float]:
    """Return the times at which something begins or ends."""
    spans = [one[2:4] for own in found.computes for one in own] + [one[3:5] for one in found.copies]
    return sorted({0.0, found.end, found.total, *(time for span in spans for time in span if time <= found.end)})


def times(found: RingTimeline) -> list[float]:
    """Return the times that are played: all moments, and a grid between them, for steps of about equal length."""
    at, step = np.array(moments(found)), found.end / GRID
    grid = np.arange(GRID) * step
    alone = np.abs(grid[:, None] - at).min(axis=1) > step / 2
    return sorted([*at.tolist(), *map(_t, grid[alone])])


def opens(found: RingTimeline, shown: list[float], at_fault: bool) -> int:
    """Return the most instructive position: copies hidden under tiles, past the middle, or where it goes wrong."""
    if at_fault:
        return len(shown) - 1

    at, hiding = np.array(shown), np.zeros(len(shown))
    for _, to, _, begin, stop, _ in found.copies:
        busy = [(at >= start) & (at < end) for _, _, start, end, _ in found.computes[to]]
        hiding += (begin < at) & (at < stop) & np.any(busy, axis=0)
    return int(np.lexsort((np.abs(at - AT_FIRST * found.end), -hiding))[0])


# Who and what ----------------------------------------------------------------------------------------------------


@lru_cache(64)
def seen(mask: str, N: int) -> list[list[list[int]]]:
    """Return which keys each row sees, as lists of [first, end]."""
    tiles = masks.resolve(choices.mask_of(mask, N), False, N, N)
    edges = np.diff(np.pad(tiles.seen(*tiles.all).astype(int), ((0, 0), (1, 1))), axis=1)
    return [np.flatnonzero(row).reshape(-1, 2).tolist() for row in edges]


def pack(run: ring.RingRun, N: int) -> bytes:
    """Return the rows' results as float64: for each rank, after each of its computes, m, l and O_acc of its rows.

    Then O and lse of all rows. NaN where there is none: a learner's own rank need not report its State.
    """
    arrays = []
    for r, rows in enumerate(run.plan.rows):
        n = sum(map(len, rows))
        states = [event.state for event in run.events if event.kind == "compute" and event.rank == r]
        arrays += [_numbers(state, n) for state in states]
    nothing = Attention(np.full((N, D), np.nan), np.full(N, np.nan))
    O, lse = run.result if isinstance(run.result, Attention) else nothing
    return np.concatenate([np.ravel(X) for X in (*arrays, O, lse)]).astype("<f8").tobytes()


def _numbers(state, n):
    """Return m, l and O_acc of n rows as (n, 2 + D); NaN if their State was not reported."""
    try:
        m, l, O_acc = (np.asarray(X, float) for X in state)
        return np.column_stack([m.reshape(n), l.reshape(n), O_acc.reshape(n, D)])
    except (TypeError, ValueError):
        return np.full((n, 2 + D), np.nan)
