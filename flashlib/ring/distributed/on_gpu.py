"""Computes a hop on a GPU, by kernels that return fp32 for parts of rows and keys.

On a Hopper GPU the forward pass uses Hopper's kernel if that takes the hop: if all rows see all keys, or the hop
is causal, as nearly all hops of causal attention are. The bits are the same every time, so the backward pass uses
the portable kernel: see `on_hopper`.
"""

import functools

import torch

from flashlib import masks
from flashlib.kernels import backward as kernel
from flashlib.kernels import forward
from flashlib.kernels import merge as merging
from flashlib.kernels.launch import planning
from flashlib.kernels.launch.inputs import check_attention
from flashlib.masks import Mask
from flashlib.ring.distributed import of_heads
from flashlib.types import Attention, Grads

WIDE: dict = {"out_dtype": torch.float32}
PLANS = planning.Plans()  # of Hopper's forward pass; False for hops that it does not take


def check(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> None:
    """Raise TypeError or ValueError unless the kernels take these tensors."""
    check_attention(Q, K, V, False, head_dims=forward.HEAD_DIMS, grouped=True, differentiable=True, values=True)


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, mask: Mask, scale: float, dtype: torch.dtype | None = None
) -> Attention:  # fmt: skip
    """Return O and lse of these rows over these keys. dtype: of O, that of Q; None for fp32."""
    causal, wide = plain(mask), {} if dtype == Q.dtype else WIDE
    if causal is not None and (plan := _hopper_plan(Q, K, V, causal, wide)):
        return _of_hopper()[0].run(Q, K, V, scale, plan)
    return forward.attention(Q, K, V, mask=mask, scale=scale, **wide)


def backward(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, lse: torch.Tensor, dO: torch.Tensor, delta: torch.Tensor,
    mask: Mask, scale: float,
) -> Grads:  # fmt: skip
    """Return what these rows and keys add to dQ, dK and dV, in fp32. lse, delta: of whole rows."""
    return kernel.backward(Q, K, V, None, lse, dO, delta=delta, mask=mask, scale=scale, **WIDE)


def _hopper_plan(Q, K, V, causal, wide):
    """Return the plan of Hopper's forward pass; False if it does not take the hop."""
    hopper, launch = _of_hopper()
    if not launch.is_hopper(Q.device):
        return False
    key = PLANS.key((Q, K, V), causal, *wide)
    plan = PLANS.get(key)
    if plan is None:
        plan = PLANS.keep(key, launch.suits(Q, K, V, **wide) and hopper.plan_of(Q, K, V, causal, **wide))
    return plan


@functools.cache
def _of_hopper():
    from flashlib.kernels.hopper import forward, launch  # only here: they import all of Gluon

    return forward, launch


@functools.lru_cache(maxsize=of_heads.KEPT)
def plain(mask: Mask) -> bool | None:
    """Return whether a hop is causal; None if it has a mask that Hopper's kernels do not take."""
    if not mask.conjuncts():
        return False
    return True if mask == masks.causal() else None


merge = merging.merge
delta_of = kernel.delta_of
