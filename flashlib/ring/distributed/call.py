"""What every way does around its two passes: all ranks agree, a plan is made, and autograd knows the way back."""

import functools
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from flashlib import masks
from flashlib.inputs import check_causal, check_shapes, check_tensors, resolve_scale
from flashlib.masks import Mask
from flashlib.masks.runs import Runs, count
from flashlib.ring import agree, heads, hops, layouts
from flashlib.ring.distributed import local, of_heads
from flashlib.ring.distributed.link import Link
from flashlib.types import Attention

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
KEPT = 64  # plans


class Way(NamedTuple):
    """A way to attend.

    forward: (call, Q, K, V) -> Attention; backward: (call, Q, K, V, lse, dO, delta) -> Grads, in fp32. plan: what
    hops a rank computes, of Where. in_pieces: whether members of a group of heads hold one piece each of what a
    rank of the ring would, and not what the layout gives each rank.
    """

    name: str
    forward: Callable
    backward: Callable
    plan: Callable
    in_pieces: bool = False


class Axis(NamedTuple):
    """One axis of ranks: its group, None for this rank alone; its size, and this rank's number in it."""

    group: Any = None
    size: int = 1
    me: int = 0


class Where(NamedTuple):
    """What decides who computes what. at: this rank's number in the ring. ask: as `hops.hop` takes it."""

    mask: Mask
    N_q: int
    N_k: int
    ring: int
    at: int
    layout: str
    ask: bool


class Call(NamedTuple):
    """One call, seen from one rank.

    ring, heads: both axes. plan: what the way's `plan` returned. H: heads of Q and of K. rows, keys: Runs of each
    member of the group of heads, among those of the group. local: what computes. link: of a group, what copies;
    one for each pass, as it holds buffers.
    """

    ring: Axis
    heads: Axis
    plan: Any
    H: tuple[int, int]
    rows: tuple[Runs, ...]
    keys: tuple[Runs, ...]
    scale: float
    local: local.Local
    link: Callable

    def heads_of(self, member: int) -> tuple[slice, slice]:
        """Return the heads of Q, and of K and V, of a member of the group of heads."""
        own = heads.own_heads(self.H[0], self.heads.size, member)
        kv = heads.kv_heads(own, *self.H)
        return slice(own.start, own.stop), slice(kv.start, kv.stop)


def attend(
    way: Way, axes: tuple[Axis, Axis], Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, layout: str,
    causal: bool, mask: Mask | None, scale: float | None, module: ModuleType | None, link: Callable | None,
) -> Attention:  # fmt: skip
    """Return O and lse of this rank's rows, which can be differentiated. axes: the ring and the group of heads."""
    if torch.compiler.is_compiling():  # it cannot look into copies
        if attend not in _disabled:
            _disabled[attend] = torch.compiler.disable(attend)
        return _disabled[attend](way, axes, Q, K, V, layout, causal, mask, scale, module, link)
    if torch.is_autocast_enabled("cuda") or torch.is_autocast_enabled("cpu"):
        from flashlib.kernels.launch.inputs import as_autocast  # only here: with it comes Triton

        Q, K, V = as_autocast(Q, K, V)
    N_q, N_k, mask, scale = _agreed(way, axes, Q, K, V, layout, causal, mask, scale, module)
    call = _call(way, axes, Q, K, V, mask, N_q, N_k, layout, scale, module, link or Link)
    return Attention(*_Attention.apply(way, call, Q, K, V))


_disabled: dict[Callable, Callable] = {}


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, way, call, Q, K, V):
        with torch.autocast(Q.device.type, enabled=False):
            O, lse = way.forward(call, Q, K, V)
        ctx.way, ctx.call = way, call
        ctx.save_for_backward(Q, K, V, O, lse)
        return O, lse

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dO, dlse):
        Q, K, V, O, lse = ctx.saved_tensors
        with torch.autocast(Q.device.type, enabled=False):
            delta = ctx.call.local.delta_of(O, dO).sub_(dlse)
            grads = ctx.way.backward(ctx.call, Q, K, V, lse, dO, delta)
        return None, None, *(dX.to(X.dtype) for dX, X in zip(grads, (Q, K, V), strict=True))


