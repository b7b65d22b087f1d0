"""Ulysses over ranks: they exchange heads for rows, each computes whole rows of some heads, and O goes back.

Its bytes do not grow with the number of ranks, as those of a ring do, but no copy is hidden. Heads need not divide
evenly: some ranks have one more, or none. K and V of a head go to each rank that has a head of Q which reads them,
and their gradients are summed where they came from.

Source: Jacobs and others, DeepSpeed Ulysses (2023).
"""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch

from flashlib.masks import Mask
from flashlib.masks.runs import count
from flashlib.ring.distributed import call as calls
from flashlib.ring.distributed import gradients, ring
from flashlib.ring.distributed import link as links
from flashlib.ring.distributed.all_gather import put, taken
from flashlib.ring.distributed.axes import Axis, axis_of
from flashlib.ring.distributed.call import RankCall
from flashlib.types import Attention, Grads


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, group: Any = None, layout: str = "zigzag",
    causal: bool = False, mask: Mask | None = None, scale: float | None = None, local: ModuleType | None = None,
    link: Callable | None = None,
) -> Attention:  # fmt: skip
    """Return softmax(Q K^T * scale) V and the log-sum-exp of this rank's rows, over the keys of all ranks.

    Arguments, results and errors are those of `ring.attention`; link is not used. Heads balance the work, whatever
    the layout. A mask whose function depends on heads runs on a CPU, or where Triton's kernels ask torch.
    """
    axes = Axis(), axis_of(group)
    return calls.attend(WAY, axes, Q, K, V, layout, causal, mask, scale, local, link)


def forward(call: RankCall, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> Attention:
    """Return O, in the dtype of Q, and lse. Several groups form a ring: see `two_d`."""
    mine = _to_heads(call, (Q, "q"), (K, "k"), (V, "k"))
    O, lse = ring.forward(call, *mine)
    lse = _joined(call, lse[..., None], (*Q.shape[:3], 1))[..., 0]
    return Attention(_joined(call, O, (*Q.shape[:3], V.shape[3])), lse)


def backward(
    call: RankCall, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, lse: torch.Tensor, dO: torch.Tensor,
    delta: torch.Tensor,
) -> Grads:  # fmt: skip
    """Return dQ, dK and dV of this rank's rows and keys, in fp32 or fp64; Q, K and V are exchanged again."""
    q, k, v, dO = _to_heads(call, (Q, "q"), (K, "k"), (V, "k"), (dO, "q"))
    lse, delta = _to_heads(call, (lse[..., None], "q"), (delta[..., None], "q"))
    grads = gradients.backward(call, q, k, v, lse[..., 0], dO, delta[..., 0], rounded=False)
    return Grads(*_home(call, grads, (Q, K, V)))


def _to_heads(call: RankCall, *given: tuple[torch.Tensor, str]) -> list[torch.Tensor]:
    """Exchange own rows of all heads for all rows of own heads. Each tensor is "q", like Q, or "k", like K."""
    members, first = range(call.heads.size), given[0][0]
    parts = [torch.cat([X[:, _heads(call, m, of)].reshape(-1) for X, of in given]) for m in members]
    shapes = [
        [
            (X.shape[0], _n(_heads(call, call.heads.me, of)), count(_held(call, of)[m]), X.shape[3])
            for X, of in given
        ]
        for m in members
    ]
    flat = links.exchange(call.heads.group, parts, [sum(map(_numbers, of)) for of in shapes])
    whole = [
        first.new_empty(
            (X.shape[0], _n(_heads(call, call.heads.me, of)), sum(map(count, _held(call, of))), X.shape[3])
        )
        for X, of in given
    ]
    for m in members:
        pieces = _viewed(flat[m], shapes[m])
        for X, piece, (_, of) in zip(whole, pieces, given, strict=True):
            put(X, piece, _held(call, of)[m])
    return whole


def _joined(call, X, shape):
    """Exchange all rows of own heads, of O or lse, for own rows of all heads."""
    members = range(call.heads.size)
    parts = [taken(X, call.rows[m]).reshape(-1) for m in members]
    B, _, n, d = shape
    shapes = [(B, _n(_heads(call, m, "q")), n, d) for m in members]
    whole = X.new_empty(shape)
    flat = links.exchange(call.heads.group, parts, list(map(_numbers, shapes)))
    for m in members:
        whole[:, _heads(call, m, "q")] = flat[m].view(shapes[m])
    return whole


def _home(call, grads, like):
    """Return gradients of own rows of all heads, summed where several members had a head of K and V."""
    members, kinds = range(call.heads.size), ("q", "k", "k")
    parts = [
        torch.cat([taken(X, _held(call, of)[m]).reshape(-1) for X, of in zip(grads, kinds, strict=True)])
        for m in members
    ]
    shapes = [
        [(X.shape[0], _n(_heads(call, m, of)), *X.shape[2:]) for X, of in zip(like, kinds, strict=True)]
        for m in members
    ]
    flat = links.exchange(call.heads.group, parts, [sum(map(_numbers, of)) for of in shapes])
    sums = [torch.zeros(X.shape, dtype=dX.dtype, device=X.device) for X, dX in zip(like, grads, strict=True)]
    for m in members:
        for total, share, of in zip(sums, _viewed(flat[m], shapes[m]), kinds, strict=True):
            total[:, _heads(call, m, of)].add_(share)
    return sums


def _heads(call, member, of):
    return call.heads_of(member)[of == "k"]


def _held(call, of):
    return call.rows if of == "q" else call.keys


def _n(heads):
    return heads.stop - heads.start


def _numbers(shape: Sequence[int]) -> int:
    return torch.Size(shape).numel()


def _viewed(flat, shapes):
    parts = flat.split(list(map(_numbers, shapes)))
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


WAY = calls.Way("ulysses.attention", forward, backward, calls.of_ring)
