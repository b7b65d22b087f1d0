"""Functions that make tensors."""

import numpy as np

from . import storage
from .device import sizes
from .dtypes import OF_ARRAYS, float32, int64, kept, of_number
from .missing import no_gradients, unless_plain
from .tensor import Tensor
from .writing import options_of

IGNORED = "pin_memory", "layout"


def asked_type(dtype, device, requires_grad=False, **options):
    """Return the type that a new tensor is asked to have, or None; refuse what is not here."""
    if requires_grad:
        no_gradients()
    unless_plain("a new tensor", {name: value for name, value in options.items() if name not in IGNORED})
    return options_of((), dtype, device)


def empty(*size, dtype=None, device=None, **options):
    return Tensor._new(sizes(size), asked_type(dtype, device, **options) or float32)


def zeros(*size, dtype=None, device=None, **options):
    return Tensor._new(sizes(size), asked_type(dtype, device, **options) or float32)


def ones(*size, dtype=None, device=None, **options):
    return zeros(*size, dtype=dtype, device=device, **options).fill_(1)


def full(size, fill_value, *, dtype=None, device=None, **options):
    of = asked_type(dtype, device, **options) or getattr(fill_value, "dtype", None) or of_number(fill_value)
    return Tensor._new(sizes((size,)), of).fill_(fill_value)


def eye(n, m=None, *, dtype=None, device=None):
    return Tensor._made(np.eye(n, m), asked_type(dtype, device) or float32)


def empty_like(X, *, dtype=None, device=None, memory_format=None, **options):
    of = asked_type(dtype, device, **options) or X.dtype
    return Tensor._new(X.shape, of) if memory_format == "torch.contiguous_format" else X._empty_as(of)


def zeros_like(X, **options):
    return empty_like(X, **options)


def ones_like(X, **options):
    return empty_like(X, **options).fill_(1)


def full_like(X, fill_value, **options):
    return empty_like(X, **options).fill_(fill_value)


def empty_strided(size, stride, *, dtype=None, device=None, **options):
    return Tensor._new(sizes((size,)), asked_type(dtype, device, **options) or float32, sizes((stride,)))


def arange(*limits, dtype=None, device=None, **options):
    limits = [x.item() if isinstance(x, Tensor) else x for x in limits]
    of = asked_type(dtype, device, **options) or (float32 if any(isinstance(x, float) for x in limits) else int64)
    return Tensor._made(np.arange(*limits, dtype=np.float64 if of.is_floating_point else np.int64), of)


def linspace(start, end, steps, *, dtype=None, device=None):
    return Tensor._made(np.linspace(start, end, steps), asked_type(dtype, device) or float32)


def tensor(data, *, dtype=None, device=None, **options):
    """Return a new tensor with a copy of numbers: those of Python become int64 and fp32."""
    of = asked_type(dtype, device, **options)
    if isinstance(data, Tensor):
        return data.clone().to(of or data.dtype)
    array = np.asarray(_plain(data))
    if of is None and not isinstance(data, np.ndarray | np.generic):
        of = OF_ARRAYS[array.dtype] if array.dtype == bool else float32 if array.dtype.kind == "f" else int64
    X = Tensor._new(array.shape, of or OF_ARRAYS[array.dtype])
    X._array[...] = kept(array, X.dtype)
    return X


def _plain(data):
    """Return lists with the numbers of the tensors that are in them."""
    if isinstance(data, list | tuple):
        return [_plain(one) for one in data]
    return data._numbers() if isinstance(data, Tensor) else data


def as_tensor(data, dtype=None, device=None):
    of = asked_type(dtype, device)
    if isinstance(data, np.ndarray):
        data = from_numpy(data)
    return data.to(of or data.dtype) if isinstance(data, Tensor) else tensor(data, dtype=of)


def from_numpy(array):
    """Return a tensor that shares the memory of an array."""
    if array.dtype not in OF_ARRAYS:
        raise TypeError(f"can't convert np.ndarray of type {array.dtype}")
    return Tensor._of(array, OF_ARRAYS[array.dtype], storage.of_array(array))
