"""Ring attention over ranks: K and V go round, and each copy runs while the previous hop is computed.

A rank holds two buffers of K and V: one is read and sent on while the other is filled. O is merged hop by hop in
fp32, and rounded once. Keys travel no further than they are needed, and hops that see nothing are skipped. The
backward pass is in `gradients`.

Source: Liu and others, Ring Attention with Blockwise Transformers (2023); zigzag as in zhuzilin's
ring-flash-attention (2024).
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from flashlib.masks import Mask
from flashlib.ring.distributed import call as calls
from flashlib.ring.distributed import gradients
from flashlib.ring.distributed.axes import Axis, axis_of
from flashlib.ring.distributed.call import RankCall
from flashlib.ring.distributed.keys import TravellingKeys, some, source
from flashlib.types import Attention


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, group: Any = None, layout: str = "zigzag",
    causal: bool = False, mask: Mask | None = None, scale: float | None = None, local: ModuleType | None = None,
    link: Callable | None = None,
) -> Attention:  # fmt: skip
    """Return softmax(Q K^T * scale) V and the log-sum-exp of this rank's rows, over the keys of all ranks.

    Q: (B, H, n_q, d); K: (B, H_k, n_k, d); V: (B, H_k, n_k, d_v); all float16, bfloat16, float32 or float64, and
    this rank's part only: what `training.split` gives it of N_q rows and N_k keys, which need not be divisible.
    H: a multiple of H_k. O: (B, H, n_q, d_v), the dtype of Q; lse: (B, H, n_q), fp32, fp64 for float64.
    group: a ProcessGroup or a DeviceMesh of one axis; None for all ranks. All its ranks must call this, and go
    backward, in the same order, with equal arguments except Q, K and V.
    layout: who holds which rows, see `flashlib.ring.layouts`. causal, mask: of the whole sequences, aligned
    bottom-right; a row that sees no key gives O = 0 and lse = -inf.
    local: the module that computes hops; by default `on_hopper` on Hopper GPUs, `on_gpu` on others, or `on_cpu`.
    link: the class that makes the copies of a group; by default `copy_engines.CopyEngines` on GPUs of one host
    that reach each other, `link.Link` elsewhere. `choices.chosen` says which.
    The bits are the same every time, except dQ with `on_hopper`: pass `on_gpu`, or set
    torch.use_deterministic_algorithms. A call like an earlier one can be captured in a CUDA graph.
    Raises ValueError, the same on every rank, if ranks disagree or their parts are not a cut of a sequence;
    TypeError or ValueError for any other mistake, before any work. Under NCCL, ranks compare only calls that are
    new, and an error on one rank alone ends the others by the group's timeout.
    """
    axes = axis_of(group), Axis()
    return calls.attend(WAY, axes, Q, K, V, layout, causal, mask, scale, local, link)


def forward(call: RankCall, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> Attention:
    """Return O, in the dtype of Q, and lse."""
    plan, link = call.plan, call.link(call.ring.group)
    keys, state = TravellingKeys(call, link, K, V), MergedOutput(call, Q, V)
    of_mine = [hop for hop in range(plan.P) if plan.hops[call.ring.me][source(call, hop)]]
    for hop in range(max(plan.last) + 1):
        copies = keys.start(hop)
        if found := plan.hops[call.ring.me][source(call, hop)]:
            K_s, V_s = (some(X, found.keys) for X in keys.here(hop))
            alone = len(of_mine) == 1 and found.rows == slice(0, Q.shape[2])  # nothing to merge: rounded at once
            dtype = Q.dtype if alone else None
            part = call.local.attention(some(Q, found.rows), K_s, V_s, found.mask, call.scale, dtype)
            state.add(found.rows, part, is_last=hop == of_mine[-1])
            del part
        copies.wait()
    return state.finished()


class MergedOutput:
    """O and lse of this rank's rows, merged hop by hop, in fp32; those of the first hop are kept as they are."""

    def __init__(self, call: RankCall, Q: torch.Tensor, V: torch.Tensor) -> None:
        self.call, self.Q, self.shape = call, Q, (*Q.shape[:3], V.shape[3])
        self.O: Any = None
        self.lse: Any = None
        self.rounded: Any = None

    def add(self, rows: slice, part: Attention, is_last: bool) -> None:
        """Merge the O and lse of some rows over further keys. is_last: none follow, so that O can be rounded."""
        if self.O is None and rows == slice(0, self.shape[2]):
            self.O, self.lse = part
            return
        if self.O is None:
            self._begin(part.O.dtype)
        out = None
        if is_last and self.Q.dtype != part.O.dtype:
            self.rounded = self.Q.new_empty(self.shape)
            for rest in (slice(0, rows.start), slice(rows.stop, self.shape[2])):
                if rest.start < rest.stop:
                    some(self.rounded, rest).copy_(some(self.O, rest))
            out = some(self.rounded, rows)
        self.call.local.merge(some(self.O, rows), some(self.lse, rows), *part, out=out)

    def finished(self) -> Attention:
        """Return O in the dtype of Q, and lse."""
        if self.O is None:
            self._begin(torch.promote_types(self.Q.dtype, torch.float32))
        return Attention(self.O.to(self.Q.dtype) if self.rounded is None else self.rounded, self.lse)

    def _begin(self, dtype):
        self.O = self.Q.new_zeros(self.shape, dtype=dtype)
        self.lse = self.Q.new_full(self.shape[:3], -torch.inf, dtype=dtype)


WAY = calls.Way("ring.attention", forward, gradients.backward, calls.of_ring)
