"""The source of a function and of all that it uses, as a text that is the same in each session: a key for caches.

A pickle would not do: it has the name of the file that a notebook gave the cell, and the order of globals changes.
"""

import hashlib
import inspect
import re
import sys
import textwrap
import types
from collections.abc import Iterator
from types import CodeType, FunctionType

import torch
import triton.language as tl

from flashlib.learner import pickling
from flashlib.private_apis import of_kernels

PLAIN = bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, tl.dtype
INSTALLED = {"triton", "torch", "numpy"} | sys.stdlib_module_names


def digest(x: object, seen: dict[FunctionType, int] | None = None) -> str:
    """Return a hash of `described(x)`."""
    return hashlib.sha256(described(x, {} if seen is None else seen).encode()).hexdigest()


def described(x: object, seen: dict[FunctionType, int]) -> str:
    """Return a text that identifies x. seen: the functions so far, numbered; new ones are added."""
    if function := of_kernels.function_of(x):
        return f"{type(x).__name__} {_function(function, seen)}"
    if isinstance(x, FunctionType):
        return _function(x, seen)
    if isinstance(x, PLAIN):
        return repr(x)
    if isinstance(x, tl.constexpr):
        return f"constexpr {described(x.value, seen)}"
    if isinstance(x, tuple | list):
        return f"{type(x).__name__} {getattr(x, '_fields', '')} [{', '.join(described(y, seen) for y in x)}]"
    if isinstance(x, set | frozenset | dict):
        items = x.items() if isinstance(x, dict) else x
        return f"{type(x).__name__} {{{', '.join(sorted(described(y, seen) for y in items))}}}"
    if isinstance(x, types.ModuleType):
        return f"module {x.__name__} {'' if _is_installed(x.__name__) else _text_of(x)}"
    if isinstance(x, torch.Tensor) and x.is_meta:
        return f"tensor {x.dtype} {tuple(x.shape)} {x.stride()}"
    if _is_installed(getattr(x, "__module__", None) or "") and hasattr(x, "__qualname__"):
        return f"{x.__module__}.{x.__qualname__}"
    return hashlib.sha256(pickling.dumps(x).pickled).hexdigest()


def _function(f, seen):
    if _is_installed(f.__module__ or ""):
        return f"{f.__module__}.{f.__qualname__}"
    if f in seen:
        return f"function {seen[f]}"
    seen[f] = len(seen)
    used = {name: f.__globals__[name] for name in sorted({*_names(f.__code__)}) if name in f.__globals__}
    used |= dict(zip(f.__code__.co_freevars, (cell.cell_contents for cell in f.__closure__ or ()), strict=True))
    rest = f.__defaults__, f.__kwdefaults__
    lines = [f"{name} = {described(value, seen)}" for name, value in used.items()]
    return "\n".join([source(f)[0], described(rest, seen), *lines])


def source(f: FunctionType) -> tuple[str, int]:
    """Return the text of a function from its `def`, as Triton reads it, and the number of its first line."""
    try:
        lines, first = inspect.getsourcelines(f)
    except (OSError, TypeError):  # made without a file
        return f.__code__.co_code.hex() + repr(f.__code__.co_consts), 1
    text = textwrap.dedent("".join(lines))
    start = re.search(r"^def\s+\w+\s*\(", text, re.MULTILINE)
    if not start:  # a lambda; a line may have several
        return text + repr(f.__code__.co_consts) + f.__code__.co_code.hex(), first
    return text[start.start() :], first + text[: start.start()].count("\n")


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that a function looks up, and those of the functions in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_installed(module):
    """Return whether a module's text can be ignored; `client` takes care of flashlib.kernels."""
    return module.partition(".")[0] in INSTALLED or f"{module}.".startswith("flashlib.kernels.")


def _text_of(module):
    try:
        return hashlib.sha256(inspect.getsource(module).encode()).hexdigest()
    except (OSError, TypeError):
        return ""
