"""Descriptions of a mask for the kernels, so that they need not evaluate it for each score."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from flashlib.masks.place import Place

Line = tuple[int, int, int, int]
"""Start, step, split, jump: item x has position start + step * x, plus jump from x = split on."""


class Band(NamedTuple):
    """Keys from r - left to r + right, None for no bound on that side, and the first `prefix` keys.

    In a part of attention left or right may be negative.
    """

    left: int | None
    right: int | None
    prefix: int = 0


def common_band(bands: Iterable[Band | None]) -> Band | None:
    """Return the band of an intersection of masks with these bands; None if it has none."""
    bands = tuple(bands)
    if None in bands or len(bands) > 1 and any(band.prefix for band in bands if band):
        return None
    left, right = (
        min((n for n in side if n is not None), default=None)
        for side in ([band.left for band in bands if band], [band.right for band in bands if band])
    )
    return Band(left, right, bands[0].prefix if bands and bands[0] else 0)


class BlockTable(NamedTuple):
    """Which blocks of B_r x B_c scores are seen, (T_r, T_c) of bool, counted from the first row and key."""

    table: np.ndarray
    B_r: int
    B_c: int


class DeviceTest(NamedTuple):
    """How a kernel tests whether a score is seen.

    function: of (b, h, r, c), and of numbers if there are any: its name in `kernels.masking.device_side`, or a
    @triton.jit function. numbers: whole numbers and arrays, or None. sized: whether they are valid only for the
    sizes of the place. lines: map the rows and keys of a part to positions in the whole, which the function then
    gets; None if it is not the mask of a part.
    """

    function: str | Callable
    numbers: tuple | None = None
    sized: bool = False
    lines: tuple[Line, Line] | None = None


class BiasLookup(NamedTuple):
    """Which entry of a tensor a score reads.

    function: of (b, h, r, c), and of own unless that is None: its name in `kernels.masking.looked_up`, or a
    @triton.jit function, which has no own. bias: the tensor. shape: to which it is reshaped. by_bias: the
    derivative of the changed score with respect to the entry. by_row: whether rows have separate entries. place:
    the sizes for which this holds. index: of (place, r, c, shape), the same as the function in torch; it raises
    TypeError or ValueError for entries that do not exist.
    """

    function: str | Callable
    own: int | None
    bias: Any
    shape: tuple[int, ...]
    by_bias: str | Callable
    by_row: bool
    place: Place
    index: Callable


class DeviceChange(NamedTuple):
    """How a kernel changes scores.

    score, slope: the change and its derivative, of (S, h, r, c), and of numbers, or of the entry that a score
    reads, if there are any: names in `kernels.masking.device_side` or `looked_up`, or @triton.jit functions.
    numbers: numbers and arrays, or None. lookup: the tensor that scores read, or None. lines: as in DeviceTest.
    """

    score: str | Callable
    slope: str | Callable
    numbers: tuple | None = None
    lookup: BiasLookup | None = None
    lines: tuple[Line, Line] | None = None
