"""Scores as a mask changes them, in fp64, and how rounding may affect them."""

from typing import NamedTuple

import torch

from flashlib import masks


class Scores(NamedTuple):
    """after: scaled scores after the mask, -inf where it hides them. slope: the derivative, or 1.

    steepest: the largest |slope| of a score that is seen, at least 1: the factor by which errors of scores grow.
    size: the largest score that is seen, before or after, at least 1.
    """

    after: torch.Tensor
    slope: torch.Tensor
    steepest: float
    size: float


def under(mask, S) -> Scores:
    """Return the Scores of a mask, or None, for scaled scores (B, H, N_q, N_k)."""
    mask = masks.Mask() if mask is None else mask
    b, h, i, c = (torch.arange(n, device=S.device) for n in S.shape)
    place = masks.Place(*S.shape[2:], b[:, None, None, None], h[:, None, None])
    at = place, i[:, None] + place.past, c
    seen, after, slope = mask.sees(*at).expand(S.shape), mask.score(S, *at), mask.slope(S, *at)
    slope = torch.ones_like(S) if slope is None else slope
    steepest, *sizes = (X[seen].abs().max().item() if seen.any() else 0 for X in (slope, S, after))
    return Scores(after.masked_fill(~seen, -torch.inf), slope, max(1, steepest), max(1, *sizes))
