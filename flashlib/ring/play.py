"""Ranks played in one process: who goes next is a choice, and nothing that they compute may depend on it.

`Play` has the generators of all ranks, and the copies between them. At each moment there are choices: a rank that
can go on, or a copy that can be done. `timed` picks by the time that tiles and copies take, `shuffled` at random.
"""

import random
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import numpy as np

from flashlib.language.phrases import and_list
from flashlib.ring import commands as c
from flashlib.ring.commands import Block, Fault, Kind

Ranks = Sequence[Generator]
MOST = 100_000  # commands of a rank


class Times(NamedTuple):
    """How long things take, in any unit: a tile of S, a byte between two ranks, and each copy besides."""

    tile: float = 1.0
    byte: float = 0.001
    copy: float = 0.0


TIMES = Times()


class Event(NamedTuple):
    """Something that happened to a rank, from start to stop.

    kind: "send" or "receive" (it asked for a copy), "copy" (the copy itself; rank: the sender), "wait", "compute"
    or "end". other: the rank at the other end. block: what is copied, or computed with. hop: how many ranks from
    its own the block is then. n_bytes: of a copy. tiles, state: of Compute, a State of (H, n) rows or dQ. copies:
    how many a Wait waited for.
    """

    kind: str
    rank: int
    start: float
    stop: float
    other: int | None = None
    buffer: str = ""
    block: Block | None = None
    hop: int | None = None
    n_bytes: int = 0
    tiles: int = 0
    state: Any = None
    copies: int = 0


class Asked:
    """One side of a copy, as a rank asked for it. arrays, block: what a sender had. stop: when it was done."""

    def __init__(self, rank, buffer, at, arrays=(), block=None):
        self.rank, self.buffer, self.at, self.arrays, self.block = rank, buffer, at, arrays, block
        self.stop: float | None = None


class Copy(NamedTuple):
    """A copy that both sides have asked for."""

    out: Asked
    into: Asked
    start: float
    stop: float
    n_bytes: int


