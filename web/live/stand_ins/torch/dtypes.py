"""Types of numbers: how they are kept in arrays, which of two a result has, and their limits.

bfloat16 is kept as its 16 bits, floats of 8 bits as these, and both are computed in fp32.
"""

import math

import numpy as np

from . import eight_bits


class dtype:
    """A type of numbers.

    kept: the dtype of the arrays that keep them. fraction: how many bits it has, 0 for whole numbers.
    """

    __module__ = __package__

    def __init__(self, name, kept, fraction=0):
        self.name, self.kept, self.fraction = name, np.dtype(kept), fraction
        self.itemsize, self.is_floating_point, self.is_complex = self.kept.itemsize, fraction > 0, False
        self.is_signed = self.is_floating_point or self.kept.kind == "i"

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return _named, (self.name,)


def _named(name):
    return NAMED[name]


bool_ = dtype("bool", np.bool_)
uint8, int8, int16, int32, int64 = (dtype(name, name) for name in "uint8 int8 int16 int32 int64".split())
uint16, uint32, uint64 = (dtype(name, name) for name in "uint16 uint32 uint64".split())
float16, bfloat16 = dtype("float16", "float16", 10), dtype("bfloat16", "uint16", 7)
float32, float64 = dtype("float32", "float32", 23), dtype("float64", "float64", 52)
float8_e4m3fn, float8_e5m2 = dtype("float8_e4m3fn", "uint8", 3), dtype("float8_e5m2", "uint8", 2)
EIGHT_BITS = float8_e4m3fn, float8_e5m2
PLAIN = bool_, uint8, int8, int16, int32, int64, uint16, uint32, uint64, float16, float32, float64
NAMED = {one.name: one for one in (*PLAIN, bfloat16, *EIGHT_BITS)} | {
    "half": float16, "float": float32, "double": float64, "short": int16, "int": int32, "long": int64,
}  # fmt: skip
OF_ARRAYS = {one.kept: one for one in PLAIN}


def numbers(array, of):
    """Return an array to compute with: that of a tensor, with bfloat16 and floats of 8 bits in fp32."""
    if of in EIGHT_BITS:
        return eight_bits.numbers(array, of.name)
    return (array.astype(np.uint32) << 16).view(np.float32) if of is bfloat16 else array


def kept(array, of):
    """Return numbers as a tensor of this type keeps them, rounded to the nearest, of two to the even one."""
    array = np.asarray(array)
    with np.errstate(all="ignore"):
        if of in EIGHT_BITS:
            return eight_bits.codes(array, of.name)
        if of is not bfloat16:
            return array.astype(of.kept, copy=False)
        bits = np.ascontiguousarray(array, np.float32).view(np.uint32).reshape(array.shape)
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        return np.where(np.isnan(array), np.uint16(0x7FC0), rounded)


def computing(of):
    """Return the NumPy dtype in which numbers of this type are computed: fp32 for those of 16 bits and of 8."""
    return np.dtype(np.float32) if of in (float16, bfloat16, *EIGHT_BITS) else of.kept


# ---- which type a result has


def promote_types(a, b):
    """Return the smallest type that has the numbers of both."""
    if a is b:
        return a
    if {a, b} == {float16, bfloat16}:
        return float32
    if a.is_floating_point != b.is_floating_point:
        return a if a.is_floating_point else b
    if a.is_floating_point:
        return a if a.itemsize > b.itemsize else b
    return OF_ARRAYS[np.promote_types(a.kept, b.kept)]


def of_number(x):
    """Return the type of a number of Python or NumPy, or of an array."""
    if isinstance(x, np.ndarray):
        return OF_ARRAYS[x.dtype]
    if isinstance(x, bool | np.bool_):
        return bool_
    return float32 if isinstance(x, float | np.floating) else int64


def result_type(*operands):
    """Return the type of what is computed of tensors and numbers.

    Tensors with axes decide; others, and then numbers, only change its kind: whole numbers to floats.
    """
    found = None
    for group in _groups(operands):
        of = None
        for one in group:
            of = one if of is None else promote_types(of, one)
        found = of if found is None else found if of is None else _both(found, of)
    return found


def _groups(operands):
    tensors = [x for x in operands if hasattr(x, "_storage")]
    yield [x.dtype for x in tensors if x.ndim]
    yield [x.dtype for x in tensors if not x.ndim]
    yield [of_number(x) for x in operands if not hasattr(x, "_storage")]


def _both(strong, weak):
    if strong.is_floating_point or not (weak.is_floating_point or strong is bool_):
        return strong
    return promote_types(strong, weak)


# ---- limits


class finfo:
    """Limits of a type of floats."""

    def __init__(self, of=float32):
        exponents = 8 if of is bfloat16 else of.itemsize * 8 - 1 - of.fraction
        last = 2 ** (exponents - 1) - 1  # the largest exponent
        self.dtype, self.bits, self.eps = of.name, of.itemsize * 8, 2.0**-of.fraction
        self.max = 448.0 if of is float8_e4m3fn else math.ldexp(2 - self.eps, last)
        self.min, self.tiny, self.resolution = -self.max, 2.0 ** (1 - last), 10.0 ** -int(of.fraction * 0.30103)
        self.smallest_normal = self.tiny


class iinfo:
    """Limits of a type of whole numbers."""

    def __init__(self, of):
        limits = np.iinfo(of.kept)
        self.dtype, self.bits, self.min, self.max = of.name, limits.bits, int(limits.min), int(limits.max)
