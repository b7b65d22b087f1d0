"""A learner's function before it is written, and the name that it goes by."""

import inspect
from types import FunctionType
from typing import Any

KERNELS = ("JITFunction", "InterpretedFunction", "GluonJITFunction")  # by name: Triton may be missing


def _stub():
    raise NotImplementedError


def is_stub(answer: Any) -> bool:
    """Return whether an answer only raises NotImplementedError: no process has to start to find that out."""
    function = answer.fn if type(answer).__name__ in KERNELS else answer
    if not isinstance(function, FunctionType):
        return False
    code, stub = function.__code__, _stub.__code__
    return (code.co_code, code.co_names) == (stub.co_code, stub.co_names)


def is_unfinished(answer: Any, seen: tuple = ()) -> bool:
    """Return whether a function, or a kernel that it names, still raises NotImplementedError."""
    function = answer.fn if type(answer).__name__ in KERNELS else answer
    if not isinstance(function, FunctionType) or function in seen:
        return False
    if "NotImplementedError" in function.__code__.co_names:
        return True
    used = inspect.getclosurevars(function)
    named = [x for x in (*used.globals.values(), *used.nonlocals.values()) if type(x).__name__ in KERNELS]
    return any(is_unfinished(kernel, (*seen, function)) for kernel in named)


def name_of(function: Any) -> str:
    """Return the name of a function, of the one that a functools.partial calls too."""
    named = getattr(function, "func", function)
    return getattr(named, "__name__", type(named).__name__)
