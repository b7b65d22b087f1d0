"""What a rank computes of a hop on a Hopper GPU if the same bits need not come every time: pass it as `local`.

It is `on_gpu` with Hopper's backward, where that takes the hop and is faster. Its sums of dQ come in any order.
Beside what `memory` counts it holds these sums for some of the heads, at most as much as a dQ in fp32.
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
    """Return what these keys and rows add to dQ, dK and dV, in fp32. lse, delta: of whole rows.

    Where torch.use_deterministic_algorithms is set, it is that of `on_gpu`.
    """
    causal = None if torch.are_deterministic_algorithms_enabled() else on_gpu.plain(mask)
    if causal is None or not launch_backward.suits(Q, K, V, causal):
        return on_gpu.backward(Q, K, V, lse, dO, delta, mask, scale)
    return hopper.backward(Q, K, V, None, lse, dO, delta=delta, causal=causal, scale=scale, **on_gpu.WIDE)
