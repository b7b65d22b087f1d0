"""The patched interpreter computes the same as before, and leaves the language as it was."""

# ruff: noqa: I001  flashlib.kernels before triton
import math
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from flashlib import kernels
from flashlib.private_apis import of_watching
import triton
import triton.language as tl
from tests.tiers import amounts
from tests.kernels import every

pytestmark = pytest.mark.skipif(not kernels.INTERPRETED, reason="kernels are compiled here")


@triton.jit
def _largest(x):
    return tl.max(x) + tl.sum(x * 0)


@triton.jit
def _kernel(X_ptr, Y_ptr, n: tl.constexpr):
    for _ in range(5):
        tl.store(Y_ptr + tl.program_id(0), _largest(tl.load(X_ptr + tl.arange(0, n))))


@triton.jit
def _raises(X_ptr):
    tl.store(X_ptr, _largest(tl.load(X_ptr + tl.arange(0, 16))), nothing=1)


def test_calls_of_parts_prepare_nothing_again(monkeypatch):
    from triton.runtime import interpreter

    looked, patch = [], interpreter._patch_lang_core
    monkeypatch.setattr(interpreter, "_patch_lang_core", lambda *given: (looked.append(given), patch(*given)))
    X, Y = torch.arange(16.0), torch.zeros(3)
    for launches in (1, 2):
        _kernel[(3,)](X, Y, 16)
        assert (Y == 15).all()
        assert len(looked) <= 3 * launches, "not at each of its thirty calls of parts"


def test_a_kernel_called_without_a_grid_fails_after_a_launch_as_before_any():
    X = torch.arange(16.0)
    _kernel[(3,)](X, X, 16)
    with pytest.raises(Exception, match="no attribute 'grid_idx'"):
        _kernel(X, X, 16)
    _kernel[(3,)](X, X, 16)  # restores the language, which the call has left patched


def test_the_language_is_as_before_after_a_launch_and_after_one_that_raises():
    before = tl.load, tl.max, tl.tensor.__add__
    X = torch.arange(16.0)
    _kernel[(1,)](X, X, 16)
    assert (tl.load, tl.max, tl.tensor.__add__) == before
    with pytest.raises(Exception, match="nothing"):
        _raises[(1,)](X)
    assert (tl.load, tl.max, tl.tensor.__add__) == before
    _kernel[(1,)](X, X, 16)
    assert X[0] == 15


@triton.jit
def _sum(X_ptr, Y_ptr):
    tl.store(X_ptr, tl.load(X_ptr) + tl.load(Y_ptr))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
def test_integers_wrap_around_as_they_do_on_a_gpu(dtype):
    X, Y = torch.tensor([torch.iinfo(dtype).max], dtype=dtype), torch.tensor([1], dtype=dtype)
    _sum[(1,)](X, Y)
    assert X.item() == torch.iinfo(dtype).min


def test_types_are_made_once_and_distinguished():
    make, of_floats = tl.block_type, tl.pointer_type(tl.float32)
    assert make(tl.float32, [16, 8]) is make(tl.float32, tl.tuple([tl.constexpr(16), 8]))
    assert make(of_floats, [16]) is make(tl.pointer_type(tl.float32), [16])
    alike = [make(tl.float32, [16, 8]), make(tl.float32, [8, 16]), make(tl.int32, [16, 8]), make(of_floats, [16])]
    alike += [make(tl.pointer_type(tl.float32, const=True), [16]), make(tl.pointer_type(tl.float32, 3), [16])]
    assert all(one != other for k, one in enumerate(alike) for other in alike[:k])
    assert (alike[0].shape.values, alike[0].numel, str(alike[0])) == ([16, 8], 128, "<['16', '8'], fp32>")


@pytest.mark.parametrize(
    ("shape", "error"), [([12], ValueError), ([], TypeError), ([2.0], TypeError), ([2**21], ValueError)]
)
def test_a_shape_that_is_refused_is_refused_each_time(shape, error):
    for _ in range(2):
        with pytest.raises(error):
            tl.block_type(tl.float32, shape)


def test_a_subclass_of_block_type_keeps_its_own_fields():
    class OfALayout(tl.block_type):
        def __init__(self, element_ty, shape, layout):
            super().__init__(element_ty, shape)
            self.layout = layout

    one, other = (OfALayout(tl.float32, [16], layout) for layout in "ab")
    assert one.layout != other.layout and one.numel == other.numel == 16


TYPES = [tl.int1, tl.int8, tl.uint8, tl.int32, tl.int64, tl.float16, tl.bfloat16, tl.float32, tl.float64]
TYPES += [tl.pointer_type(tl.float32), tl.pointer_type(tl.float16)]
SHAPES = [(), (1,), (4,), (8,), (1, 4), (8, 1), (8, 4), (2, 1, 4)]


def _tensor(type, shape):
    """Return a tensor of the interpreter with numbers that every type can hold; a scalar's array has just one."""
    from triton.runtime import interpreter

    data = np.arange(math.prod(shape)).reshape(shape or 1) % 2
    handle = interpreter.TensorHandle(data.astype(interpreter._get_np_dtype(type)), type)
    return tl.tensor(handle, tl.block_type(type, list(shape)) if shape else type)


