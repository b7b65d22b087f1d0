"""Computes a hop on a Hopper GPU, by default: pass `on_gpu` as `local` if the bits must be the same every time.

It is `on_gpu` with Hopper's backward kernel where that takes the hop and is faster. That kernel sums dQ in any
order, so torch.use_deterministic_algorithms forbids it. Besides what `memory` counts, it holds these sums for some
of the heads, at most as large as dQ in fp32.
"""

import torch

from flashlib.kernels.hopper import backward as hopper
from flashlib.kernels.hopper import launch, launch_backward
from flashlib.kernels.launch import planning
from flashlib.masks import Mask
from flashlib.ring.distributed import on_gpu
from flashlib.types import Grads

PLANS = planning.Plans()  # of Hopper's backward pass; False for hops that it does not take, or not faster
check, attention, merge, delta_of = on_gpu.check, on_gpu.attention, on_gpu.merge, on_gpu.delta_of


def backward(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, lse: torch.Tensor, dO: torch.Tensor, delta: torch.Tensor,
    mask: Mask, scale: float,
) -> Grads:  # fmt: skip
    """Return what these rows and keys add to dQ, dK and dV, in fp32. lse, delta: of whole rows."""
    causal = None if torch.are_deterministic_algorithms_enabled() else on_gpu.plain(mask)
    if causal is not None and (plan := _plan(Q, K, V, lse, dO, delta, causal)):
        return hopper.run(Q, K, V, None, lse, dO, None, scale, plan, delta)
    return on_gpu.backward(Q, K, V, lse, dO, delta, mask, scale)


def _plan(Q, K, V, lse, dO, delta, causal):
    """Return the plan of Hopper's backward pass; False if it does not take the hop, or is not faster."""
    if not launch.is_hopper(Q.device):
        return False
    key = PLANS.key((Q, K, V, lse, dO, delta), causal)
    plan = PLANS.get(key)
    if plan is None:
        plan = launch_backward.suits(Q, K, V, causal) and hopper.plan_of(
            Q, K, V, None, lse, dO, None, causal, delta=delta, **on_gpu.WIDE
        )
        PLANS.keep(key, plan)
    return plan
