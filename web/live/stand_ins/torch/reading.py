"""Methods of tensors that give their numbers to Python and NumPy."""

import numpy as np

from . import printing
from .dtypes import bfloat16


class Reading:
    def numpy(self):
        if self.dtype is bfloat16:
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self._array

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        return np.array(array, dtype) if copy else np.asarray(array, dtype)

    def tolist(self):
        return self._numbers().tolist()

    def item(self):
        if self._array.size != 1:
            raise RuntimeError(f"a Tensor with {self._array.size} elements cannot be converted to Scalar")
        return self._numbers().item()

    def __len__(self):
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return len(self._array)

    def __iter__(self):
        if not self.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind())

    def __contains__(self, x):
        return bool((self == x).any())

    def __bool__(self):
        if self._array.size != 1:
            few = "no values" if not self._array.size else "more than one value"
            raise RuntimeError(f"Boolean value of Tensor with {few} is ambiguous")
        return bool(self.item())

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __index__(self):
        if self.dtype.is_floating_point or self._array.size != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __format__(self, spec):
        return format(repr(self) if self.ndim else self.item(), spec)

    def __repr__(self):
        return printing.text(self)

    def __hash__(self):
        return id(self)
