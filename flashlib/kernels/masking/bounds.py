"""Which tiles are computed if every row sees an interval of keys whose ends never decrease from row to row.

Bounds give the intervals: a closed form for windows and prefixes; for documents and intersections two numbers for
each row and each key, in memory.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import triton

from flashlib import masks
from flashlib.kernels.launch import planning
from flashlib.kernels.launch.inputs import on_device_of
from flashlib.kernels.masking import device_side
from flashlib.kernels.masking.device_side import Closed, Intervals, TileTable
from flashlib.kernels.masking.pass_sizes import PassSizes

OTHERS = 256  # blocks that a block is compared with at a time


class ComputedTiles(NamedTuple):
    """Which tiles are computed: bounds of a Variant and their numbers, the order of blocks; see `device_side`."""

    function: Any
    numbers: Closed | Intervals | TileTable
    order: torch.Tensor | None


def bounded_tiles(hide: Sequence[masks.Mask], sizes: PassSizes) -> ComputedTiles | None:
    """Return the tiles of an intersection of masks from bounds; None if rows do not see intervals."""
    if (closed := closed_form(hide)) is not None:
        bounds = device_side.window_rows if sizes.transposed else device_side.window_keys
        return ComputedTiles(bounds, closed, None)
    each = [common_keys(hide, sizes.place._replace(b=b)) for b in range(batches_of(hide))]
    if each[0] is None:
        return None
    if sizes.transposed:
        each = [rows_of_keys(first, end, sizes.N_k) for first, end in each]
    first, end = (torch.from_numpy(np.stack(X).astype(np.int32)).to(sizes.device) for X in zip(*each, strict=True))
    return tiles_of_intervals(first, end, sizes)


def tiles_of_intervals(first: torch.Tensor, end: torch.Tensor, sizes: PassSizes) -> ComputedTiles:
    """Return the tiles from the bounds of rows, or of keys if transposed: (B or 1, N), int32, on any device.

    The CPU does not wait for them.
    """
    batches, N = first.shape
    T = triton.cdiv(N, sizes.B_C if sizes.transposed else sizes.B_R)
    spans = torch.empty(batches, T, device_side.SPAN.value, dtype=torch.int32, device=sizes.device)
    bounds = Intervals(first, end, N if batches > 1 else 0, N, T if batches > 1 else 0)
    if spans.numel():
        with on_device_of(spans):
            _spans_launch(batches * T, N, sizes)(spans, bounds)
    return ComputedTiles(device_side.loaded, bounds, spans)


@functools.lru_cache(maxsize=256)
def _spans_launch(programs, N, sizes) -> planning.Launch:
    own, streamed = (sizes.B_C, sizes.B_R) if sizes.transposed else (sizes.B_R, sizes.B_C)
    constants = {"B_OWN": own, "B": streamed, "TRANSPOSED": sizes.transposed, "OTHERS": OTHERS}
    return planning.Launch(device_side.spans, programs, (N, sizes.N_q, sizes.N_k), constants, {"num_warps": 1})


def batches_of(hide: Sequence[masks.Mask]) -> int:
    """Return how many sequences these masks distinguish."""
    return max((part.batches or 1 for part in hide), default=1)


def common_keys(hide: Sequence[masks.Mask], place: masks.Place) -> Any:
    """Return the keys that each row sees under all of these masks, as `Mask.keys`; None if one has no interval."""
    found = [part.keys(place) for part in hide or (masks.Mask(),)]
    each = [keys for keys in found if keys is not None]
    if len(each) < len(found):
        return None
    first, end = np.max([keys[0] for keys in each], axis=0), np.min([keys[1] for keys in each], axis=0)
    return first, np.maximum(first, end)


def rows_of_keys(first: np.ndarray, end: np.ndarray, N_k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first row that sees each key and the one after the last. first, end: of the keys of each row."""
    c = np.arange(N_k)
    rows = np.searchsorted(end, c, side="right")
    return rows, np.maximum(rows, np.searchsorted(first, c, side="right"))


def closed_form(hide: Sequence[masks.Mask]) -> Closed | None:
    """Return the bounds of a window or a prefix; None for anything else."""
    band = masks.common_band(part.band() for part in hide)
    if band is None:
        return None
    left, right = (masks.FAR if n is None else max(n, -masks.FAR) for n in (band.left, band.right))
    return Closed(left, right, band.prefix)
