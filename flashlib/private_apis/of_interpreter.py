"""Private parts of Triton's interpreter, to make it faster and correct."""

import dataclasses
import functools
import inspect
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import triton
import triton.language as tl
from triton import JITFunction
from triton.runtime import interpreter


def interpret_language() -> None:
    """Replace Triton's own functions that were made for the compiler, because Triton was imported too early.

    They are replaced in all loaded modules: one that imported `cdiv` before then has the same one as Triton.
    """
    modules = {name: vars(module) for name, module in list(sys.modules.items()) if isinstance(module, ModuleType)}
    own = [names for module, names in modules.items() if module.startswith("triton.")]
    compiled = {id(f): f for names in own for f in names.values() if type(f) is JITFunction}
    made = {key: triton.jit(f.fn) for key, f in compiled.items()}
    for names in modules.values() if made else ():
        names.update({name: made[id(value)] for name, value in list(names.items()) if id(value) in made})
    for key, function in compiled.items():
        if vars(tl.tensor).get(function.__name__) is function:
            tl.core._tensor_member_fn(made[key])


def replace_in_interpreter(
    *, patch_lang: Callable, np_dtype: Callable, block_type: Callable, tensor: Callable, handle: Callable,
    builtins: Callable, cast: Callable, broadcast: Callable, operands: Callable,
) -> None:  # fmt: skip
    """Replace functions of the interpreter by the results of these, and leave out a test of integers.

    Only one thread launches at a time, since a launch changes `triton.language` for all of them. After it the
    interpreter forgets the grid: a kernel that is called without one then fails, as it does before any launch.
    A page loads flashlib anew for each check: the functions of the last time, and the kernels that they rewrote,
    are let go.

    Each takes the interpreter's function and returns a new one. patch_lang: prepares `triton.language` for a
    function. np_dtype: the NumPy dtype of a type. block_type: takes the __init__ of block types and returns
    __new__ and __init__. tensor: the new __init__ of tensors itself. handle: the __init__ of their handles.
    builtins: finds (name, function) of the builtins of a module or a class to replace. cast, broadcast, operands:
    bring tensors to another type, to one shape, and to one type and shape; operands also gets the new broadcast.
    """
    kernels, turn = interpreter.InterpretedFunction, threading.RLock()
    builder, semantic = interpreter.interpreter_builder, interpreter.interpreter_semantic
    kernels.rewritten_fn.clear()
    interpreter._patch_lang = patch_lang(_own(interpreter, "_patch_lang"))
    kernels.run = _in_turn(_own(kernels, "run"), turn, builder, interpreter._patch_lang.restore)
    # The test for integer overflow of a sum: eight operations each time, whose result nobody reads.
    builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)
    interpreter._get_np_dtype = np_dtype(_own(interpreter, "_get_np_dtype"))
    tl.block_type.__new__, tl.block_type.__init__ = block_type(_own(tl.block_type, "__init__"))
    tl.tensor.__init__ = tensor
    Handle.__init__ = handle(_own(Handle, "__init__"))
    called = builtins(_builtins)
    interpreter._patch_builtin = lambda part, _, scope: [scope.set_attr(part, *pair) for pair in called(part)]
    semantic.cast = cast(_own(semantic, "cast"))
    semantic.broadcast_impl_value = broadcast(_own(semantic, "broadcast_impl_value"))
    semantic.binary_op_type_checking_impl = operands(
        _own(semantic, "binary_op_type_checking_impl"), semantic.broadcast_impl_value
    )


def _own(owner, name):
    """Return the interpreter's own function, also after it was replaced."""
    return vars(interpreter).setdefault("_own", {}).setdefault((owner, name), getattr(owner, name))


def _builtins(part):
    return [(name, member) for name, member in inspect.getmembers(part) if tl.core.is_builtin(member)]


def interpreted_call(builtin: Callable) -> Callable:
    """Return a builtin of `triton.language` as the interpreter calls it."""
    f, semantic = getattr(builtin, "__wrapped__", builtin), interpreter.interpreter_semantic

    def call(*arguments, **options):
        options["_semantic"] = semantic
        return f(*arguments, **options)

    return call


Handle: Any = interpreter.TensorHandle  # an array of numbers and their type, which make up a tensor


class _Shape(NamedTuple):
    """What create_splat needs of a type."""

    shape: tuple[int, ...]


def widened_handle(x: tl.tensor, dims: tuple[int, ...]) -> object:
    """Return the handle of x broadcast to a shape with as many axes as x, or with any if x has none."""
    builder = interpreter.interpreter_builder
    if x.type.is_block():
        return builder.create_broadcast(x.handle, dims)
    return builder.create_splat(_Shape(dims), x.handle)


def _in_turn(launch, turn, builder, restore):
    @functools.wraps(launch)
    def run(*arguments, **options):
        with turn:
            restore()
            try:
                return launch(*arguments, **options)
            finally:
                for name in ("grid_idx", "grid_dim"):
                    vars(builder).pop(name, None)

    return run


def nothing_to_restore() -> object:
    """Return the result of a `patch_lang` that has changed nothing."""
    return interpreter._LangPatchScope()
