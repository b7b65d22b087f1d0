"""How the passes for gradients of heads of 256 numbers, `dkv_256` and `dq_256`, are launched."""

from typing import Any, NamedTuple

import torch
from triton import JITFunction

from flashlib.kernels import backward as portable
from flashlib.kernels.hopper import launch, launch_backward
from flashlib.kernels.launch import planning
from flashlib.kernels.launch.inputs import on_device_of, resolve_out_dtype
from flashlib.types import Grads

TILE = 64  # rows, and keys


class HopperBackward256Plan(NamedTuple):
    """A call, except its tensors and its scale.

    prepare: None if there is nothing to sum. rows, out_dtype, alike: as in `launch_backward.HopperBackwardPlan`.
    """

    prepare: planning.Launch | None = None
    dkv: Any = None  # a Launch, like dq, wherever prepare is one
    dq: Any = None
    rows: tuple = ()
    out_dtype: torch.dtype | None = None
    alike: bool = False


PLANS = planning.Plans()


def plan_of(
    dkv: JITFunction, dq: JITFunction, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor | None,
    lse: torch.Tensor, dO: torch.Tensor, dlse: torch.Tensor | None, delta: torch.Tensor | None, causal: bool,
    mask: object, out_dtype: torch.dtype | None,
) -> HopperBackward256Plan:  # fmt: skip
    """Return the plan for these tensors; raise what `backward.backward` raises, except about gradients."""
    tensors = Q, K, V, O, lse, dO, dlse, delta
    key = PLANS.key(tensors, causal, out_dtype) if mask is None else None
    if found := PLANS.get(key):
        return found
    launch_backward.check(Q, K, V, O, lse, dO, dlse, causal, mask, delta, head_dims=launch_backward.HEAD_DIMS)
    wide = resolve_out_dtype(out_dtype, Q.dtype) == torch.float32
    plan = _plan(dkv, dq, Q, K, V, O, dO, bool(causal), wide)
    alike = launch_backward.are_alike(Q, K, V, out_dtype)
    return PLANS.keep(key, plan._replace(out_dtype=out_dtype, alike=alike))


def run(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor | None, lse: torch.Tensor, dO: torch.Tensor,
    dlse: torch.Tensor | None, scale: float, plan: HopperBackward256Plan, delta: torch.Tensor | None = None,
) -> Grads:  # fmt: skip
    """Do what `backward.backward` does, by its plan; nothing is checked."""
    if plan.prepare is None:
        return launch_backward.zeros(Q, K, V, plan.out_dtype)
    O, dO, summed = launch_backward.of_rows(O, dO)
    dQ, dK, dV = launch_backward.outputs(Q, K, V, plan)
    scales = scale * launch.LOG2_E, scale
    with on_device_of(Q):
        stream = planning.stream_of(Q)
        lse2, delta = portable.prepared(plan.prepare, O, summed, lse, dlse, plan.rows, delta, stream)
        plan.dkv(Q, K, V, dO, lse2, delta, dK, dV, *scales, stream=stream)
        plan.dq(Q, K, V, dO, lse2, delta, dQ, *scales, stream=stream)
    return Grads(dQ, dK, dV)


def _plan(dkv, dq, Q, K, V, O, dO, causal, wide):
    (B, H, N_q, _), (H_k, N_k) = Q.shape, K.shape[1:3]
    if not Q.numel() or not N_k:
        return HopperBackward256Plan()
    problem = portable.BackwardInputs.of(Q, K, causal, False)
    group, constants, config = H // H_k, {"CAUSAL": causal, "WIDE": wide}, {"num_warps": 4}
    T_c, blocks = -(-N_k // TILE), -(-N_q // (2 * TILE))
    keys = H_k, group, N_q, N_k, -(-N_q // TILE), T_c
    rows = H, group, N_q, N_k, blocks, problem.N_padded
    o, do, summed = launch_backward.of_rows(O, dO)
    given = [launch.describer(X, TILE) for X in (Q, K, V, do)]
    numbers = launch_backward.numbers((B, H, problem.N_padded), TILE)
    made = (torch.empty(X.shape, dtype=X.dtype, device="meta") for X in (Q, K, V))
    to_dQ, *to = (None if wide else launch.describer(X, TILE) for X in made)
    return HopperBackward256Plan(
        portable.prepare_launch(o, summed, problem),
        planning.Launch(dkv, T_c * B * H_k, keys, constants, config, [*given, numbers, numbers, *to]),
        planning.Launch(dq, blocks * B * H, rows, constants, config, [*given, None, None, to_dQ]),
        (B, H, problem.N_padded),
    )
