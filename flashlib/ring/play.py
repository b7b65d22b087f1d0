"""Ranks run in one process, in any order: nothing that they compute may depend on it.

`RingPlay` holds the generators of all ranks, and the copies between them. At each moment there are choices: a rank
that can go on, or a copy that can be done. `timed` chooses by the times of tiles and copies, `shuffled` at random.
"""

import random
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import numpy as np

from flashlib.language.phrases import and_list
from flashlib.ring import commands as c
from flashlib.ring.commands import BufferContent, FaultKind, RingFault

Ranks = Sequence[Generator]
MOST = 100_000  # commands that a rank may yield


class Times(NamedTuple):
    """How long things take, in any unit: a tile of S, a byte between two ranks, and the start of each copy."""

    tile: float = 1.0
    byte: float = 0.001
    copy: float = 0.0


TIMES = Times()


class Event(NamedTuple):
    """Something that happened to a rank, from start to stop.

    kind: "send" or "receive" (it asked for a copy), "copy" (the copy itself; rank: the sender), "wait", "compute"
    or "end". other: the rank at the other end. block: what is copied, or computed with. hop: how many ranks away
    from home the block then is. n_bytes: of a copy. tiles, state: of a Compute; state is a State of (H, n) rows,
    or dQ. copies: how many a Wait waited for.
    """

    kind: str
    rank: int
    start: float
    stop: float
    other: int | None = None
    buffer: str = ""
    block: BufferContent | None = None
    hop: int | None = None
    n_bytes: int = 0
    tiles: int = 0
    state: Any = None
    copies: int = 0


class CopyRequest:
    """One side of a copy, as a rank asked for it. arrays, block: what a sender sends. stop: when it is done."""

    def __init__(self, rank, buffer, at, arrays=(), block=None):
        self.rank, self.buffer, self.at, self.arrays, self.block = rank, buffer, at, arrays, block
        self.stop: float | None = None


class RankCopy(NamedTuple):
    """A copy that both sides have asked for."""

    out: CopyRequest
    into: CopyRequest
    start: float
    stop: float
    n_bytes: int


