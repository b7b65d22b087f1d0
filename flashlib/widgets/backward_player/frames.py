"""A recorded pass of the backward, with its error after each step, packed for the page."""

from typing import Any, NamedTuple

import numpy as np

from flashlib import naive, tiled
from flashlib.inputs import resolve_scale
from flashlib.memory import HBM
from flashlib.pictures.number_text import number
from flashlib.types import BackwardStep, Grads
from flashlib.widgets.flash_player.frames import LoggedOutput, PackedArrays, StoredRows, follow, pack_steps

GRADIENTS = {"kv": ("dV", "dK"), "q": ("dQ",)}
"""The gradients that each pass writes, in the order in which a step adds to them."""

PACKED = ("S_ij", "P_ij", "dP_ij", "dS_ij")
"""What is packed for each step; then, for each gradient: the sum before, what the step adds, and the sum."""


class BackwardRecording(NamedTuple):
    """All steps of one pass, which rows of the gradients were stored when, and the bytes moved by then.

    read, written: as in the ForwardRecording. delta is computed before the first step, and its bytes count.
    """

    steps: list[BackwardStep]
    writes: list[StoredRows]
    read: list[int]
    written: list[int]
    sums: list[list[tuple]]  # for each step and gradient: the sum before, what is added, the sum; (block, d)
    lse: np.ndarray  # (N_q,)
    delta: np.ndarray  # (N_q,)


class Errors(NamedTuple):
    """Largest differences from the exact gradients; what has not been summed yet counts as zero.

    before, after: of the block that step k sums, each (T,). whole: of all rows before each step, and at the end,
    (T + 1,). After a step that stores, they are the errors of the stored rows.
    """

    before: np.ndarray
    after: np.ndarray
    whole: np.ndarray


def record(
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    dO: np.ndarray,
    *,
    wrt: str,
    B_r: int,
    B_c: int,
    causal: bool,
    scale: float | None,
) -> BackwardRecording:
    """Run the forward pass, then tiled.backward_steps, metered, for wrt "kv" or "q"; raises what these raise."""
    tiling: dict[str, Any] = {"B_r": B_r, "B_c": B_c, "causal": causal, "scale": scale}
    O, lse = tiled.attention(Q, K, V, **tiling)
    placed = HBM.put(Q, K, V, O, lse, dO)
    outputs: dict[str, Any] = {
        name: np.empty_like(placed["QKV".index(name[1])]).view(LoggedOutput) for name in GRADIENTS[wrt]
    }
    trace = tiled.backward_steps(*placed, wrt=wrt, **tiling, **outputs)  # type: ignore[misc]
    steps, writes, read, written = follow(trace, outputs)
    scale = resolve_scale(scale, Q.shape[1])
    Q_acc, K_acc, dO_acc = (tiled.load(X, slice(None)) for X in (Q, K, dO))
    sums = []
    for k, step in enumerate(steps):
        before = steps[k - 1] if k and is_same_block(steps[k - 1], step, wrt) else None
        sums.append([_sum(name, step, before, Q_acc, K_acc, dO_acc, scale) for name in GRADIENTS[wrt]])
    return BackwardRecording(steps, writes, read, written, sums, lse, tiled.compute_delta(O, dO, lse, B_r))


def is_same_block(a: BackwardStep, b: BackwardStep, wrt: str) -> bool:
    """Return whether two steps add to the same block."""
    return a.j == b.j if wrt == "kv" else a.i == b.i


def _sum(name, step, before, Q, K, dO, scale):
    """Return a gradient's sum before a step, what the step adds to it, as in the loop, and the new sum."""
    if name == "dV":
        added = step.P_ij.T @ dO[step.rows]
    elif name == "dK":
        added = step.dS_ij.T @ (Q[step.rows] * scale)
    else:
        added = step.dS_ij @ K[step.cols]
    total = getattr(step, f"{name}_{'i' if name == 'dQ' else 'j'}")
    old = np.zeros_like(total) if before is None else getattr(before, f"{name}_{'i' if name == 'dQ' else 'j'}")
    return old, added, total


