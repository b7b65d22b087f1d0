"""Operators computed directly in the interpreter return the same as Triton's own, in the same order in memory."""

# ruff: noqa: I001  flashlib.kernels before triton
import functools
import math
from itertools import product

import numpy as np
import pytest

from flashlib import kernels
import triton.language as tl

pytestmark = pytest.mark.skipif(not kernels.INTERPRETED, reason="kernels are compiled here")

TYPES = [
    tl.int1,
    tl.int8,
    tl.uint8,
    tl.uint32,
    tl.int32,
    tl.int64,
    tl.float16,
    tl.bfloat16,
    tl.float32,
    tl.float64,
]
TYPES += [tl.pointer_type(tl.float32), tl.pointer_type(tl.float16), tl.pointer_type(tl.int1)]
SHAPES = [(), (1,), (4,), (1, 4), (8, 1), (8, 4)]
LAID = [*((shape, "C") for shape in SHAPES), ((8, 4), "F")]
NUMBERS = [0, -1, 2, 2**31, 2**40, -0.0, 0.5, -1e-3, 1e-40, 7e4, np.inf, np.nan, True, tl.constexpr(3), None, [1]]
BINARY = {  # the method of Triton's semantics
    **{
        "__add__": "add",
        "__sub__": "sub",
        "__mul__": "mul",
        "__and__": "and_",
        "__or__": "or_",
        "__xor__": "xor_",
    },
    **{"__lt__": "less_than", "__le__": "less_equal", "__gt__": "greater_than", "__ge__": "greater_equal"},
    **{"__eq__": "equal", "__ne__": "not_equal", "__radd__": "add", "__rsub__": "sub", "__rmul__": "mul"},
}
GETITEM = tl.tensor.__getitem__.__wrapped__
ROWS = [(slice(None), None), (None, slice(None)), (None, None), (slice(0, 2), None), (None,), None, slice(None)]


@pytest.fixture
def as_it_comes():
    """Return Triton's own semantics, while the language is prepared as in a launch."""
    from triton.runtime import interpreter

    semantic = type(interpreter.interpreter_semantic)(interpreter.interpreter_builder)
    scope = interpreter._patch_lang(_tensor)  # any function that knows the language
    yield semantic
    scope.restore()


def _tensor(type, shape, order="C", held_as=None):
    """Return a tensor of the interpreter; held_as: the type of its handle, which may differ after a comparison."""
    from triton.runtime import interpreter

    data = (np.arange(math.prod(shape)).reshape(shape or 1, order=order) - 2) % 7
    handle = interpreter.TensorHandle(data.astype(interpreter._get_np_dtype(type), order=order), held_as or type)
    return tl.tensor(handle, tl.block_type(type, list(shape)) if shape else type)


def _outcome(f, *arguments):
    """Return the type, the bytes and their order of an operator's result, or its error."""
    try:
        with np.errstate(all="ignore"):
            x = f(*arguments)
    except Exception as error:
        return type(error), getattr(error, "message", str(error))
    data, flags = x.handle.data, (x.handle.data.flags.c_contiguous, x.handle.data.flags.f_contiguous)
    return str(x.type), str(x.dtype), x.shape.values, x.handle.dtype, data.dtype, data.shape, data.tobytes(), flags


def _others(type, shape):
    """Return the other operands for a tensor of this type and shape."""
    met = [_tensor(type, *laid) for laid in LAID]
    met += [_tensor(other, shape) for other in TYPES] + [_tensor(tl.int32, other) for other in SHAPES]
    met += [_tensor(tl.int1, other, held_as=tl.float32) for other in ((), (4,), (8, 4))]
    return met + NUMBERS


def _theirs(semantic, name, x, y):
    """Return Triton's result of an operator: see `tensor` in triton/language/core.py."""
    y = y.value if isinstance(y, tl.constexpr) else y
    if BINARY[name] in ("add", "sub", "mul"):
        return getattr(semantic, BINARY[name])(*((y, x) if name.startswith("__r") else (x, y)), True)
    y = semantic.to_tensor(y) if name not in ("__and__", "__or__", "__xor__") else y
    return getattr(semantic, BINARY[name])(x, y)


@pytest.mark.parametrize("amount", ["few", "all"])
@pytest.mark.parametrize("name", BINARY)
def test_an_operator_equals_tritons_own(name, amount, as_it_comes):
    differ, cases = [], list(product(TYPES, LAID))
    if amount == "few":  # each type, and each shape and order
        cases = [case for n, case in enumerate(cases) if n % 7 == list(BINARY).index(name) % 7]
    for type, (shape, order) in cases:
        x = _tensor(type, shape, order)
        for y in _others(type, shape):
            if isinstance(y, tl.tensor) and name.startswith("__r"):
                continue  # Python asks the other tensor first
            ours = _outcome(getattr(tl.tensor, name), x, y)
            if ours != (theirs := _outcome(_theirs, as_it_comes, name, x, y)):
                differ.append((str(x.type), order, str(getattr(y, "type", y)), ours, theirs))
    assert not differ, f"{len(differ)} differ, the first: {differ[0]}"


@pytest.mark.parametrize("type", TYPES, ids=str)
def test_a_cast_equals_tritons_own(type, as_it_comes):
    for (shape, order), dtype in product(LAID, TYPES):
        for held_as in (type, tl.bfloat16) if type is tl.int1 else (type,):
            x = _tensor(type, shape, order, held_as)
            if x.handle.data.dtype.kind == "f":
                x.handle.data.flat[-2:] = np.inf, -3.7  # casts of other than whole numbers depend on the way
            assert _outcome(x.to, dtype) == _outcome(as_it_comes.cast, x, dtype), (shape, order, dtype, held_as)


@pytest.mark.parametrize("index", ROWS, ids=str)
def test_a_new_axis_is_where_triton_puts_it(index, as_it_comes):
    for type, shape, held_as in product(TYPES, SHAPES, (None, tl.float32)):
        x = _tensor(type, shape, held_as=held_as if type is tl.int1 else None)
        theirs = _outcome(functools.partial(GETITEM, _semantic=as_it_comes), x, index)
        assert _outcome(lambda x, index: x[index], x, index) == theirs, (type, shape)
