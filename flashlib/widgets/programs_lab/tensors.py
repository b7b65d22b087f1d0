"""Which element of a tensor an offset is, if any: the tensor behind a pointer, as numbers in a row of memory."""

import functools
import math
from typing import NamedTuple

import numpy as np

MASKED, ELEMENT, OUTSIDE, OTHER = range(4)  # what a place of a block is, see `states`
LARGEST = 2**22  # elements that a tensor may span
NEAR = 64  # offsets past an end that have a place in the picture
NOWHERE = -1000  # the row of those that have none


class Tensor(NamedTuple):
    """The shape and the strides of what a pointer points at, in elements; its first element has the offset 0.

    Its last two axes are a matrix; a vector is a matrix of one row.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def span(self) -> tuple[int, int]:
        """The lowest offset of an element, and the one after the highest; (0, 0) without elements."""
        if not self.size:
            return 0, 0
        ends = [(n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)]
        return sum(end for end in ends if end < 0), sum(end for end in ends if end > 0) + 1

    @property
    def rows(self) -> int:
        return self.shape[-2] if len(self.shape) > 1 else 1

    @property
    def columns(self) -> int:
        return self.shape[-1] if self.shape else 1


@functools.lru_cache(64)
def element_numbers(tensor: Tensor) -> np.ndarray:
    """Return which element each offset of the span is, counted row by row, or -1 between elements.

    If elements share an offset, the first of them has it.
    """
    low, high = tensor.span
    offsets = np.zeros((), int)
    for n, stride in zip(tensor.shape, tensor.strides, strict=True):
        offsets = offsets[..., None] + stride * np.arange(n)
    of_offset = np.full(high - low, -1)
    of_offset[offsets.ravel()[::-1] - low] = np.arange(tensor.size)[::-1]
    return of_offset


@functools.lru_cache(64)
def is_in_order(tensor: Tensor) -> bool:
    """Return whether the offset of each element is its number, so that its rows lie one after the other."""
    return tensor.span == (0, tensor.size) and bool((np.diff(element_numbers(tensor)) == 1).all())


def elements(tensor: Tensor, offsets: np.ndarray) -> np.ndarray:
    """Return the number of the element that each offset is, or -1."""
    low, high = tensor.span
    inside = (offsets >= low) & (offsets < high)
    if inside.all():
        return element_numbers(tensor)[offsets - low]
    found = np.full(offsets.shape, -1)
    found[inside] = element_numbers(tensor)[offsets[inside] - low]
    return found


def states(found: np.ndarray, mask: np.ndarray, meant: np.ndarray | bool = True) -> np.ndarray:
    """Return what each place of a block is: MASKED, an ELEMENT, OUTSIDE of the tensor, or an OTHER element.

    found: the elements at its offsets. meant: whether the kernel means a place to be in the matrix. A column past
    the last one is an element too, of the next row: without a mask, a program takes what is not its own.
    """
    return np.where(mask, np.where(found < 0, OUTSIDE, np.where(meant, ELEMENT, OTHER)), MASKED)


def is_meant(tensor: Tensor, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return whether rows and columns are those of elements."""
    return (rows >= 0) & (rows < tensor.rows) & (columns >= 0) & (columns < tensor.columns)


def places(tensor: Tensor, offsets: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the row and the column of each offset in a matrix of the tensor, and the offset of its first element.

    It is the matrix of the first of these elements. If the elements are in order, their rows go on for NEAR
    offsets past both ends. All other offsets are NOWHERE.
    """
    count = max(tensor.rows * tensor.columns, 1)
    hit = found[found >= 0]
    first = count * (int(hit.flat[0]) // count) if hit.size else 0  # element of the matrix
    within = found - first
    here = (found >= 0) & (within >= 0) & (within < count)
    if is_in_order(tensor):
        beyond = (found < 0) & (offsets >= -NEAR) & (offsets < tensor.size + NEAR)
        within = np.where(beyond, offsets - first, within)
        here |= beyond
    rows, columns = (0, within) if tensor.rows == 1 else np.divmod(within, max(tensor.columns, 1))
    index = np.unravel_index(first, tensor.shape) if first else ()
    base = sum(int(n) * stride for n, stride in zip(index, tensor.strides, strict=False))
    return np.where(here, rows, NOWHERE), np.where(here, columns, 0), base
