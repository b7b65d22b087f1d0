"""Stand-ins for tensors with gaps between their elements in memory, to be passed to a launch."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from flashlib.checks.engine.value_text import show


class Out(NamedTuple):
    """Stands for an output of this shape, float32, which the launch must fill; strides are in elements."""

    shape: tuple
    strides: tuple | None = None

    def __repr__(self):
        if _has_gaps(self):
            return f"a tensor of shape {self.shape} with the strides {self.strides}, to be filled"
        return f"a tensor of shape {self.shape}, to be filled"


class Strided:
    """Stands for an input with gaps between its elements in memory, filled with nan; strides are in elements."""

    def __init__(self, array: np.ndarray, strides: tuple[int, ...]) -> None:
        self.array, self.shape, self.strides = np.asarray(array), np.shape(array), strides

    def __array__(self, dtype=None, copy=None):
        return self.array.astype(dtype or self.array.dtype)

    def __len__(self):
        return len(self.array)

    def __repr__(self):
        shown = show(self.array)
        return f"{shown} with the strides {self.strides}" if _has_gaps(self) else shown


def _has_gaps(x):
    return strides_of(x) != contiguous(x.shape)


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of an array of this shape without gaps."""
    return tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))


def strides_of(x: np.ndarray | Out | Strided) -> tuple[int, ...]:
    """Return the strides, in elements, that an Out, a Strided or an array has in the launch."""
    return contiguous(x.shape) if isinstance(x, np.ndarray) or x.strides is None else x.strides


def extent(x: np.ndarray | Out | Strided) -> int:
    """Return the number of elements in memory from the first to the last, inclusive."""
    if 0 in x.shape:
        return 0
    return 1 + sum((n - 1) * stride for n, stride in zip(x.shape, strides_of(x), strict=True))


def offsets_of(shape: Sequence[int], strides: Sequence[int]) -> np.ndarray:
    """Return the offset of each element of an array, in elements from the first."""
    return sum(stride * n for stride, n in zip(strides, np.indices(shape), strict=True))


def memory(x: np.ndarray | Strided) -> Callable[[np.ndarray], np.ndarray]:
    """Return the memory of an input as a function of offsets from its first element; nan outside its elements."""
    flat = np.full(extent(x), np.nan)
    flat[offsets_of(x.shape, strides_of(x))] = np.asarray(x)

    def load(offsets):
        inside = (offsets >= 0) & (offsets < len(flat))
        return np.where(inside, flat.take(np.where(inside, offsets, 0), mode="clip") if len(flat) else 0, np.nan)

    return load
