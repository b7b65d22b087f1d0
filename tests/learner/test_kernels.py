"""What kernels load, mask and store, and what their loops hold after each turn, is recorded: `learner.kernels`."""

# ruff: noqa: I001  flashlib.kernels before triton
import re
import threading

import numpy as np
import pytest

pytest.importorskip("cloudpickle")
pytest.importorskip("flashlib.kernels", exc_type=ImportError)

import torch

from flashlib.kernels import INTERPRETED
from flashlib.learner import process
from flashlib.learner.kernels import recorder, run
from flashlib.learner.kernels.recorder import record
from flashlib.learner.kernels.recording import Loop
import triton
import triton.language as tl

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="compiled kernels are not watched")


@triton.jit
def copy(x_ptr, y_ptr, N, FIRST: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at + FIRST, mask=at < N, other=0.0)
    tl.store(y_ptr + at, x, mask=at < N)


@triton.jit
def row_sums(x_ptr, y_ptr, N, step, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * step + at, mask=at < N, other=0.0)
        total += tl.sum(x, axis=0)
    tl.store(y_ptr + row, total)


@triton.jit
def product(a_ptr, b_ptr, n):
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    c = tl.zeros((16, 16), tl.float32)
    for _ in range(n):
        c = tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at), c, input_precision="ieee")
    return c


@triton.jit
def products(a_ptr, b_ptr, c_ptr):
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    turn, total = 0, tl.zeros((16, 16), tl.float32)
    while turn < 2:
        total += product(a_ptr, b_ptr, turn + 1)
        turn += 1
    tl.store(c_ptr + at, total)


@triton.jit
def leaves(x_ptr, y_ptr):
    total = 0.0
    for _ in range(3):
        for n in range(5):
            if n == 1:
                break
            total += 1.0
        total += 10.0
    tl.store(y_ptr, total)


@triton.jit
def endless(x_ptr, y_ptr):
    x = 0.0
    while x < 1.0:
        x = x * 1.0
    tl.store(y_ptr, x)


@triton.jit
def asks_a_tile(x_ptr, y_ptr):
    x = tl.load(x_ptr + tl.arange(0, 4))
    if x > 0:
        tl.store(y_ptr + tl.arange(0, 4), x)


def launch(kernel, *others, grid=(1,), n=8, **options):
    """Return the Recording of a launch on x = 0 .. n - 1, in rows of others, and y = nan."""
    x, y = torch.arange(float(n)), torch.full((n,), torch.nan)

    def launcher(x, y):
        kernel[grid](x, y, *others, **options)
        return y

    return record(launcher, x, y)


def test_loads_and_stores_have_a_program_a_line_a_pointer_offsets_and_a_mask():
    recording = launch(copy, 6, grid=(2,), FIRST=0, BLOCK=4)
    assert [(p.launch, p.at) for p in recording.programs] == [(0, (0, 0, 0)), (0, (1, 0, 0))]
    first = copy.fn.__code__.co_firstlineno + 1  # below the decorator
    seen = [(a.program, a.pointer, a.is_store, a.line - first, a.masked) for a in recording.accesses]
    assert seen == [(n, *how, True) for n in range(2) for how in (("x_ptr", False, 2), ("y_ptr", True, 3))]
    load = recording.accesses[2]
    assert load.offsets.tolist() == [4, 5, 6, 7] and load.mask.tolist() == [True, True, False, False]
    assert load.function == "copy" and not load.outside.any()
    assert recording.launches[0].numbers == {"N": 6, "FIRST": 0, "BLOCK": 4}
    assert [(t.name, t.strides, t.numbers.shape) for t in recording.launches[0].tensors] == [
        *(("x_ptr", (1,), (8,)), ("y_ptr", (1,), (8,)))
    ]
    ((name, y),) = recording.results
    assert name == "y_ptr" and y[:6].tolist() == [*range(6)] and np.isnan(y[6:]).all()


def test_lanes_beside_a_tensor_are_told_and_left_out():
    recording = launch(copy, 8, FIRST=6, BLOCK=8)
    load, store = recording.accesses
    assert load.pointer == "x_ptr" and load.outside.tolist() == [False] * 2 + [True] * 6
    assert not store.outside.any() and recording.error == ""
    assert launch(copy, 8, FIRST=-2, BLOCK=8).accesses[0].outside.sum() == 2


def test_lanes_between_the_rows_of_a_tensor_are_beside_it():
    def launcher(X, y):
        copy[(1,)](X, y, 8, FIRST=0, BLOCK=8)

    recording = record(launcher, torch.zeros(2, 5)[:, :4], torch.zeros(8))
    assert recording.accesses[0].outside.tolist() == [False] * 4 + [True] + [False] * 3


def test_a_loop_is_recorded_turn_by_turn():
    recording = launch(row_sums, 6, 8, grid=(1,), BLOCK=4)
    assert [(t.number, t.carried, float(t.names["total"])) for t in recording.turns] == [
        *((0, ("total",), 0 + 1 + 2 + 3), (1, ("total",), 15.0))
    ]
    turn = recording.turns[1]
    assert turn.loop == Loop("row_sums", row_sums.fn.__code__.co_firstlineno + 4) and turn.inside == ()
    assert turn.names["at"].tolist() == [4, 5, 6, 7] and turn.names["x"].tolist() == [4, 5, 0, 0]
    assert [a.pointer for a in recording.accesses[slice(*turn.accesses)]] == ["x_ptr"]
    assert "row_sums" in recording.sources["row_sums"]


