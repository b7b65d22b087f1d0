"""Computes a hop on a Hopper GPU if the bits need not be the same every time: pass it as `local`.

It is `on_gpu` with Hopper's backward kernel where that takes the hop and is faster. That kernel sums dQ in any
order. Besides what `memory` counts, it holds these sums for some of the heads, at most as large as dQ in fp32.
"""

import torch

from flashlib.kernels.hopper import backward as hopper
from flashlib.kernels.hopper import launch_backward
from flashlib.masks import Mask
from flashlib.ring.distributed import on_gpu
from flashlib.types import Grads

check, attention, merge, delta_of = on_gpu.check, on_gpu.attention, on_gpu.merge, on_gpu.delta_of


def backward(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, lse: torch.Tensor, dO: torch.Tensor, delta: torch.Tensor,
    mask: Mask, scale: float,
) -> Grads:  # fmt: skip
    """Return what these rows and keys add to dQ, dK and dV, in fp32. lse, delta: of whole rows.

    If torch.use_deterministic_algorithms is set, the kernel is that of `on_gpu`.
    """
    causal = None if torch.are_deterministic_algorithms_enabled() else on_gpu.plain(mask)
    if causal is None or not launch_backward.suits(Q, K, V, causal):
        return on_gpu.backward(Q, K, V, lse, dO, delta, mask, scale)
    return hopper.backward(Q, K, V, None, lse, dO, delta=delta, causal=causal, scale=scale, **on_gpu.WIDE)
