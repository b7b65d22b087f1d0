"""What every way does around its two passes: ranks agree, plan who computes what, and register a backward pass."""

import contextlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import torch

from flashlib import masks
from flashlib.masks import Mask
from flashlib.masks.runs import Runs, count
from flashlib.ring import head_groups, hops, layouts
from flashlib.ring.distributed import agreements, local, of_heads
from flashlib.ring.distributed.axes import Axis
from flashlib.ring.distributed.link import Link
from flashlib.types import Attention


class Way(NamedTuple):
    """A way to attend over ranks.

    forward: (call, Q, K, V) -> Attention; backward: (call, Q, K, V, lse, dO, delta) -> Grads, in fp32. plan: takes
    a Where and returns which hops a rank computes. in_pieces: whether each member of a group of heads holds one
    piece of what a rank of the ring would hold, rather than what the layout gives that member.
    """

    name: str
    forward: Callable
    backward: Callable
    plan: Callable
    in_pieces: bool = False


class Where(NamedTuple):
    """What decides which hops a rank computes. ring: its size; at: this rank's place. ask: see `hops.hop`."""

    mask: Mask
    N_q: int
    N_k: int
    ring: int
    at: int
    layout: str
    ask: bool


class RankCall(NamedTuple):
    """One call, as one rank sees it.

    ring, heads: both axes. plan: what the way's `plan` returned. H: the numbers of heads of Q and of K. rows,
    keys: for each member of the group of heads, the Runs that it holds of the group's rows and keys. local:
    computes hops. link: makes the copies of a group; each pass makes a new one, which holds that pass's buffers.
    """

    ring: Axis
    heads: Axis
    plan: Any
    H: tuple[int, int]
    rows: tuple[Runs, ...]
    keys: tuple[Runs, ...]
    scale: float
    local: local.HopComputer
    link: Callable

    def heads_of(self, member: int) -> tuple[slice, slice]:
        """Return the heads of Q, and of K and V, of a member of the group of heads."""
        own = head_groups.own_heads(self.H[0], self.heads.size, member)
        kv = head_groups.kv_heads(own, *self.H)
        return slice(own.start, own.stop), slice(kv.start, kv.stop)


def attend(
    way: Way, axes: tuple[Axis, Axis], Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, layout: str,
    causal: bool, mask: Mask | None, scale: float | None, module: ModuleType | None, link: Callable | None,
) -> Attention:  # fmt: skip
    """Return O and lse of this rank's rows, with gradients. axes: the ring and the group of heads."""
    if torch.compiler.is_compiling():  # Dynamo cannot trace copies between ranks
        if attend not in _untraced:
            _untraced[attend] = torch.compiler.disable(attend)
        return _untraced[attend](way, axes, Q, K, V, layout, causal, mask, scale, module, link)
    if torch.is_autocast_enabled("cuda") or torch.is_autocast_enabled("cpu"):
        from flashlib.kernels.launch.inputs import as_autocast  # only here: with it comes Triton

        Q, K, V = as_autocast(Q, K, V)
    arguments = agreements.Arguments(Q, K, V, layout, causal, mask, scale, module, link)
    known = agreements.agreements_of(agreements.groups_of(axes)[0])
    key = agreements.key_of(way.name, axes, arguments)
    call = known.earlier(key)
    if call is None:
        call = _call(way, axes, arguments, known)
        changes = mask is not None and mask.may_change and Q.device.type == "cpu"  # it may say something else then
        known.keep(None if changes else key, call)
    call = call._replace(ring=axes[0], heads=axes[1])
    return Attention(*_RanksAttention.apply(way, call, Q, K, V))


_untraced: dict[Callable, Callable] = {}
"""`attend` as Dynamo calls it without tracing; made when needed: that imports Dynamo, which skips lru_cache."""


class _RanksAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, way, call, Q, K, V):
        with _without_autocast(Q.device.type):
            O, lse = way.forward(call, Q, K, V)
        ctx.way, ctx.call = way, call
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(Q, K, V, O, lse)
        return O, lse

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dO, dlse):
        Q, K, V, O, lse = ctx.saved_tensors
        dO = torch.zeros_like(O) if dO is None else dO
        with _without_autocast(Q.device.type):
            delta = ctx.call.local.delta_of(O, dO)
            if dlse is not None:
                delta.sub_(dlse)
            grads = ctx.way.backward(ctx.call, Q, K, V, lse, dO, delta)
        return None, None, *(dX.to(X.dtype) for dX, X in zip(grads, (Q, K, V), strict=True))


def _without_autocast(kind):
    """Return a context without autocast; where it is off, one that takes no time."""
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else NOTHING


NOTHING = contextlib.nullcontext()


def _call(way, axes, arguments, known):
    """Return the RankCall of a call, once the ranks agree on it; with no axes, as it must not keep its groups.

    known: the Agreements of the call.
    """
    N_q, N_k, mask, scale = agreements.agree_on_call(way.name, axes, way.in_pieces, arguments)
    (Q, K, _, layout, *_, module, link), (ring, of) = arguments, axes
    (B, H), H_k = Q.shape[:2], K.shape[1]
    masks.fitted(mask, False, B, H, N_q, N_k)
    own = head_groups.own_heads(H, of.size, of.me)
    if of.size > 1:
        mask = of_heads.part(mask, own.start, own.stop)
    where = Where(mask, N_q, N_k, ring.size, ring.me, layout, ask=Q.device.type == "cpu")
    planned = known.plan.__wrapped__ if mask.may_change and where.ask else known.plan
    held = [
        _held(N, ring.size, ring.me, layout, of.size) if way.in_pieces
        else tuple(layouts.runs(N, of.size, m, layout) for m in range(of.size))
        for N in (N_q, N_k)
    ]  # fmt: skip
    kv = head_groups.kv_heads(own, H, H_k)
    taken = [h // (H // H_k) - kv[0] for h in own]
    computes = local.HopComputer(module or local.module_for(Q.device), taken)
    link = link or (Link if ring.group is None else agreements.agreements_of(ring.group).link_for(Q.device))
    return RankCall(Axis(), Axis(), planned(way.plan, where), (H, H_k), *held, scale, computes, link)


def _held(N, ring, at, layout, size):
    """Return the piece of each member, as Runs of what their group holds."""
    n = count(layouts.runs(N, ring, at, layout))
    return tuple(head_groups.pieces((range(n),), size))


def of_ring(where: Where) -> hops.RingPlan:
    """Return the plan of a ring: what `ring`, `ulysses` and `two_d` take as their Way's plan."""
    return hops.plan(where.mask, where.N_q, where.N_k, where.ring, where.layout, ask=where.ask)
