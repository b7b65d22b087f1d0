"""What MaskLab shows: kinds of tiles and runs of seen keys, from the mask, and counts, from `cost`."""

from typing import Any

import numpy as np

from flashlib import cost
from flashlib.masks import Mask, Tiles
from flashlib.pictures.number_text import number

ITEM = 2  # bytes, of fp16 and bf16
ENTRY = 4  # bytes, of a tile in a kernel's table: see flashlib/kernels/masking/tile_table.py
HIDDEN, CUT, WHOLE = "hcw"


def compute(mask: Mask, N_q: int, N_k: int, B_r: int, B_c: int, d: int) -> dict:
    """Return what the page draws and counts, as numbers, lists and texts.

    runs: for each row, the first key and the one after the last of each run of seen keys. kinds: for each row
    block, a string with a letter for each of its tiles.
    """
    tiles = mask.on(N_q, N_k)
    rows, cols = blocks(N_q, B_r), blocks(N_k, B_c)
    seen = tiles.seen(*tiles.all)
    kinds = kinds_of(tiles, seen, rows, cols)
    computed = kinds != HIDDEN
    tile: dict[str, Any]
    sizes, tile = (N_q, N_k, d), {"B_r": B_r, "B_c": B_c}
    flops = [cost.fa2_work(*sizes, **tile, mask=which).matmul for which in (mask, None)]
    moved = [cost.fa2_traffic(*sizes, **tile, dtype="float16", mask=which) for which in (mask, None)]
    keys = [traffic.read - N_q * d * ITEM for traffic in moved]  # all but Q
    runs = runs_of(seen)
    return {
        "runs": runs,
        "kinds": ["".join(row) for row in kinds],
        "tiles": {"all": kinds.size, "computed": int(computed.sum()), **_counts(kinds)},
        "scores": {"all": seen.size, "computed": flops[0] // (4 * d), "seen": int(seen.sum())},
        "against": [
            _against("tiles", int(computed.sum()), kinds.size, 1),
            _against("MFLOP", *flops, 1e6),  # type: ignore[call-arg]
            _against("KB of K and V", *keys, 1024),  # type: ignore[call-arg]
        ],
        "bounds": tiles.keys is not None,
        "interval": tiles.keys is not None or is_interval(runs),
        "table": ENTRY * kinds.size,  # bytes
        "changes_scores": bool(mask.changes_scores),
    }


def blocks(N: int, B: int) -> list[slice]:
    """Return the slices of N into blocks of B, the last of which may be smaller."""
    return [slice(start, min(start + B, N)) for start in range(0, N, B)]


def kinds_of(tiles: Tiles, seen: np.ndarray, rows: list[slice], cols: list[slice]) -> np.ndarray:
    """Return the kind of each tile, (T_r, T_c) of letters, like `Tiles.hidden` and `Tiles.cut`.

    Without bounds, these look at the scores of a tile. Here `seen`, (N_q, N_k), has all of them at once.
    """
    if tiles.keys is not None:
        return np.array([[_kind(tiles, one, other) for other in cols] for one in rows])
    starts = [[one.start for one in part] for part in (rows, cols)]

    def each(operation):
        return operation.reduceat(operation.reduceat(seen, starts[0], axis=0), starts[1], axis=1)

    return np.where(each(np.logical_and), WHOLE, np.where(each(np.logical_or), CUT, HIDDEN))


def runs_of(seen: np.ndarray) -> list[list[list[int]]]:
    """Return, for each row, the first key and the one after the last of each run of seen keys."""
    edges = np.diff(np.pad(seen, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    return [np.flatnonzero(row).reshape(-1, 2).tolist() for row in edges]


def packed(runs: list[list[list[int]]]) -> bytes:
    """Return the runs of all rows as int32, as lists take longer: how many each row has, then their ends."""
    counts, ends = [len(row) for row in runs], [end for row in runs for run in row for end in run]
    return np.array(counts + ends, "<i4").tobytes()


def is_interval(runs: list[list[list[int]]]) -> bool:
    """Return whether each row sees at most one run, and neither end ever falls from row to row."""
    if any(len(row) > 1 for row in runs):
        return False
    ends = np.array([row[0] for row in runs if row])
    return len(ends) < 2 or bool((np.diff(ends, axis=0) >= 0).all())


def _against(name, mask, dense, unit):
    """Return the cost with a mask and without one: counts, and texts in a unit."""
    texts = {
        "text": f"{number(mask / unit)} of {number(dense / unit)}",
        "percent": f"{number(100 * mask / dense)}%",
    }
    return {"name": name, "mask": mask, "dense": dense, "ratio": mask / dense, **texts}


def _kind(tiles, rows, cols):
    if tiles.hidden(rows, cols):
        return HIDDEN
    return CUT if tiles.cut(rows, cols) else WHOLE


def _counts(kinds):
    names = {"hidden": HIDDEN, "whole": WHOLE, "cut": CUT}
    return {name: int((kinds == letter).sum()) for name, letter in names.items()}
