"""Methods of tensors that return the same numbers: others of them, in another order or shape."""

import math

import numpy as np

from . import storage
from .device import sizes
from .dtypes import bool_, dtype


class Views:
    def __getitem__(self, key):
        key = index(key)
        found = self._array[key]
        if _copies(key):
            return self._raw(found, self.dtype)
        if not isinstance(found, np.ndarray):  # one element: the same memory
            found = self._array[(*key, ...)]
        return self._seen(found)

    def as_strided(self, size, stride, storage_offset=None):
        at = self.storage_offset() if storage_offset is None else storage_offset
        return self._seen(storage.view(self._storage, sizes((size,)), sizes((stride,)), at, self.dtype))

    def set_(self, source, storage_offset=0, size=(), stride=()):
        """See a part of another storage from now on."""
        self._storage = source
        self._array = storage.view(source, sizes((size,)), sizes((stride,)), storage_offset, self.dtype)
        return self

    def view(self, *shape):
        if isinstance(shape[0], dtype):
            return self._seen(self._array.view(shape[0].kept), shape[0])
        found = self.reshape(*shape)
        if found._storage is not self._storage:
            raise RuntimeError(
                "view size is not compatible with input tensor's size and stride (at least one dimension spans "
                "across two contiguous subspaces). Use .reshape(...) instead."
            )
        return found

    def reshape(self, *shape):
        shape = sizes(shape)
        if -1 not in shape and math.prod(shape) != self._array.size:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {self._array.size}")
        found = self._array.reshape(shape)
        shared = not self._array.size or np.may_share_memory(found, self._array)
        return self._seen(found) if shared else self._raw(found, self.dtype)

    def view_as(self, other):
        return self.view(other.shape)

    def reshape_as(self, other):
        return self.reshape(other.shape)

    def flatten(self, start_dim=0, end_dim=-1):
        if not self.ndim:
            return self.reshape(1)
        first, last = start_dim % self.ndim, end_dim % self.ndim
        return self.reshape(*self.shape[:first], math.prod(self.shape[first : last + 1]), *self.shape[last + 1 :])

    def unflatten(self, dim, shape):
        dim %= self.ndim
        return self.reshape(*self.shape[:dim], *shape, *self.shape[dim + 1 :])

    ravel = flatten

    def transpose(self, dim0, dim1):
        return self._seen(self._array.swapaxes(dim0, dim1))

    swapaxes = transpose

    def t(self):
        return self._seen(self._array.T)

    T = property(t)
    mT = property(lambda self: self.transpose(-1, -2))

    def permute(self, *dims):
        return self._seen(self._array.transpose(sizes(dims)))

    def movedim(self, source, destination):
        return self._seen(np.moveaxis(self._array, source, destination))

    def unsqueeze(self, dim):
        return self._seen(np.expand_dims(self._array, dim))

    def squeeze(self, dim=None):
        ones = [k for k, n in enumerate(self.shape) if n == 1]
        if dim is not None:
            chosen = {k % self.ndim for k in sizes((dim if isinstance(dim, tuple | list) else (dim,),))}
            ones = [k for k in ones if k in chosen]
        return self._seen(np.squeeze(self._array, tuple(ones)))

    def expand(self, *shape):
        shape = sizes(shape)
        own = (1,) * (len(shape) - self.ndim) + tuple(self.shape)
        whole = tuple(m if n == -1 else n for n, m in zip(shape, own, strict=True))
        return self._strided_as(np.broadcast_to(self._array, whole))

    def _strided_as(self, array):
        """Return a tensor that sees what an array of NumPy sees, which may be one that must not be written to."""
        return self.as_strided(array.shape, [n // self.itemsize for n in array.strides])

    def expand_as(self, other):
        return self.expand(other.shape)

    broadcast_to = expand

    def narrow(self, dim, start, length):
        return self._seen(self._array[_along(self, dim, slice(int(start), int(start) + int(length)))])

    def select(self, dim, index):
        return self[_along(self, dim, int(index))]

    def unbind(self, dim=0):
        return tuple(self.select(dim, k) for k in range(self.shape[dim]))

    def split(self, split_size, dim=0):
        n = self.shape[dim]
        each = split_size if isinstance(split_size, tuple | list) else [split_size] * (n // split_size)
        each = [*each, n - sum(each)] if sum(each) < n else each
        starts = np.cumsum([0, *each])[:-1]
        return tuple(self.narrow(dim, start, length) for start, length in zip(starts, each, strict=True))

    def split_with_sizes(self, split_sizes, dim=0):
        return self.split(split_sizes, dim)

    unsafe_split_with_sizes = split_with_sizes

    def chunk(self, chunks, dim=0):
        return self.split(-(-self.shape[dim] // chunks), dim)

    def diagonal(self, offset=0, dim1=0, dim2=1):
        along, first = (dim2, offset) if offset >= 0 else (dim1, -offset)
        cut = self[_along(self, along, slice(first, None))]
        return cut._strided_as(np.diagonal(cut._array, 0, dim1, dim2))

    def detach(self):
        return self._seen(self._array)

    data = property(detach)

    def cpu(self):
        return self

    resolve_neg = resolve_conj = cpu


def _along(X, dim, key):
    """Return the index of an axis."""
    return (slice(None),) * (dim % X.ndim) + (key,)


def index(key):
    """Return an index of a tensor as NumPy takes it, a tuple."""
    return tuple(_index(one) for one in (key if isinstance(key, tuple) else (key,)))


def _index(one):
    if isinstance(one, slice):
        if one.step is not None and one.step <= 0:
            raise ValueError("step must be greater than zero")
        return slice(*(None if n is None else int(n) for n in (one.start, one.stop, one.step)))
    if hasattr(one, "_storage"):
        return one._array if one.ndim or one.dtype is bool_ else int(one)
    if isinstance(one, list | range):
        return np.array([int(n) if not isinstance(n, bool) else n for n in one])
    return one


def _copies(key):
    """Return whether an index picks single elements, so that what it finds is a copy."""
    return any(isinstance(one, np.ndarray) or isinstance(one, bool) for one in key)
