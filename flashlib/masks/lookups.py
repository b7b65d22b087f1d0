"""What a function looks up besides its arguments: whether it would say the same again.

A kernel keeps what a mask's function said, and may keep it only as long as all that the function looks up is the
same.
"""

import builtins
import dis
import functools
import types
from collections.abc import Callable

import numpy as np

NUMBERS = {type(None), bool, int, float, complex, str, bytes}  # they never change
PURE = {
    getattr(builtins, name)
    for name in (
        "abs", "all", "any", "bool", "divmod", "float", "int", "len", "max", "min", "pow", "range", "round", "sum",
        "tuple",
    )
}  # fmt: skip


def looked_up(f: Callable) -> tuple | None:
    """Return what f looks up, to be compared by ==, if that is numbers and functions that look up no more.

    None for anything else, such as an array, a module or an object: it can change and stay the same object. f: a
    function, a partial, or a kernel of Triton.
    """
    try:
        return tuple(_of(f, set()))
    except LookupError:
        return None


def _of(x, known):
    """Yield what is looked up in x; raise LookupError for what can change."""
    if id(x) in known:
        return
    if type(x) in NUMBERS or isinstance(x, np.generic) or _is_builtin(x):
        yield type(x), repr(x)  # == would take True for 1
    elif type(x).__module__.startswith("triton."):
        yield from _of_triton(x, known | {id(x)})
    elif isinstance(x, types.FunctionType) and not vars(x):
        known = known | {id(x)}
        yield x.__code__
        yield from _each((*_named(x), *(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()), known)
    elif isinstance(x, functools.partial) and not vars(x):
        yield tuple(x.keywords)
        yield from _each((x.func, *x.args, *x.keywords.values()), known)
    elif type(x) is tuple:
        yield len(x)
        yield from _each(x, known)
    elif isinstance(x, types.ModuleType) and x.__name__.startswith("triton."):
        yield x.__name__
    else:
        raise LookupError


def _each(values, known):
    for value in values:
        yield from _of(value, known)


def _is_builtin(x):
    return isinstance(x, types.BuiltinFunctionType | type) and x in PURE


def _of_triton(x, known):
    """Yield what is looked up in a constant or a kernel of Triton."""
    if isinstance(getattr(x, "fn", None), types.FunctionType):
        yield from _of(x.fn, known)
    elif hasattr(x, "value"):
        yield from _of(x.value, known)
    else:
        raise LookupError


def _named(f):
    """Return the values of the names that a function does not give itself."""
    names, imports = _names(f.__code__)
    if imports:
        raise LookupError
    try:
        cells = [cell.cell_contents for cell in f.__closure__ or ()]
    except ValueError:  # nothing is in it yet
        raise LookupError from None
    world = (f.__globals__, vars(builtins))
    return *cells, *(next((of[name] for of in world if name in of), None) for name in names)


@functools.lru_cache(maxsize=1024)
def _names(code) -> tuple[list[str], bool]:
    """Return the names of the world that code asks for, and whether it imports something."""
    names, imports = [], False
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.append(step.argval)
        imports |= step.opname.startswith("IMPORT_")
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            more, also = _names(inner)
            names, imports = [*names, *more], imports or also
    return names, imports
