"""Integers that divide as in a kernel: towards zero, like in C, where Python rounds down.

Only values known at compile time, gl.constexpr, are divided by Python itself.
"""

from collections.abc import Iterator
from typing import Any

import torch


class Integer(int):
    """An integer that the kernel computes with on the GPU; results of arithmetic with it are Integer too."""

    def __floordiv__(self, other):
        return _of_ints(quotient, self, other)

    def __rfloordiv__(self, other):
        return _of_ints(quotient, other, self)

    def __mod__(self, other):
        return _of_ints(remainder, self, other)

    def __rmod__(self, other):
        return _of_ints(remainder, other, self)

    def __neg__(self):
        return Integer(-int(self))


def _closed(name):
    plain = getattr(int, name)
    return lambda self, other: as_integer(plain(self, other))


for _name in ("add", "sub", "mul", "and", "or", "xor", "lshift", "rshift"):
    for _side in ("", "r"):
        setattr(Integer, f"__{_side}{_name}__", _closed(f"__{_side}{_name}__"))


def _of_ints(function, a, b):
    return Integer(function(int(a), int(b))) if isinstance(a, int) and isinstance(b, int) else NotImplemented


def as_integer(x: Any) -> Any:
    """Return an int as an Integer, anything else unchanged."""
    return Integer(x) if isinstance(x, int) and not isinstance(x, bool) else x


def integer_range(*bounds: int) -> Iterator[Integer]:
    """The `range` of a kernel."""
    return map(Integer, range(*bounds))


def quotient(a: Any, b: Any) -> Any:
    """Return a / b truncated towards zero, for numbers or tensors."""
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return torch.div(a, b, rounding_mode="trunc")
    n = abs(a) // abs(b)
    return n if (a < 0) == (b < 0) else -n


def remainder(a: Any, b: Any) -> Any:
    """Return the remainder of a / b, which has the sign of a."""
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return torch.fmod(*(torch.as_tensor(x, device="cpu") for x in (a, b)))
    return a - b * quotient(a, b)
