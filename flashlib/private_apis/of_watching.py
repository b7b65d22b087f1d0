"""Private parts of Triton that are replaced to watch launches, loads, stores and products."""

import linecache
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FunctionType
from typing import Any, NamedTuple, Protocol
from unittest import mock

import numpy as np
import triton
from triton import JITFunction
from triton.runtime import Autotuner, interpreter


class KernelListener(Protocol):
    """What hears of kernels while they run: `checks.harness.watch.Watch` and `learner.kernels.Recorder`.

    launched: a kernel made of this function. let: its arguments, as they were given and as the interpreter has
    them. begun: a program, with its place in the grid. multiplied: a product of (M, K) and (K, N); rounded:
    whether fp32 is multiplied in less than fp32. lanes: a load or a store at these addresses where the mask is
    True; returns the lanes that are allowed. hidden: a load without `other` has lanes that its mask hides; returns
    what they get, or None for 0.
    """

    def launched(self, function: FunctionType) -> None: ...
    def let(self, names: tuple, given: tuple, values: tuple) -> None: ...
    def begun(self, program: tuple[int, int, int]) -> None: ...
    def multiplied(self, sizes: tuple[int, int, int], *, rounded: bool) -> None: ...
    def lanes(
        self, pointers: Any, size: int, mask: Any, *, store: bool = ..., masked: bool = ...
    ) -> np.ndarray: ...
    def hidden(self, pointers: np.ndarray, mask: np.ndarray, dtype: Any, name: str) -> np.ndarray | None: ...


class _Mask(NamedTuple):
    """A mask as the interpreter takes it."""

    data: np.ndarray


@contextmanager
def notified(listener: KernelListener, *, interpreted: bool) -> Iterator[None]:
    """Notify a listener of the kernels launched in this context; of compiled ones it hears the launch alone."""
    changes = _in_interpreter(listener) if interpreted else _in_compiler(listener)
    before = [(owner, name, owner.__dict__[name]) for owner, name, _ in changes]
    for owner, name, new in changes:
        setattr(owner, name, new)
    try:
        yield
    finally:
        for owner, name, old in before:
            setattr(owner, name, old)


def _in_compiler(listener: KernelListener) -> list:
    """Return (class, name, replacement) of each method to exchange so that a listener hears of launches."""
    run = JITFunction.run

    def counted(self, *arguments, grid, warmup, **options):
        if not warmup:
            listener.launched(self.fn)
        return run(self, *arguments, grid=grid, warmup=warmup, **options)

    return [(JITFunction, "run", counted)]


def _in_interpreter(listener: KernelListener) -> list:
    """Return the same for the interpreter, so that a listener hears of launches, loads, stores and products."""
    builder, executor = interpreter.InterpreterBuilder, interpreter.GridExecutor
    call, moved = executor.__call__, executor._init_args_hst

    def launch(self, *arguments, **options):
        listener.launched(self.fn)
        return call(self, *arguments, **options)

    def move(self, given, options):
        values, named = moved(self, given, options)
        names = (*self.arg_names[: len(given)], *options)
        listener.let(names, (*given, *options.values()), (*values, *named.values()))
        return values, named

    return [
        (executor, "__call__", launch),
        (executor, "_init_args_hst", move),
        (builder, "set_grid_idx", _program(listener, builder.set_grid_idx)),
        *((builder, name, new) for name, new in _memory(listener, builder).items()),
        (builder, "create_dot", _product(listener, builder.create_dot)),
        (Autotuner, "do_bench", property(lambda self: lambda call, quantiles: [0.0] * len(quantiles))),
    ]


def _memory(listener, builder) -> dict:
    """Return the methods of a builder to exchange, by name, so that a listener hears of loads and stores."""
    load, plain, store = builder.create_masked_load, builder.create_load, builder.create_masked_store
    add, exchange = builder.create_atomic_rmw, builder.create_atomic_cas
    masked = True

    def lanes(pointers, mask, **how):
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        return _Mask(listener.lanes(pointers.data, size, mask, **how))

    def create_load(self, *arguments):
        nonlocal masked
        masked = False
        try:
            return plain(self, *arguments)
        finally:
            masked = True

    def create_masked_load(self, ptrs, mask, other, *others, **options):
        if masked and other is None:
            type = ptrs.get_element_ty()
            held = listener.hidden(ptrs.data, mask.data, interpreter._get_np_dtype(type), type.name)
            other = other if held is None else interpreter.TensorHandle(held, type)
        return load(self, ptrs, lanes(ptrs, mask.data, masked=masked), other, *others, **options)

    def create_masked_store(self, ptrs, value, mask, *others):
        return store(self, ptrs, value, lanes(ptrs, mask.data, store=True), *others)

    def create_atomic_rmw(self, operation, ptr, value, mask, *others):
        return add(self, operation, ptr, value, lanes(ptr, mask.data, store=True), *others)

    def create_atomic_cas(self, ptr, *others):
        if not lanes(ptr, np.ones_like(ptr.data, bool), store=True).data.all():
            raise ValueError("atomic_cas on memory that belongs to no tensor")
        return exchange(self, ptr, *others)

    made = create_load, create_masked_load, create_masked_store, create_atomic_rmw, create_atomic_cas
    return {function.__name__: function for function in made}


def _program(listener, begin):
    def set_grid_idx(self, *at):
        listener.begun(at)
        return begin(self, *at)

    return set_grid_idx


def _product(listener, dot):
    def create_dot(self, a, b, d, precision, *others):
        fp32 = "fp32" in (a.dtype.scalar.name, b.dtype.scalar.name)
        listener.multiplied((*a.data.shape[-2:], b.data.shape[-1]), rounded=fp32 and precision.name != "IEEE")
        return dot(self, a, b, d, precision, *others)

    return create_dot


def launches_seen(see: Callable[[Any, tuple, dict], object]) -> AbstractContextManager:
    """Return a context in which see(kernel, arguments, options) is called before a launch in the interpreter."""
    kernels = interpreter.InterpretedFunction
    run = kernels.run

    def seen(self, *arguments, grid, warmup, **options):
        see(self, arguments, options)
        return run(self, *arguments, grid=grid, warmup=warmup, **options)

    return mock.patch.object(kernels, "run", seen)


def selections_seen(see: Callable[[np.ndarray], object]) -> AbstractContextManager:
    """Return a context in which see(condition) is called for each tl.where in the interpreter; it is an array."""
    builder = interpreter.InterpreterBuilder
    select = builder.create_select

    def create_select(self, condition, *others):
        see(condition.data)
        return select(self, condition, *others)

    return mock.patch.object(builder, "create_select", create_select)


def conditions_refused(refuse: Callable[[str], object]) -> AbstractContextManager:
    """Return a context in which refuse(line) is called for an `if` on a tile, which is True in the interpreter.

    line: that of the kernel. Triton itself may use a tile like that.
    """
    prepare, triton_files = interpreter._patch_lang_tensor, os.path.dirname(triton.__file__)

    def prepared(tensor, scope):
        prepare(tensor, scope)
        truth = tensor.__bool__

        def of_one(self):
            frame = sys._getframe(1)
            if self.handle.data.size > 1 and not frame.f_code.co_filename.startswith(triton_files):
                refuse(linecache.getline(frame.f_code.co_filename, frame.f_lineno))
            return truth(self)

        scope.set_attr(tensor, "__bool__", of_one)

    return mock.patch.object(interpreter, "_patch_lang_tensor", prepared)
