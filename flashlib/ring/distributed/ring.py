"""Ring attention over ranks: K and V go round, and each hop's copy travels under the products of the one before.

A rank holds two buffers of K and V: one is read and sent on while the other is filled. O of each hop is merged in
fp32, and rounded once. Going back, the sums of dK and dV travel behind the keys that they belong to, hop by hop,
and at last come home. Keys travel no further than somebody sees them; hops that see nothing are skipped.

Source: Liu and others, Ring Attention with Blockwise Transformers (2023); zigzag, and dK and dV on their way, as
in zhuzilin's ring-flash-attention (2024).
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from flashlib.masks import Mask
from flashlib.masks.parts import count
from flashlib.ring.distributed import call as calls
from flashlib.ring.distributed.call import Axis, Call
from flashlib.types import Attention, Grads


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, group: Any = None, layout: str = "zigzag",
    causal: bool = False, mask: Mask | None = None, scale: float | None = None, local: ModuleType | None = None,
    link: Callable | None = None,
) -> Attention:  # fmt: skip
    """Return softmax(Q K^T * scale) V and the log-sum-exp of this rank's rows, by the keys of all ranks.

    Q: (B, H, n_q, d); K: (B, H_k, n_k, d); V: (B, H_k, n_k, d_v); all float16, bfloat16, float32 or float64, of
    this rank alone: what `training.split` cuts of N_q rows and N_k keys. Numbers of rows need not be equal, nor
    divisible. H: a multiple of H_k. O: (B, H, n_q, d_v), the dtype of Q; lse: (B, H, n_q), fp32, fp64 for float64.
    group: a ProcessGroup or a DeviceMesh of one axis; None: all ranks. All its ranks call this, and go backward,
    in the same order, and with the same of all else than Q, K and V.
    layout: who holds which rows, see `flashlib.ring.layouts`. causal, mask: of the whole sequences, aligned
    bottom-right; a row that sees no key gives O = 0 and lse = -inf.
    local: the module that computes hops; None: `on_gpu` or `on_cpu`; `on_hopper` has a faster backward on Hopper
    GPUs. link: what makes copies of a group; None: `link.Link`.
    The same bits every time, except dQ with `on_hopper`. Raises ValueError, the same on every rank, if ranks
    disagree or if their parts are no cut of a sequence; TypeError or ValueError for anything else that is wrong,
    before any work. Under NCCL ranks compare only what is new, and an error of one alone ends the others by the
    group's timeout.
    """
    axes = calls.axis(group), Axis()
    return calls.attend(WAY, axes, Q, K, V, layout, causal, mask, scale, local, link)


def forward(call: Call, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> Attention:
    """Return O, in the dtype of Q, and lse."""
    plan, link = call.plan, call.link(call.ring.group)
    keys, state = Keys(call, link, K, V), State(call, Q, V)
    of_mine = [hop for hop in range(plan.P) if plan.hops[call.ring.me][source(call, hop)]]
    for hop in range(max(plan.last) + 1):
        copies = keys.start(hop)
        if found := plan.hops[call.ring.me][source(call, hop)]:
            K_s, V_s = (X[:, :, found.keys] for X in keys.here(hop))
            part = call.local.attention(Q[:, :, found.rows], K_s, V_s, found.mask, call.scale)
            state.add(found.rows, part, is_last=hop == of_mine[-1])
            del part
        copies.wait()
    return state.finished()


def backward(
    call: Call, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, lse: torch.Tensor, dO: torch.Tensor,
    delta: torch.Tensor,
) -> Grads:  # fmt: skip
    """Return dQ, dK and dV of this rank's rows and keys, in fp32 or fp64. lse, delta: of whole rows."""
    plan, link = call.plan, call.link(call.ring.group)
    keys, sums = Keys(call, link, K, V), Sums(call, link, K, V, lse.dtype)
    dQ = None
    for hop in range(max(plan.last) + 1):
        copies, part, at = keys.start(hop), None, None
        if found := plan.hops[call.ring.me][source(call, hop)]:
            rows, at = found.rows, found.keys
            K_s, V_s = (X[:, :, at] for X in keys.here(hop))
            own = Q[:, :, rows], K_s, V_s, lse[:, :, rows], dO[:, :, rows], delta[:, :, rows]
            share, *part = call.local.backward(*own, found.mask, call.scale)
            dQ = summed(dQ, Q, lse.dtype, rows, share)
            del share
        copies.wait()
        sums.add(hop, at, part)
        del part
    return Grads(summed(dQ, Q, lse.dtype), *sums.finished())


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