class RingPlay:
    """Ranks being run. events: what happened; commands: those of each rank; results: what each returned.

    finite: whether all inputs are; then a NaN in a result was read from a buffer that was being filled.
    """

    def __init__(self, ranks: Ranks, times: Times = TIMES, *, finite: bool = False):
        self.ranks, self.times, self.finite = list(ranks), times, finite
        P = len(self.ranks)
        self.now: list[c.Command | None] = [None] * P
        self.results: list[Any] = [None] * P
        self.commands: list[list[c.Command]] = [[] for _ in range(P)]
        self.clock, self.out_free, self.in_free = [0.0] * P, [0.0] * P, [0.0] * P
        self.open: list[list[CopyRequest]] = [[] for _ in range(P)]  # of each rank, until it has waited for them
        self.sends: dict[tuple, deque] = {}  # {(from, to): those that only the sender has asked for}
        self.receives: dict[tuple, deque] = {}
        self.copies: list[RankCopy] = []
        self.events: list[Event] = []

    @property
    def P(self) -> int:
        return len(self.ranks)

    def begin(self) -> None:
        """Run every rank to its first command."""
        for r in range(self.P):
            self._advance(r)

    # What could happen ---------------------------------------------------------------------------------------

    def choices(self) -> list[int | RankCopy]:
        """Return the ranks that can go on, and the copies that can be done: between two ranks only the oldest."""
        ready = [r for r, now in enumerate(self.now) if now is not None and self._may(r, now)]
        found: list[int | RankCopy] = [*ready]
        pairs = set()
        for copy in self.copies:
            pair = copy.out.rank, copy.into.rank
            found += [copy] if pair not in pairs else []
            pairs.add(pair)
        return found

    def time_of(self, choice: int | RankCopy) -> float:
        """Return when a choice would happen."""
        if isinstance(choice, RankCopy):
            return choice.stop
        now = self.now[choice]
        return self._until(choice, now) if isinstance(now, c.Wait) else self.clock[choice]

    def _may(self, r, command):
        return not isinstance(command, c.Wait) or all(one.stop is not None for one in self._of(r, command))

    def _of(self, r, wait):
        """Return the copies that a Wait waits for."""
        return [one for one in self.open[r] if wait.buffer in (None, one.buffer)]

    def _until(self, r, wait):
        return max([self.clock[r], *(one.stop for one in self._of(r, wait) if one.stop is not None)])

    # What happens --------------------------------------------------------------------------------------------

    def take(self, choice: int | RankCopy) -> None:
        """Run a rank to its next command, or finish a copy; raise RingFault for a fault."""
        if isinstance(choice, RankCopy):
            self._done(choice)
            return
        command = self.now[choice]
        DO[type(command)](self, choice, command)
        self._advance(choice)

    def _advance(self, r):
        """Run a rank's own Python to its next command."""
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
            raise RingFault(FaultKind.OVERWRITTEN, r, said) from error
        c.check(command, r, self.P)
        if len(self.commands[r]) >= MOST:
            raise ValueError(f"rank {r} yields more than {MOST} commands; does its loop end?")
        self.now[r] = command
        self.commands[r].append(command)

    def _send(self, r, command):
        buffer, to = command.buffer, int(command.to)
        try:
            arrays = buffer.arrays
        except RingFault as fault:
            raise RingFault(fault.kind, r, f"rank {r} sends to {to}: {fault.said}") from None
        buffer.sending += 1
        self._ask(r, "send", to, CopyRequest(r, buffer, self.clock[r], arrays, buffer.block))

    def _receive(self, r, command):
        buffer, source = command.buffer, int(command.source)
        if buffer.sending:
            said = (
                f"rank {r} receives from {source} into {buffer}, from which it still sends "
                f"{buffer.block or 'arrays'}: wait for it first"
            )
            raise RingFault(FaultKind.OVERWRITTEN, r, said)
        if buffer.receiving:
            said = (
                f"rank {r} receives from {source} into {buffer}, into which it still receives: wait for it first"
            )
            raise RingFault(FaultKind.OVERWRITTEN, r, said)
        buffer.receiving = 1
        buffer.spoil()
        self._ask(r, "receive", source, CopyRequest(r, buffer, self.clock[r]))

    def _ask(self, r, kind, other, asked):
        """Record one side of a copy; begin the copy if the other side has asked too."""
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
        self.copies.append(RankCopy(out, into, start, stop, n_bytes))

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
            raise RingFault(FaultKind.OVERWRITTEN, r, said)
        block, hop = BufferContent("KV", source), (r - source) % self.P
        done = {"block": block, "hop": hop, "tiles": int(command.tiles), "state": command.state}
        self.events.append(Event("compute", r, start, self.clock[r], **done))

    # The end -------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Raise a RingFault if anything is left undone now that nothing more can happen."""
        stuck = [r for r, now in enumerate(self.now) if now is not None]
        for r in stuck:
            for one, kind, other in self._waits_for(r):
                if self.now[other] is None:
                    raise RingFault(*_alone(r, one, kind, other))
        if stuck:
            said = "; ".join(f"rank {r} waits {_for(self._waits_for(r))}" for r in stuck)
            waits = [(r, other) for r in stuck for _, _, other in self._waits_for(r)]
            raise RingFault(FaultKind.DEADLOCK, None, f"nobody can go on: {said}", waits)
        for r in range(self.P):
            for one, kind, other in self._unmatched(r):
                raise RingFault(*_alone(r, one, kind, other))
            for one in self.open[r]:
                said = f"rank {r} ends, and never waited for what it receives into {one.buffer}"
                if one.arrays:
                    what = one.block or "arrays"
                    said = f"rank {r} ends, and never waited for the copy of {what} from {one.buffer}"
                raise RingFault(FaultKind.LEFT_BEHIND, r, said)

    def _unmatched(self, r):
        """Return (CopyRequest, "send" or "receive", other rank) where only this rank has asked for the copy."""
        found = [(one, "send", to) for (own, to), asked in self.sends.items() if own == r for one in asked]
        return found + [
            (one, "receive", of) for (of, own), asked in self.receives.items() if own == r for one in asked
        ]

    def _waits_for(self, r):
        """Return the entries of `_unmatched` that a rank waits for."""
        waited = self._of(r, self.now[r])
        return [asked for asked in self._unmatched(r) if asked[0] in waited]


def _alone(r, one, kind, other):
    if kind == "send":
        said = f"rank {r} sends {one.block or 'a block'} to rank {other}, which never receives it"
        return FaultKind.UNTAKEN, r, said
    said = f"rank {r} receives from rank {other} into {one.buffer}, and nothing is sent to it"
    return FaultKind.NEVER_SENT, r, said


def _for(unmatched):
    return and_list(
        f"until rank {other} receives {one.block or one.buffer}" if kind == "send" else f"until rank {other} sends"
        for one, kind, other in unmatched
    )


def _has_nan(state):
    arrays = [X for X in (state if isinstance(state, tuple) else (state,)) if isinstance(X, np.ndarray)]
    return any(np.isnan(X).any() for X in arrays if X.dtype.kind == "f")


DO = {c.Send: RingPlay._send, c.Receive: RingPlay._receive, c.Wait: RingPlay._wait, c.Compute: RingPlay._compute}


def timed(play: RingPlay) -> RingPlay:
    """Run ranks to their end, in the order that their Times give; raise RingFault."""

    def when(choice):  # at equal times, the rank with fewer commands first: so ranks advance side by side
        return play.time_of(choice), 0 if isinstance(choice, RankCopy) else len(play.commands[choice])

    return _to_the_end(play, lambda choices: min(choices, key=when))


def shuffled(play: RingPlay, seed: int) -> RingPlay:
    """Run ranks to their end in a random order; raise RingFault. Some orders let a rank or copy lag behind."""
    numbers = random.Random(seed)
    late = numbers.random() < 0.5

    def pick(choices):
        if late and numbers.random() < 0.9:
            return min(choices, key=lambda one: one if isinstance(one, int) else play.P + one.out.rank)
        return numbers.choice(choices)

    return _to_the_end(play, pick)


def _to_the_end(play: RingPlay, pick: Callable) -> RingPlay:
    play.begin()
    while choices := play.choices():
        play.take(pick(choices))
    play.stop()
    return play
