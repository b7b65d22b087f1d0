"""The most bytes that a rank holds in a pass of a ring, in closed form: none of it grows with the whole sequence.

The inputs and results of a pass count. What the products of a hop need besides their results does not: on a GPU
that is a few numbers for each row, on a CPU one tile, and with `on_hopper` at most another dQ in fp32.
"""

from typing import NamedTuple

import torch

from flashlib.masks.runs import count
from flashlib.ring.distributed import gradients
from flashlib.ring.hops import RingPlan


class AttentionSizes(NamedTuple):
    """B sequences of H heads, H_k of K and V, in a dtype."""

    B: int
    H: int
    H_k: int
    d: int
    d_v: int
    dtype: torch.dtype

    def of(self, rows: int = 0, keys: int = 0, outputs: int = 0, numbers: int = 0) -> int:
        """Return how many numbers these have: rows of Q, of K with V, of O, and single numbers such as lse."""
        of_rows = self.H * (rows * self.d + outputs * self.d_v + numbers)
        return self.B * (of_rows + self.H_k * keys * (self.d + self.d_v))

    @property
    def item(self) -> int:
        """Bytes of a number."""
        return self.dtype.itemsize

    @property
    def sum(self) -> int:
        """Bytes of a number in a sum."""
        return torch.promote_types(self.dtype, torch.float32).itemsize


def forward(sizes: AttentionSizes, plan: RingPlan, me: int) -> int:
    """Return the peak of rank `me` in the forward pass of `ring`.

    It holds its Q, K and V; two buffers; O and lse in fp32; those of one hop; and the O that it returns. If its
    rows need the keys of one hop only, O is rounded at once.
    """
    n, own, most, travels = _tokens(plan, me)
    given = sizes.item * sizes.of(rows=n, keys=own)
    buffers = travels * sizes.item * sizes.of(keys=most)
    later = [hop for s, hop in enumerate(plan.hops[me]) if hop and s != me]
    part = max((hop.rows.stop - hop.rows.start for hop in later), default=0)
    kept = 0 if _alone(plan, me) else n
    state = sizes.sum * (sizes.of(outputs=kept, numbers=n) + sizes.of(outputs=part, numbers=part))
    returned = sizes.item * sizes.of(outputs=n) if sizes.item != sizes.sum or not kept else 0
    return given + buffers + state + returned


def _alone(plan, me):
    """Return whether this rank's rows see the keys of one hop only."""
    found = [hop for hop in plan.hops[me] if hop]
    return len(found) == 1 and found[0].rows == slice(0, count(plan.rows[me]))


def backward(sizes: AttentionSizes, plan: RingPlan, me: int) -> int:
    """Return a bound on the peak of rank `me` in the backward pass of `ring`: not all of it need be held at once.

    It holds its Q, K, V, O, dO, lse and delta; two buffers of K and V; and in fp32 its dQ, dK and dV, those of one
    hop, two sums on their way, and the one that comes home. If heads take turns, these are of one turn, but there
    are also dQ, dK and dV of both turns, and the results in 16 bits. Otherwise the results take the place of a
    hop.
    """
    n, own, most, travels = _tokens(plan, me)
    given = sizes.item * sizes.of(rows=n, keys=own, outputs=2 * n) + sizes.sum * sizes.of(numbers=2 * n)
    turns = gradients.in_turns(sizes.H_k, sizes.sum * sizes.of(keys=most) if max(plan.last) else 0)
    of = _of_heads(sizes, turns[0])
    parts = {
        s: of.of(rows=hop.rows.stop - hop.rows.start, keys=hop.keys.stop - hop.keys.start)
        for s, hop in enumerate(plan.hops[me])
        if hop
    }
    first, mine = parts.pop(me, 0), plan.hops[me][me]
    if mine and (mine.rows, mine.keys) == (slice(0, n), slice(0, own)):
        first = 0  # the others are added to it
    buffers = travels * (sizes.item + sizes.sum) * of.of(keys=most)
    home = sizes.sum * of.of(keys=own) if plan.last[me] else 0
    hop = sizes.sum * max(parts.values(), default=0)
    returned = sizes.item * sizes.of(rows=n, keys=own) if sizes.item != sizes.sum or turns[1:] else 0
    sums, rest = (sizes.sum * _of_heads(sizes, k).of(rows=n, keys=own) for k in (turns[0], turns[-1]))
    if len(turns) > 1:
        return given + buffers + home + sums + returned + max(hop, rest)
    return given + sums + max(sizes.sum * first, buffers + home + max(hop, returned))


def _of_heads(sizes, k):
    """Return the AttentionSizes of some heads of K and V, and the heads of Q that read them."""
    H_k = k.stop - k.start
    return sizes._replace(H=sizes.H // max(sizes.H_k, 1) * H_k, H_k=H_k)


def _tokens(plan, me):
    """Return this rank's rows and keys, the most keys of any rank, and its number of buffers of keys or sums."""
    keys, P = list(map(count, plan.keys)), plan.P
    come = [hop for hop in range(1, P) if plan.last[(me - hop) % P] >= hop]
    further = any(hop > 1 for hop in come)
    return count(plan.rows[me]), keys[me], max(keys), bool(come) + further
