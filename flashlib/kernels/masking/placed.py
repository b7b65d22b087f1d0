"""Masks of parts of attention for the kernels: which of them a kernel asks where rows and keys stand.

Windows in equal steps are windows of the part already, see `masks.placed`, and what sees intervals has bounds in
memory, as in the whole. The functions of other masks, and what changes scores, are asked at positions: two pieces
of equal steps are a sum and a comparison. For more pieces torch asks what is seen, and keeps bits.
"""

from collections.abc import Iterable

import numpy as np

from flashlib import masks
from flashlib.kernels.masking.device_side import Line, Lines
from flashlib.masks.parts import positions


def by_kernel(part: masks.Mask) -> bool:
    """Return whether a kernel can ask what a Placed sees, at its positions."""
    if not isinstance(part, masks.Placed) or None in part.lines:
        return False
    known = isinstance(part.mask, masks.Window | masks.Prefix | masks.Documents)
    return known or isinstance(part.mask, masks.Function) and part.mask.kernel is not None


def lines(part: masks.Placed, place: masks.Place) -> Lines:
    """Return where a part of these sizes stands, as a kernel counts."""
    (start, step, split, jump), keys = part.lines  # type: ignore[misc]  # not None: `by_kernel` or `check` said so
    in_whole, in_part = part.N_k - part.N_q, place.past
    return Lines(Line(start + in_whole - step * in_part, step, split + in_part, jump), Line(*keys))


def whole(part: masks.Mask) -> masks.Mask:
    """Return the mask of which a Placed is a part, and any other as it is."""
    return part.mask if isinstance(part, masks.Placed) else part


def check(change: Iterable[masks.Mask]) -> None:
    """Raise ValueError unless kernels can change scores where these parts stand."""
    for part in change:
        if isinstance(part, masks.Placed) and (None in part.lines or isinstance(part.mask, masks.Placed)):
            raise ValueError(
                f"the mask is {part!r}, and kernels change scores of a part in one or two pieces of equal steps: "
                "place the mask of the whole, and compute other parts one by one"
            )


def plain(part: masks.Mask) -> masks.Mask:
    """Return a part of a table of blocks as a table of its own, where it cuts no block; else the mask as it is."""
    if not isinstance(part, masks.Placed) or not isinstance(part.mask, masks.Blocks):
        return part
    table, B_r, B_c = part.mask.table, part.mask.B_r, part.mask.B_c
    i, j = positions(part.rows) // B_r, positions(part.cols) // B_c
    if not all((ids == np.repeat(ids[::B], B)[: len(ids)]).all() for ids, B in ((i, B_r), (j, B_c))):
        return part
    return masks.Blocks(table[np.ix_(i[::B_r], j[::B_c])], B_r, B_c)
