"""What a backward pass has prepared before its kernels run, on a CPU."""

import math

import torch


def numbers(
    O: torch.Tensor | None, lse: torch.Tensor, dO: torch.Tensor | None, dlse: torch.Tensor | None, N_padded: int,
    delta: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return lse in base 2, inf for rows that see nothing or are past N_q, and delta: what `_prepare` writes."""
    if delta is None:
        assert O is not None and dO is not None
        delta = (O.float() * dO.float()).sum(-1)
    delta = delta - (0 if dlse is None else dlse)
    lse2 = torch.where(lse.isneginf(), torch.inf, lse * math.log2(math.e))
    pad = 0, N_padded - lse.shape[2]
    lse2, delta = (
        torch.nn.functional.pad(X.flatten(0, 1), pad, value=x) for X, x in ((lse2, math.inf), (delta, 0.0))
    )
    return lse2, delta