class Play:
    """Ranks on their way. events: what happened; told: the commands of each rank; results: what each returned.

    finite: whether all inputs are: then a NaN in what a rank computed is what it read of a buffer being filled.
    """

    def __init__(self, ranks: Ranks, times: Times = TIMES, *, finite: bool = False):
        self.ranks, self.times, self.finite = list(ranks), times, finite
        P = len(self.ranks)
        self.now: list[c.Command | None] = [None] * P
        self.results: list[Any] = [None] * P
        self.told: list[list[c.Command]] = [[] for _ in range(P)]
        self.clock, self.out_free, self.in_free = [0.0] * P, [0.0] * P, [0.0] * P
        self.open: list[list[Asked]] = [[] for _ in range(P)]  # of each rank, until it has waited
        self.sends: dict[tuple, deque] = {}  # (from, to): asked for by the sender alone
        self.receives: dict[tuple, deque] = {}
        self.copies: list[Copy] = []
        self.events: list[Event] = []

    @property
    def P(self) -> int:
        return len(self.ranks)

    def begin(self) -> None:
        """Let every rank run to its first command."""
        for r in range(self.P):
            self._advance(r)

    # What could happen ---------------------------------------------------------------------------------------

    def choices(self) -> list[int | Copy]:
        """Return the ranks that can go on, and the copies that can be done: of two ranks the oldest first."""
        found: list[int | Copy] = [r for r, now in enumerate(self.now) if now is not None and self._may(r, now)]
        pairs = set()
        for copy in self.copies:
            pair = copy.out.rank, copy.into.rank
            found += [copy] if pair not in pairs else []
            pairs.add(pair)
        return found

    def time_of(self, choice: int | Copy) -> float:
        """Return when a choice would happen."""
        if isinstance(choice, Copy):
            return choice.stop
        now = self.now[choice]
        return self._until(choice, now) if isinstance(now, c.Wait) else self.clock[choice]

    def _may(self, r, command):
        return not isinstance(command, c.Wait) or all(one.stop is not None for one in self._of(r, command))

    def _of(self, r, wait):
        """Return the copies that a Wait is for."""
        return [one for one in self.open[r] if wait.buffer in (None, one.buffer)]

    def _until(self, r, wait):
        return max([self.clock[r], *(one.stop for one in self._of(r, wait) if one.stop is not None)])

    # What happens --------------------------------------------------------------------------------------------

    def take(self, choice: int | Copy) -> None:
        """Let a rank go on to its next command, or a copy be done; raise Fault for what must never be."""
        if isinstance(choice, Copy):
            self._done(choice)
            return
        command = self.now[choice]
        DO[type(command)](self, choice, command)
        self._advance(choice)

    def _advance(self, r):
        """Let a rank's own Python run to its next command."""
        try:
            command = next(self.ranks[r])
        except StopIteration as stop:
            self.now[r], self.results[r] = None, stop.value
            self.events.append(Event("end", r, self.clock[r], self.clock[r]))
            return
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            said = f"rank {r} changes arrays of a buffer in their place: put others into it, once it is not sent"
            raise Fault(Kind.OVERWRITTEN, r, said) from error
        c.check(command, r, self.P)
        if len(self.told[r]) >= MOST:
            raise ValueError(f"rank {r} yields more than {MOST} commands; does its loop end?")
        self.now[r] = command
        self.told[r].append(command)

    def _send(self, r, command):
        buffer, to = command.buffer, int(command.to)
        try:
            arrays = buffer.arrays
        except Fault as fault:
            raise Fault(fault.kind, r, f"rank {r} sends to {to}: {fault.said}") from None
        buffer.sending += 1
        self._ask(r, "send", to, Asked(r, buffer, self.clock[r], arrays, buffer.block))

    def _receive(self, r, command):
        buffer, source = command.buffer, int(command.source)
        if buffer.sending:
            said = (
                f"rank {r} receives from {source} into {buffer}, from which it still sends {buffer.block}: "
                "wait for it first"
            )
            raise Fault(Kind.OVERWRITTEN, r, said)
        if buffer.receiving:
            said = (
                f"rank {r} receives from {source} into {buffer}, into which it still receives: wait for it first"
            )
            raise Fault(Kind.OVERWRITTEN, r, said)
        buffer.receiving = 1
        buffer.spoil()
        self._ask(r, "receive", source, Asked(r, buffer, self.clock[r]))

    def _ask(self, r, kind, other, asked):
        """Take note of one side of a copy; begin it if the other side has asked too."""
        self.open[r].append(asked)
        self.events.append(Event(kind, r, asked.at, asked.at, other, asked.buffer.name, asked.block))
        pair = (r, other) if kind == "send" else (other, r)
        (self.sends if kind == "send" else self.receives).setdefault(pair, deque()).append(asked)
        sends, receives = self.sends.get(pair), self.receives.get(pair)
        if sends and receives:
            self._begin(*pair, sends.popleft(), receives.popleft())

    def _begin(self, sender, receiver, out, into):
        n_bytes = sum(X.nbytes for X in out.arrays)
        start = max(out.at, into.at, self.out_free[sender], self.in_free[receiver])
        stop = start + self.times.copy + n_bytes * self.times.byte
        self.out_free[sender] = self.in_free[receiver] = stop
        self.copies.append(Copy(out, into, start, stop, n_bytes))

    def _done(self, copy):
        self.copies.remove(copy)
        copy.into.buffer.fill(copy.out.arrays, copy.out.block)
        copy.out.stop = copy.into.stop = copy.stop
        r, other, block = copy.out.rank, copy.into.rank, copy.out.block
        hop = None if block is None else (other - block.rank) % self.P
        what = (other, copy.into.buffer.name, block, hop, copy.n_bytes)
        self.events.append(Event("copy", r, copy.start, copy.stop, *what))

    def _wait(self, r, command):
        done, until = self._of(r, command), self._until(r, command)
        for one in done:
            self.open[r].remove(one)
            if one.arrays:
                one.buffer.sending -= 1
            else:
                one.buffer.receiving = 0
        name = "" if command.buffer is None else command.buffer.name
        self.events.append(Event("wait", r, self.clock[r], until, buffer=name, copies=len(done)))
        self.clock[r] = until

    def _compute(self, r, command):
        start, source = self.clock[r], int(command.source)
        self.clock[r] += command.tiles * self.times.tile
        receiving = [one.buffer for one in self.open[r] if not one.arrays]
        if self.finite and receiving and _has_nan(command.state):
            said = f"rank {r} computes with arrays of {receiving[0]} while another block is received into it"
            raise Fault(Kind.OVERWRITTEN, r, said)
        block, hop = Block("KV", source), (r - source) % self.P
        done = {"block": block, "hop": hop, "tiles": int(command.tiles), "state": command.state}
        self.events.append(Event("compute", r, start, self.clock[r], **done))

    # The end -------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Take note that nothing can happen any more; raise Fault unless all is as it should be."""
        stuck = [r for r, now in enumerate(self.now) if now is not None]
        for r in stuck:
            for one, kind, other in self._waits_for(r):
                if self.now[other] is None:
                    raise Fault(*_alone(r, one, kind, other))
        if stuck:
            said = "; ".join(f"rank {r} waits {_for(self._waits_for(r))}" for r in stuck)
            waits = [(r, other) for r in stuck for _, _, other in self._waits_for(r)]
            raise Fault(Kind.DEADLOCK, None, f"nobody can go on: {said}", waits)
        for r in range(self.P):
            for one, kind, other in self._unmatched(r):
                raise Fault(*_alone(r, one, kind, other))
            for one in self.open[r]:
                said = f"rank {r} ends, and never waited for what it receives into {one.buffer}"
                if one.arrays:
                    said = f"rank {r} ends, and never waited for the copy of {one.block} from {one.buffer}"
                raise Fault(Kind.LEFT_BEHIND, r, said)

    def _unmatched(self, r):
        """Return what a rank has asked for and the other side has not: (Asked, "send" or "receive", the other)."""
        found = [(one, "send", to) for (own, to), asked in self.sends.items() if own == r for one in asked]
        return found + [
            (one, "receive", of) for (of, own), asked in self.receives.items() if own == r for one in asked
        ]

    def _waits_for(self, r):
        """Return those of `_unmatched` that a rank waits for."""
        waited = self._of(r, self.now[r])
        return [asked for asked in self._unmatched(r) if asked[0] in waited]