def axis(group: Any, name: str = "group") -> Axis:
    """Return the axis of ranks of a group: a ProcessGroup, a DeviceMesh of one axis, or None for all ranks."""
    if not (dist.is_available() and dist.is_initialized()):
        raise RuntimeError(
            "this process is no rank yet: call attention in a function that flashlib.ring.processes.run starts, "
            "or after torch.distributed.init_process_group"
        )
    if hasattr(group, "get_group"):
        if group.ndim != 1:
            raise ValueError(
                f"{name} is a DeviceMesh of {group.ndim} axes; pass one of its axes, e.g. mesh['ring']"
            )
        group = group.get_group()
    group = dist.group.WORLD if group is None else group
    if not isinstance(group, dist.ProcessGroup):
        raise TypeError(f"{name} is {group!r:.60}; pass a ProcessGroup, a DeviceMesh of one axis, or None")
    return Axis(group, dist.get_world_size(group), dist.get_rank(group))


def _agreed(way, axes, Q, K, V, layout, causal, mask, scale, module):
    """Return N_q, N_k, the mask and the scale; raise the same on every rank if they do not agree."""
    groups = tuple(axis.group for axis in reversed(axes) if axis.group is not None)
    on_gloo = [_on_gloo(group) for group in groups]
    before = None if any(on_gloo) else _Before(groups, way, Q, K, V, layout, causal, mask, scale, module)
    if before and (known := before.known()):
        return known
    problem: Exception | None = None
    values: dict = {}
    try:
        values, combined, scale = _checked(Q, K, V, layout, causal, mask, scale, module)
    except (TypeError, ValueError) as error:
        problem = error
        if not all(on_gloo):
            raise  # others compare only what is new, and would not be met
    _agree(way.name, groups, values, problem)
    for group in groups:
        _meet(group, Q.device)
    found = *_sizes(way, axes, groups, layout, (Q.shape[2], K.shape[2])), combined, scale
    if before:
        before.keep(found)
    return found


def _on_gloo(group):
    return "gloo" in dist.get_backend_config(group)


class _Before:
    """What ranks of GPUs have agreed on: a call like an earlier one of the group is not compared again."""

    def __init__(self, groups, way, Q, K, V, layout, causal, mask, scale, module):
        tensors = tuple((X.dtype, X.shape, X.device) for X in (Q, K, V) if isinstance(X, torch.Tensor))
        wanted = _needs_gradients(Q, K, V), _needs_gradients(*getattr(mask, "biases", ()))
        given = layout, causal, type(causal), mask, scale, module, wanted
        self.of_group, self.key = _before.setdefault(groups[0], {}), (way.name, groups[1:], tensors, *given)

    def known(self):
        """Return what was found, or None; what cannot be looked up is not known."""
        try:
            found = self.of_group.pop(self.key, None)
        except TypeError:
            return None
        return found and self.keep(found)

    def keep(self, found):
        """Keep what was found as the latest; the eldest goes."""
        self.of_group[self.key] = found
        if len(self.of_group) > KEPT:
            del self.of_group[next(iter(self.of_group))]
        return found


_before: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # {a group: {what was given: what was found}}


def _checked(Q, K, V, layout, causal, mask, scale, module):
    """Return what all ranks must have alike, the mask and the scale; raise TypeError or ValueError.

    What computes is asked too: an error after the first copies leaves messages that nobody takes.
    """
    check_tensors(DTYPES, Q=Q, K=K, V=V)
    check_shapes(Q, K, V, axes="(B, H, N, d)", grouped=True, values=True)
    (module or local.of(Q.device)).check(Q, K, V)
    layouts.check_cut(1, layout)
    combined = _combined(mask, causal)
    if _needs_gradients(*combined.biases):
        raise ValueError(
            "a bias of the mask requires a gradient, and ranks give it none: pass bias.detach(), or call "
            "flashlib.kernels.attention on whole sequences"
        )
    scale = resolve_scale(scale, Q.shape[3])
    (B, H, _, d), H_k, d_v = Q.shape, K.shape[1], V.shape[3]
    sizes = {"dtype": Q.dtype, "B": B, "H": H, "H_k": H_k, "d": d, "d_v": d_v}
    values = {**sizes, "layout": layout, "causal": causal, "mask": mask, "scale": scale}
    return values | {"gradients": _needs_gradients(Q, K, V)}, combined, scale


def _needs_gradients(*tensors):
    return torch.is_grad_enabled() and any(getattr(X, "requires_grad", False) for X in tensors)


