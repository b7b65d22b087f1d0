"""What a rank holds at most in a pass of a ring, in bytes and closed form: nothing of it grows with all ranks' N.

What a pass is given counts, and what it returns. What the products of a hop need beside their results does not: on
a GPU that is a few numbers a row, on a CPU a tile.
"""

from typing import NamedTuple

import torch

from flashlib.masks.parts import count
from flashlib.ring.hops import Plan


class Sizes(NamedTuple):
    """B sequences of H heads, H_k of K and V, in a dtype."""

    B: int
    H: int
    H_k: int
    d: int
    d_v: int
    dtype: torch.dtype

    def of(self, rows: int = 0, keys: int = 0, outputs: int = 0, numbers: int = 0) -> int:
        """Return how many numbers these are: rows of Q, keys with their values, rows of O, and of lse."""
        of_rows = self.H * (rows * self.d + outputs * self.d_v + numbers)
        return self.B * (of_rows + self.H_k * keys * (self.d + self.d_v))

    @property
    def item(self) -> int:
        """Bytes of a number."""
        return self.dtype.itemsize

    @property
    def sum(self) -> int:
        """Bytes of a number that is summed up."""
        return torch.promote_types(self.dtype, torch.float32).itemsize


def forward(sizes: Sizes, plan: Plan, me: int) -> int:
    """Return the peak of rank `me` in the forward pass of `ring`.

    Its Q, K and V; two buffers; O and lse in fp32; those of one hop; and O as it is returned.
    """
    n, own, most, travels, _ = _tokens(plan, me)
    given = sizes.item * sizes.of(rows=n, keys=own)
    buffers = travels * sizes.item * sizes.of(keys=most)
    later = [hop for s, hop in enumerate(plan.hops[me]) if hop and s != me]
    part = max((hop.rows.stop - hop.rows.start for hop in later), default=0)
    state = sizes.sum * (sizes.of(outputs=n, numbers=n) + sizes.of(outputs=part, numbers=part))
    returned = sizes.item * sizes.of(outputs=n) if sizes.item != sizes.sum else 0
    return given + buffers + state + returned


def backward(sizes: Sizes, plan: Plan, me: int) -> int:
    """Return the peak of rank `me` in the backward pass of `ring`.

    Its Q, K, V, O and dO, lse and delta; two buffers of K and V; in fp32 its dQ, dK and dV, those of one hop, two
    sums on their way, and the one that comes home. It is a bound: the last two need not meet. When all have come,
    dQ, dK and dV stand beside what is returned in 16 bits: that is the peak where little or nothing travels.
    """
    n, own, most, travels, sums_travel = _tokens(plan, me)
    given = sizes.item * sizes.of(rows=n, keys=own, outputs=2 * n) + sizes.sum * sizes.of(numbers=2 * n)
    parts = {
        s: sizes.of(rows=hop.rows.stop - hop.rows.start, keys=hop.keys.stop - hop.keys.start)
        for s, hop in enumerate(plan.hops[me])
        if hop
    }
    first, mine = parts.pop(me, 0), plan.hops[me][me]
    if mine and (mine.rows, mine.keys) == (slice(0, n), slice(0, own)):
        first = 0  # it is what others are added to
    on_their_way = sums_travel * sizes.of(keys=most) + (sizes.of(keys=own) if plan.last[me] else 0)
    hop = sizes.sum * max(first, on_their_way + max(parts.values(), default=0))
    returned = sizes.item * sizes.of(rows=n, keys=own) if sizes.item != sizes.sum else 0
    meanwhile = max(travels * sizes.item * sizes.of(keys=most) + hop, returned)
    return given + sizes.sum * sizes.of(rows=n, keys=own) + meanwhile


def _tokens(plan, me):
    """Return this rank's rows and keys, the most keys of a rank, and its numbers of buffers: of keys, of sums."""
    keys, P = list(map(count, plan.keys)), plan.P
    come = [hop for hop in range(1, P) if plan.last[(me - hop) % P] >= hop]
    further = any(hop > 1 for hop in come)
    of_keys = 2 if further else (plan.last[me] > 0) + bool(come)
    return count(plan.rows[me]), keys[me], max(keys), of_keys, bool(come) + further
