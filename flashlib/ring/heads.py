"""Ulysses: ranks exchange heads for rows, so that each computes whole rows of some heads; and both ways at once.

Ranks stand in groups of `size`, and groups form a ring: rank r is member r % size of group r // size. A group
holds what one rank of a ring would, in pieces one after the other. Before attention its members exchange: each
gets all the group's rows, of its own heads. It then is a rank of a ring of its peers, one of each group; with a
single group there is nothing to go round. Afterwards O goes back. Heads need not be divisible: some members have
one more, or none. K and V of a head go to each member that has a head of Q which takes them.

Source: Jacobs and others, DeepSpeed Ulysses (2023); both at once as in Fang and Zhao, USP (2024).
"""

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from flashlib.inputs import check_counts
from flashlib.masks.runs import Runs, count
from flashlib.ring import layouts, programs
from flashlib.ring.commands import Block, Compute, Receive, Send, Wait
from flashlib.ring.hops import Plan, sliced
from flashlib.ring.rank import Rank
from flashlib.types import Attention, Grads


def check_group(ranks: int, heads: int) -> int:
    """Return how many ranks share heads; raise TypeError or ValueError unless they divide the ranks."""
    check_counts(at_least=1, ranks=ranks, heads=heads)
    if ranks % heads:
        raise ValueError(f"heads is {heads}, and there are {ranks} ranks: groups of {heads} do not divide them")
    return int(heads)


def own_heads(H: int, size: int, member: int) -> range:
    """Return the heads of a member of a group, of H heads in all."""
    return range(member * H // size, (member + 1) * H // size)


def kv_heads(heads: range, H: int, H_k: int) -> range:
    """Return the heads of K and V, of H_k, that these heads of Q take, of H."""
    return range(heads[0] * H_k // H, heads[-1] * H_k // H + 1) if heads else range(0)


def runs(N: int, P: int, r: int, layout: str, size: int) -> Runs:
    """Return the tokens of rank r of P in groups of `size`: a piece of what its group holds."""
    return pieces(layouts.runs(N, P // size, r // size, layout), size)[r % size]


def pieces(held: Runs, size: int) -> list[Runs]:
    """Return what each member of a group holds of the group's tokens."""
    return [sliced(held, slice(m * count(held) // size, (m + 1) * count(held) // size)) for m in range(size)]


class Member(Rank):
    """A rank in a group. Q, K, V: (H, n, d), its own rows of all heads; plan: of the ring of groups."""

    def __init__(self, r: int, size: int, plan: Plan, Q, K, V, **options):
        self.r, self.size, self.plan = r, size, plan
        self.at, self.member = r // size, r % size
        self.Q, self.K, self.V, self.dtype, self.options = Q, K, V, Q.dtype, options
        self.O, self.lse, self.dO = options.pop("after", None) or (None, None, None)
        self.buffers = []

    @property
    def P(self) -> int:
        return self.plan.P * self.size

    def group(self) -> list[int]:
        """Return the ranks of this one's group."""
        return [self.at * self.size + m for m in range(self.size)]

    def peers(self) -> list[int]:
        """Return the ranks of this one's ring, one of each group."""
        return [at * self.size + self.member for at in range(self.plan.P)]

    def heads(self) -> list[tuple[range, range]]:
        """Return the heads of each member: of Q, and of K and V."""
        H, H_k = len(self.Q), len(self.K)
        own = [own_heads(H, self.size, m) for m in range(self.size)]
        return [(heads, kv_heads(heads, H, H_k)) for heads in own]

    def inner(self, Q: np.ndarray, K: np.ndarray, V: np.ndarray, **after: np.ndarray | None) -> Rank:
        """Return this member as a rank of its ring, which has all rows of its group for its own heads."""
        (heads, kv), group = self.heads()[self.member], max(len(self.Q) // max(len(self.K), 1), 1)
        taken = [h // group - kv[0] for h in heads]
        rank = Rank(self.at, self.plan, Q, K, V, kv_heads=taken, **self.options)
        rank.lse, rank.dO, rank.given_delta = (after.get(name) for name in ("lse", "dO", "delta"))
        rank.own.block = Block("KV", self.r)
        rank.dtype = np.promote_types(Q.dtype, np.float32)
        self.buffers += rank.buffers
        rank.buffers = self.buffers
        return rank


def forward(me: Member) -> programs.Forward:
    """A member of a group: heads for rows, a ring of its peers, and O and lse back."""
    parts = [(me.Q[_of(q)], me.K[_of(kv)], me.V[_of(kv)]) for q, kv in me.heads()]
    got = yield from exchange(me, "QKV", parts)
    O, lse = yield from among(programs.ring(me.inner(*_rows(got))), me.peers())
    O = O.astype(me.Q.dtype)
    got = yield from exchange(me, "O", [(O[:, own], lse[:, own]) for own in _cuts(got)])
    return Attention(*(np.concatenate(X) for X in zip(*got, strict=True)))


def backward(me: Member) -> programs.Backward:
    """A member of a group, backward: Q, K and V are exchanged again, with dO, lse and delta; then gradients."""
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
            total[_of(heads)] += X  # a head of K and V may have been with several members
    return Grads(*(X.astype(me.Q.dtype) for X in sums))


def exchange(me: Member, what: str, parts: Sequence[tuple]) -> Generator[Any, None, Any]:
    """Send parts[m] to each member m of the group; return what each sent to this one, in their order."""
    group, size, coming = me.group(), me.size, {}
    for step in range(1, size):
        to, source = (me.member + step) % size, (me.member - step) % size
        coming[source] = me.buffer(f"{what} from {group[source]}")
        yield Send(group[to], me.buffer(f"{what} to {group[to]}", parts[to], Block(what, me.r)))
        yield Receive(group[source], coming[source])
    yield Wait()
    return [parts[m] if m == me.member else coming[m].arrays for m in range(size)]


def among(program: Generator[Any, None, Any], ranks: Sequence[int]) -> Generator[Any, None, Any]:
    """Play a program of ranks 0, 1, ... as one of the ranks of these numbers."""
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
    """Return the rows of the group, of those of its members."""
    return tuple(np.concatenate(X, axis=1) for X in zip(*got, strict=True))


def _cuts(got):
    """Return where the rows of each member stand among those of the group, by the first array of each."""
    ends = np.cumsum([part[0].shape[1] for part in got])
    return [slice(int(end) - part[0].shape[1], int(end)) for part, end in zip(got, ends, strict=True)]
