"""What a tensor is: an array that sees a part of a storage, and the type of its numbers."""

import numpy as np

from . import missing, storage
from .device import CPU, Size
from .dtypes import OF_ARRAYS, kept, numbers


class Core:
    """A tensor without its methods. array: its numbers as NumPy keeps them; storage: where these are."""

    __array_priority__ = 1000  # array * tensor is computed by the tensor
    is_cuda = is_sparse = is_meta = is_quantized = is_nested = is_mkldnn = is_mps = False
    is_leaf, grad, grad_fn, layout = True, None, None, "torch.strided"

    def __init__(self, *given):  # noqa: ARG002
        raise TypeError("the stand-in for torch in this page has no torch.Tensor(...): write torch.tensor(...)")

    @classmethod
    def _of(cls, array, of, held):
        """Return the tensor that sees an array in a storage."""
        X = cls.__new__(cls)
        X._array, X.dtype, X._storage = array, of, held
        return X

    @classmethod
    def _new(cls, shape, of, strides=None):
        """Return a tensor of zeros; strides: in elements, without gaps if none are given."""
        strides = storage.contiguous_strides(shape) if strides is None else strides
        array, held = storage.new_array(tuple(shape), tuple(strides), of)
        return cls._of(array, of, held)

    @classmethod
    def _raw(cls, array, of):
        """Return a tensor with a copy of what an array keeps, in order in memory."""
        X = cls._new(array.shape, of)
        X._array[...] = array
        return X

    @classmethod
    def _made(cls, found, of=None):
        """Return a tensor of computed numbers; its axes lie in memory as those of the array do."""
        found = np.asarray(found)
        of = of or OF_ARRAYS[found.dtype]
        in_order = found.flags.c_contiguous
        X = cls._new(found.shape, of, None if in_order else storage.dense_strides(found.shape, found.strides))
        X._array[...] = kept(found, of)
        return X

    def _seen(self, array, of=None):
        """Return a tensor that sees other parts of the same storage."""
        return self._of(array, of or self.dtype, self._storage)

    def _numbers(self):
        """Return an array to compute with."""
        return numbers(self._array, self.dtype)

    shape = property(lambda self: Size(self._array.shape))
    device = property(lambda self: CPU)
    ndim = property(lambda self: self._array.ndim)
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self._array.nbytes)
    _version = property(lambda self: self._storage.written)

    @property
    def requires_grad(self):
        return False

    @requires_grad.setter
    def requires_grad(self, on):
        if on:
            missing.no_gradients()

    def requires_grad_(self, requires_grad=True):
        self.requires_grad = requires_grad
        return self

    def backward(self, *arguments, **options):  # noqa: ARG002
        missing.no_gradients()

    def size(self, dim=None):
        return self.shape if dim is None else self._array.shape[dim]

    def stride(self, dim=None):
        strides = tuple(n // self.itemsize for n in self._array.strides)
        return strides if dim is None else strides[dim]

    def dim(self):
        return self.ndim

    def numel(self):
        return self._array.size

    def element_size(self):
        return self.itemsize

    def untyped_storage(self):
        return self._storage

    def storage_offset(self):
        if not self._array.size:
            return 0
        here, start = (array.__array_interface__["data"][0] for array in (self._array, self._storage.bytes))
        return (here - start) // self.itemsize

    def data_ptr(self):
        return self._storage.start + self.storage_offset() * self.itemsize if self._array.size else 0

    def is_floating_point(self):
        return self.dtype.is_floating_point

    def is_complex(self):
        return False

    def is_contiguous(self, memory_format=None):  # noqa: ARG002
        return self._array.flags.c_contiguous

    def is_neg(self):
        return False

    is_conj = is_neg

    def __getattr__(self, name):
        missing.refuse(name, "Tensor", dir(type(self)))
