"""Methods and operators that compute one number of each number, or of each two."""

import numpy as np

from .dtypes import bool_, computing, finfo, float32, kept, numbers, result_type
from .errors import check_product

OPERATORS = {  # name: (what computes it; the name of the method without underscores, "" if there is none)
    "add": (np.add, "add"), "sub": (np.subtract, "sub"), "mul": (np.multiply, "mul"), "pow": (np.power, "pow"),
    "truediv": (np.true_divide, "div"), "floordiv": (np.floor_divide, "floor_divide"),
    "mod": (np.remainder, "remainder"), "and": (np.bitwise_and, "bitwise_and"),
    "or": (np.bitwise_or, "bitwise_or"), "xor": (np.bitwise_xor, "bitwise_xor"),
    "lshift": (np.left_shift, "bitwise_left_shift"), "rshift": (np.right_shift, "bitwise_right_shift"),
}  # fmt: skip
COMPARISONS = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
    "ne": np.not_equal,
}  # fmt: skip
OF_TWO = {"maximum": np.maximum, "minimum": np.minimum, "fmod": np.fmod, "logaddexp": np.logaddexp}
LOGICAL = {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}
FLOATS = {  # of whole numbers too these make floats
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log1p": np.log1p,
    "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "reciprocal": np.reciprocal,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}  # fmt: skip
SAME_TYPE = {
    "abs": np.abs, "neg": np.negative, "floor": np.floor, "ceil": np.ceil, "round": np.round, "trunc": np.trunc,
    "sign": np.sign, "square": np.square, "relu": lambda x: np.maximum(x, 0),
}  # fmt: skip
TESTS = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "logical_not": np.logical_not}


class Arithmetic:
    def __matmul__(self, other):
        if not hasattr(other, "_storage"):
            return NotImplemented
        if self.dtype is not other.dtype:
            types = f"{self.dtype} != {other.dtype}"
            raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {types}")
        check_product(self.shape, other.shape)
        wide = computing(self.dtype)
        with np.errstate(all="ignore"):
            found = np.matmul(self._numbers().astype(wide, copy=False), other._numbers().astype(wide, copy=False))
        return self._made(found, self.dtype)

    def matmul(self, other):
        return self @ other

    mm = bmm = matmul

    def __invert__(self):
        return self._made(np.invert(self._array), self.dtype)

    bitwise_not = __invert__

    def __pos__(self):
        return self

    def clamp(self, min=None, max=None):
        found = self if min is None else self.maximum(_tensor_like(self, min))
        return found if max is None else found.minimum(_tensor_like(self, max))

    clip = clamp

    def nan_to_num(self, nan=0.0, posinf=None, neginf=None):
        if not self.dtype.is_floating_point:
            return self.clone()
        limits = finfo(self.dtype)
        posinf, neginf = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
        found = np.nan_to_num(self._numbers(), nan=nan, posinf=posinf, neginf=neginf)
        return self._made(found, self.dtype)

    def tril(self, diagonal=0):
        return self._raw(np.tril(self._array, diagonal), self.dtype)

    def triu(self, diagonal=0):
        return self._raw(np.triu(self._array, diagonal), self.dtype)


def binary(function, *, to_bool=False, divides=False):
    """Return a method that computes a function of two tensors, or of a tensor and a number."""

    def computed(self, other, *, alpha=1, out=None):
        if not fits(other):
            return NotImplemented
        of = result_type(self, other)
        if divides and not of.is_floating_point:
            of = float32
        a, b = (_operand(x, of, rounded=to_bool) for x in (self, other))
        with np.errstate(all="ignore"):
            found = function(a, b if alpha == 1 else b * np.asarray(alpha, b.dtype))
        made = (self if hasattr(self, "_storage") else other)._made(found, bool_ if to_bool else of)
        return made if out is None else out.copy_(made)

    return computed


def unary(function, *, floats=False, to_bool=False):
    """Return a method that computes a function of a tensor; floats: of whole numbers it makes fp32."""

    def computed(self, *, out=None):
        of = float32 if floats and not self.dtype.is_floating_point else self.dtype
        given = self._numbers().astype(computing(of), copy=False)
        with np.errstate(all="ignore"):
            found = function(given)
        made = self._made(found, bool_ if to_bool else of)
        return made if out is None else out.copy_(made)

    return computed


def fits(x):
    return hasattr(x, "_storage") or isinstance(x, int | float | np.number | np.bool_ | np.ndarray)


def _operand(x, of, rounded):
    """Return an operand as an array to compute with.

    rounded: whether a number is rounded to the type first, as where it is compared; else one of 16 bits is not.
    """
    if hasattr(x, "_storage"):
        x, given = x._numbers(), x.dtype
        x = x if given is of else numbers(kept(x, of), of)
    elif rounded:
        x = numbers(kept(x, of), of)
    return np.asarray(x).astype(computing(of), copy=False)


def _tensor_like(X, limit):
    return limit if hasattr(limit, "_storage") else X._made(np.asarray(limit, computing(X.dtype)), X.dtype)


def power(base, exponent):
    """Return powers as torch computes them: whole exponents below 4 by products."""
    if np.ndim(exponent) == 0 and exponent in (2, 3):
        return base * base if exponent == 2 else base * base * base
    return np.power(base, exponent)


def _add(function, name, operator=None):
    """Give the class a method, and an operator that does the same."""
    function.__name__ = function.__qualname__ = name
    for one in filter(None, (name, operator)):
        setattr(Arithmetic, one, function)


def _in_place(function):
    def changed(self, *others, **options):
        found = function(self, *others, **options)
        if found is NotImplemented:
            return found
        if found.dtype.is_floating_point and not self.dtype.is_floating_point:
            raise RuntimeError(f"result type {found.dtype} can't be cast to the desired output type {self.dtype}")
        return self.copy_(found)

    return changed


def _fill():
    """Give the class its methods for the tables above: x + y, 1 + x, x += y, x.add(y), x.add_(y)."""
    for operator, (ufunc, name) in OPERATORS.items():
        function, divides = power if operator == "pow" else ufunc, operator == "truediv"
        _add(binary(function, divides=divides), name, f"__{operator}__")
        _add(_in_place(getattr(Arithmetic, name)), f"{name}_", f"__i{operator}__")
        reflected = binary(lambda a, b, function=function: function(b, a), divides=divides)
        _add(reflected, f"__r{operator}__")
    for name, ufunc in COMPARISONS.items():
        _add(binary(ufunc, to_bool=True), name, f"__{name}__")
    for name, ufunc in OF_TWO.items():
        _add(binary(ufunc), name)
    for name, ufunc in LOGICAL.items():
        _add(binary(ufunc, to_bool=True), name)
    for name, ufunc in TESTS.items():
        _add(unary(ufunc, to_bool=True), name)
    for name, ufunc in (FLOATS | SAME_TYPE).items():
        _add(unary(ufunc, floats=name in FLOATS), name, f"__{name}__" if name in ("abs", "neg") else None)
        _add(_in_place(getattr(Arithmetic, name)), f"{name}_")


_fill()
