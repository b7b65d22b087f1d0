"""What the ranks of a group agree on before a call's first copy: its arguments, and the whole sequence's lengths.

Ranks that disagree would wait forever or be silently wrong. With gloo they compare every call; on GPUs, which
comparing would hold up, only calls unlike the earlier ones of the group. Each rank decides that alone, and all
decide the same, since all make the same calls.
"""

import functools
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import torch
import torch.distributed as dist

from flashlib import masks
from flashlib.inputs import check_causal, check_shapes, check_tensors, resolve_scale
from flashlib.masks import Mask
from flashlib.masks.runs import count
from flashlib.ring import agree, head_groups, layouts
from flashlib.ring.distributed import copy_engines, local
from flashlib.ring.distributed.axes import Axis
from flashlib.ring.distributed.link import Link

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
T = TypeVar("T")
KEPT = 64  # calls, masks and plans of a group


class Arguments(NamedTuple):
    """What one rank was given: see `ring.attention`."""

    Q: torch.Tensor
    K: torch.Tensor
    V: torch.Tensor
    layout: str
    causal: bool
    mask: Mask | None
    scale: float | None
    local: ModuleType | None
    link: Callable | None


class Agreed(NamedTuple):
    """What all ranks then know: the lengths of the whole sequences, the mask with causal, and the scale."""

    N_q: int
    N_k: int
    mask: Mask
    scale: float


class Agreements:
    """What the ranks of one group have agreed on so far, and what follows from it; the last KEPT of each.

    calls: {a call's key: what follows from it}. link: what copies by default, once the ranks have met on their
    GPUs. combined, plan: `masks.combined`, and a way's `plan` of a `Where`; both return the same object each time,
    as plans are looked up by their masks.
    """

    def __init__(self) -> None:
        self.calls: dict[tuple | None, Any] = {}
        self.link: type[Link] = Link
        self.met = False
        self.combined = functools.lru_cache(maxsize=KEPT)(masks.combined)
        self.plan = functools.lru_cache(maxsize=KEPT)(lambda plan, where: plan(where))

    def earlier(self, key: tuple | None) -> Any:
        """Return what was kept of a call like this one, or None; a key that cannot be hashed is new."""
        try:
            found = self.calls.pop(key, None)
        except TypeError:
            return None
        return found and self.keep(key, found)

    def keep(self, key: tuple | None, found: T) -> T:
        """Keep what follows from a call as the latest, and drop the oldest; with None as its key, keep nothing."""
        if key is not None:
            self.calls[key] = found
        if len(self.calls) > KEPT:
            del self.calls[next(iter(self.calls))]
        return found

    def meet(self, group: dist.ProcessGroup, device: torch.device) -> None:
        """Have all ranks of the group meet once: NCCL needs all of them in its first copies, and a ring may not.

        The device says whether NCCL copies: a group may have gloo too, for the CPU.
        """
        if device.type != "cpu" and not self.met:
            dist.all_reduce(torch.zeros(1, device=device), group=group)
            self.link = copy_engines.CopyEngines if copy_engines.reach_all(group, device) else Link
            self.met = True

    def link_for(self, device: torch.device) -> type[Link]:
        """Return what copies tensors of a device by default; the ranks have met."""
        return Link if device.type == "cpu" else self.link


_agreements: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # {group: its Agreements}


def agreements_of(group: dist.ProcessGroup) -> Agreements:
    """Return the Agreements of a group, which live as long as the group."""
    if group not in _agreements:
        _agreements[group] = Agreements()
    return _agreements[group]


def groups_of(axes: tuple[Axis, Axis]) -> tuple[dist.ProcessGroup, ...]:
    """Return the groups of ranks that agree, one after the other; the first one's Agreements are the call's."""
    return tuple(axis.group for axis in reversed(axes) if axis.group is not None)


def key_of(name: str, axes: tuple[Axis, Axis], arguments: Arguments) -> tuple | None:
    """Return what two calls have in common if the second need not be compared; None if each must be."""
    groups = groups_of(axes)
    return None if any(map(_is_on_gloo, groups)) else _key(name, groups, arguments)


def agree_on_call(name: str, axes: tuple[Axis, Axis], in_pieces: bool, arguments: Arguments) -> Agreed:
    """Return what the ranks agree on; raise the same error on every rank if they do not.

    name: of the function that all call. axes, in_pieces: see `call.Way`.
    """
    groups = groups_of(axes)
    problem: Exception | None = None
    values: dict = {}
    try:
        values, mask, scale = checked(arguments, agreements_of(groups[0]))
    except (TypeError, ValueError) as error:
        problem = error
        if not all(map(_is_on_gloo, groups)):
            raise  # the others compare only calls that are new to them, and may not come
    _compare(name, groups, values, problem)
    for group in groups:
        agreements_of(group).meet(group, arguments.Q.device)
    N_q, N_k = _lengths(name, axes, in_pieces, arguments)
    return Agreed(N_q, N_k, mask, scale)