def _combined(mask, causal):
    """Return the mask that both stand for: the same object each time, as plans are kept by it."""
    check_causal(causal)
    return _kept(None if mask is None else masks.check_mask(mask), causal)  # a list could not be looked up


_kept = functools.lru_cache(maxsize=KEPT)(masks.combined)


def _agree(name, groups, values, problem):
    """Raise on every rank of all groups, one after the other, unless all have the same values and no problem."""
    found = None
    for group in groups:
        error = problem or found
        try:
            agree.check(name, group, **values, **({"error": str(error)} if error else {}))
        except ValueError as disagreement:
            found = found or disagreement
    if found or problem:
        raise found or problem


def _meet(group, device):
    """Have all ranks of a group meet once: NCCL wants all in its first copies, and in a ring some may rest.

    The device says whether it is NCCL that copies: a group may have gloo too, for the CPU.
    """
    if device.type != "cpu" and group not in _met:
        dist.all_reduce(torch.zeros(1, device=device), group=group)
        _met.add(group)


_met: weakref.WeakSet = weakref.WeakSet()


def _sizes(way, axes, groups, layout, own):
    """Return N_q and N_k, the sums of all ranks' own sizes; raise the same on every rank if they are no cut."""
    ranks = [own]
    for group in groups:
        try:
            rows = agree.numbers_of_all(group, *(n for sizes in ranks for n in sizes))
        except RuntimeError as error:
            if _on_gloo(group):
                raise
            raise RuntimeError(
                f"this rank has {_listed(own)} rows of Q and K, which is new to it and not to all ranks, so not "
                "all came to compare: with lengths that change, let every rank's part change, e.g. fill them up"
            ) from error
        ranks = [pair for row in rows for pair in zip(row[::2], row[1::2], strict=True)]
    _check_cut(way, axes, layout, ranks)
    return tuple(sum(sizes) for sizes in zip(*ranks, strict=True))


def _check_cut(way, axes, layout, ranks):
    """Raise ValueError unless these rows of Q and K of each rank are a cut of a sequence."""
    P, size = axes[0].size * axes[1].size, axes[1].size if way.in_pieces else 1
    for name, sizes in zip(("Q", "K"), zip(*ranks, strict=True), strict=True):
        N = sum(sizes)
        expected = tuple(count(heads.runs(N, P, r, layout, size)) for r in range(P))
        if sizes != expected:
            raise ValueError(
                f"the ranks of {way.name} have {_listed(sizes)} rows of {name}; {N} rows in a {layout} layout are "
                f"{_listed(expected)}: cut the sequence by training.split"
            )


def _listed(numbers):
    return ", ".join(map(str, numbers))


def _call(way, axes, Q, K, V, mask, N_q, N_k, layout, scale, module, link):
    """Return the Call of tensors that were checked."""
    ring, of = axes
    (B, H), H_k = Q.shape[:2], K.shape[1]
    masks.fitted(mask, False, B, H, N_q, N_k)
    own = heads.own_heads(H, of.size, of.me)
    if of.size > 1:
        mask = of_heads.part(mask, own.start, own.stop)
    where = Where(mask, N_q, N_k, ring.size, ring.me, layout, ask=Q.device.type == "cpu")
    planned = _plan.__wrapped__ if mask.may_change and where.ask else _plan  # it may say something else now
    held = [
        _held(N, ring.size, ring.me, layout, of.size) if way.in_pieces
        else tuple(layouts.runs(N, of.size, m, layout) for m in range(of.size))
        for N in (N_q, N_k)
    ]  # fmt: skip
    kv = heads.kv_heads(own, H, H_k)
    taken = [h // (H // H_k) - kv[0] for h in own]
    computes = local.Local(module or local.of(Q.device), taken)
    return Call(ring, of, planned(way.plan, where), (H, H_k), *held, scale, computes, link)


def _held(N, ring, at, layout, size):
    """Return the pieces of members, among what their group holds: one after the other."""
    n = count(layouts.runs(N, ring, at, layout))
    return tuple(heads.pieces((range(n),), size))


@functools.lru_cache(maxsize=KEPT)
def _plan(plan, where):
    return plan(where)


def of_ring(where: Where) -> hops.Plan:
    """Return the Plan of a ring."""
    return hops.plan(where.mask, where.N_q, where.N_k, where.ring, where.layout, ask=where.ask)