def exact_gradients(Q: np.ndarray, K: np.ndarray, V: np.ndarray, dO: np.ndarray, **setting: Any) -> Grads:
    """Return the Grads of standard attention, all of it in fp64."""
    Q, K, V, dO = (X.astype(np.float64) for X in (Q, K, V, dO))
    return naive.backward(Q, K, V, *naive.attention(Q, K, V, **setting), dO, **setting)


def errors(recording: BackwardRecording, exact: Grads, *, wrt: str, scale: float | None) -> Errors:
    """Return the Errors of a recording; exact: Grads; scale: a number."""
    blocks = [step.cols if wrt == "kv" else step.rows for step in recording.steps]
    stored = {(w.after, w.name, w.rows.start): w.X for w in recording.writes}
    after = np.zeros(len(blocks))
    # At the first row of each block: its error so far.
    left = np.zeros(max((write.rows.start for write in recording.writes), default=0) + 1)
    for n, name in enumerate(GRADIENTS[wrt]):
        true = np.asarray(getattr(exact, name))
        totals = [sums[n][2] * scale if name == "dQ" else sums[n][2] for sums in recording.sums]
        held = [stored.get((k, name, blocks[k].start), X) for k, X in enumerate(totals)]
        after = np.maximum(after, _off(true, blocks, held))  # NaN stays NaN
        written = [write.rows for write in recording.writes if write.name == name]
        starts = [rows.start for rows in written]
        zeros = [np.zeros_like(true[rows]) for rows in written]
        left[starts] = np.maximum(left[starts], _off(true, written, zeros))
    before, whole = [], [left.max()]
    for block, error in zip(blocks, after, strict=True):
        before.append(left[block.start])
        left[block.start] = error
        whole.append(np.maximum.reduce(left))
    return Errors(np.array(before), after, np.array(whole))


def _off(true, blocks, rows):
    """Return each array's largest error against its rows of `true`, all at once: there may be thousands."""
    if not blocks:
        return np.zeros(0)
    which = np.concatenate([np.arange(block.start, block.stop) for block in blocks])
    of_rows = np.maximum.reduce(np.abs(np.concatenate(rows) - true[which]), axis=1, initial=0)
    return np.maximum.reduceat(of_rows, np.cumsum([0, *(len(X) for X in rows[:-1])]))


def in_words(error: float, dtype: str) -> str:
    """Return an error to four digits, or that it is rounding, whose digits differ between machines."""
    bound = 10.0 ** np.ceil(np.log10(np.finfo(dtype).eps) / 2)
    return f"below {bound:g}" if error < bound else number(error)


def pack(
    recording: BackwardRecording,
    found: Errors,
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    dO: np.ndarray,
    *,
    wrt: str,
) -> dict:
    """Return the recording, its Errors and its inputs as integers and one buffer of float64, little-endian.

    steps, inputs: as returned by `pack` of the forward pass. writes: [step, first row, last row + 1, offset,
    name]. errors: the offset of each array of the Errors.
    """
    buffer = PackedArrays()
    inputs = {"Q": Q, "K": K, "V": V, "dO": dO, "lse": recording.lse, "delta": recording.delta}
    arrays = [
        (*(getattr(step, name) for name in PACKED), *(X for three in sums for X in three))
        for step, sums in zip(recording.steps, recording.sums, strict=True)
    ]
    sums = [f"{name}_{part}" for name in GRADIENTS[wrt] for part in ("old", "added", "sum")]
    return {
        "packed": [*PACKED, *sums],
        "gradients": GRADIENTS[wrt],
        "inputs": {name: buffer.put(X) for name, X in inputs.items()},
        **pack_steps(recording, arrays, buffer),
        "writes": [[w.after, w.rows.start, w.rows.stop, buffer.put(w.X), w.name] for w in recording.writes],
        "errors": {name: buffer.put(X) for name, X in found._asdict().items()},
        "buffer": buffer.bytes(),
    }
