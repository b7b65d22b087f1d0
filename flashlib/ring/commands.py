"""The commands that a rank's generator yields, and the buffers that they name.

A rank computes in plain Python and yields what others notice: that it sends, receives, waits, and how long it
computed. Copies run while the rank does what comes next, as copy engines run beside kernels. So a rank must not
touch a buffer that is being copied until it has waited for the copy. A copy begins when both sides have asked for
it: nothing stores a message in between (as in NCCL), and the n-th Receive from a rank takes its n-th Send to this
one.
"""

from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np


class FaultKind(StrEnum):
    """The kinds of faults, in a few words; KINDS says what each means."""

    DEADLOCK = "deadlock"
    UNTAKEN = "message not taken"
    NEVER_SENT = "message never sent"
    OVERWRITTEN = "overwritten"
    READ_TOO_EARLY = "read too early"
    EMPTY = "empty buffer"
    LEFT_BEHIND = "left behind"

    @property
    def id(self) -> str:
        return self.name.lower()


KINDS = {
    FaultKind.DEADLOCK: "nobody can go on",
    FaultKind.UNTAKEN: "a rank sends what the other never receives",
    FaultKind.NEVER_SENT: "a rank receives what the other never sends",
    FaultKind.OVERWRITTEN: "a buffer is filled while it is still read",
    FaultKind.READ_TOO_EARLY: "a buffer is read while it is being filled",
    FaultKind.EMPTY: "a buffer is read that was never filled",
    FaultKind.LEFT_BEHIND: "a rank ends, and never waited for a copy of its own",
}


class RingFault(Exception):
    """A fault of ranks. kind: a FaultKind; rank: whose fault it is, None for a deadlock; said: a sentence.

    waits: in a deadlock, pairs of a rank and the one that it waits for.
    """

    def __init__(self, kind, rank, said, waits=()):
        super().__init__(said)
        self.kind, self.rank, self.said, self.waits = kind, rank, said, tuple(waits)


class BufferContent(NamedTuple):
    """What is in a buffer. what: "KV", "dKV", "Q", "O", "dO", "dQ"; rank: whose tokens these are."""

    what: str
    rank: int

    def __str__(self):
        return f"{self.what} of rank {self.rank}"


class Buffer:
    """Room for arrays in a rank's memory, empty or filled with copies of `arrays`, which form its content.

    n_bytes: the most that it has ever held.
    """

    def __init__(self, rank, name, arrays=(), block=None):
        self.rank, self.name, self.block, self.n_bytes = rank, str(name), block, 0
        self.sending, self.receiving = 0, 0  # copies that the rank has not waited for
        self._arrays = ()
        self.fill(arrays, block)

    def __repr__(self):
        return self.name

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The arrays in the buffer, which must not be changed; `put` replaces them."""
        if self.receiving:
            said = f"rank {self.rank} reads {self} while it is being received: wait for it first"
            raise RingFault(FaultKind.READ_TOO_EARLY, self.rank, said)
        if not self._arrays:
            said = f"rank {self.rank} reads {self}, in which there is nothing"
            raise RingFault(FaultKind.EMPTY, self.rank, said)
        return self._arrays

    def put(self, arrays: tuple[np.ndarray, ...], block: BufferContent | None = None) -> None:
        """Fill the buffer with copies of arrays, as the rank itself does."""
        what = block or "arrays"
        if self.sending:
            said = f"rank {self.rank} puts {what} into {self} while it is being sent: wait for it first"
            raise RingFault(FaultKind.OVERWRITTEN, self.rank, said)
        if self.receiving:
            said = f"rank {self.rank} puts {what} into {self} while it is being received: wait for it first"
            raise RingFault(FaultKind.OVERWRITTEN, self.rank, said)
        self.fill(arrays, block)

    def fill(self, arrays: tuple[np.ndarray, ...], block: BufferContent | None) -> None:
        """Fill the buffer, as a copy does when it is done. Its old arrays are overwritten with NaN."""
        arrays = tuple(X.copy() for X in arrays)
        self.spoil()
        for X in arrays:
            X.flags.writeable = False  # a block must not change while it is sent
        self._arrays, self.block = arrays, block
        self.n_bytes = max(self.n_bytes, sum(X.nbytes for X in arrays))

    def spoil(self) -> None:
        """Overwrite the arrays in the buffer, so that whoever still reads them computes NaN."""
        for X in self._arrays:
            X.flags.writeable = True
            X[...] = np.nan
        self._arrays = ()


class Send(NamedTuple):
    """Ask for a copy of a buffer to rank `to`, and go on."""

    to: int
    buffer: Buffer


class Receive(NamedTuple):
    """Ask for a copy of what rank `source` sends into a buffer, and go on."""

    source: int
    buffer: Buffer


class Wait(NamedTuple):
    """Go on once all copies that this rank asked for are done: those of one buffer, or of all of them."""

    buffer: Buffer | None = None


class Compute(NamedTuple):
    """Report what was computed since the last command. source: whose keys; tiles: how many tiles of S.

    state: what the rank then knows about its rows, for the record: a softmax.State, or gradients.
    """

    source: int
    tiles: int
    state: Any = None


COMMANDS = (Send, Receive, Wait, Compute)
Command = Send | Receive | Wait | Compute


def check(command: object, rank: int, P: int) -> None:
    """Raise TypeError or ValueError unless a rank of P may yield this."""
    if not isinstance(command, COMMANDS):
        names = ", ".join(kind.__name__ for kind in COMMANDS)
        raise TypeError(f"rank {rank} yields {command!r:.60}; a rank yields {names}, all of flashlib.ring")
    if isinstance(command, Compute):
        for field, n in (("source", command.source), ("tiles", command.tiles)):
            if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
                raise TypeError(f"rank {rank}: Compute has {field} {n!r:.60}; pass a whole number of at least 0")
        return
    if not isinstance(command.buffer, Buffer) and not (isinstance(command, Wait) and command.buffer is None):
        said = f"{type(command).__name__} takes a Buffer, and was given {command.buffer!r:.60}"
        raise TypeError(f"rank {rank}: {said}")
    if isinstance(command, Send | Receive):
        other = command.to if isinstance(command, Send) else command.source
        if isinstance(other, bool) or not isinstance(other, int | np.integer) or not 0 <= other < P:
            raise ValueError(
                f"rank {rank}: {type(command).__name__} names rank {other!r:.60}; there are ranks 0 to {P - 1}: "
                "a ring goes on at 0, (r + 1) % P"
            )
        if other == rank:
            raise ValueError(f"rank {rank}: {type(command).__name__} names the rank itself")
