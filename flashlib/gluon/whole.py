"""Integers that divide as in a kernel: towards zero, like in C, where Python rounds down.

Only values known at compile time, gl.constexpr, are divided by Python itself.
"""

from collections.abc import Iterator
from typing import Any

import torch


class Whole(int):
    """An integer that the kernel computes with on the GPU; results of arithmetic with it are Whole too."""

    def __floordiv__(self, other):
        return _of_ints(quotient, self, other)

    def __rfloordiv__(self, other):
        return _of_ints(quotient, other, self)

    def __mod__(self, other):
        return _of_ints(rest, self, other)

    def __rmod__(self, other):
        return _of_ints(rest, other, self)

    def __neg__(self):
        return Whole(-int(self))


def _closed(name):
    plain = getattr(int, name)
    return lambda self, other: whole(plain(self, other))


for _name in ("add", "sub", "mul", "and", "or", "xor", "lshift", "rshift"):
    for _side in ("", "r"):
        setattr(Whole, f"__{_side}{_name}__", _closed(f"__{_side}{_name}__"))


def _of_ints(function, a, b):
    return Whole(function(int(a), int(b))) if isinstance(a, int) and isinstance(b, int) else NotImplemented


def whole(x: Any) -> Any:
    """Return an integer as a Whole, anything else unchanged."""
    return Whole(x) if isinstance(x, int) and not isinstance(x, bool) else x


def numbers(*bounds: int) -> Iterator[Whole]:
    """The `range` of a kernel."""
    return map(Whole, range(*bounds))


def quotient(a: Any, b: Any) -> Any:
    """Return a / b truncated towards zero, for numbers or tensors."""
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return torch.div(a, b, rounding_mode="trunc")
    n = abs(a) // abs(b)
    return n if (a < 0) == (b < 0) else -n


def rest(a: Any, b: Any) -> Any:
    """Return the remainder of a / b, which has the sign of a."""
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return torch.fmod(*(torch.as_tensor(x, device="cpu") for x in (a, b)))
    return a - b * quotient(a, b)