def _is_on_gloo(group):
    return "gloo" in dist.get_backend_config(group)


def _key(name, groups, arguments):
    Q, K, V, *others = arguments
    tensors = tuple((X.dtype, X.shape, X.device) for X in (Q, K, V) if isinstance(X, torch.Tensor))
    gradients = needs_gradients(Q, K, V), needs_gradients(*getattr(arguments.mask, "biases", ()))
    return name, groups[1:], tensors, *others, type(arguments.causal), gradients


def needs_gradients(*tensors: torch.Tensor) -> bool:
    return torch.is_grad_enabled() and any(getattr(X, "requires_grad", False) for X in tensors)


def checked(arguments: Arguments, agreements: Agreements) -> tuple[dict, Mask, float]:
    """Return what must be the same on all ranks, the combined mask and the scale; raise TypeError or ValueError.

    The module that computes is asked too: an error after the first copies would leave messages that nobody
    receives.
    """
    Q, K, V, layout, causal, mask, scale, module, copies = arguments
    check_tensors(DTYPES, Q=Q, K=K, V=V)
    check_shapes(Q, K, V, axes="(B, H, N, d)", grouped=True, values=True)
    (module or local.module_for(Q.device)).check(Q, K, V)
    layouts.check_cut(1, layout)
    check_causal(causal)
    combined = agreements.combined(None if mask is None else masks.check_mask(mask), causal)
    if needs_gradients(*combined.biases):
        raise ValueError(
            "a bias of the mask requires a gradient, which attention over ranks does not compute: pass "
            "bias.detach(), or call flashlib.kernels.attention on whole sequences"
        )
    scale = resolve_scale(scale, Q.shape[3])
    (B, H, _, d), H_k, d_v = Q.shape, K.shape[1], V.shape[3]
    sizes = {"dtype": Q.dtype, "B": B, "H": H, "H_k": H_k, "d": d, "d_v": d_v}
    values = {**sizes, "layout": layout, "causal": causal, "mask": mask, "scale": scale}
    values["link"] = None if copies is None else getattr(copies, "__qualname__", type(copies).__qualname__)
    return values | {"gradients": needs_gradients(Q, K, V)}, combined, scale


def _compare(name, groups, values, problem):
    """Raise on every rank of all groups, one after the other, unless all have the same values and no problem."""
    disagreement = None
    for group in groups:
        error = problem or disagreement
        try:
            agree.check(name, group, **values, **({"error": str(error)} if error else {}))
        except ValueError as found:
            disagreement = disagreement or found
    if disagreement or problem:
        raise disagreement or problem


def _lengths(name, axes, in_pieces, arguments):
    """Return N_q and N_k, the sums of all ranks' rows; raise the same on every rank if those are not a cut."""
    own = arguments.Q.shape[2], arguments.K.shape[2]
    ranks = [own]
    for group in groups_of(axes):
        try:
            rows = agree.numbers_of_all(group, *(n for sizes in ranks for n in sizes))
        except RuntimeError as error:
            if _is_on_gloo(group):
                raise
            raise RuntimeError(
                f"this rank has {_listed(own)} rows of Q and K, which is new to it and not to all ranks, so not "
                "all came to compare: with lengths that change, let every rank's part change, e.g. fill them up"
            ) from error
        ranks = [pair for row in rows for pair in zip(row[::2], row[1::2], strict=True)]
    P, size = axes[0].size * axes[1].size, axes[1].size if in_pieces else 1
    _check_cut(name, P, size, arguments.layout, ranks)
    return tuple(sum(sizes) for sizes in zip(*ranks, strict=True))


def _check_cut(name, P, size, layout, ranks):
    """Raise ValueError unless ranks, [(rows of Q, rows of K)], are a cut of a sequence. size: of a group."""
    for tensor, sizes in zip(("Q", "K"), zip(*ranks, strict=True), strict=True):
        N = sum(sizes)
        expected = tuple(count(head_groups.runs(N, P, r, layout, size)) for r in range(P))
        if sizes != expected:
            raise ValueError(
                f"the ranks of {name} have {_listed(sizes)} rows of {tensor}; {N} rows in a {layout} layout are "
                f"{_listed(expected)}: cut the sequence with training.split"
            )


def _listed(numbers):
    return ", ".join(map(str, numbers))
