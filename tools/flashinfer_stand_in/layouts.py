"""FlashInfer's layouts of tensors and results, and ours: NHD or HND, a cache in one tensor or two, base 2 or e."""

import math
from typing import Any

import torch

from flashlib import sink as sinks
from flashlib.types import Attention

Cache = torch.Tensor | tuple[torch.Tensor, torch.Tensor]
Results = torch.Tensor | tuple[torch.Tensor, torch.Tensor]
LN_2 = math.log(2)


def by_head(X: torch.Tensor, kv_layout: str) -> torch.Tensor:
    """Return keys or values, or pages of them, with the axis of heads before that of tokens."""
    return X if kv_layout == "HND" else X.transpose(-3, -2)


def pages_of(cache: Cache, kv_layout: str) -> list[torch.Tensor]:
    """Return K and V, each (pages, H_k, page, d). cache: both in one tensor, or a pair; pages of one token may
    lack their axis."""
    K, V = cache if isinstance(cache, tuple) else cache.unbind(1)
    axis = -3 if kv_layout == "NHD" else -2
    return [by_head(X.unsqueeze(axis) if X.ndim == 3 else X, kv_layout) for X in (K, V)]


def with_sink(O: torch.Tensor, lse: torch.Tensor, sink: torch.Tensor | None) -> Attention:
    """Return O, (N, H, d), and lse, (N, H), with a sink for each head, if there is one."""
    if sink is None:
        return Attention(O, lse)
    O, lse = sinks.add(Attention(O.transpose(0, 1)[None], lse.T[None]), sink)
    return Attention(O[0].transpose(0, 1), lse[0].T)


def results(
    found: Attention, return_lse: bool = False, out: torch.Tensor | None = None, lse: torch.Tensor | None = None
) -> Results:
    """Return O, and with return_lse the log-sum-exp to base 2, in buffers if they are given."""
    values: Any = found.O, found.lse / LN_2
    values = tuple(X if to is None else to.copy_(X) for X, to in zip(values, (out, lse), strict=True))
    return values if return_lse else values[0]
