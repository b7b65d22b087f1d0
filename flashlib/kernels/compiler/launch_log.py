"""A log of launches that the interpreter ran, to compile them later for GPUs that need not be present."""

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from types import FunctionType
from typing import Any, NamedTuple

import torch
import triton
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as GluonDescriptor
from triton.tools.tensor_descriptor import TensorDescriptor

from flashlib.kernels.compiler import sources
from flashlib.learner import pickling
from flashlib.private_apis import of_watching


class NotedLaunch(NamedTuple):
    """A launch: its kernel, arguments and options as they were passed, but tensors without their contents.

    whole: whether to compile it to the end; if not, compilation stops before LLVM, which takes longest and
    refuses least.
    """

    kernel: Any
    arguments: tuple
    options: dict
    whole: bool = False


class LaunchParcel(NamedTuple):
    """Launches as they are sent to the process that compiles.

    parcel: the result of pickling.dumps on a list of NotedLaunch. key: the same in each session for the same
    launches. places: {text of a function that may be the learner's: the line of its file where it begins}.
    """

    parcel: tuple
    key: str
    places: dict[str, int]


class LaunchLog:
    """The launches noted so far. noting: whether further ones are noted."""

    def __init__(self) -> None:
        self.noting = True
        self._found: dict = {}  # by kernel and kinds of arguments

    def note(self, kernel: Any, arguments: tuple, options: dict) -> None:
        if not self.noting or (kernel.fn.__module__ or "").startswith("flashlib.kernels."):
            return  # the course's own kernels have their own tests
        one = NotedLaunch(kernel, tuple(map(_stand_in, arguments)), {n: _stand_in(x) for n, x in options.items()})
        kinds = {name: _kind(x, _is_constant(kernel.fn, name)) for name, x in _named(one).items()}
        key = kernel.fn, repr(kinds)
        if key not in self._found or _ones(one) < _ones(self._found[key]):
            self._found[key] = one

    def sent(self) -> LaunchParcel | None:
        """Return one launch for each kernel, dtypes and constants; the smallest of each kernel is `whole`.

        None if there was no launch. Raises pickling.CannotBeSent.
        """
        if not self._found:
            return None
        found = sorted(self._found.values(), key=_size, reverse=True)
        smallest = {one.kernel.fn: one for one in found}.values()
        found = [one._replace(whole=any(one is other for other in smallest)) for one in found]
        seen: dict[FunctionType, int] = {}
        key = sources.digest(found, seen)
        places = dict(sources.source(f) for f in seen if not (f.__module__ or "").startswith("flashlib."))
        return LaunchParcel(tuple(pickling.dumps(found)), key, places)


@contextlib.contextmanager
def logged_launches() -> Iterator[LaunchLog]:
    """Note what is launched in the interpreter while this lasts; yields the LaunchLog."""
    noted = LaunchLog()
    with of_watching.launches_seen(noted.note):
        yield noted


def launch_text(one: NotedLaunch) -> str:
    """Return the name of a launch's kernel and its constants as text."""
    constants = {n: x for n, x in _named(one).items() if _is_constant(one.kernel.fn, n) and isinstance(x, int)}
    said = ", ".join(f"{name} = {x}" for name, x in constants.items())
    return one.kernel.__name__ + (f", {said}" if said else "")


def _named(one):
    """Return the arguments and options of a NotedLaunch by name."""
    return dict(zip(one.kernel.arg_names, one.arguments, strict=False)) | one.options


def _is_constant(function, name):
    taken = function.__code__.co_varnames[: function.__code__.co_argcount]
    return name not in taken or "constexpr" in str(function.__annotations__.get(name))


def _stand_in(x):
    """Return an argument in which tensors have no memory."""
    if isinstance(x, tuple):
        return type(x)(*map(_stand_in, x)) if hasattr(x, "_fields") else tuple(map(_stand_in, x))
    if isinstance(x, TensorDescriptor | GluonDescriptor):
        return dataclasses.replace(x, base=_stand_in(x.base))
    if isinstance(x, triton.TensorWrapper):
        return triton.TensorWrapper(_stand_in(x.base), x.dtype)
    if isinstance(x, torch.Tensor):
        return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")
    return x


def _kind(x, constant):
    """Return the properties of an argument that the compiler distinguishes, apart from sizes equal to 1."""
    if isinstance(x, tuple):
        return [_kind(part, constant) for part in x]
    if isinstance(x, TensorDescriptor | GluonDescriptor):
        return x.base.dtype, *x.block_shape
    if constant or not isinstance(x, int | float | torch.Tensor | triton.TensorWrapper):
        return x
    if isinstance(x, bool | float):
        return type(x).__name__
    return x.dtype if hasattr(x, "dtype") else ("int32" if -(2**31) <= x < 2**31 else "int64")


def _ones(one):
    """Return how many integers are 1, which the compiler turns into constants."""
    return sum(type(x) is int and x == 1 for x in _named(one).values())


def _size(one):
    """Return the product of the numbers among a launch's constants, roughly how much there is to compile."""
    constants = (x for name, x in _named(one).items() if _is_constant(one.kernel.fn, name))
    return math.prod(x for x in constants if type(x) is int and x > 0)
