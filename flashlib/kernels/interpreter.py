"""Triton's interpreter made faster, with the same results to the bit."""

import functools
import math

import triton.language as tl

from flashlib.kernels.interpreter_operators import as_tensor, at_once, common, converted
from flashlib.private_apis import of_interpreter

SHORT = {"fp16", "bf16", "fp8e4nv", "fp8e4b8", "fp8e4b15", "fp8e5", "fp8e5b16"}


def patch_interpreter() -> None:
    """Replace the parts of the interpreter that take most of its time on work that is not needed.

    What depends on types alone is computed once per type, not for each number. Operands that already have the same
    type, or the same shape, are left as they are. Operators: see `interpreter_operators`.
    """
    of_interpreter.replace_in_interpreter(
        patch_lang=_once, np_dtype=_cached_by_scalar, block_type=_interned, tensor=_tensor, handle=_handle,
        builtins=_directly_called, cast=_cast, broadcast=_broadcast, operands=_operands,
    )  # fmt: skip


def _once(prepare):
    """Return a function that prepares `triton.language` for the interpreter once per launch.

    Triton repeats this at each call of a function inside a kernel, such as `tl.max` and `tl.exp2`, and takes two
    milliseconds to look through the language. `restore` of the function undoes what no launch has undone: that of
    a kernel that was called without a grid.
    """
    prepared, looked_through = set(), set()  # languages, and the globals of functions that call them
    left = []  # what restores the language, until it is restored

    def once(fn):
        if id(fn.__globals__) in looked_through:
            return of_interpreter.nothing_to_restore()
        looked_through.add(id(fn.__globals__))
        languages = {id(value) for value in fn.__globals__.values() if value is tl or value is tl.core}
        if languages and languages <= prepared:
            return of_interpreter.nothing_to_restore()
        scope = prepare(fn)
        restore = scope.restore

        def restored():
            prepared.clear()
            looked_through.clear()
            left.clear()
            restore()

        scope.restore = restored  # called only at the end of a launch
        left.append(restored)
        prepared.update(languages)
        return scope

    def restore_what_is_left():
        for restored in left[::-1]:
            restored()

    once.restore = restore_what_is_left
    return once


def _cached_by_scalar(np_dtype):
    """Return a function of a type, scalar or block, that calls np_dtype once for each type of scalar."""
    of_scalar = functools.cache(np_dtype)

    def cached(type):
        scalar = type.scalar
        return np_dtype(scalar) if scalar.is_ptr() else of_scalar(scalar)  # a pointer type has no hash

    return cached


def _interned(make):
    """Return __new__ and __init__ of block types, which are made once for each scalar type and shape."""
    made = {}

    def new(cls, element_ty, shape, *others):
        if cls is tl.block_type and {*map(type, shape)} == {int}:
            key = getattr(element_ty, "name", None), getattr(element_ty, "address_space", None), tuple(shape)
            if key in made:
                return made[key]
        dims = tuple(getattr(n, "value", n) for n in shape)
        if cls is not tl.block_type or not all(isinstance(n, int) for n in dims):
            return object.__new__(cls)
        key = getattr(element_ty, "name", None), getattr(element_ty, "address_space", None), dims
        if key not in made:
            fresh = object.__new__(cls)
            make(fresh, element_ty, shape)
            made[key] = fresh
        return made[key]

    def init(type, element_ty, shape):
        if "name" not in type.__dict__:  # a subclass, or a shape that is refused
            make(type, element_ty, shape)

    return new, init


def _tensor(tensor, handle, type):
    """Make a tensor; all tensors of a type share one shape."""
    tensor.handle, tensor.type, tensor.dtype = handle, type, type.scalar
    try:
        tensor.shape, tensor.numel, tensor.dims = type.of_tensors
    except AttributeError:
        dims = tuple(type.shape) if type.is_block() else ()
        type.of_tensors = tl.tuple([tl.constexpr(n) for n in dims]), tl.constexpr(math.prod(dims)), dims
        tensor.shape, tensor.numel, tensor.dims = type.of_tensors


def _handle(refused):
    """Return __init__ of the object that holds a tensor's numbers.

    refused: Triton's own, which raises if the numbers are wider than their type. It is called only if they may be.
    """

    def init(handle, data, dtype, attr=None):
        handle.data, handle.dtype, handle.attr = data, dtype, {} if attr is None else attr
        if not dtype.is_ptr() and data.itemsize * 8 > dtype.primitive_bitwidth:
            refused(handle, data, dtype, handle.attr)

    return init


def _directly_called(find):
    """Return a function of a part of the language that lists its builtins as (name, what the interpreter calls).

    Triton finds them anew at each launch, and each checks at every call whether it is inside a kernel.
    """

    def called(part):
        calls = [(name, of_interpreter.interpreted_call(f)) for name, f in find(part)]
        return [(name, at_once(name, call)) for name, call in calls] if part is tl.tensor else calls

    return functools.cache(called)


def _cast(cast):
    """Return a `cast` that leaves a tensor of the requested type as it is, and lets NumPy convert numbers."""

    def to(x, type, *rounding):
        if x.dtype is type.scalar:
            return x
        made = None if any(rounding) else converted(x, type.scalar)
        return cast(x, type, *rounding) if made is None else made

    return to


def _broadcast(broadcast):
    """Return a `broadcast` of two tensors to one shape that compares shapes as plain numbers."""

    def both(x, y):
        dims = common(x.dims, y.dims)
        return broadcast(x, y) if dims is None else (_widened(x, dims), _widened(y, dims))

    return both


def _widened(x, dims):
    """Return a tensor broadcast to a shape."""
    if x.dims == dims:
        return x
    return tl.tensor(of_interpreter.widened_handle(x, dims), tl.block_type(x.dtype, list(dims)))


def _operands(operands, broadcast):
    """Return an `operands`, which brings operands to one type and shape, that skips those of the same type.

    A number gets the type of the tensor that it is combined with. Division of short types is left to Triton, which
    turns fp16 into fp32.
    """

    def both(x, y, pointer_first=False, pointer_second=False, typed=True, divided=False):
        one, other = type(x) is tl.tensor, type(y) is tl.tensor
        if divided and (one or other) and (x if one else y).dtype.name in SHORT:
            return operands(x, y, pointer_first, pointer_second, typed, divided)
        if one and other and x.dtype is y.dtype and not x.dtype.is_ptr():
            return broadcast(x, y)
        if one != other and typed and (number := as_tensor(*((y, x) if one else (x, y)))) is not None:
            return broadcast(x, number) if one else broadcast(number, y)
        return operands(x, y, pointer_first, pointer_second, typed, divided)

    return both
