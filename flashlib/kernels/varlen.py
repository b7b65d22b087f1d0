"""Sequences of any lengths packed one after the other: `forward` and `backward` under the mask of their documents.

Dropout and slopes for each sequence are here too: sequences of one length, (B, N, H, d), are a pack as they are.

Nothing is padded, and nothing waits for the GPU: the keys that a row sees, and the rows that see a key, are
intervals that follow from the offsets, and are computed on the device that has them. The kernels are those of
other masks; so a row block that holds the end of one sequence and the beginning of the next computes the tiles of
both.
"""

from numbers import Integral, Real
from typing import NamedTuple

import torch

from flashlib import masks
from flashlib.inputs import check_causal, resolve_scale
from flashlib.kernels import backward, forward
from flashlib.kernels.launch import planning, tile_sizes
from flashlib.kernels.launch.cache_layout import check_table
from flashlib.kernels.launch.inputs import (
    as_autocast,
    check_attention,
    check_readable,
    kernel_input,
    ready,
    uncompiled,
)
from flashlib.kernels.masking import dropout as drop
from flashlib.kernels.masking import packed
from flashlib.kernels.masking.device_side import Masking
from flashlib.kernels.masking.pass_sizes import PassSizes
from flashlib.kernels.masking.score_changes import score_changes
from flashlib.masks import FAR, Mask
from flashlib.private_apis import of_torch
from flashlib.types import Attention


@uncompiled
def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, *,
    causal: bool = False, mask: Mask | None = None, slopes: torch.Tensor | None = None,
    scale: float | None = None, dropout: float = 0.0, seed: int | torch.Tensor | None = None,
) -> Attention:  # fmt: skip
    """Return softmax(Q K^T * scale) V and the log-sum-exp of each row, sequence by sequence; differentiable.

    Q: (T_q, H_q, d); K: (T_k, H_k, d); V: (T_k, H_k, d_v): tokens of all sequences; dtypes, heads and sizes as in
    `forward.attention`.
    cu_seqlens_q, cu_seqlens_k: (B + 1,), int32 or int64, where sequences begin, ending at T_q and T_k: sequence b
    has rows cu_seqlens_q[b] to cu_seqlens_q[b + 1], and may have none. causal: aligned bottom-right in each.
    mask: windows and soft caps, and `&` of them, in each sequence as if it were alone. slopes: of ALiBi, (H_q,) or
    (B, H_q), fp32: at a distance of n a score is reduced by n times the slope, after soft caps.
    dropout: each weight is set to 0 with this probability, from 0 to below 1, and the others are divided by
    1 - dropout; lse is not affected. seed: chooses the weights that are dropped: a number, or a tensor () of int64
    on the device of Q; None: drawn by torch's generator of that device. `dropped` returns which they are.
    The forward pass and both passes for the gradients, as in `backward`, are deterministic.
    O: (T_q, H_q, d_v), contiguous, the dtype of Q; lse: (T_q, H_q), fp32. A row that sees no key gives O = 0 and
    lse = -inf.
    Numbers must be finite in all sequences: a block with rows of two sequences multiplies weights of 0 by V of the
    other one, and 0 times an inf or a NaN is NaN, in O and in the gradients.
    Offsets on the CPU are checked; offsets on the GPU are not, since reading them means waiting. They may end
    before T: tokens after the end see nothing.
    Raises TypeError or ValueError for anything else, before any work. torch.compile does not trace it.
    Source: the interface of flash_attn_varlen_func (FlashAttention 2), which pads no sequence either.
    """
    Q, K, V = as_autocast(Q, K, V)
    check_dropout(dropout)
    plan = plan_of(Q, K, V, cu_seqlens_q, cu_seqlens_k, causal, mask, slopes, dropout)
    cu_q, cu_k = cu_seqlens_q, cu_seqlens_k
    if not plan.offsets_as_given:
        cu_q, cu_k = _offsets(cu_q, cu_k, Q, K)
    scale = resolve_scale(scale, Q.shape[-1])
    differentiated = torch.is_grad_enabled() and (Q.requires_grad or K.requires_grad or V.requires_grad)
    numbers = plan.numbers
    if slopes is not None:
        numbers = (*numbers, packed.slopes(slopes.detach().contiguous(), cu_q, cu_k, len(Q), len(K)))
    dropped = drop.dropout_of(dropout, _seed(seed, Q)) if dropout else None
    args = packed.run(plan.of_both if differentiated else plan.of_forward, cu_q, cu_k, numbers, dropped)
    if differentiated:
        watched = _Packed.apply if of_torch.is_transformed() else _watched
        return Attention(*watched(Q, K, V, (args, plan, scale)))
    return forward.run(Q, K, V, scale, plan.kernels, args.get("forward"))


