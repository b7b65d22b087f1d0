"""The correct results for a few rows and keys of a long sequence, in memory that does not grow with N squared."""

from typing import NamedTuple

import torch

from flashlib.masks import Mask, Place

ROWS = 1024  # at a time, with all keys


class Sampled(NamedTuple):
    """O and dQ of some rows, dK and dV of some keys, each (items, d): of the first head of K and V, and of Q."""

    O: torch.Tensor
    dQ: torch.Tensor
    dK: torch.Tensor
    dV: torch.Tensor


def results(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, dO: torch.Tensor, mask: Mask, rows: torch.Tensor,
    keys: torch.Tensor, *, rounded: bool,
) -> Sampled:  # fmt: skip
    """Return Sampled of the first sequence; Q, dO: (B, H, N, d), K, V: (B, H_k, N, d); rows, keys: positions.

    In fp64; with `rounded`, rounded as by standard attention in the dtype of Q, which stores S, P, O and dS.
    """
    group, (N, d) = Q.shape[1] // K.shape[1], Q.shape[2:]
    wide = torch.float32 if rounded else torch.float64
    dtype = Q.dtype if rounded else wide
    K_, V_ = K[0, 0].to(wide), V[0, 0].to(wide)
    found = Sampled(*(Q.new_zeros((len(at), d), dtype=wide) for at in (rows, rows, keys, keys)))
    place, cols = Place(N, N, 0, 0), torch.arange(N, device=Q.device)
    for h in range(group):  # dK and dV sum over the heads of Q that use this one
        for start in range(0, N, ROWS):
            r = torch.arange(start, min(start + ROWS, N), device=Q.device)
            Q_i, dO_i = Q[0, h, r].to(wide), dO[0, h, r].to(wide)
            S = (Q_i @ K_.mT * d**-0.5).to(dtype).to(wide)
            S.masked_fill_(~mask.sees(place, r[:, None], cols), -torch.inf)
            P = S.sub_(S.logsumexp(dim=-1, keepdim=True)).exp_().to(dtype).to(wide)
            O_i = (P @ V_).to(dtype).to(wide)
            delta = (dO_i * O_i).sum(dim=-1, keepdim=True)
            dS = (P[:, keys] * (dO_i @ V_[keys].mT - delta)).to(dtype).to(wide)
            found.dK.add_(dS.mT @ Q_i, alpha=d**-0.5)
            found.dV.add_(P[:, keys].mT @ dO_i)
            mine = torch.nonzero((rows >= start) & (rows < start + ROWS)).flatten()
            if h == 0 and len(mine):
                i = rows[mine] - start
                dS = (P[i] * (dO_i[i] @ V_.mT - delta[i])).to(dtype).to(wide)
                found.O[mine], found.dQ[mine] = O_i[i], dS @ K_ * d**-0.5
    return Sampled(*(X.to(dtype).double() for X in found))
