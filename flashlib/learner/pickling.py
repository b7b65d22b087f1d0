"""Send functions to another process by value, with the globals that they use and their source lines.

So a function written in a notebook can run elsewhere, where Triton and tracebacks find its source.
"""

import contextlib
import contextvars
import functools
import importlib
import io
import linecache
import pickle
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle

from flashlib.learner.error_text import error_text


class CannotBeSent(Exception):
    """A function uses something that cannot be sent to another process."""


class Parcel(NamedTuple):
    """The functions that are sent.

    pickled: the functions. sources: {file: lines} of the cells that they come from. has_kernels: whether they may
    include kernels, or anything else that needs Triton; if so, the receiver imports `flashlib.kernels`, which
    decides whether kernels are interpreted, before loading them.
    """

    pickled: bytes
    sources: dict
    has_kernels: bool


def dumps(what: object) -> Parcel:
    """Return the Parcel of `what`; raise CannotBeSent.

    Triton and Gluon kernels are sent as the functions that they are made from, and rebuilt by the receiver.
    """
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    try:
        pickler.dump(what)
    except Exception as error:  # whatever one of the learner's globals raises when it is pickled
        raise CannotBeSent(error_text(error)) from error
    sources = {file: linecache.getlines(file) for file in pickler.files}
    return Parcel(buffer.getvalue(), sources, "triton" in sys.modules)


@contextlib.contextmanager
def by_value(function: Any, root: Path) -> Iterator[None]:
    """Have a function's module sent by value if its file is not below root, where a receiver may not find it."""
    module = sys.modules.get(getattr(function, "__module__", None) or "__main__")
    file = getattr(module, "__file__", None)
    known = module is None or module.__name__ in {"__main__", *cloudpickle.list_registry_pickle_by_value()}
    if known or file is None or {root, Path(sys.prefix).resolve()} & {*Path(file).resolve().parents}:
        yield
        return
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def loads(parcel: Parcel) -> Any:
    """Return the content of a Parcel from `dumps`."""
    for file, lines in parcel.sources.items():
        linecache.cache.setdefault(file, (sum(map(len, lines)), None, lines, file))
    return pickle.loads(parcel.pickled)


class _Pickler(cloudpickle.CloudPickler):
    """Collects the files that the functions come from."""

    def __init__(self, file):
        super().__init__(file)
        self.files = set()

    def reducer_override(self, obj):
        if isinstance(obj, types.FunctionType):
            if hasattr(obj, "dispatch") and isinstance(getattr(obj, "registry", None), types.MappingProxyType):
                return functools.singledispatch, (obj.registry[object],), dict(obj.registry), None, None, _register
            self.files.add(obj.__code__.co_filename)
        elif isinstance(obj, types.CodeType):  # cloudpickle 3.1.3 leaves its file out
            return _code, (*self.dispatch_table[types.CodeType](obj)[:2], obj.co_filename)
        elif type(obj).__name__ in ("JITFunction", "InterpretedFunction"):  # by name: Triton may be missing
            return _jit, (obj.fn,)
        elif type(obj).__name__ == "GluonJITFunction":
            return _gluon_jit, (obj.fn,)
        elif type(obj).__name__ == "dtype" and type(obj).__module__.startswith("triton."):
            return _dtype, (obj.name,)  # the interpreter stores things in it
        elif isinstance(obj, functools._lru_cache_wrapper):
            return _cached, (obj.__wrapped__, obj.cache_parameters())
        elif isinstance(obj, functools.cached_property):
            return _property, (obj.func, obj.attrname)
        elif isinstance(obj, contextvars.ContextVar) and (
            place := _place(obj)
        ):  # a library's, such as NumPy's for errstate
            return getattr, place
        return super().reducer_override(obj)


def _code(make, arguments, file):
    return make(*arguments).replace(co_filename=file)


def _jit(fn):
    triton = importlib.import_module("triton")
    fn.__globals__.setdefault("tl", triton.language)  # the interpreter needs it, and only used globals are sent
    return triton.jit(fn)


def _gluon_jit(fn):
    gluon = importlib.import_module("triton.experimental.gluon")
    fn.__globals__.setdefault("gl", gluon.language)  # the compiler reads annotations, which do not count as uses
    return gluon.jit(fn)


def _dtype(name):
    return importlib.import_module("triton").language.dtype(name)


def _cached(f, parameters):
    return functools.lru_cache(**parameters)(f)


def _register(dispatched, registry):
    for kind, f in registry.items():
        dispatched.register(kind, f)


def _property(f, name):
    made = functools.cached_property(f)
    made.attrname = name
    return made


def _place(obj):
    """Return the module of an object and its name there, or None."""
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is obj:
                return module, name
    return None