def test_loops_of_helpers_and_while_are_told_apart_and_products_belong_to_the_inner_one():
    a, b, c = torch.ones(3, 16, 16)
    recording = record(lambda *given: products[(1,)](*given), a, b, c)
    turns = [(t.loop.function, t.number, len(t.products), [o.function for o in t.inside]) for t in recording.turns]
    assert turns == [
        ("product", 0, 1, ["products"]), ("products", 0, 0, []),
        ("product", 1, 1, ["products"]), ("product", 2, 1, ["products"]), ("products", 1, 0, []),
    ]  # fmt: skip
    assert recording.turns[0].products == ((16, 16, 16),)
    assert recording.turns[-1].carried == ("total", "turn")
    assert c[0, 0] == 48


def test_a_loop_that_is_left_does_not_hold_up_those_around_it():
    recording = launch(leaves)
    assert [(t.loop.line - leaves.fn.__code__.co_firstlineno, t.number) for t in recording.turns] == [
        (4, 0), (3, 0), (4, 1), (3, 1), (4, 2), (3, 2),
    ]  # fmt: skip
    assert recording.results[0][1][0] == 33


def test_an_autotuned_kernel_is_recorded_once():
    configs = [triton.Config({"BLOCK": 4}), triton.Config({"BLOCK": 8})]
    tuned = triton.autotune(configs, key=["N"])(row_sums)
    recording = launch(tuned, 8, 8)
    assert len(recording.launches) == 1 and len(recording.turns) == 2


def test_all_is_as_before_afterwards():
    from triton.runtime import interpreter

    kinds = interpreter.InterpreterBuilder, interpreter.GridExecutor, interpreter.FunctionRewriter
    before = [dict(vars(kind)) for kind in kinds]
    x, y = torch.arange(8.0), torch.zeros(8)
    copy[(1,)](x, y, 8, FIRST=0, BLOCK=8)
    launch(copy, 8, FIRST=0, BLOCK=8)
    assert [dict(vars(kind)) for kind in kinds] == before
    copy[(1,)](x, y, 8, FIRST=0, BLOCK=8)
    assert y.tolist() == x.tolist()
    assert not hasattr(interpreter.interpreter_semantic, "_turn_ended")


@pytest.mark.parametrize(
    "kernel, error",
    [
        (endless, r"OverflowError: the loop in line \d+ of endless goes on after 1000 turns"),
        (asks_a_tile, "TypeError: a Python if, and, or, or not asks a tile, and the compiler refuses that"),
    ],
)
def test_what_goes_wrong_in_a_kernel_is_told(kernel, error):
    recording = launch(kernel)
    assert re.match(error, recording.error)
    assert len(recording.turns) == (recorder.TURNS if kernel is endless else 0)


def test_numbers_have_a_limit(monkeypatch):
    monkeypatch.setattr(recorder, "MOST", 25)
    recording = launch(row_sums, 8, 8, BLOCK=4)
    assert "hold more than 25 numbers in all: pass fewer rows" in recording.error and recording.turns


def cell(source, **names):
    """Return the function f of a text, as a notebook has it."""
    namespace = {"__name__": "__learner__", **names}
    exec(source, namespace)
    return namespace["f"]


def stub(x):
    raise NotImplementedError


def half_a_stub(x):
    x = x + 1
    raise NotImplementedError


@pytest.mark.parametrize(
    "function, error",
    [
        (copy, "copy is a kernel; pass the function that launches it"),
        (3, "a int was passed; pass the function that launches the kernel"),
        (stub, "stub is not solved yet: there is nothing to show"),
        (half_a_stub, "half_a_stub is not solved yet: there is nothing to show"),
        (cell("def f(x): return lock", lock=threading.Lock()), "f uses something that cannot be sent"),
    ],
)
def test_what_cannot_be_recorded_is_told_in_a_sentence(function, error, monkeypatch):
    if function is half_a_stub:
        monkeypatch.setattr(process, "call", lambda f, *arguments, limit: (f(*arguments), ""))  # noqa: ARG005
    with pytest.raises((TypeError, ValueError), match=f"^{error}"):
        run.recorded(function, np.zeros(3))


@pytest.mark.parametrize(
    "error, said",
    [
        (process.NotEnded("did not end within 15 seconds", ""), "f did not end within 15 seconds"),
        (process.RaisedByAnswer("SystemExit: 3"), "f raises SystemExit: 3"),
        (OSError("no memory"), "the process that runs f cannot start: no memory"),
        (RuntimeError("Traceback\nKeyError: 3\n"), "f cannot be run in a process of its own: KeyError: 3"),
    ],
)
def test_what_becomes_of_the_process_is_told_in_a_sentence(error, said, monkeypatch):
    def call(*_, **__):
        raise error

    def f(x):
        return x

    monkeypatch.setattr(process, "call", call)
    with pytest.raises(ValueError, match=said):
        run.recorded(f, np.zeros(3))
