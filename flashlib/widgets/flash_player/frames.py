"""A recorded run of the algorithm, packed into one buffer that JavaScript can play."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from flashlib import tiled
from flashlib.memory import HBM
from flashlib.softmax import State
from flashlib.types import Step

PACKED = ("S_ij", "P_ij", "m_old", "m", "alpha", "l_old", "l", "O_acc_old", "O_acc")
"""Packed for each Step, in this order; then alpha * l_old and alpha * O_acc_old, and a learner's true State."""

RESCALED = ("l_rescaled", "O_acc_rescaled")
TRUE = ("m_true", "l_true", "O_acc_true")


class StoredRows(NamedTuple):
    """Rows of an output, as a step stored them."""

    after: int  # the step that stored them, 0 .. T - 1; -1 for before the first one
    rows: slice
    X: np.ndarray  # (rows, d)
    name: str = "O"


class ForwardRecording(NamedTuple):
    """All steps of a run, which rows of O were stored when, and the bytes moved by then.

    read[k]: bytes read once step k has its tiles; read[T]: in all.
    written[k]: bytes written before step k stores; written[T]: once the last one has; written[T + 1]: in all.

    For a learner's steps: true, the correct State of each; O_true, the correct O; missed, the tiles (i, j) that
    should have been computed and were not; remark, a sentence on how the steps ended, or "".
    """

    steps: list[Step]
    writes: list[StoredRows]
    read: list[int]
    written: list[int]
    O: np.ndarray  # (N_q, d)
    lse: np.ndarray  # (N_q,)
    true: list[State] | None = None
    O_true: np.ndarray | None = None
    missed: tuple = ()
    remark: str = ""

    def O_at(self, position: int) -> np.ndarray:
        """Return O before step `position` stores, or at the end, (N_q, d); NaN where nothing was written yet."""
        O = np.full(self.O.shape, np.nan)
        for write in self.writes:
            if write.after < position:
                O[write.rows] = write.X
        return O


class LoggedOutput(HBM):
    """An array in slow memory that keeps a list, `stored`: (rows, their values, bytes written before)."""

    def __array_finalize__(self, parent):
        super().__array_finalize__(parent)
        self.stored = []

    def __setitem__(self, rows, value):
        before = self.traffic.written
        super().__setitem__(rows, value)
        self.stored.append((slice(*rows.indices(len(self))[:2]), self.view(np.ndarray)[rows].copy(), before))


def record(Q: np.ndarray, K: np.ndarray, V: np.ndarray, *, order: str, **setting: Any) -> ForwardRecording:
    """Run tiled.steps(Q, K, V, order=order, ...), metered, and return its recording; raises what it raises."""
    Q, K, V = HBM.put(Q, K, V)
    O = np.empty_like(Q).view(LoggedOutput)
    lse = np.empty_like(Q, shape=Q.shape[:1], dtype=np.promote_types(Q.dtype, np.float32))
    trace = tiled.steps(Q, K, V, order=order, **setting, O=O, lse=lse)
    followed = follow(trace, {"O": O}, stores_first=order == "fa1")
    return ForwardRecording(*followed, O.view(np.ndarray), lse.view(np.ndarray))


def follow(
    trace: Iterable, outputs: dict[str, LoggedOutput], *, stores_first: bool = False
) -> tuple[list, list[StoredRows], list[int], list[int]]:
    """Run a trace that writes to outputs, {name: LoggedOutput}; return its steps, writes, read and written.

    stores_first: every step stores to the one output before it is yielded; else after it.
    """
    moved = next(iter(outputs.values())).traffic
    steps, writes, read, written = [], [], [], []

    def take(after):
        for name, output in outputs.items():
            writes.extend(StoredRows(after, rows, X, name) for rows, X, _ in output.stored)
            output.stored.clear()

    for step in trace:
        k = len(steps)
        own = [output.stored.pop() for output in outputs.values() if stores_first]
        take(k - 1)
        written.append(moved.written)
        for rows, X, written[k] in own:
            writes.append(StoredRows(k, rows, X))
        steps.append(step)
        read.append(moved.read)
        after_step = moved.written
    take(len(steps) - 1)
    written.append(after_step if steps and stores_first else moved.written)
    return steps, writes, [*read, moved.read], [*written, moved.written]


def pack(recording: ForwardRecording, Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> dict:
    """Return the recording and its inputs as integers and one buffer of float64, little-endian.

    steps: for each, [i, j, first row, last row + 1, first column, last column + 1, bytes read by then, bytes
    written by then, and the offset of each array named in `packed`]. writes: [step, first row, last row + 1,
    offset]. inputs: the offsets of Q, K, V and lse. Offsets count numbers, not bytes; an array that steps share is
    in the buffer once.
    """
    buffer = PackedArrays()
    truths: Sequence = recording.true or [()] * len(recording.steps)  # type: ignore[list-item]
    arrays = [
        (*(getattr(step, name) for name in PACKED), *_rescaled(step), *truth)
        for step, truth in zip(recording.steps, truths, strict=True)
    ]
    return {
        "packed": PACKED + RESCALED + (TRUE if recording.true else ()),
        "inputs": {"Q": buffer.put(Q), "K": buffer.put(K), "V": buffer.put(V), "lse": buffer.put(recording.lse)},
        **pack_steps(recording, arrays, buffer),
        "writes": [[w.after, w.rows.start, w.rows.stop, buffer.put(w.X)] for w in recording.writes],
        "buffer": buffer.bytes(),
    }


def pack_steps(recording: Any, arrays: Iterable[tuple[np.ndarray, ...]], buffer: "PackedArrays") -> dict:
    """Return the steps of a recording with the offsets of their arrays, and the bytes moved before and in all."""
    steps = []
    for k, (step, own) in enumerate(zip(recording.steps, arrays, strict=True)):
        rows, cols = step.rows, step.cols
        moved = recording.read[k], recording.written[k + 1]
        offsets = map(buffer.put, own)
        steps.append([step.i, step.j, rows.start, rows.stop, cols.start, cols.stop, *moved, *offsets])
    moved = [recording.read[-1], recording.written[-1]]
    return {"steps": steps, "start": recording.written[0], "all": moved}


class PackedArrays:
    """One buffer of float64 with arrays one after another, each once."""

    def __init__(self):
        self._arrays, self._offsets, self._size = [], {}, 0

    def put(self, X: np.ndarray) -> int:
        """Return the offset of X, an array that must not change."""
        offset = self._offsets.get(id(X))
        if offset is None:
            offset = self._offsets[id(X)] = self._size
            self._arrays.append(X)
            self._size += X.size
        return offset

    def bytes(self) -> bytes:
        return np.concatenate([X.ravel() for X in self._arrays], dtype="<f8", casting="safe").tobytes()


def _rescaled(step):
    """Return alpha * l_old and alpha * O_acc_old: the old arrays themselves if every alpha is 1."""
    if (step.alpha == 1).all():
        return step.l_old, step.O_acc_old
    return step.alpha * step.l_old, step.alpha[:, None] * step.O_acc_old
