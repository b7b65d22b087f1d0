"""Global memory by pointers: loads, stores and atomic adds. They need no schedule, as roles do not share it."""

from types import SimpleNamespace
from typing import Any

import torch

from flashlib.gluon.refused import Wrong
from flashlib.gluon.threads import current
from flashlib.gluon.tile import Tile, common


class Pointer:
    """A pointer to a tensor's numbers, and its offset."""

    def __init__(self, name: str, X: torch.Tensor, at: Any = 0) -> None:
        self.name, self.X, self.at = name, X, at

    def __add__(self, n):
        return Pointer(self.name, self.X, n + self.at if isinstance(n, Tile) else self.at + n)

    __radd__ = __add__

    @property
    def dtype(self) -> SimpleNamespace:
        return SimpleNamespace(element_ty=self.X.dtype)


def undefined(dtype: torch.dtype) -> float | int:
    """Return the value of a load without `other` where its mask is False; on a GPU it is undefined."""
    return torch.nan if dtype.is_floating_point else torch.iinfo(dtype).max // 2


def load(pointer: Pointer, mask: Any = None, other: Any = None, **options: Any) -> Tile:  # noqa: ARG001
    layout = common(pointer.at, mask)
    at = pointer.at.data if isinstance(pointer.at, Tile) else torch.tensor(pointer.at)
    mask = torch.ones_like(at, dtype=torch.bool) if mask is None else mask.data
    flat = pointer.X.view(-1)
    other = undefined(flat.dtype) if other is None else other
    return Tile(torch.where(mask, flat[torch.where(mask, at, 0).long()], other), layout)


def store(pointer: Pointer, x: Any, mask: Any = None, **options: Any) -> None:  # noqa: ARG001
    flat, at, values = _places(pointer, x, mask)
    current().stored += len(at)
    flat[at] = values


def add(pointer: Pointer, x: Any, mask: Any = None) -> None:
    """Add to each place as many times as it occurs."""
    flat, at, values = _places(pointer, x, mask)
    flat.index_add_(0, at, values)


def _places(pointer, x, mask):
    """Return all numbers of a tensor, the places to write, and the values; raise Wrong for places outside."""
    common(pointer.at, x, mask)
    at, values, chosen = (one.data if isinstance(one, Tile) else one for one in (pointer.at, x, mask))
    flat = pointer.X.view(-1)
    at, values, chosen = torch.broadcast_tensors(
        *(torch.as_tensor(one) for one in (at, values, True if chosen is None else chosen))
    )
    at = at[chosen].long()
    outside = (at < 0) | (at >= len(flat))
    if outside.any():
        wrong = "stored_outside" if mask is None else "stored_past"
        raise Wrong(wrong, name=pointer.name, n=int(outside.sum()))
    return flat, at, values[chosen].to(flat.dtype)
