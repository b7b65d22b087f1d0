"""Operators of tensors in Triton's interpreter, computed directly if nothing has to be converted.

For each operation Triton looks up the types of its operands, broadcasts both to one shape, turns numbers into
tensors, and finds the function of NumPy. For operands of one type NumPy does all of that by itself. The results
equal Triton's to the bit, and have the same order in memory, on which later sums depend. Everything else is left
to Triton: `general` is its own operator.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl

from flashlib.private_apis.of_interpreter import Handle

NUMBERS = {"int32": np.int32, "int64": np.int64, "fp16": np.float16, "fp32": np.float32, "fp64": np.float64}
WHOLE = {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
OF_ONE_TYPE = NUMBERS.keys() | WHOLE
BITS = WHOLE | {"int1"}
CONVERTED = {*NUMBERS, "int1"}
ARITHMETIC = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
COMPARISONS = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
COMPARISONS |= {"eq": np.equal, "ne": np.not_equal}
LOGICAL = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
EXACT = 2**31  # numbers below are int32 to Triton
SMALL, LARGE = 1e-4, 6e4  # floats between are normal in any type


def at_once(name: str, general: Callable) -> Callable:
    """Return a faster version of a tensor operator, such as `__add__`, if there is one; else `general`."""
    bare = name.strip("_")
    if bare == "getitem":
        return _getitem(general)
    if bare in COMPARISONS:
        return _comparison(COMPARISONS[bare], general)
    if bare in LOGICAL:
        return _logical(LOGICAL[bare], general)
    if bare == "add":
        return _addition(_arithmetic(np.add, general), general)
    if bare in ARITHMETIC:
        return _arithmetic(ARITHMETIC[bare], general)
    if bare[:1] == "r" and bare[1:] in ARITHMETIC:
        return _reflected(ARITHMETIC[bare[1:]], general)
    return general


def _arithmetic(ufunc, general):
    def operate(x, y):
        if found := _operands(x, y, OF_ONE_TYPE) if isinstance(y, tl.tensor) else _with_number(x, y):
            a, b, type = found
            return tl.tensor(Handle(ufunc(a, b), x.handle.dtype.scalar), type)
        return general(x, y)

    return operate


def _reflected(ufunc, general):
    def operate(x, y):
        if found := _with_number(x, y):
            a, b, type = found
            return tl.tensor(Handle(ufunc(b, a), x.dtype), type)
        return general(x, y)

    return operate


def _comparison(ufunc, general):
    """Here Triton turns a number into a tensor before it looks at types, so both must have the same type."""

    def operate(x, y):
        if isinstance(y, tl.tensor):
            found = _operands(x, y, OF_ONE_TYPE)
        else:
            found = _with_number(x, y) if x.dtype.name == _type_of_number(y) else None
        if found:
            a, b, type = found
            return tl.tensor(Handle(ufunc(a, b), x.handle.dtype.scalar), _of_bools(type))
        return general(x, y)

    return operate


def _logical(ufunc, general):
    def operate(x, y):
        if found := _operands(x, y, BITS) if isinstance(y, tl.tensor) else None:
            a, b, type = found
            return tl.tensor(Handle(ufunc(a, b), x.handle.dtype.scalar), type)
        return general(x, y)

    return operate


def _addition(of_numbers, general):
    """Return `+`, which treats a pointer plus whole numbers separately."""

    def operate(x, y):
        if not x.dtype.is_ptr():
            return of_numbers(x, y)
        if not isinstance(y, tl.tensor) or y.dtype.name not in ("int32", "int64"):
            return general(x, y)
        ptr, offset = x.handle.data, y.handle.data
        dims = x.dims
        if dims != y.dims:
            if not (dims and y.dims):
                if not _in_order(offset if y.dims else ptr):
                    return general(x, y)
                dims = dims or y.dims
            else:
                if (dims := common(dims, y.dims)) is None:
                    return general(x, y)
                ptr, offset = np.broadcast_to(ptr, dims), np.broadcast_to(offset, dims)
        size = max(1, x.handle.get_element_ty().primitive_bitwidth // 8)
        at = Handle(ptr + size * offset.astype(np.uint64), x.handle.dtype)
        return tl.tensor(at, x.type if dims == x.dims else _block(x.dtype, dims))

    return operate


def _getitem(general):
    """Return x[...] for a new axis of a one-dimensional tensor, as in x[:, None]."""

    def get(x, index):
        if type(index) is not tuple or len(index) != 2 or len(x.dims) != 1:
            return general(x, index)
        if index[0] is None and index[1] == ALL:
            dims = (1, *x.dims)
        elif index[1] is None and index[0] == ALL:
            dims = (*x.dims, 1)
        else:
            return general(x, index)
        return tl.tensor(Handle(x.handle.data.reshape(dims), x.handle.dtype.scalar), _block(x.dtype, dims))

    return get


ALL = slice(None)


def _operands(x, y, names):
    """Return the arrays of two tensors of one type, and the type of the result, or None."""
    if y.dtype is not x.dtype or x.dtype.name not in names:
        return None
    a, b = x.handle.data, y.handle.data
    if x.dims == y.dims:
        return a, b, x.type
    if x.dims and y.dims:
        dims = common(x.dims, y.dims)
        return dims and (a, b, _block(x.dtype, dims))
    one, many = (x, y) if y.dims else (y, x)  # Triton turns the scalar into an array, in order
    if one.handle.dtype is one.dtype and _in_order(many.handle.data):
        return a, b, many.type
    return None


def _with_number(x, y):
    """Return the arrays of a tensor and of a number converted to its type, and the type, or None."""
    y = y.value if type(y) is tl.constexpr else y
    b = _constant(y, x.dtype.name) if type(y) in (int, float) else None
    return None if b is None or not _in_order(x.handle.data) else (x.handle.data, b, x.type)


@functools.lru_cache(4096, typed=True)
def _constant(y, name):
    """Return the array that Triton makes from a number for a tensor of this type; None to leave that to Triton."""
    whole, real = name.startswith("int"), isinstance(y, float)
    if name not in NUMBERS or whole and real:
        return None
    if not real and not (-EXACT <= y < EXACT if whole else abs(y) <= LARGE):
        return None
    if real and not (y == 0 or SMALL <= abs(y) <= LARGE or abs(y) == np.inf):
        return None
    return np.array([y if y else 0], NUMBERS[name])


def as_tensor(y: Any, x: tl.tensor) -> tl.tensor | None:
    """Return a number as a tensor of the type of x; None if it is not a number, or to leave that to Triton."""
    made = _constant(y, x.dtype.name) if type(y) in (int, float) else None
    return None if made is None else tl.tensor(Handle(made.copy(), x.dtype), x.dtype)


def _type_of_number(y):
    """Return the name of a number's own type, if `_constant` makes it; else None."""
    y = y.value if type(y) is tl.constexpr else y
    return {int: "int32", float: "fp32"}.get(type(y))


def converted(x: tl.tensor, dtype: tl.dtype) -> tl.tensor | None:
    """Return a tensor of numbers or booleans in another type; None if that takes more than NumPy."""
    by_steps = x.dtype.name == "fp16" and dtype.name != "fp32"
    if dtype.name not in NUMBERS or by_steps or not x.dtype.name == x.handle.dtype.name in CONVERTED:
        return None
    made = Handle(x.handle.data.astype(NUMBERS[dtype.name]), dtype)
    return tl.tensor(made, _block(dtype, x.dims) if x.dims else dtype)


def _block(dtype, dims):
    return tl.block_type(dtype, list(dims))


def _in_order(a):
    return a.flags.c_contiguous


def _of_bools(type):
    """Return the type of a comparison."""
    try:
        return type.of_bools
    except AttributeError:
        type.of_bools = type.with_element_ty(tl.int1)
        return type.of_bools


@functools.cache
def common(one: tuple, other: tuple) -> tuple | None:
    """Return the shape that two shapes broadcast to; None if there is none, or if one needs new axes."""
    if not one or not other:
        return one or other
    if len(one) != len(other) or any(n != m and 1 not in (n, m) for n, m in zip(one, other, strict=True)):
        return None
    return tuple(map(max, one, other))
