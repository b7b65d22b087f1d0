"""Trips between HBM and the chip, as `memory.HBM` meters them, of standard attention and of FlashAttention."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from flashlib import masks, naive, tiled
from flashlib.inputs import resolve_scale
from flashlib.memory import HBM
from flashlib.types import Step


class Move(NamedTuple):
    """Rows of an array that are loaded, or stored."""

    name: str
    loads: bool
    rows: range
    nbytes: int  # as the meter counted them


class Trip(NamedTuple):
    """What is loaded, or stored, before anything else is computed."""

    moves: list[Move]
    step: Step | None = None  # of FlashAttention: what it computes from what was loaded

    @property
    def loads(self) -> bool:
        return self.moves[0].loads

    @property
    def nbytes(self) -> int:
        return sum(move.nbytes for move in self.moves)


class AttentionTrips(NamedTuple):
    """An attention, run to its end."""

    trips: list[Trip]
    arrays: dict[str, np.ndarray]  # all that was in HBM, as it is at the end


class LoggedHBM(HBM):
    """An array in slow memory that adds a Move to `log` for each slice that is loaded or stored."""

    name: str
    log: list

    @classmethod
    def place(cls, log: list, arrays: dict[str, np.ndarray]) -> "dict[str, LoggedHBM]":
        """Return the arrays as LoggedHBM, without copying, with one log and one meter for all."""
        placed: dict[str, Any] = dict(zip(arrays, cls.put(*arrays.values()), strict=True))
        for name, X in placed.items():
            X.name, X.log = name, log
        return placed

    def __getitem__(self, key):
        before = self.traffic.read
        tile = super().__getitem__(key)
        self.log.append(Move(self.name, True, range(len(self))[key], self.traffic.read - before))
        return tile

    def __setitem__(self, key, value):
        before = self.traffic.written
        super().__setitem__(key, value)
        self.log.append(Move(self.name, False, range(len(self))[key], self.traffic.written - before))


def standard(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> AttentionTrips:
    """Run the three passes of `naive.attention` on one head, (N, d) each."""
    S, P = (np.empty((len(Q), len(K)), Q.dtype) for _ in range(2))
    arrays = {"Q": Q, "K": K, "V": V, "S": S, "P": P, **_outputs(Q)}
    log: list = []
    mask = masks.resolve(None, False, len(Q), len(K))
    placed = LoggedHBM.place(log, arrays)
    naive.attention_passes(**placed, mask=mask, scale=resolve_scale(None, Q.shape[1]))
    return AttentionTrips(trips_of(log), arrays)


def flash(Q: np.ndarray, K: np.ndarray, V: np.ndarray, *, B: int) -> AttentionTrips:
    """Run `tiled.steps` on one head, (N, d) each, in tiles of B x B."""
    arrays = {"Q": Q, "K": K, "V": V, **_outputs(Q)}
    log: list = []
    placed = LoggedHBM.place(log, arrays)
    inputs = (placed[name] for name in "QKV")
    for step in tiled.steps(*inputs, O=placed["O"], lse=placed["lse"], B_r=B, B_c=B):
        log.append(step)
    return AttentionTrips(trips_of(log), arrays)


def trips_of(log: Iterable[Move | Step]) -> list[Trip]:
    """Return the trips of a log: each ends where the direction changes, or where a Step was computed."""
    trips: list[Trip] = []
    for entry in log:
        if isinstance(entry, Step):
            trips[-1] = trips[-1]._replace(step=entry)
        elif trips and trips[-1].loads == entry.loads and trips[-1].step is None:
            trips[-1].moves.append(entry)
        else:
            trips.append(Trip([entry]))
    return trips


def _outputs(Q):
    return {"O": np.empty_like(Q), "lse": np.empty(len(Q), Q.dtype)}
