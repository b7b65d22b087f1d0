"""A rank: its number, its part of Q, K and V, and what it computes with the keys of other ranks."""

from collections.abc import Sequence

import numpy as np

from flashlib.ring import tiles
from flashlib.ring.commands import Buffer, BufferContent
from flashlib.ring.hops import RingPlan
from flashlib.softmax import State, merge
from flashlib.types import Attention, Grads


class Rank:
    """One of P ranks, numbered r. Q, K, V: (H, n, d), its own rows and keys; O, lse, dO: for the backward pass.

    kv_heads: the head of K and V that each head of Q reads. buffers: all that it has made; the first, `own`, holds
    K and V. dtype: of its results. given_delta: see `delta`.
    """

    given_delta: np.ndarray | None = None

    def __init__(
        self, r: int, plan: RingPlan, Q: np.ndarray, K: np.ndarray, V: np.ndarray, *, scale: float, B_r: int = 64,
        B_c: int = 64, kv_heads: Sequence[int] = (0,), after: tuple | None = None,
    ):  # fmt: skip
        self.r, self.plan, self.Q, self.K, self.V = r, plan, Q, K, V
        self.scale, self.B_r, self.B_c, self.kv_heads = scale, B_r, B_c, kv_heads
        self.O, self.lse, self.dO = after or (None, None, None)
        self.dtype = Q.dtype
        self.buffers: list[Buffer] = []
        self.own = self.buffer("own", (K, V), BufferContent("KV", r))

    def __repr__(self):
        return f"<rank {self.r} of {self.P}: {self.Q.shape[1]} rows, {self.K.shape[1]} keys>"

    @property
    def P(self) -> int:
        return self.plan.P

    @property
    def next(self) -> int:
        """The next rank of the ring."""
        return (self.r + 1) % self.P

    @property
    def previous(self) -> int:
        """The previous rank of the ring."""
        return (self.r - 1) % self.P

    @property
    def lasts(self) -> int:
        """The last hop at which this rank's keys are used."""
        return self.plan.last[self.r]

    def source(self, hop: int) -> int:
        """Return whose keys are here at this hop."""
        return (self.r - hop) % self.P

    def comes(self, hop: int) -> bool:
        """Return whether keys arrive for this hop: they travel no further than they are needed."""
        return 0 < hop <= self.plan.last[self.source(hop)]

    def goes(self, hop: int) -> bool:
        """Return whether the keys that are here at this hop are needed by the next rank or a later one."""
        return hop < self.plan.last[self.source(hop)]

    def sees(self, source: int) -> bool:
        """Return whether this rank's rows see keys of rank `source`; otherwise the hop is skipped."""
        return self.plan.hops[self.r][source] is not None

    def buffer(self, name: str, arrays: tuple = (), block: BufferContent | None = None) -> Buffer:
        """Return a new buffer in this rank's memory."""
        self.buffers.append(Buffer(self.r, name, arrays, block))
        return self.buffers[-1]

    def nothing(self) -> State:
        """Return the State of this rank's rows before the first hop."""
        return tiles.nothing(self.Q, self.V.shape[-1])

    def partial(self, source: int, K: np.ndarray, V: np.ndarray) -> tuple[State, int]:
        """Return the State of this rank's rows over the keys of `source` alone, and the number of tiles."""
        hop = self.plan.hops[self.r][source]
        if hop is None:
            return self.nothing(), 0
        options = {"B_r": self.B_r, "B_c": self.B_c, "scale": self.scale}
        return tiles.partial(hop, self.Q, K, V, self.kv_heads, **options)

    def merged(self, state: State, other: State) -> State:
        """Return the State over both sets of keys: the monoid of Online softmax."""
        return merge(state, other)

    def finish(self, state: State) -> Attention:
        """Return O and lse of rows that have seen all their keys."""
        return tiles.finish(state, self.dtype)

    def delta(self) -> np.ndarray:
        """Return the row sums of dO * O, (H, n), the same for all hops, or `given_delta` if it is set."""
        if self.given_delta is not None:
            return self.given_delta
        return (self.dO.astype(self.lse.dtype) * self.O.astype(self.lse.dtype)).sum(axis=-1)

    def gradients(self, source: int, K: np.ndarray, V: np.ndarray, delta: np.ndarray) -> tuple[Grads, int]:
        """Return what this rank's rows and the keys of `source` add to dQ, dK and dV, and the number of tiles."""
        hop = self.plan.hops[self.r][source]
        if hop is None:
            return Grads(*(np.zeros(X.shape, self.lse.dtype) for X in (self.Q, K, V))), 0
        own = self.lse, self.dO, delta
        options = {"B_r": self.B_r, "B_c": self.B_c, "scale": self.scale}
        return tiles.gradients(hop, self.Q, K, V, *own, self.kv_heads, **options)  # type: ignore[arg-type]
