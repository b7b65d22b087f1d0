"""Triton's interpreter made faster, with the same results to the bit."""

import functools
import math

import triton.language as tl

from flashlib.kernels import private_apis


def patch_interpreter() -> None:
    """Replace the parts that take most of the interpreter's time and compute nothing that is needed.

    What follows from types is worked out once for each type, and not for each number that has it.
    """
    private_apis.replace_in_interpreter(
        patch_lang=_once, np_dtype=_cached_by_scalar, block_type=_interned, tensor=_tensor
    )


def _once(prepare):
    """Return a function that prepares `triton.language` for the interpreter once for each launch.

    Triton does so again at each call of a function that a kernel calls, such as `tl.max` and `tl.exp2`, and takes
    two milliseconds to look through the language.
    """
    prepared = set()

    def once(fn):
        languages = {id(value) for value in fn.__globals__.values() if value is tl or value is tl.core}
        if languages and languages <= prepared:
            return private_apis.nothing_to_restore()
        scope = prepare(fn)
        restore = scope.restore

        def restored():
            prepared.clear()
            restore()

        scope.restore = restored  # called only at the end of a launch
        prepared.update(languages)
        return scope

    return once


def _cached_by_scalar(np_dtype):
    """Return a function of a type, scalar or block, that asks np_dtype once for each kind of scalar."""
    of_scalar = functools.cache(np_dtype)

    def cached(type):
        scalar = type.scalar
        return np_dtype(scalar) if scalar.is_ptr() else of_scalar(scalar)  # a pointer type has no hash

    return cached


def _interned(make):
    """Return __new__ and __init__ of block types, which are made once for each scalar type and shape."""
    made = {}

    def new(cls, element_ty, shape, *others):
        dims = tuple(getattr(n, "value", n) for n in shape)
        if cls is not tl.block_type or not all(isinstance(n, int) for n in dims):
            return object.__new__(cls)
        key = getattr(element_ty, "name", None), getattr(element_ty, "address_space", None), dims
        if key not in made:
            type = object.__new__(cls)
            make(type, element_ty, shape)
            made[key] = type
        return made[key]

    def init(type, element_ty, shape):
        if "name" not in type.__dict__:  # a subclass, or a shape that is refused
            make(type, element_ty, shape)

    return new, init


def _tensor(tensor, handle, type):
    """Make a tensor; all tensors of a type share one shape."""
    tensor.handle, tensor.type, tensor.dtype = handle, type, type.scalar
    try:
        tensor.shape, tensor.numel = type.of_tensors
    except AttributeError:
        shape = type.shape if type.is_block() else ()
        type.of_tensors = tl.tuple([tl.constexpr(n) for n in shape]), tl.constexpr(math.prod(shape))
        tensor.shape, tensor.numel = type.of_tensors
