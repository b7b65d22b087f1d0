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
    for name, X in (("Q", Q), ("K", K), ("V", V)):
        if not isinstance(X, torch.Tensor) or X.ndim != 3:
            given = tuple(X.shape) if isinstance(X, torch.Tensor) else type(X).__name__
            raise ValueError(f"{name} is {given}; pass a tensor of packed tokens, (T, H, d)")
    q, k, v = (X.transpose(0, 1)[None] for X in (Q, K, V))  # (1, H, T, d)
    check_causal(causal)
    check_attention(q, k, v, False, head_dims=forward.HEAD_DIMS, grouped=True, differentiable=True, values=True)
    check_readable(Q=Q, K=K, V=V)
    offsets = _offsets(cu_seqlens_q, cu_seqlens_k, Q, K)
    O, lse = _Packed.apply(q, k, v, *offsets, bool(causal), resolve_scale(scale, Q.shape[-1]))
    return Attention(O[0].transpose(0, 1), lse[0].transpose(0, 1))


def _offsets(cu_seqlens_q, cu_seqlens_k, Q, K):
    """Return both offsets on the device of Q; raise TypeError or ValueError if they cannot be offsets."""
    given = (("cu_seqlens_q", cu_seqlens_q, len(Q)), ("cu_seqlens_k", cu_seqlens_k, len(K)))
    for name, cu, T in given:
        if not isinstance(cu, torch.Tensor) or cu.dtype not in (torch.int32, torch.int64) or cu.ndim != 1:
            what = f"{tuple(cu.shape)} of {cu.dtype}" if isinstance(cu, torch.Tensor) else type(cu).__name__
            raise TypeError(f"{name} is {what}; pass a tensor (B + 1,) of int32 or int64")
        if len(cu) < 2 and (T or not len(cu)):
            raise ValueError(
                f"{name} has {len(cu)} numbers and T is {T}; for B sequences it has B + 1, from 0 to T"
            )
        if cu.device.type == "cpu":
            _check_values(name, cu, T)
    if len(cu_seqlens_q) != len(cu_seqlens_k):
        raise ValueError(
            f"cu_seqlens_q has {len(cu_seqlens_q)} numbers and cu_seqlens_k {len(cu_seqlens_k)}; both have "
            "one for each sequence and one more"
        )
    return [cu.to(Q.device).contiguous() for _, cu, _ in given]


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
    """What shapes, strides and dtypes decide: the plan of `forward` or `backward`, and the tiles of its passes."""

    kernels: forward.Plan | backward.Plan
    asked: list


FORWARD, BACKWARD = planning.Plans(), planning.Plans()


def _planned(plans, tensors, causal, make) -> Plan:
    """Return the plan that was kept for tensors like these, or make(variant) of the kernels and keep it.

    The numbers of the offsets are not part of it: they are new in each call.
    """
    key = plans.key(tensors, causal)
    if not (plan := plans.get(key)):
        asked = []

        def variant(tiles):
            asked.append(tiles)
            return None, packed.MASKING

        plan = plans.keep(key, Plan(make(variant), asked))
    return plan


class _Packed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, cu_q, cu_k, causal, scale):
        def make(variant):
            keys = k.shape[2] / max(len(cu_k) - 1, 1)  # a guess: to know the lengths is to wait for the GPU
            return forward.plan(q, k, v, False, variant, tile_sizes.Sparsity(keys), tokens_first=True)

        plan = _planned(FORWARD, (q, k, v, cu_q, cu_k), causal, make)
        args = [packed.mask_args(cu_q, cu_k, causal, tiles) for tiles in plan.asked]
        O, lse = forward.run(q, k, v, scale, plan.kernels, *args)
        ctx.save_for_backward(q, k, v, O, lse, cu_q, cu_k)
        ctx.causal, ctx.scale = causal, scale
        return O, lse

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dO, dlse):
        q, k, v, O, lse, cu_q, cu_k = ctx.saved_tensors
        check_readable(dO=dO, dlse=dlse)

        def make(variant):
            return backward.plan(q, k, v, O, dO, False, variant, True)

        plan = _planned(BACKWARD, (q, k, v, O, lse, dO, dlse, cu_q, cu_k), ctx.causal, make)
        args = {tiles.transposed: packed.mask_args(cu_q, cu_k, ctx.causal, tiles) for tiles in plan.asked}
        both = args.get(True), args.get(False)
        return *backward.run(q, k, v, O, lse, dO, dlse, ctx.scale, plan.kernels, both), None, None, None, None
