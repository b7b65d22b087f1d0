"""Methods that copy tensors, to other types too, and that write to them in place."""

import numpy as np

from . import storage
from .device import device, sizes
from .dtypes import NAMED, dtype, kept
from .missing import unless_plain
from .views import index


def options_of(given, dtype_=None, device_=None):
    """Return the type among the arguments of `to`, or None; refuse a device that is not here."""
    for one in given:
        if isinstance(one, dtype):
            dtype_ = one
        elif hasattr(one, "_storage"):
            dtype_ = one.dtype
        elif isinstance(one, str | device):
            device_ = one
    if device_ is not None:
        device(device_)
    return dtype_


def kept_number(value, of):
    """Return a number, or the numbers of a tensor, as a tensor of this type keeps them."""
    return kept(value._numbers() if hasattr(value, "_storage") else value, of)


class Writing:
    def __setitem__(self, key, value):
        self._storage.written += 1
        self._array[index(key)] = kept_number(value, self.dtype)

    def fill_(self, value):
        self[...] = value
        return self

    def zero_(self):
        return self.fill_(0)

    def copy_(self, other, non_blocking=False):  # noqa: ARG002
        return self.fill_(other)

    def masked_fill_(self, mask, value):
        self[mask.expand(self.shape)] = value
        return self

    def index_copy_(self, dim, at, source):
        self[(slice(None),) * (dim % self.ndim) + (at,)] = source
        return self

    def masked_fill(self, mask, value):
        found = np.where(mask._array, kept_number(value, self.dtype), self._array)
        return self._raw(found, self.dtype)

    # ---- copies

    def to(self, *what, dtype=None, device=None, copy=False, non_blocking=False, memory_format=None):  # noqa: ARG002
        of = options_of(what, dtype, device)
        if of in (None, self.dtype):
            return self.clone() if copy else self
        return self._empty_as(of).copy_(self)

    def type(self, dtype):
        return self.to(dtype)

    def type_as(self, other):
        return self.to(other.dtype)

    def clone(self, memory_format=None):
        X = self._new(self.shape, self.dtype) if memory_format == "torch.contiguous_format" else self._empty_as()
        X._array[...] = self._array
        return X

    def __reduce__(self):
        return self._raw, (np.ascontiguousarray(self._array).reshape(self.shape), self.dtype)

    def contiguous(self, memory_format=None):  # noqa: ARG002
        return self if self.is_contiguous() else self._raw(self._array, self.dtype)

    def _empty_as(self, of=None):
        """Return a new tensor of zeros whose axes lie in memory as those of this one do."""
        return self._new(self.shape, of or self.dtype, storage.dense_strides(self.shape, self.stride()))

    def new_empty(self, *size, dtype=None, device=None, **options):
        unless_plain("new_empty", options)
        return self._new(sizes(size), options_of((), dtype, device) or self.dtype)

    def new_zeros(self, *size, dtype=None, device=None, **options):
        unless_plain("new_zeros", options)
        return self._new(sizes(size), options_of((), dtype, device) or self.dtype)

    def new_ones(self, *size, dtype=None, device=None, **options):
        return self.new_zeros(*size, dtype=dtype, device=device, **options).fill_(1)

    def new_full(self, size, fill_value, dtype=None, device=None, **options):
        return self.new_zeros(*sizes((size,)), dtype=dtype, device=device, **options).fill_(fill_value)

    def new_tensor(self, data, dtype=None, device=None):
        return self._made(np.asarray(data), options_of((), dtype, device) or self.dtype)

    def new_empty_strided(self, size, stride, dtype=None, device=None):
        return self._new(sizes((size,)), options_of((), dtype, device) or self.dtype, sizes((stride,)))

    # ---- elements in other places

    def repeat(self, *repeats):
        return self._raw(np.tile(self._array, sizes(repeats)), self.dtype)

    def repeat_interleave(self, repeats, dim=None):
        repeats = repeats._array.astype(np.intp) if hasattr(repeats, "_storage") else repeats
        return self._raw(np.repeat(self._array, repeats, dim), self.dtype)

    def gather(self, dim, index):
        within = tuple(slice(n) if k != dim % self.ndim else slice(None) for k, n in enumerate(index.shape))
        return self._raw(np.take_along_axis(self._array[within], index._array, dim), self.dtype)

    def index_select(self, dim, index):
        return self._raw(np.take(self._array, index._array.astype(np.intp), dim), self.dtype)

    def masked_select(self, mask):
        return self[mask.expand(self.shape)]

    def flip(self, *dims):
        return self._raw(np.flip(self._array, sizes(dims)), self.dtype)

    def roll(self, shifts, dims=None):
        return self._raw(np.roll(self._array, shifts, dims), self.dtype)

    def nonzero(self, *, as_tuple=False):
        found = np.nonzero(self._numbers())
        each = tuple(self._raw(one.astype(np.int64), NAMED["int64"]) for one in found)
        if as_tuple:
            return each
        return self._made(np.argwhere(self._numbers()), NAMED["int64"])


def _conversion(of):
    def converted(self):
        return self.to(of)

    return converted


for _name in "bool int long short half float double bfloat16".split():
    setattr(Writing, _name, _conversion(NAMED[_name]))
    getattr(Writing, _name).__name__ = _name
