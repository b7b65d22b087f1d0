"""Sequences of any lengths packed one after the other: `forward` and `backward` under the mask of their documents.

Nothing is padded, and nothing waits for the GPU: what each row sees, and by which rows each key is seen, is an
interval that follows from the offsets, and is computed where they lie. The kernels are those of other masks;
so a row block that holds the end of one sequence and the beginning of the next computes the tiles of both.
"""

from typing import NamedTuple

import torch

from flashlib.inputs import check_causal, resolve_scale
from flashlib.kernels import backward, forward
from flashlib.kernels.launch import planning, tile_sizes
from flashlib.kernels.launch.inputs import (
    as_autocast,
    check_attention,
    check_readable,
    kernel_input,
    ready,
    uncompiled,
)
from flashlib.kernels.masking import packed
from flashlib.types import Attention


@uncompiled
def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, *,
    causal: bool = False, scale: float | None = None,
) -> Attention:  # fmt: skip
    """Return softmax(Q K^T * scale) V and the log-sum-exp of each row, sequence by sequence; differentiable.

    Q: (T_q, H_q, d); K: (T_k, H_k, d); V: (T_k, H_k, d_v): tokens of all sequences; dtypes, heads and sizes as in
    `forward.attention`.
    cu_seqlens_q, cu_seqlens_k: (B + 1,), int32 or int64, where sequences begin, ending at T_q and T_k: sequence b
    has rows cu_seqlens_q[b] to cu_seqlens_q[b + 1], and may have none. causal: aligned bottom-right in each.
    O: (T_q, H_q, d_v), contiguous, the dtype of Q; lse: (T_q, H_q), fp32. A row that sees no key gives O = 0 and
    lse = -inf.
    Numbers must be finite in all sequences: a block of rows with parts of two of them multiplies weights of 0 by
    V of the other, and 0 times an inf or a NaN is NaN, in O and in the gradients.
    Offsets on the CPU are checked; offsets on the GPU are taken as they are, since to look at them is to wait.
    Raises TypeError or ValueError for anything else, before any work. torch.compile does not trace it.
    Source: the interface of flash_attn_varlen_func (FlashAttention 2), which pads no sequence either.
    """
    Q, K, V = as_autocast(Q, K, V)
    plan = plan_of(Q, K, V, cu_seqlens_q, cu_seqlens_k, causal)
    cu_q, cu_k = _offsets(cu_seqlens_q, cu_seqlens_k, Q, K)
    scale = resolve_scale(scale, Q.shape[-1])
    if torch.is_grad_enabled() and (Q.requires_grad or K.requires_grad or V.requires_grad):
        return Attention(*_Packed.apply(Q, K, V, (cu_q, cu_k, plan, scale)))
    masks = packed.run(plan.of_forward, cu_q, cu_k)
    return forward.run(Q, K, V, scale, plan.kernels, masks.get("forward"))


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
    """Return both offsets on the device of Q; raise ValueError if they lie on the CPU and cannot be offsets."""
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


class Plan(NamedTuple):
    """A call of `attention`, except its tensors and its scale.

    of_forward, of_both: what is found in the offsets for the forward pass, and for the backward pass too.
    descriptors: whether the backward pass takes its tiles through descriptors.
    """

    kernels: forward.Plan
    of_forward: packed.Plan
    of_both: packed.Plan
    descriptors: bool


PLANS, BACKWARD_PLANS = planning.Plans(), planning.Plans()


def plan_of(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, cu_q: torch.Tensor, cu_k: torch.Tensor, causal: bool
) -> Plan:
    """Return the plan for these tensors, whatever the offsets' numbers; raise what `attention` raises of them."""
    key = PLANS.key((Q, K, V, cu_q, cu_k), causal)
    if found := PLANS.get(key):
        return found
    _check(Q, K, V, cu_q, cu_k, causal)
    B, causal = len(cu_q) - 1, bool(causal)
    q, k, v = map(_heads_first, (Q, K, V))
    keys = len(K) / max(B, 1)  # a guess: to know the lengths is to wait for the GPU
    tiles, sparsity = {}, tile_sizes.Sparsity(keys)
    kernels = forward.plan(q, k, v, False, _noting(tiles, "forward"), sparsity, tokens_first=True)
    of_forward = packed.plan(B, causal, tiles)
    o = planning.laid_out((*q.shape[:3], v.shape[3]), tokens_first=True)
    after = backward.plan(q, k, v, o, o, False, _noting(tiles, "dq", "dkv"), True, tokens_first=True)
    of_both = packed.plan(B, causal, tiles)
    kernels = kernels._replace(ready=ready(Q, K, V), out_dtype=Q.dtype)  # the plan saw what kernels take
    return PLANS.keep(key, Plan(kernels, of_forward, of_both, after.descriptors))


def _noting(tiles, *names):
    """Return the `masking` of a plan, which notes the tiles of its passes; the second name: of that for keys."""

    def masking(asked):
        tiles[names[asked.transposed]] = asked
        return None, packed.MASKING

    return masking


def _heads_first(X):
    """Return (T, H, d) as plans take it, (1, H, T, d)."""
    return kernel_input(X).transpose(0, 1)[None]


class _Packed(torch.autograd.Function):
    """Takes and returns (T, H, d): to differentiate a view, autograd would fill zeros and copy."""

    @staticmethod
    def forward(ctx, Q, K, V, call):
        cu_q, cu_k, plan, scale = call
        masks = packed.run(plan.of_both, cu_q, cu_k)
        O, lse = forward.run(Q, K, V, scale, plan.kernels, masks.get("forward"))
        ctx.save_for_backward(Q, K, V, O, lse)
        ctx.set_materialize_grads(False)
        ctx.call = plan.descriptors, scale, (masks.get("dkv"), masks.get("dq"))
        return O, lse

    @staticmethod
    def backward(ctx, dO, dlse):
        gradients = _once if torch.is_grad_enabled() else _gradients
        return *gradients(ctx, dO, dlse), None


def _gradients(ctx, dO, dlse):
    Q, K, V, O, lse = ctx.saved_tensors
    descriptors, scale, masks = ctx.call
    if dO is None and dlse is None:
        return None, None, None
    tensors = Q, K, V, O, torch.zeros_like(O) if dO is None else dO
    if descriptors:  # the masks are for the tiles of this way: what lies otherwise, as dO may, is copied
        check_readable(dO=dO)
        tensors = [X if planning.describable(_heads_first(X)) else _copied(X) for X in tensors]
    *tensors, dO = tensors
    plan = _backward_plan_of(*tensors, lse, dO, dlse, descriptors)
    return backward.run(*tensors, lse.mT, dO, None if dlse is None else dlse.mT, scale, plan, masks)


def _copied(X):
    return X.clone(memory_format=torch.contiguous_format)


_once = torch.autograd.function.once_differentiable(_gradients)


def _backward_plan_of(Q, K, V, O, lse, dO, dlse, descriptors):
    key = BACKWARD_PLANS.key((Q, K, V, O, lse, dO, dlse), descriptors)
    if found := BACKWARD_PLANS.get(key):
        return found
    check_readable(dO=dO, dlse=dlse)
    tensors, masking = map(_heads_first, (Q, K, V, O, dO)), _noting({}, "dq", "dkv")
    plan = backward.plan(*tensors, False, masking, True, descriptors=descriptors, tokens_first=True)
    return BACKWARD_PLANS.keep(key, plan._replace(ready=ready(Q, K, V, O, dO), out_dtype=Q.dtype))
