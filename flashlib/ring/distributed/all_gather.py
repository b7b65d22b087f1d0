"""Attention over ranks by all-gather: every rank gets all K and V, and computes its rows as one process would.

It is simpler than a ring, but no part of the copy is hidden, and a rank holds K and V of the whole sequence: twice
while they are put in order. The backward pass also holds dK and dV of the whole sequence, in fp32: three times
while each rank is sent its share.

Source: Llama Team, The Llama 3 Herd of Models (2024), section 3.3.2.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import torch

from flashlib.masks import Mask
from flashlib.masks.runs import Runs, count
from flashlib.ring import hops, layouts
from flashlib.ring.distributed import call as calls
from flashlib.ring.distributed import link as links
from flashlib.ring.distributed.axes import Axis, axis_of
from flashlib.ring.distributed.call import RankCall, Where
from flashlib.ring.distributed.keys import numbers, side_by_side, some
from flashlib.types import Attention, Grads


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, group: Any = None, layout: str = "zigzag",
    causal: bool = False, mask: Mask | None = None, scale: float | None = None, local: ModuleType | None = None,
    link: Callable | None = None,
) -> Attention:  # fmt: skip
    """Return softmax(Q K^T * scale) V and the log-sum-exp of this rank's rows, over the keys of all ranks.

    Arguments, results and errors are those of `ring.attention`; link is not used.
    """
    axes = axis_of(group), Axis()
    return calls.attend(WAY, axes, Q, K, V, layout, causal, mask, scale, local, link)


class GatherPlan(NamedTuple):
    """keys: Runs of each rank. parts: adjacent rows of this rank, and what they see of all keys."""

    keys: tuple[Runs, ...]
    N_k: int
    parts: tuple[tuple[slice, hops.Hop], ...]


def plan(where: Where) -> GatherPlan:
    """Return the GatherPlan of a rank. Each run of its rows is one call, which is causal if the whole is."""
    mask, N_q, N_k, P, me, layout, ask = where
    parts, start = [], 0
    for run in layouts.runs(N_q, P, me, layout):
        found = hops.hop(mask, N_q, N_k, (run,), (range(N_k),), ask=ask)
        if found:
            parts.append((slice(start + found.rows.start, start + found.rows.stop), found))
        start += len(run)
    return GatherPlan(tuple(layouts.runs(N_k, P, r, layout) for r in range(P)), N_k, tuple(parts))


def forward(call: RankCall, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> Attention:
    """Return O, in the dtype of Q, and lse."""
    K, V = gathered(call, K, V)
    dtype = torch.promote_types(Q.dtype, torch.float32)
    O = Q.new_zeros((*Q.shape[:3], V.shape[3]))
    lse = Q.new_full(Q.shape[:3], -torch.inf, dtype=dtype)
    for rows, (_, keys, mask) in call.plan.parts:
        part = call.local.attention(Q[:, :, rows], K[:, :, keys], V[:, :, keys], mask, call.scale, O.dtype)
        O[:, :, rows], lse[:, :, rows] = part
    return Attention(O, lse)


def backward(
    call: RankCall, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, lse: torch.Tensor, dO: torch.Tensor,
    delta: torch.Tensor,
) -> Grads:  # fmt: skip
    """Return dQ, dK and dV of this rank's rows and keys, in fp32 or fp64; K and V are gathered again."""
    dQ, parts = _shares(call, Q, K, V, lse, dO, delta)
    return Grads(dQ, *_home(call, parts, (K, V)))


def _shares(call, Q, K, V, lse, dO, delta):
    """Return dQ, and flat, what this rank's rows add to dK and dV of each rank; all else as large is freed."""
    K, V = gathered(call, K, V)
    dQ, *dKV = (torch.zeros(X.shape, dtype=lse.dtype, device=X.device) for X in (Q, K, V))
    for rows, (_, keys, mask) in call.plan.parts:
        own = Q[:, :, rows], K[:, :, keys], V[:, :, keys], lse[:, :, rows], dO[:, :, rows], delta[:, :, rows]
        dQ[:, :, rows], *part = call.local.backward(*own, mask, call.scale)
        for total, share in zip(dKV, part, strict=True):
            some(total, keys).add_(share)
        del own, part, share
    del K, V
    return dQ, [torch.cat([taken(X, runs).reshape(-1) for X in dKV]) for runs in call.plan.keys]


def gathered(call: RankCall, K: torch.Tensor, V: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return K and V of all ranks, in the order of the whole sequence."""
    like, tokens = (K, V), [count(keys) for keys in call.plan.keys]
    own = torch.cat([X.reshape(-1) for X in like])
    flat = links.gather(call.ring.group, own, [numbers(like, n) for n in tokens])
    whole = tuple(X.new_empty((*X.shape[:2], call.plan.N_k, X.shape[3])) for X in like)
    for part, runs, n in zip(flat, call.plan.keys, tokens, strict=True):
        for X, piece in zip(whole, side_by_side(part, like, n), strict=True):
            put(X, piece, runs)
    return whole


def _home(call, parts, like):
    """Return dK and dV of this rank's keys: the sum of all ranks' shares, in the order of the ranks."""
    mine = call.plan.keys[call.ring.me]
    shares = links.exchange(call.ring.group, parts, [len(parts[call.ring.me])] * call.ring.size)
    total = shares[0]
    for share in shares[1:]:
        total += share
    return side_by_side(total, like, count(mine))


def put(whole: torch.Tensor, part: torch.Tensor, runs: Runs) -> None:
    """Write a part to its runs of the whole."""
    start = 0
    for run in runs:
        whole[:, :, run.start : run.stop : run.step] = part[:, :, start : start + len(run)]
        start += len(run)


def taken(whole: torch.Tensor, runs: Runs) -> torch.Tensor:
    """Return these runs of the whole, one after the other."""
    parts = [whole[:, :, run.start : run.stop : run.step] for run in runs]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2) if parts else whole[:, :, :0]


WAY = calls.Way("all_gather.attention", forward, backward, plan)