def _outcome(f, *arguments):
    """Return the types and the bytes of the tensors that a function returns, or its error."""
    try:
        made = f(*arguments)
    except Exception as error:
        return type(error), getattr(error, "message", str(error))
    made = made if isinstance(made, tuple) else (made,)
    of_data = [(x.handle.data.dtype, x.handle.data.shape, x.handle.data.tobytes()) for x in made]
    return [(str(x.type), str(x.dtype), x.shape.values, x.handle.dtype) for x in made], of_data


@pytest.mark.parametrize("amount, shape", amounts(SHAPES, few=[(), (4,), (8, 1), (2, 1, 4)]), ids=str)
def test_operands_equal_those_of_the_unpatched_interpreter(amount, shape):
    from triton.runtime import interpreter

    ours = interpreter.interpreter_semantic
    as_it_comes = type(ours)(ours.builder)
    same_shape = [(_tensor(type, shape), _tensor(other, shape)) for type in TYPES for other in TYPES]
    same_type = [(_tensor(type, shape), _tensor(type, other)) for type in TYPES for other in SHAPES]
    numbers = [(_tensor(type, shape), n) for type in TYPES for n in (0, -1, 2, 0.5, True, 2**40)]
    numbers += [*((n, x) for x, n in numbers), (3, 2)]
    rules = [(False, False), (True, True), (True, False, False), (False, False, True, True)]
    scope = interpreter._patch_lang(_kernel.fn)
    try:
        for x, y in (*same_shape, *same_type, *numbers):
            asked = [("binary_op_type_checking_impl", x, y, *rule) for rule in rules]
            if isinstance(x, tl.tensor) and isinstance(y, tl.tensor):
                asked += [("broadcast_impl_value", x, y), ("cast", x, y.dtype)]
            for name, *given in asked:
                assert _outcome(getattr(ours, name), *given) == _outcome(getattr(as_it_comes, name), *given), name
    finally:
        scope.restore()


RESULTS = """
import hashlib
import torch
from flashlib.kernels import backward, forward

torch.manual_seed(0)
hashed = hashlib.sha256()
for dtype in (torch.float16, torch.bfloat16, torch.float32):
    Q, K, V, dO = (torch.randn(1, 2, n, 17).to(dtype) for n in (53, 71, 71, 53))
    saved = forward.attention(Q, K, V, causal=True, B_r=32, B_c=16)
    for X in (*saved, *backward.backward(Q, K, V, *saved, dO, causal=True)):
        hashed.update(X.float().numpy().tobytes())
print(hashed.hexdigest())
"""
AS_IT_COMES = """
import sys, types
sys.modules["flashlib.kernels.interpreter"] = types.SimpleNamespace(patch_interpreter=lambda: None)
"""


@pytest.mark.process
def test_results_equal_those_of_the_unpatched_interpreter_to_the_bit():
    ours, as_it_comes = (
        subprocess.run(
            [sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, check=True, timeout=300
        ).stdout
        for text in (RESULTS, AS_IT_COMES + RESULTS)
    )
    assert re.fullmatch("[0-9a-f]{64}\n", ours)
    assert ours == as_it_comes


@pytest.mark.parametrize("amount", ["few", "all"])
def test_threads_that_launch_at_once_give_the_same_to_the_bit(amount):
    names = [name for name in every.CALLS if amount == "all" or name not in every.RUNGS]
    alone = {name: every.result(name) for name in names}
    asked = [*alone, *(reversed(alone) if amount == "all" else ())]
    with ThreadPoolExecutor(4) as threads:
        results = [(name, threads.submit(every.result, name)) for name in asked]
    wrong = {
        name: result.exception() or "another result"
        for name, result in results
        if result.exception() or result.result() != alone[name]
    }
    assert not wrong, "several threads cannot use the kernels at once"


def test_what_was_replaced_before_is_let_go():
    from flashlib.kernels.interpreter import patch_interpreter
    from triton.runtime import interpreter

    run, cast = interpreter.InterpretedFunction.run, interpreter.interpreter_semantic.cast
    patch_interpreter()
    assert interpreter.InterpretedFunction.run is not run and interpreter.interpreter_semantic.cast is not cast
    assert interpreter.InterpretedFunction.run.__wrapped__ is run.__wrapped__


@triton.jit
def _asks_a_tile(x_ptr, N, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    if offs < N:
        tl.store(x_ptr + offs, tl.exp(tl.load(x_ptr + offs)))


def test_a_call_without_a_grid_leaves_nothing_to_the_next_launch():
    x, lines = torch.zeros(4), []
    with pytest.raises(Exception, match="grid|has no attribute"):
        _asks_a_tile(x, 4, 4)
    with of_watching.conditions_refused(lines.append):
        _asks_a_tile[(1,)](x, 4, BLOCK=4)
    assert [line.strip() for line in lines] == ["if offs < N:"]