def _alone(r, one, kind, other):
    if kind == "send":
        return Kind.UNTAKEN, r, f"rank {r} sends {one.block or 'a block'} to rank {other}, which never receives it"
    return Kind.NEVER_SENT, r, f"rank {r} receives from rank {other} into {one.buffer}, and nothing is sent to it"


def _for(unmatched):
    return and_list(
        f"until rank {other} receives {one.block or one.buffer}" if kind == "send" else f"until rank {other} sends"
        for one, kind, other in unmatched
    )


def _has_nan(state):
    arrays = [X for X in (state if isinstance(state, tuple) else (state,)) if isinstance(X, np.ndarray)]
    return any(np.isnan(X).any() for X in arrays if X.dtype.kind == "f")


DO = {c.Send: Play._send, c.Receive: Play._receive, c.Wait: Play._wait, c.Compute: Play._compute}


def timed(play: Play) -> Play:
    """Play ranks to their end, in the order in which things happen if they take so long; raise Fault."""

    def when(choice):  # of two ranks at the same time, the one that has said less: they go on side by side
        return play.time_of(choice), 0 if isinstance(choice, Copy) else len(play.told[choice])

    return _to_the_end(play, lambda choices: min(choices, key=when))


def shuffled(play: Play, seed: int) -> Play:
    """Play ranks to their end, in an order at random; raise Fault. Some orders let one rank or copy lag behind."""
    numbers = random.Random(seed)
    late = numbers.random() < 0.5

    def pick(choices):
        if late and numbers.random() < 0.9:
            return min(choices, key=lambda one: one if isinstance(one, int) else play.P + one.out.rank)
        return numbers.choice(choices)

    return _to_the_end(play, pick)


def _to_the_end(play: Play, pick: Callable) -> Play:
    play.begin()
    while choices := play.choices():
        play.take(pick(choices))
    play.stop()
    return play
