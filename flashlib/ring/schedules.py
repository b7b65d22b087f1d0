"""Checks that ranks are right in every order of events: all orders of small programs, and some random ones.

What a rank may touch depends only on what it has waited for itself, and messages between two ranks keep their
order. So no choice rules out another: if one order goes wrong, all do, in the same way. `check_orders` does not
rely on that.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from flashlib.inputs import check_counts
from flashlib.ring import commands as c
from flashlib.ring.commands import FaultKind, RingFault
from flashlib.ring.play import Ranks, RingPlay, shuffled, timed


class RingReport(NamedTuple):
    """What `check_orders` found. fault: or None. states: those of all orders, or 0; orders: how many were run."""

    fault: RingFault | None
    states: int
    orders: int

    def __str__(self):
        if self.fault:
            return f"{self.fault.kind}: {self.fault.said}"
        return f"right in every order, {self.states} states" if self.states else f"right in {self.orders} orders"


def check_orders(make: Callable[[], Ranks], *, most: int = 20_000, orders: int = 20, seed: int = 0) -> RingReport:
    """Return whether ranks end without a fault in every order of events; every state is tried if at most `most`.

    make: returns fresh generators, one for each rank. `orders` random orders are run too, and the ranks must yield
    the same commands in each.
    """
    check_counts(most=most, orders=orders)
    commands = None
    for n in range(orders + 1):
        try:
            play = timed(RingPlay(make())) if n == 0 else shuffled(RingPlay(make()), seed + n)
        except RingFault as fault:
            return RingReport(fault, 0, n + 1)
        yielded = [[_outline(command) for command in own] for own in play.commands]
        if commands is not None and yielded != commands:
            r = next(r for r in range(play.P) if yielded[r] != commands[r])
            raise ValueError(
                f"rank {r} yields other commands in another order: it must not depend on who is first"
            )
        commands = yielded
    return _in_every_order(commands, most, orders + 1)


def _outline(command):
    """Return a command without its data: (kind, the other rank, the buffer's name)."""
    if isinstance(command, c.Compute):
        return "compute", int(command.source), ""
    name = "" if command.buffer is None else command.buffer.name
    other = command.to if isinstance(command, c.Send) else getattr(command, "source", -1)
    return type(command).__name__.lower(), int(other), name


def _in_every_order(commands, most, orders):
    """Return the RingReport of all states: how far each rank is, and how many copies of each pair are done."""
    sides = [_sides(r, own) for r, own in enumerate(commands)]
    pairs = sorted({pair for own in sides for pair, _ in own if pair})
    first = (0,) * len(commands), (0,) * len(pairs)
    seen, todo = {first}, deque([first])
    while todo:
        after = _after(*todo.popleft(), sides, pairs)
        if after is None:
            return RingReport(RingFault(FaultKind.DEADLOCK, None, "nobody can go on in some order"), 0, orders)
        new = [state for state in after if state not in seen]
        seen.update(new)
        todo.extend(new)
        if len(seen) > most:
            return RingReport(None, 0, orders)
    return RingReport(None, len(seen), orders)


def _sides(r, commands):
    """Return, for each command, the pair of ranks whose copy it asks for, or None, and the copies it waits for.

    The latter is a list of (pair, number of the copy among those of the pair).
    """
    counts: dict[tuple, int] = {}
    asked: list[tuple] = []  # (pair, number, buffer) of copies not yet waited for
    found = []
    for kind, other, name in commands:
        pair, needs = None, []
        if kind in ("send", "receive"):
            pair = (r, other) if kind == "send" else (other, r)
            asked.append((pair, counts.setdefault(pair, 0), name))
            counts[pair] += 1
        elif kind == "wait":
            needs = [(one[0], one[1]) for one in asked if name in ("", one[2])]
            asked = [one for one in asked if name not in ("", one[2])]
        found.append((pair, needs))
    return found


def _after(at, done, sides, pairs):
    """Return the states that may follow; None if nobody can go on and some rank has not ended."""
    copies = dict(zip(pairs, done, strict=True))
    found = []
    for r, own in enumerate(sides):
        if at[r] < len(own) and all(copies[pair] > number for pair, number in own[at[r]][1]):
            found.append((at[:r] + (at[r] + 1,) + at[r + 1 :], done))
    for k, pair in enumerate(pairs):
        asked = [sum(one == pair for one, _ in sides[r][: at[r]]) for r in pair]
        if min(asked) > done[k]:
            found.append((at, done[:k] + (done[k] + 1,) + done[k + 1 :]))
    ended = all(n == len(own) for n, own in zip(at, sides, strict=True))
    return found if found or ended else None
