"""The backward pass of a ring: sums of dK and dV travel behind the keys they belong to, and finally come home.

The last copies come home when nothing is left to compute. But heads are independent, so if many bytes travel,
heads take turns: the gradients of some come home while those of others are computed. That also takes less memory.

Source: zhuzilin's ring-flash-attention (2024), for dK and dV on their way.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from flashlib.masks.runs import count
from flashlib.ring.distributed.call import RankCall
from flashlib.ring.distributed.keys import TravellingKeys, numbers, side_by_side, some, source
from flashlib.types import Grads

TURN = 2**27  # bytes of dK and dV from which heads take turns: NVLink copies these in a third of a millisecond


def backward(
    call: RankCall, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, lse: torch.Tensor, dO: torch.Tensor,
    delta: torch.Tensor, *, rounded: bool = True,
) -> Grads:  # fmt: skip
    """Return dQ, dK and dV of this rank's rows and keys. lse, delta: of whole rows.

    rounded: whether to the dtypes of Q, K and V; otherwise they are fp32 or fp64, like the sums.
    """
    link, found = call.link(call.ring.group), GradientsOfAllHeads((Q, K, V), None if rounded else lse.dtype)
    before: list[Turn] = []
    for heads in turns(call, K, V, lse.dtype):
        turn = Turn(call, link, heads, K, V, Q, lse, dO, delta)
        for hop in range(max(call.plan.last) + 1):
            if hop and before:  # its last gradients have arrived by now, and this turn needs the buffers
                found.put(before.pop())
            at, shares = turn.shares(hop)
            turn.sums.add(hop, at, shares)
            del shares
        before.append(turn)
    found.put(before.pop())
    return Grads(*found.whole)


def turns(call: RankCall, K: torch.Tensor, V: torch.Tensor, dtype: torch.dtype) -> list[tuple[slice, slice]]:
    """Return the heads of Q, and of K and V, of each turn."""
    H, H_k = len(call.local.taken), K.shape[1]
    hops = (hop for of in call.plan.hops for hop in of if hop)
    apart = call.local.calls or any(hop.mask.tells_heads_apart() for hop in hops)
    if apart or not (H_k and max(call.plan.last)):
        return [(slice(0, H), slice(0, H_k))]
    found = in_turns(H_k, numbers((K, V), max(map(count, call.plan.keys))) * dtype.itemsize)
    return [(slice(k.start * H // H_k, k.stop * H // H_k), k) for k in found]


def in_turns(H_k: int, n: int) -> list[slice]:
    """Return the heads of K and V in each turn, if n bytes of dK and dV travel; the first turn has the most."""
    cut = H_k - H_k // 2
    return [slice(0, cut), slice(cut, H_k)] if n >= TURN and H_k > 1 else [slice(0, H_k)]


class Turn:
    """The backward pass of some heads. heads: of Q, and of K and V. The other arguments: of all heads."""

    def __init__(
        self, call: RankCall, link: Any, heads: tuple[slice, slice], K, V, *of_rows: torch.Tensor
    ) -> None:
        q, k = self.heads = heads
        self.call, self.local = call, call.local.of_heads(q)
        self.of_rows = [some(X, q, 1) for X in of_rows]  # Q, lse, dO, delta
        K, V = some(K, k, 1), some(V, k, 1)
        self.keys = TravellingKeys(call, link, K, V)
        self.sums = TravellingGradients(call, link, K, V, of_rows[1].dtype)
        self.dQ: Any = None

    def shares(self, hop: int) -> tuple[slice, Sequence]:
        """Compute a hop: return which of the keys that are here it sees, and its shares of their dK and dV."""
        copies, at, shares = self.keys.start(hop), slice(0, 0), (None, None)
        if found := self.call.plan.hops[self.call.ring.me][source(self.call, hop)]:
            rows, at = found.rows, found.keys
            Q, lse, dO, delta = (some(X, rows) for X in self.of_rows)
            K, V = (some(X, at) for X in self.keys.here(hop))
            dQ, *shares = self.local.backward(Q, K, V, lse, dO, delta, found.mask, self.call.scale)
            self.dQ = summed(self.dQ, self.of_rows[0], lse.dtype, rows, dQ)
            del dQ
        copies.wait()
        return at, shares

    def totals(self) -> Iterator[tuple[torch.Tensor, torch.Tensor | None]]:
        """Yield dQ, dK and dV, each as one tensor or as two to be added, and keep none of them."""
        own, home = self.sums.finished()
        dQ, self.dQ = summed(self.dQ, self.of_rows[0], own[0].dtype), None
        yield dQ, None
        del dQ
        yield from zip(own, home, strict=True)


class GradientsOfAllHeads:
    """dQ, dK and dV of all heads, in the dtypes of Q, K and V, or all in one dtype."""

    def __init__(self, like: tuple[torch.Tensor, ...], dtype: torch.dtype | None) -> None:
        self.like, self.dtypes = like, [dtype or X.dtype for X in like]
        self.whole: list[Any] = [None] * len(like)

    def put(self, turn: Turn) -> None:
        """Add the results of a turn. A tensor that has all heads and needs no rounding is kept as it is."""
        q, k = turn.heads
        for i, (heads, (total, more)) in enumerate(zip((q, k, k), turn.totals(), strict=True)):
            shape, dtype = self.like[i].shape, self.dtypes[i]
            if total.shape == shape and total.dtype == dtype:
                self.whole[i] = total if more is None else total.add_(more)
                continue
            if self.whole[i] is None:
                self.whole[i] = self.like[i].new_empty(shape, dtype=dtype)
            out = some(self.whole[i], heads, 1)
            out.copy_(total) if more is None else torch.add(total, more, out=out)  # in fp32, and rounded once
            del total, more


class TravellingGradients:
    """dK and dV in fp32: of this rank's own keys from its own rows, and sums for other ranks on their way."""

    def __init__(self, call: RankCall, link: Any, K: torch.Tensor, V: torch.Tensor, dtype: torch.dtype) -> None:
        self.call, self.link, self.like, self.dtype, self.last = call, link, (K, V), dtype, call.plan.last
        self.tokens = [count(keys) for keys in call.plan.keys]
        self.own: list = [None, None]
        self.most = numbers(self.like, max(self.tokens))
        self.flat: dict[int, torch.Tensor] = {}  # by hop
        self.copies: Any = None
        self.home: Any = None
        if max(self.last):
            link.reserve(dict.fromkeys(("dKV 0", "dKV 1"), self.most), dtype, K.device)

    def add(self, hop: int, at: slice, shares: Sequence) -> None:
        """Add this rank's shares to the sum for the keys of this hop, and send it on or home."""
        me, P = self.call.ring.me, self.call.ring.size
        came, comes = source(self.call, hop), source(self.call, hop + 1)
        if hop == 0:
            triples = zip(self.like, shares, strict=True)
            self.own = [summed(None, X, self.dtype, at, share) for X, share in triples]
            return
        self._wait()
        sends, receives = [], []
        if hop <= self.last[came]:
            flat = self._flat(hop, came)
            for total, share in zip(side_by_side(flat, self.like, self.tokens[came]), shares, strict=True):
                _add(total, at, share, is_first=hop == 1)
            sends.append(((me + 1) % P if hop < self.last[came] else came, flat, f"dKV {hop % 2}"))
        if hop < self.last[comes]:
            receives.append(((me - 1) % P, self._flat(hop + 1, comes), f"dKV {hop % 2}"))
        if hop == self.last[me]:
            n = numbers(self.like, self.tokens[me])
            self.home = flat = torch.empty(n, dtype=self.dtype, device=self.like[0].device)
            receives.append(((me + hop) % P, flat, f"dKV {hop % 2}"))
        self.copies = self.link.start(sends, receives, tag=P + hop)

    def finished(self) -> tuple[list[torch.Tensor], Sequence]:
        """Return dK and dV of this rank's keys: from its own rows, and from those of others, None if none came."""
        self._wait()
        if self.home is None:
            return self.own, (None, None)
        return self.own, side_by_side(self.home, self.like, self.tokens[self.call.ring.me])

    def _wait(self):
        if self.copies is not None:
            self.copies.wait()

    def _flat(self, hop, rank):
        """Return the part of a buffer that the sum for a rank's keys fills."""
        if hop not in self.flat:
            buffer = self.link.buffer(f"dKV {hop % 2}", self.most, self.dtype, self.like[0].device)
            self.flat[hop] = buffer[: numbers(self.like, self.tokens[rank])]
        return self.flat[hop]


def summed(
    total: torch.Tensor | None, like: torch.Tensor, dtype: torch.dtype, at: slice = slice(0, 0),
    share: torch.Tensor | None = None,
) -> torch.Tensor:  # fmt: skip
    """Return a sum plus a share of some of its items. total: None for 0; a first share of all items is kept."""
    if total is None and share is not None and at == slice(0, like.shape[2]):
        return share
    if total is None:
        total = torch.zeros(like.shape, dtype=dtype, device=like.device)
    if share is not None:
        some(total, at).add_(share)
    return total


def _add(total, at, share, is_first):
    """Add a share for some keys to a sum for all, in place; the first share initialises the sum."""
    for rest in (slice(0, at.start), slice(at.stop, total.shape[2])) if is_first else ():
        if rest.start < rest.stop:
            some(total, rest).zero_()
    if share is not None:
        part = some(total, at)
        part.copy_(share) if is_first else part.add_(share)
