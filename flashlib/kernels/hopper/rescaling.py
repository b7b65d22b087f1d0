"""The Hopper forward with three rules for when O_acc is rescaled, to measure what they gain and cost.

    tau None   for each tile
    tau 0      if a maximum has grown in one of a warp's 16 rows: `forward`, the same bits as with None
    tau 8      if one has grown by more than 8 in base 2, a factor of 256; until then m stays as it is

In real numbers the result is the same. With tau 8, P is up to 256, which is far from the largest float, and in 16
bits it is less exact for rows where few keys have most of the weight, as their P is no longer exactly 1.
FlashAttention-4 does this on Blackwell, with tau 8.
Source: FlashAttention-4 (2026), section 3.1.4.
"""

import torch

from flashlib.kernels.hopper import forward, launch
from flashlib.types import Attention

TAUS = None, 0, 8


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool = False, scale: float | None = None,
    tau: int | None = 8,
) -> Attention:  # fmt: skip
    """Return what `forward.attention` returns; tau: one of TAUS."""
    if tau not in TAUS:
        raise ValueError(f"tau is {tau!r}; accepted are {', '.join(map(str, TAUS))}")
    return launch.attention(forward._forward, Q, K, V, causal, None, scale, TAU=tau)