def dropped(
    dropout: float, seed: int | torch.Tensor, H_q: int, T_q: int, T_k: int, rows: torch.Tensor, keys: torch.Tensor
) -> torch.Tensor:  # fmt: skip
    """Return which weights `attention` drops, (H_q, len(rows), len(keys)) of bool.

    dropout, seed, H_q, T_q, T_k: of a call of `attention`. rows, keys: numbers of tokens, (n,), of int32, on the
    device of Q.
    """
    return ~drop.kept(dropout, _seed(seed, rows), 0, H_q, rows + (T_k - T_q), keys)


def gathered(X: torch.Tensor, table: torch.Tensor, cu_seqlens: torch.Tensor, T: int) -> torch.Tensor:
    """Return T tokens of sequences in pages as a pack, (T, H_k, d); differentiable.

    X: (pages, H_k, page, d); table: (B, most), int32: token c of sequence b is row c % page of page
    table[b, c // page]. cu_seqlens: as in `attention`. T: at least cu_seqlens[-1], which is on the GPU: tokens
    after that are copies of the last, and no row sees them. Raises ValueError for impossible offsets or numbers of
    pages, if they are on the CPU.
    """
    page = X.shape[2]
    if not len(table) or not T:
        return X.transpose(1, 2).flatten(0, 1)[:0]
    if table.device.type == "cpu":
        _check_pages(X, table, cu_seqlens)
    at = torch.arange(T, device=X.device).minimum((cu_seqlens[-1] - 1).clamp(min=0))
    b = torch.searchsorted(cu_seqlens[1:], at, right=True).clamp_(max=len(table) - 1)
    c = (at - cu_seqlens[:-1][b]).clamp_(min=0)
    return X.transpose(1, 2)[table[b, c // page].long(), c % page]


def _check_pages(X, table, cu_seqlens):
    """Raise ValueError unless the tokens of all sequences are in pages of X."""
    _check_values("cu_seqlens", cu_seqlens, int(cu_seqlens[-1]))
    ends, page = cu_seqlens.diff(), X.shape[2]
    if int(ends.max()) > table.shape[1] * page:
        raise ValueError(
            f"a sequence has {int(ends.max())} tokens, and the table has room for {table.shape[1] * page}: pass a "
            "wider table"
        )
    check_table(table, 0 * ends, ends, page, len(X))


def _seed(seed, Q):
    """Return the seed as kernels take it; raise TypeError or ValueError if it is not a valid seed."""
    if seed is None:
        return torch.randint(2**62, (), device=Q.device)
    if isinstance(seed, torch.Tensor):
        if seed.dtype != torch.int64 or seed.ndim or seed.device != Q.device:
            raise TypeError(
                f"seed is {tuple(seed.shape)} of {seed.dtype} on {seed.device}; pass a number, or a tensor () of "
                f"int64 on {Q.device}"
            )
        return seed
    if isinstance(seed, bool) or not isinstance(seed, Integral):
        raise TypeError(f"seed is {seed!r}; pass a whole number, a tensor () of int64, or None to draw one")
    if not 0 <= seed < 2**63:
        raise ValueError(f"seed is {seed}; pass a number from 0 to 2^63 - 1")
    return torch.full((), int(seed), device=Q.device)


class WindowAndCaps(NamedTuple):
    """How many keys to the left and right of its own a row sees, and the soft caps in their order."""

    window: tuple[int, int]
    caps: tuple[Mask, ...]


ALL = WindowAndCaps((FAR, FAR), ())


def _window_and_caps(mask) -> WindowAndCaps:
    """Return a mask's windows and soft caps; raise TypeError or ValueError if it has any other part."""
    if mask is None:
        return ALL
    windows, caps = [], []
    for part in masks.check_mask(mask).conjuncts():
        if _is_cap(part):
            caps.append(part)
        elif (band := part.band()) and not band.prefix and not part.changes_scores:
            windows.append(band)
        else:
            raise ValueError(
                f"the mask has {part!r}, and packed sequences take windows and soft caps, and slopes= for ALiBi: "
                "for any other mask call flashlib.kernels.attention with masks.documents(ids) & it"
            )
    band = masks.common_band(windows) or masks.Band(None, None)
    left, right = (FAR if n is None else n for n in (band.left, band.right))
    return WindowAndCaps((left, right), tuple(caps))


def _is_cap(part):
    """Return whether a mask changes scores by their value alone, and equals every mask that does the same."""
    by_value = not part.may_change and type(part).__hash__ is not object.__hash__
    return by_value and part.changes_scores and not (part.hides_scores() or part.asks_positions)


def _check_slopes(Q, cu_q, slopes):
    """Raise TypeError or ValueError for slopes that `attention` does not take."""
    if slopes is not None:
        if not isinstance(slopes, torch.Tensor) or slopes.dtype != torch.float32:
            what = slopes.dtype if isinstance(slopes, torch.Tensor) else type(slopes).__name__
            raise TypeError(f"slopes is {what}; pass a tensor (H_q,) or (B, H_q) of float32")
        H, B = Q.shape[1], len(cu_q) - 1
        if slopes.shape not in ((H,), (B, H)) or slopes.device != Q.device:
            raise ValueError(
                f"slopes has shape {tuple(slopes.shape)} on {slopes.device}; pass ({H},) or ({B}, {H}) on "
                f"{Q.device}"
            )
        if slopes.requires_grad:
            raise ValueError("slopes requires a gradient, and there is no kernel for it: pass slopes.detach()")


def check_dropout(dropout: float) -> None:
    """Raise TypeError or ValueError unless it is a probability below 1."""
    if isinstance(dropout, bool) or not isinstance(dropout, float | Real):
        raise TypeError(f"dropout is {dropout!r}; pass a probability")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout is {dropout}; pass a probability from 0 to below 1")


def _check(Q, K, V, cu_q, cu_k, causal):
    """Raise what `attention` raises, except about the scale."""
    for name, X in (("Q", Q), ("K", K), ("V", V)):
        if not isinstance(X, torch.Tensor) or X.ndim != 3:
            given = tuple(X.shape) if isinstance(X, torch.Tensor) else type(X).__name__
            raise ValueError(f"{name} is {given}; pass a tensor of packed tokens, (T, H, d)")
    check_causal(causal)
    q, k, v = map(_heads_first, (Q, K, V))
    check_attention(q, k, v, False, head_dims=forward.HEAD_DIMS, grouped=True, differentiable=True, values=True)
    check_readable(Q=Q, K=K, V=V)
    for name, cu, T in (("cu_seqlens_q", cu_q, len(Q)), ("cu_seqlens_k", cu_k, len(K))):
        if not isinstance(cu, torch.Tensor) or cu.dtype not in (torch.int32, torch.int64) or cu.ndim != 1:
            what = f"{tuple(cu.shape)} of {cu.dtype}" if isinstance(cu, torch.Tensor) else type(cu).__name__
            raise TypeError(f"{name} is {what}; pass a tensor (B + 1,) of int32 or int64")
        if len(cu) < 2 and (T or not len(cu)):
            raise ValueError(
                f"{name} has {len(cu)} numbers and T is {T}; for B sequences it has B + 1, from 0 to T"
            )
    _offsets(cu_q, cu_k, Q, K)
    if len(cu_q) != len(cu_k):
        raise ValueError(
            f"cu_seqlens_q has {len(cu_q)} numbers and cu_seqlens_k {len(cu_k)}; both have "
            "one for each sequence and one more"
        )


def _offsets(cu_q, cu_k, Q, K):
    """Return both offsets on the device of Q; raise ValueError if they are on the CPU and cannot be offsets."""
    if not cu_q.is_cuda:
        _check_values("cu_seqlens_q", cu_q, len(Q))
    if not cu_k.is_cuda:
        _check_values("cu_seqlens_k", cu_k, len(K))
    return [
        cu if cu.device == Q.device and cu.is_contiguous() else cu.to(Q.device).contiguous() for cu in (cu_q, cu_k)
    ]


def _check_values(name, cu, T):
    steps = cu.diff()
    if (steps < 0).any():
        at = int((steps < 0).nonzero()[0, 0])
        raise ValueError(
            f"{name} falls from {int(cu[at])} to {int(cu[at + 1])} at position {at + 1}; it may not decrease"
        )
    if cu[0] != 0 or cu[-1] != T:
        raise ValueError(f"{name} goes from {int(cu[0])} to {int(cu[-1])}; it must go from 0 to T = {T}")


class VarlenPlan(NamedTuple):
    """A call of `attention`, except its tensors and its scale.

    of_forward, of_both: compute the intervals from the offsets for the forward pass, and for both passes.
    descriptors: whether the backward pass loads its tiles through descriptors. code: the Masking that its kernels
    are compiled for, under its name; numbers: of soft caps. offsets_as_given: whether the kernel can read the
    offsets where they are, so that they cannot be checked.
    """

    kernels: forward.ForwardPlan
    of_forward: packed.PackingPlan
    of_both: packed.PackingPlan
    descriptors: bool
    code: Masking
    numbers: tuple
    name: str
    offsets_as_given: bool


PLANS, BACKWARD_PLANS = planning.Plans(), planning.Plans()


def plan_of(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, cu_q: torch.Tensor, cu_k: torch.Tensor, causal: bool,
    mask: Mask | None = None, slopes: torch.Tensor | None = None, dropout: float = 0.0,
) -> VarlenPlan:  # fmt: skip
    """Return the plan for these tensors, whatever the offsets say; raise what `attention` raises for them."""
    window, caps = _window_and_caps(mask)
    key = PLANS.key((Q, K, V, cu_q, cu_k, slopes), causal, *window, _named(caps), bool(dropout))
    if found := PLANS.get(key):
        return found
    _check(Q, K, V, cu_q, cu_k, causal)
    _check_slopes(Q, cu_q, slopes)
    B, causal = len(cu_q) - 1, bool(causal)
    of_caps = PassSizes(1, Q.shape[1], len(Q), len(K), 1, 1, Q.device)  # soft caps depend on none of these
    changes, numbers, _ = score_changes(caps, of_caps)
    name = f"{_named(caps)}, slopes: {slopes is not None}, dropout: {bool(dropout)}"
    code = packed.masking((*changes, *(() if slopes is None else (packed.ALIBI,))), bool(dropout))
    q, k, v = map(_heads_first, (Q, K, V))
    keys = len(K) / max(B, 1)  # a guess: reading the lengths means waiting for the GPU
    tiles, sparsity = {}, tile_sizes.Sparsity(min(keys, sum(window) + 1))
    kernels = forward.plan(q, k, v, False, _noting(code, tiles, "forward"), sparsity, tokens_first=True)
    of_forward = packed.plan(B, causal, tiles, window)
    o = planning.laid_out((*q.shape[:3], v.shape[3]), tokens_first=True)
    masking = _noting(code, tiles, "dq", "dkv")
    after = backward.plan(q, k, v, o, o, False, masking, True, tokens_first=True, drops=bool(dropout))
    of_both = packed.plan(B, causal, tiles, window)
    kernels = kernels._replace(ready=ready(Q, K, V), out_dtype=Q.dtype)  # the plan saw what kernels take
    as_given = cu_q.is_cuda and all(cu.device == Q.device and cu.is_contiguous() for cu in (cu_q, cu_k))
    return PLANS.keep(
        key, VarlenPlan(kernels, of_forward, of_both, after.descriptors, code, numbers, name, as_given)
    )


def _named(caps):
    return str([(cap, hash(cap)) for cap in caps])


def _noting(code, tiles, *names):
    """Return the `masking` of a plan, which notes each pass's sizes; names: for passes that hold rows, or keys."""

    def masking(asked):
        tiles[names[asked.transposed]] = asked
        return None, code

    return masking


def _heads_first(X):
    """Return (T, H, d) as plans take it, (1, H, T, d)."""
    return kernel_input(X).transpose(0, 1)[None]


class _Packed(torch.autograd.Function):
    """Takes and returns (T, H, d): for a view, autograd would fill zeros and copy."""

    @staticmethod
    def forward(ctx, Q, K, V, call):
        args, plan, scale = call
        O, lse = forward.run(Q, K, V, scale, plan.kernels, args.get("forward"))
        ctx.save_for_backward(Q, K, V, O, lse)
        ctx.set_materialize_grads(False)
        ctx.call = plan, scale, (args.get("dkv"), args.get("dq"))
        return O, lse

    @staticmethod
    def backward(ctx, dO, dlse):
        gradients = _once if torch.is_grad_enabled() else _gradients
        return *gradients(ctx, dO, dlse), None


_watched = of_torch.untransformed(_Packed)


def _gradients(ctx, dO, dlse):
    Q, K, V, O, lse = ctx.saved_tensors
    call, scale, args = ctx.call
    if dO is None and dlse is None:
        return None, None, None
    tensors = Q, K, V, O, torch.zeros_like(O) if dO is None else dO
    if call.descriptors:  # the masks are for tiles of descriptors: what has other strides is copied
        check_readable(dO=dO)
        tensors = [X if planning.describable(_heads_first(X)) else _copied(X) for X in tensors]
    *tensors, dO = tensors
    plan = _backward_plan_of(*tensors, lse, dO, dlse, call)
    return backward.run(*tensors, lse.mT, dO, None if dlse is None else dlse.mT, scale, plan, args)


def _copied(X):
    return X.clone(memory_format=torch.contiguous_format)


_once = torch.autograd.function.once_differentiable(_gradients)


def _backward_plan_of(Q, K, V, O, lse, dO, dlse, call):
    key = BACKWARD_PLANS.key((Q, K, V, O, lse, dO, dlse), call.descriptors, call.name)
    if found := BACKWARD_PLANS.get(key):
        return found
    check_readable(dO=dO, dlse=dlse)
    tensors, masking = map(_heads_first, (Q, K, V, O, dO)), _noting(call.code, {}, "dq", "dkv")
    options = {"descriptors": call.descriptors, "tokens_first": True, "drops": call.code.drops.value}
    plan = backward.plan(*tensors, False, masking, True, **options)
    seen = {"ready": ready(Q, K, V, O, dO), "out_dtype": Q.dtype, "alike": planning.have_plain_strides(Q, K, V)}
    return BACKWARD_PLANS.keep(key, plan._replace(**seen))
