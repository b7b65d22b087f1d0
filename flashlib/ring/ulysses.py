"""Ulysses, alone or within a ring: ranks exchange heads for rows, and each computes whole rows of some heads.

Before attention the members of a group exchange: each gets all of the group's rows, for its own heads. It is then
one rank in a ring of its peers, one from each group; with a single group nothing goes round. Afterwards O goes
back. `head_groups` says who has which heads and rows.

Source: Jacobs and others, DeepSpeed Ulysses (2023); combined with a ring: Fang and Zhao, USP (2024).
"""

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from flashlib.ring import programs
from flashlib.ring.commands import BufferContent, Compute, Receive, Send, Wait
from flashlib.ring.head_groups import kv_heads, own_heads
from flashlib.ring.hops import RingPlan
from flashlib.ring.rank import Rank
from flashlib.types import Attention, Grads


class Member(Rank):
    """A rank in a group. Q, K, V: (H, n, d), its own rows for all heads; plan: of the ring of groups."""

    def __init__(self, r: int, size: int, plan: RingPlan, Q, K, V, **options):
        self.r, self.size, self.plan = r, size, plan
        self.at, self.member = r // size, r % size
        self.Q, self.K, self.V, self.dtype, self.options = Q, K, V, Q.dtype, options
        self.O, self.lse, self.dO = options.pop("after", None) or (None, None, None)
        self.buffers = []

    @property
    def P(self) -> int:
        return self.plan.P * self.size

    def group(self) -> list[int]:
        """Return the ranks of this rank's group."""
        return [self.at * self.size + m for m in range(self.size)]

    def peers(self) -> list[int]:
        """Return the ranks of this rank's ring, one from each group."""
        return [at * self.size + self.member for at in range(self.plan.P)]

    def heads(self) -> list[tuple[range, range]]:
        """Return the heads of each member: those of Q, and those of K and V."""
        H, H_k = len(self.Q), len(self.K)
        own = [own_heads(H, self.size, m) for m in range(self.size)]
        return [(heads, kv_heads(heads, H, H_k)) for heads in own]

    def inner(self, Q: np.ndarray, K: np.ndarray, V: np.ndarray, **after: np.ndarray | None) -> Rank:
        """Return this member as a rank of its ring, with all the group's rows for its own heads."""
        (heads, kv), group = self.heads()[self.member], max(len(self.Q) // max(len(self.K), 1), 1)
        taken = [h // group - kv[0] for h in heads]
        rank = Rank(self.at, self.plan, Q, K, V, kv_heads=taken, **self.options)
        rank.lse, rank.dO, rank.given_delta = (after.get(name) for name in ("lse", "dO", "delta"))
        rank.own.block = BufferContent("KV", self.r)
        rank.dtype = np.promote_types(Q.dtype, np.float32)
        self.buffers += rank.buffers
        rank.buffers = self.buffers
        return rank


def forward(me: Member) -> programs.Forward:
    """A member of a group: exchange heads for rows, run a ring with its peers, and exchange O and lse back."""
    parts = [(me.Q[_of(q)], me.K[_of(kv)], me.V[_of(kv)]) for q, kv in me.heads()]
    got = yield from exchange(me, "QKV", parts)
    O, lse = yield from among(programs.ring(me.inner(*_rows(got))), me.peers())
    O = O.astype(me.Q.dtype)
    got = yield from exchange(me, "O", [(O[:, own], lse[:, own]) for own in _cuts(got)])
    return Attention(*(np.concatenate(X) for X in zip(*got, strict=True)))


def backward(me: Member) -> programs.Backward:
    """A member of a group, backward: exchange Q, K and V again, with dO, lse and delta, then the gradients."""
    delta = me.delta()
    parts = [
        (me.Q[_of(q)], me.K[_of(kv)], me.V[_of(kv)], me.dO[_of(q)], me.lse[_of(q)], delta[_of(q)])
        for q, kv in me.heads()
    ]
    got = yield from exchange(me, "QKVdO", parts)
    Q, K, V, dO, lse, delta = _rows(got)
    inner = me.inner(Q, K, V, dO=dO, lse=lse, delta=delta)
    dQ, dK, dV = yield from among(programs.ring_backward(inner), me.peers())
    cuts = zip(_cuts(got), _cuts([part[1:] for part in got]), strict=True)
    got = yield from exchange(me, "dQKV", [(dQ[:, q], dK[:, k], dV[:, k]) for q, k in cuts])
    sums = Grads(*(np.zeros(X.shape, me.lse.dtype) for X in (me.Q, me.K, me.V)))
    for (q, kv), share in zip(me.heads(), got, strict=True):
        for total, heads, X in zip(sums, (q, kv, kv), share, strict=True):
            total[_of(heads)] += X  # several members may have had a head of K and V
    return Grads(*(X.astype(me.Q.dtype) for X in sums))


def exchange(me: Member, what: str, parts: Sequence[tuple]) -> Generator[Any, None, Any]:
    """Send parts[m] to each member m of the group; return what each sent to this one, in their order."""
    group, size, coming = me.group(), me.size, {}
    for step in range(1, size):
        to, source = (me.member + step) % size, (me.member - step) % size
        coming[source] = me.buffer(f"{what} from {group[source]}")
        yield Send(group[to], me.buffer(f"{what} to {group[to]}", parts[to], BufferContent(what, me.r)))
        yield Receive(group[source], coming[source])
    yield Wait()
    return [parts[m] if m == me.member else coming[m].arrays for m in range(size)]


def among(program: Generator[Any, None, Any], ranks: Sequence[int]) -> Generator[Any, None, Any]:
    """Run a program written for ranks 0, 1, ..., with these ranks in their place."""
    while True:
        try:
            command = next(program)
        except StopIteration as stop:
            return stop.value
        if isinstance(command, Send):
            command = command._replace(to=ranks[command.to])
        elif isinstance(command, Receive | Compute):
            command = command._replace(source=ranks[command.source])
        yield command


def _of(heads):
    return slice(heads.start, heads.stop)


def _rows(got):
    """Return the rows of the group, from those of its members."""
    return tuple(np.concatenate(X, axis=1) for X in zip(*got, strict=True))


def _cuts(got):
    """Return where each member's rows are among the group's, as slices; each member's first array has them."""
    ends = np.cumsum([part[0].shape[1] for part in got])
    return [slice(int(end) - part[0].shape[1], int(end)) for part, end in zip(got, ends, strict=True)]
