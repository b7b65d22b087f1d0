"""Rung 1: standard attention in PyTorch, as people write it: each line is a kernel or two, through HBM."""

import math

import torch

from flashlib.inputs import resolve_scale
from flashlib.kernels.launch.inputs import check_attention
from flashlib.types import Attention


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool = False, scale: float | None = None
) -> Attention:
    """Return Attention(O, lse); inputs and errors as in `ladder.launch`.

    lse is computed from S as stored, in the dtype of Q. That takes passes over S which `output` does not need.
    Source: FlashAttention, Algorithm 0.
    """
    check_attention(Q, K, V, causal)
    O, S = output(Q, K, V, causal, resolve_scale(scale, Q.shape[-1]))
    return Attention(O, S.float().logsumexp(dim=-1))


def output(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool = False, scale: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return O and the masked S; this is what is timed."""
    N_q, N_k = Q.shape[2], K.shape[2]
    S = Q @ K.mT * (scale or 1 / math.sqrt(Q.shape[-1]))  # (B, H, N_q, N_k)
    if causal:
        visible = torch.ones(N_q, N_k, dtype=torch.bool, device=Q.device).tril(N_k - N_q)
        S = S.masked_fill(~visible, -torch.inf)
    P = S.softmax(dim=-1)  # (B, H, N_q, N_k)
    O = P @ V  # (B, H, N_q, d)
    if causal and N_q > N_k:
        O[:, :, : N_q - N_k] = 0  # these rows saw no key: their softmax was nan
    return O, S
