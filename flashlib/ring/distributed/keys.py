"""K and V on their way round a ring."""

from typing import Any

import torch

from flashlib.masks.runs import count
from flashlib.ring.distributed.call import RankCall


def source(call: RankCall, hop: int) -> int:
    """Return whose keys are here at this hop."""
    return (call.ring.me - hop) % call.ring.size


class TravellingKeys:
    """K and V of the rank whose keys are here, side by side in one of two buffers, large enough for any rank."""

    def __init__(self, call: RankCall, link: Any, K: torch.Tensor, V: torch.Tensor) -> None:
        self.call, self.link, self.own, self.last = call, link, (K, V), call.plan.last
        self.tokens = [count(keys) for keys in call.plan.keys]
        self.most = numbers(self.own, max(self.tokens))
        self.flat: dict[int, torch.Tensor] = {}  # by hop
        if max(self.last):
            link.reserve(dict.fromkeys(("KV 0", "KV 1"), self.most), K.dtype, K.device)

    def start(self, hop: int) -> Any:
        """Start to send what is here at this hop, and to receive what the next hop needs."""
        ring, came, comes = self.call.ring, source(self.call, hop), source(self.call, hop + 1)
        name, sends, receives = f"KV {hop % 2}", [], []
        if hop < self.last[came]:
            sends = [((ring.me + 1) % ring.size, X, name) for X in self._sent(hop, came)]
        if hop < self.last[comes]:
            flat = self._flat(hop + 1, comes)
            parts = flat.split(sizes(self.own, self.tokens[comes])) if self._as_given(hop) else [flat]
            receives = [((ring.me - 1) % ring.size, X, name) for X in parts]
        return self.link.start(sends, receives, tag=hop)

    def here(self, hop: int) -> tuple[torch.Tensor, ...]:
        """Return the K and V that are here at this hop."""
        if hop == 0:
            return self.own
        came = source(self.call, hop)
        return side_by_side(self._flat(hop, came), self.own, self.tokens[came])

    def _sent(self, hop, came):
        """Return the flat tensors to send: in hop 0 K and V as they were given, if copies can start from them."""
        if self._as_given(hop):
            return [X.reshape(-1) for X in self.own]
        flat = self._flat(hop, came)
        if hop == 0:
            for mine, X in zip(side_by_side(flat, self.own, self.tokens[came]), self.own, strict=True):
                mine.copy_(X)
        return [flat]

    def _as_given(self, hop):
        return hop == 0 and self.link.from_anywhere

    def _flat(self, hop, came):
        """Return the part of a buffer that the keys of a rank fill."""
        if hop not in self.flat:
            K, n = self.own[0], numbers(self.own, self.tokens[came])
            buffer = self.link.buffer(f"KV {hop % 2}", self.most, K.dtype, K.device)
            self.flat[hop] = buffer[:n]
        return self.flat[hop]


def numbers(like: tuple[torch.Tensor, ...], tokens: int) -> int:
    """Return how many numbers K and V of so many tokens have together."""
    return sum(sizes(like, tokens))


def sizes(like: tuple[torch.Tensor, ...], tokens: int) -> list[int]:
    """Return how many numbers each of K and V has."""
    return [B * H_k * tokens * d for B, H_k, _, d in (X.shape for X in like)]


def side_by_side(flat: torch.Tensor, like: tuple[torch.Tensor, ...], tokens: int) -> tuple[torch.Tensor, ...]:
    """Return views of a flat tensor as K and V of so many tokens."""
    parts = flat.split_with_sizes(sizes(like, tokens))
    return tuple(
        part.view(B, H_k, tokens, d) for part, (B, H_k, _, d) in zip(parts, (X.shape for X in like), strict=True)
    )


def some(X: torch.Tensor, items: slice, dim: int = 2) -> torch.Tensor:
    """Return these items of an axis, without a view of all of them: rows or keys by default."""
    if items.start == 0 and items.stop == X.shape[dim]:
        return X
    return X.narrow(dim, items.start, items.stop - items.start)
