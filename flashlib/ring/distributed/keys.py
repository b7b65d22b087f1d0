"""K and V on their way round a ring."""

from typing import Any

import torch

from flashlib.masks.parts import count
from flashlib.ring.distributed.call import Call


def source(call: Call, hop: int) -> int:
    """Return whose keys are here after so many hops."""
    return (call.ring.me - hop) % call.ring.size


class Keys:
    """K and V of the rank whose turn it is, side by side in one of two buffers, each large enough for any rank."""

    def __init__(self, call: Call, link: Any, K: torch.Tensor, V: torch.Tensor) -> None:
        self.call, self.link, self.own, self.last = call, link, (K, V), call.plan.last
        self.tokens = [count(keys) for keys in call.plan.keys]
        self.most = numbers(self.own, max(self.tokens))
        if max(self.last):
            link.reserve(dict.fromkeys(("KV 0", "KV 1"), self.most), K.dtype, K.device)

    def start(self, hop: int) -> Any:
        """Start to send what is here in this hop, and to receive what is needed in the next."""
        ring, came, comes = self.call.ring, source(self.call, hop), source(self.call, hop + 1)
        sends, receives = [], []
        if hop < self.last[came]:
            if hop == 0:
                for mine, X in zip(self.here(0, own=False), self.own, strict=True):
                    mine.copy_(X)
            sends.append(((ring.me + 1) % ring.size, self._flat(hop, came), f"KV {hop % 2}"))
        if hop < self.last[comes]:
            receives.append(((ring.me - 1) % ring.size, self._flat(hop + 1, comes), f"KV {hop % 2}"))
        return self.link.start(sends, receives, tag=hop)

    def here(self, hop: int, own: bool = True) -> tuple[torch.Tensor, ...]:
        """Return K and V that are here in this hop. own: as they were given, in the first."""
        if own and hop == 0:
            return self.own
        came = source(self.call, hop)
        return side_by_side(self._flat(hop, came), self.own, self.tokens[came])

    def _flat(self, hop, came):
        """Return the part of a buffer that the keys of a rank fill."""
        K = self.own[0]
        buffer = self.link.buffer(f"KV {hop % 2}", self.most, K.dtype, K.device)
        return buffer[: numbers(self.own, self.tokens[came])]


def numbers(like: tuple[torch.Tensor, ...], tokens: int) -> int:
    """Return how many numbers K and V of so many tokens are."""
    return sum(X.shape[0] * X.shape[1] * tokens * X.shape[3] for X in like)


def side_by_side(flat: torch.Tensor, like: tuple[torch.Tensor, ...], tokens: int) -> tuple[torch.Tensor, ...]:
    """Return views of a flat tensor as K and V of so many tokens."""
    parts = flat.split([numbers((X,), tokens) for X in like])
    return tuple(part.view(*X.shape[:2], tokens, X.shape[3]) for part, X in zip(parts, like, strict=True))
