"""The memory of tensors: bytes with an address, new ones and those of arrays of NumPy."""

import math

import numpy as np
import page_memory


class UntypedStorage(page_memory.Storage):
    """Bytes that one tensor or several see. written: how often torch wrote to them; kernels do not count."""

    def __init__(self, held):
        super().__init__(held)
        self.written = 0

    def data_ptr(self):
        return self.start

    def nbytes(self):
        return self.size

    def cpu(self):
        return self

    def copy_(self, other, non_blocking=False):  # noqa: ARG002
        if other is not self:
            self.bytes[:] = other.bytes
        return self


class _Span:
    """The bytes from the first one of an array to its last one, for NumPy."""

    def __init__(self, array, size):
        start = array.__array_interface__["data"][0]
        self.array = array  # which keeps them alive
        self.__array_interface__ = {"data": (start, False), "shape": (size,), "typestr": "|u1", "version": 3}


def of_array(array):
    """Return a storage with the memory of an array."""
    if any(step < 0 for step in array.strides):
        raise ValueError("the array has a negative stride, and tensors have none: copy it with array.copy()")
    steps = sum((n - 1) * step for n, step in zip(array.shape, array.strides, strict=True))
    size = steps + array.itemsize if array.size else 0
    return UntypedStorage(np.asarray(_Span(array, size)) if size else np.empty(0, np.uint8))


def contiguous_strides(shape):
    """Return the steps from one element to the next along each axis, in elements, of an array in order."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def dense_strides(shape, strides):
    """Return strides without gaps whose axes have the order that those of other strides have."""
    order = sorted(range(len(shape)), key=lambda k: (-strides[k], k))
    steps = dict(zip(order, contiguous_strides([shape[k] for k in order]), strict=True))
    return tuple(steps[k] for k in range(len(shape)))


def new_array(shape, strides, of):
    """Return (an array of zeros with these strides, in elements; its storage)."""
    last = sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) if math.prod(shape) else -1
    n = (last + 1) * of.itemsize
    try:
        storage = UntypedStorage(np.zeros(n, np.uint8))
    except (MemoryError, ValueError):  # ValueError: more than 32 bits can count
        raise RuntimeError(f"can't allocate memory: you tried to allocate {n} bytes.") from None
    return view(storage, shape, strides, 0, of), storage


def view(storage, shape, strides, offset, of):
    """Return an array that sees a part of a storage; strides, offset: in elements."""
    if not math.prod(shape):
        return np.empty(shape, of.kept)
    steps = tuple(n * of.itemsize for n in strides)
    return np.ndarray(shape, of.kept, storage.bytes, offset * of.itemsize, steps)
