"""The globals that a kernel uses: Triton's interpreter accepts any, its compiler only a few."""

import builtins
import dis
import functools
import types
from collections.abc import Collection
from types import FunctionType

from flashlib.private_apis import of_kernels

LANGUAGES = "triton.language", "triton.experimental.gluon.language"


def refused_global(function: FunctionType, seen: Collection[FunctionType] = ()) -> tuple[str, object] | None:
    """Return the name and the value of a global that the compiler refuses, or None.

    function: the function that a kernel was made from. Kernels that it calls are checked too.
    """
    called = []
    for name in _loaded(function.__code__):
        if name not in function.__globals__:
            continue
        value = function.__globals__[name]
        if made_of := of_kernels.function_of(value):
            called.append(made_of)
        elif not _allowed(name, value):
            return name, value
    seen = {*seen, function}
    others = (refused_global(f, seen) for f in called if f not in seen and not _of_triton(f))
    return next(filter(None, others), None)


@functools.lru_cache(maxsize=256)  # a kernel is launched in each case
def _loaded(code):
    """Return the names that a function loads from its globals, in order."""
    return tuple(dict.fromkeys(step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"))


def _allowed(name, value):
    return (
        isinstance(value, types.ModuleType)
        or hasattr(builtins, name)
        or of_kernels.is_language(value)
        or type(value).__name__ in ("constexpr", "dtype")
        or isinstance(value, type)
        and issubclass(value, tuple)
        and hasattr(value, "_fields")
        or _of_triton(value)
    )


def _of_triton(value):
    return (getattr(value, "__module__", None) or "").startswith(LANGUAGES)
