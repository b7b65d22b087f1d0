"""Launches that the interpreter ran: noted, to be compiled afterwards for GPUs that need not be there."""

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
    """A launch: its kernel, and its arguments and options as they were given, without what tensors hold.

    whole: whether it is compiled to the end; if not, up to LLVM's code, which takes longest and refuses least.
    """

    kernel: Any
    arguments: tuple
    options: dict
    whole: bool = False


class Sent(NamedTuple):
    """Launches as they are sent to the process that compiles.

    parcel: of pickling.dumps, a list of Launches. key: the same in each session for the same launches. places:
    {text of a function that may be the learner's: in which line of its file it begins}.
    """

    parcel: tuple
    key: str
    places: dict[str, int]


class Launches:
    """The launches that were noted. noting: whether further ones are."""

    def __init__(self) -> None:
        self.noting = True
        self._found: dict = {}  # by kernel and kinds of arguments

    def note(self, kernel: Any, arguments: tuple, options: dict) -> None:
        if not self.noting or (kernel.fn.__module__ or "").startswith("flashlib.kernels."):
            return  # the course's own kernels have tests of their own
        one = NotedLaunch(kernel, tuple(map(_stand_in, arguments)), {n: _stand_in(x) for n, x in options.items()})
        kinds = {name: _kind(x, _is_constant(kernel.fn, name)) for name, x in _named(one).items()}
        key = kernel.fn, repr(kinds)
        if key not in self._found or _ones(one) < _ones(self._found[key]):
            self._found[key] = one

    def sent(self) -> Sent | None:
        """Return one NotedLaunch of each kernel, dtypes and constants, the smallest of a kernel whole.

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
        return Sent(tuple(pickling.dumps(found)), key, places)


@contextlib.contextmanager
def launches() -> Iterator[Launches]:
    """Note what is launched in the interpreter while this lasts; yields the Launches."""
    noted = Launches()
    with of_watching.launches_seen(noted.note):
        yield noted


def told(one: NotedLaunch) -> str:
    """Return the kernel of a launch and its constants as text."""
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
    """Return what the compiler makes a difference of, whatever the sizes are: other than 1, they are all alike."""
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
    """Return how many integers are 1: of those the compiler makes constants."""
    return sum(type(x) is int and x == 1 for x in _named(one).values())


def _size(one):
    """Return the product of the numbers among the constants of a launch: about as much as there is to compile."""
    constants = (x for name, x in _named(one).items() if _is_constant(one.kernel.fn, name))
    return math.prod(x for x in constants if type(x) is int and x > 0)
