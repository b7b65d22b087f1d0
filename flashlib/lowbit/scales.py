"""Scales: numbers are divided before rounding, so that they lie in the range of the format's few numbers.

In a group that shares a scale, one large number makes the scale large, and all the others small.
"""

from typing import NamedTuple

import numpy as np

from flashlib.inputs import check_block_sizes, check_floating
from flashlib.lowbit.formats import check_format, rounded

SHARES = ("none", "tensor", "head", "block", "row", "channel")


class Quantised(NamedTuple):
    """Numbers of a format and their scales: X is about X_q * scale.

    X_q: the shape of X. scale: broadcasts to it, with all axes kept: (..., 1, 1) for a head, (..., N, 1) for rows
    and blocks, (..., 1, d) for channels.
    """

    X_q: np.ndarray
    scale: np.ndarray

    @property
    def X(self) -> np.ndarray:
        """X as the rounded numbers represent it."""
        return self.X_q * self.scale


def scales(
    X: np.ndarray, format: str, *, share: str = "head", block: int = 64, power_of_two: bool = False
) -> np.ndarray:
    """Return the scales of X, (..., N, d): the largest |x| of each group, divided by the format's largest number.

    share: which numbers share a scale: "none" (the scale is 1), "tensor", "head" (all of (N, d)), "block" (of
    `block` rows), "row" or "channel" (a column). power_of_two: round scales up to powers of two, so that dividing
    changes no mantissa. A scale is 1 if all numbers of its group are 0. Raises TypeError or ValueError for
    arguments other than these.
    """
    check_floating(X=X)
    largest = check_format("format", format).largest
    check_block_sizes(block=block)
    check_share("share", share)
    if X.ndim < 2:
        raise ValueError(f"X has shape {X.shape}; expected (N, d) or (H, N, d)")
    size = np.abs(X).astype(np.promote_types(X.dtype, np.float32), copy=False)
    top = _top(size, share, int(block))
    scale = np.where(top == 0, 1, top / largest) if share != "none" else np.ones_like(top)
    tiny = np.finfo(scale.dtype).tiny
    scale = np.maximum(scale, tiny)  # numbers this small leave no room for a scale
    if power_of_two:
        mantissa, exponent = np.frexp(scale)
        scale = np.ldexp(np.ones((), scale.dtype), exponent - (mantissa == 0.5))
    return scale


def _top(size, share, block):
    """Return the largest of the numbers that share a scale, in a shape that broadcasts to them."""
    if share in ("tensor", "none"):
        return size.max(initial=0, keepdims=True)
    if share == "head":
        return size.max(axis=(-2, -1), initial=0, keepdims=True)
    if share == "channel":
        return size.max(axis=-2, initial=0, keepdims=True)
    top = size.max(axis=-1, initial=0, keepdims=True)  # (..., N, 1)
    if share == "row" or not top.size:
        return top
    of_blocks = np.maximum.reduceat(top, np.arange(0, top.shape[-2], block), axis=-2)
    return np.repeat(of_blocks, block, axis=-2)[..., : top.shape[-2], :]


def quantised(
    X: np.ndarray, format: str, *, share: str = "head", block: int = 64, power_of_two: bool = False
) -> Quantised:
    """Return X divided by its scales and rounded to the format, and the scales. Arguments: see `scales`."""
    scale = scales(X, format, share=share, block=block, power_of_two=power_of_two)
    return Quantised(rounded(X / scale, format), scale)


def check_share(name: str, share: str, accepted: tuple[str, ...] = SHARES) -> None:
    """Raise ValueError unless `share` is an accepted word."""
    if share not in accepted:
        raise ValueError(f"{name} is {share!r}; accepted are {', '.join(map(repr, accepted))}")