class Sums:
    """dK and dV, in fp32: those of this rank's own keys by its own rows, and sums of others' on their way."""

    def __init__(self, call: Call, link: Any, K: torch.Tensor, V: torch.Tensor, dtype: torch.dtype) -> None:
        self.call, self.link, self.like, self.dtype, self.last = call, link, (K, V), dtype, call.plan.last
        self.tokens = [count(keys) for keys in call.plan.keys]
        self.own: list = [None, None]
        self.most = numbers(self.like, max(self.tokens))
        self.copies: Any = None
        self.home: Any = None
        if max(self.last):
            link.reserve(dict.fromkeys(("dKV 0", "dKV 1"), self.most), dtype, K.device)

    def add(self, hop: int, at: slice | None, part: Any) -> None:
        """Add this rank's share to the sum that belongs to the keys of this hop, and send it on, or home."""
        me, P = self.call.ring.me, self.call.ring.size
        came, comes = source(self.call, hop), source(self.call, hop + 1)
        if hop == 0:
            self._add_to_own(at, part or (None, None))
            return
        self._wait()
        sends, receives = [], []
        if hop <= self.last[came]:
            flat = self._flat(hop, came)
            if hop == 1:
                flat.zero_()
            views = side_by_side(flat, self.like, self.tokens[came])
            for total, share in zip(views if part else (), part or (), strict=True):
                total[:, :, at] += share
            sends.append(((me + 1) % P if hop < self.last[came] else came, flat, f"dKV {hop % 2}"))
        if hop < self.last[comes]:
            receives.append(((me - 1) % P, self._flat(hop + 1, comes), f"dKV {hop % 2}"))
        if hop == self.last[me]:
            n = numbers(self.like, self.tokens[me])
            self.home = flat = torch.empty(n, dtype=self.dtype, device=self.like[0].device)
            receives.append(((me + hop) % P, flat, f"dKV {hop % 2}"))
        self.copies = self.link.start(sends, receives, tag=P + hop)

    def finished(self) -> list[torch.Tensor]:
        """Return dK and dV of this rank's keys by the rows of all."""
        self._wait()
        if self.home is not None:
            n = self.tokens[self.call.ring.me]
            self._add_to_own(slice(0, n), side_by_side(self.home, self.like, n))
        return self.own

    def _add_to_own(self, at, shares):
        triples = zip(self.own, self.like, shares, strict=True)
        self.own = [summed(total, X, self.dtype, at, share) for total, X, share in triples]

    def _wait(self):
        if self.copies is not None:
            self.copies.wait()

    def _flat(self, hop, rank):
        """Return the part of a buffer that the sum of a rank's keys fills."""
        buffer = self.link.buffer(f"dKV {hop % 2}", self.most, self.dtype, self.like[0].device)
        return buffer[: numbers(self.like, self.tokens[rank])]


class State:
    """O and lse of this rank's rows after some hops, in fp32; the first hop's are kept as they come."""

    def __init__(self, call: Call, Q: torch.Tensor, V: torch.Tensor) -> None:
        self.call, self.Q, self.shape = call, Q, (*Q.shape[:3], V.shape[3])
        self.O: Any = None
        self.lse: Any = None
        self.rounded: Any = None

    def add(self, rows: slice, part: Attention, is_last: bool) -> None:
        """Merge what rows are by other keys. is_last: nothing more comes, and O can be rounded."""
        if self.O is None and rows == slice(0, self.shape[2]):
            self.O, self.lse = part
            return
        if self.O is None:
            self._begin(part.O.dtype)
        out = None
        if is_last and self.Q.dtype != part.O.dtype:
            self.rounded = self.Q.new_empty(self.shape)
            for rest in (slice(0, rows.start), slice(rows.stop, None)):
                self.rounded[:, :, rest] = self.O[:, :, rest]
            out = self.rounded[:, :, rows]
        self.call.local.merge(self.O[:, :, rows], self.lse[:, :, rows], *part, out=out)

    def finished(self) -> Attention:
        """Return O in the dtype of Q, and lse."""
        if self.O is None:
            self._begin(torch.promote_types(self.Q.dtype, torch.float32))
        return Attention(self.O.to(self.Q.dtype) if self.rounded is None else self.rounded, self.lse)

    def _begin(self, dtype):
        self.O = self.Q.new_zeros(self.shape, dtype=dtype)
        self.lse = self.Q.new_full(self.shape[:3], -torch.inf, dtype=dtype)


def numbers(like: tuple[torch.Tensor, ...], tokens: int) -> int:
    """Return how many numbers K and V of so many tokens are."""
    return sum(X.shape[0] * X.shape[1] * tokens * X.shape[3] for X in like)


def side_by_side(flat: torch.Tensor, like: tuple[torch.Tensor, ...], tokens: int) -> tuple[torch.Tensor, ...]:
    """Return views of a flat tensor as K and V of so many tokens."""
    parts = flat.split([numbers((X,), tokens) for X in like])
    return tuple(part.view(*X.shape[:2], tokens, X.shape[3]) for part, X in zip(parts, like, strict=True))


def summed(
    total: torch.Tensor | None, like: torch.Tensor, dtype: torch.dtype, at: slice | None = None,
    share: torch.Tensor | None = None,
) -> torch.Tensor:  # fmt: skip
    """Return a sum and a share of some of its items. total: None for nothing yet; a first share of all is kept."""
    if total is None and share is not None and at == slice(0, like.shape[2]):
        return share
    if total is None:
        total = torch.zeros(like.shape, dtype=dtype, device=like.device)
    if share is not None:
        total[:, :, at] += share
    return total


WAY = calls.Way("ring.attention", forward, backward, calls.of_ring)
