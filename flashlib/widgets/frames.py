"""A run of tiled.steps recorded, and packed into one buffer that JavaScript can play."""

from typing import NamedTuple

import numpy as np

from flashlib import tiled
from flashlib.state import Step

PACKED = ("S_ij", "P_ij", "m_old", "m", "alpha", "l_old", "l", "O_acc_old", "O_acc")
"""What is packed of each Step, in this order."""


class Write(NamedTuple):
    """Rows of O that memory holds anew at a position."""

    position: int  # the first one at which they are there: 0 .. T, where T is "finished"
    rows: slice
    O: np.ndarray  # (rows, d)


class Recording(NamedTuple):
    """All steps of a run, and when which rows of O were stored."""

    steps: list[Step]
    writes: list[Write]
    lse: np.ndarray  # (N_q,)
    shape: tuple[int, int]  # of O

    def O_at(self, position):
        """Return O as memory held it at a position, (N_q, d); NaN where nothing was written yet."""
        O = np.full(self.shape, np.nan)
        for write in self.writes:
            if write.position <= position:
                O[write.rows] = write.O
        return O


def record(Q, K, V, **setting) -> Recording:
    """Run tiled.steps(Q, K, V, **setting) and return its Recording; raises what it raises."""
    O = np.full_like(Q, np.nan).view(_Store)
    lse = np.full_like(Q, np.nan, shape=Q.shape[:1], dtype=np.promote_types(Q.dtype, np.float32))
    steps, writes = [], []

    def note(position):
        writes.extend(Write(position, slice(*rows.indices(len(O))[:2]), O[rows].copy()) for rows in O.stored)
        O.stored.clear()

    for step in tiled.steps(Q, K, V, **setting, O=O, lse=lse):
        note(len(steps))
        steps.append(step)
    note(len(steps))
    return Recording(steps, writes, lse, O.shape)


class _Store(np.ndarray):
    """An array that keeps a list, `stored`, of the rows that were stored into it."""

    def __array_finalize__(self, parent):
        self.stored = []

    def __getitem__(self, key):
        return self.view(np.ndarray)[key]

    def __setitem__(self, rows, value):
        self.view(np.ndarray)[rows] = value
        self.stored.append(rows)


def pack(recording, Q, K, V) -> dict:
    """Return the recording and its inputs as whole numbers and one buffer of float64, little-endian.

    steps: [i, j, first row, last row + 1, first column, last column + 1, offset] of each, where the arrays
    named in `packed` lie one after another from offset on. writes: [position, first row, last row + 1, offset].
    inputs: the offsets of Q, K, V and lse. Offsets count numbers, not bytes.
    """
    arrays, n = [], 0

    def put(*Xs):
        nonlocal n
        offset = n
        for X in Xs:
            arrays.append(np.ravel(X))
            n += arrays[-1].size
        return offset

    inputs = {"Q": put(Q), "K": put(K), "V": put(V), "lse": put(recording.lse)}
    steps = [
        [
            s.i,
            s.j,
            s.rows.start,
            s.rows.stop,
            s.cols.start,
            s.cols.stop,
            put(*(getattr(s, x) for x in PACKED)),
        ]
        for s in recording.steps
    ]
    writes = [[w.position, w.rows.start, w.rows.stop, put(w.O)] for w in recording.writes]
    buffer = np.concatenate(arrays, dtype="<f8", casting="safe").tobytes()
    return {"packed": PACKED, "inputs": inputs, "steps": steps, "writes": writes, "buffer": buffer}
