"""How the passes for gradients of heads of 256 numbers, `dkv_256` and `dq_256`, are launched."""

import math
from typing import NamedTuple

import torch
from triton import JITFunction

from flashlib.inputs import resolve_scale
from flashlib.kernels import backward as portable
from flashlib.kernels.hopper import launch, launch_backward
from flashlib.kernels.launch import planning
from flashlib.kernels.launch.inputs import check_no_gradient, on_device_of, resolve_out_dtype
from flashlib.types import Grads

TILE = 64  # rows, and keys


class HopperBackward256Plan(NamedTuple):
    """A call, except its tensors and its scale. rows: the shape of lse2 and delta."""

    prepare: planning.Launch
    dkv: planning.Launch
    dq: planning.Launch
    rows: tuple


PLANS = planning.Plans()


def backward(
    dkv: JITFunction, dq: JITFunction, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor,
    O: torch.Tensor | None, lse: torch.Tensor, dO: torch.Tensor, dlse: torch.Tensor | None, causal: bool,
    mask: object, scale: float | None, delta: torch.Tensor | None, out_dtype: torch.dtype | None,
) -> Grads:  # fmt: skip
    """Do the same as `backward.backward`, with these kernels."""
    tensors = Q, K, V, O, lse, dO, dlse, delta
    key = PLANS.key(tensors, causal, out_dtype) if mask is None else None
    plan = PLANS.get(key) if key is not None else None
    if plan is None:
        launch_backward.check(Q, K, V, O, lse, dO, dlse, causal, mask, delta, head_dims=launch_backward.HEAD_DIMS)
        wide = resolve_out_dtype(out_dtype, Q.dtype) == torch.float32
        plan = PLANS.keep(key, _plan(dkv, dq, Q, K, O, dO, bool(causal), wide))
    check_no_gradient(Q=Q, K=K, V=V)
    scale = resolve_scale(scale, Q.shape[-1])
    contiguous: dict = {"memory_format": torch.contiguous_format, "dtype": out_dtype or Q.dtype}
    if plan is None:  # no rows, or no keys that they could see
        return Grads(*(torch.zeros_like(X, **contiguous) for X in (Q, K, V)))
    O, dO, summed = launch_backward.of_rows(O, dO)
    dQ, dK, dV = (torch.empty_like(X, **contiguous) for X in (Q, K, V))
    described = [launch.describe(X, TILE) for X in (Q, K, V, dO)]
    wide = plan.dq.constants["WIDE"]
    to_dQ, *to = (X if wide else launch.describe(X, TILE) for X in (dQ, dK, dV))
    scales = scale * math.log2(math.e), scale
    with on_device_of(Q):
        lse2, delta = portable.prepared(plan.prepare, O, summed, lse, dlse, plan.rows, delta)
        fields = launch_backward.numbers(plan.rows, TILE)
        rows = launch.described(lse2, fields), launch.described(delta, fields)
        plan.dkv(*described, *rows, *to, *scales)
        plan.dq(*described, lse2, delta, to_dQ, *scales)
    return Grads(dQ, dK, dV)


def _plan(dkv, dq, Q, K, O, dO, causal, wide):
    (B, H, N_q, _), (H_k, N_k) = Q.shape, K.shape[1:3]
    if not Q.numel() or not N_k:
        return None
    problem = portable.BackwardInputs.of(Q, K, causal, False)
    group, constants = H // H_k, {"CAUSAL": causal, "WIDE": wide}
    T_c, blocks = -(-N_k // TILE), -(-N_q // (2 * TILE))
    keys = H_k, group, N_q, N_k, -(-N_q // TILE), T_c
    rows = H, group, N_q, N_k, blocks, problem.N_padded
    o, _, summed = launch_backward.of_rows(O, dO)
    return HopperBackward256Plan(
        portable.prepare_launch(o, summed, problem),
        planning.Launch(dkv, T_c * B * H_k, keys, constants, {"num_warps": 4}),
        planning.Launch(dq, blocks * B * H, rows, constants, {"num_warps": 4}),
        (B, H, problem.N_padded),
    )
