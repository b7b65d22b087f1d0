"""Computes a hop on a CPU: FlashAttention's tiles in torch, so that the S of a hop is never held whole.

All sums are fp32, or fp64 for float64. A hop gives a finished O with its lse, and two of these can be merged.
"""

from collections.abc import Iterator

import numpy as np
import torch

from flashlib.masks import Mask, Place
from flashlib.types import Attention, Grads

B_R, B_C = 128, 256


def check(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> None:
    """Raise nothing: every call that the ways accept can be computed here."""


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, mask: Mask, scale: float, dtype: torch.dtype | None = None
) -> Attention:  # fmt: skip
    """Return O and lse of these rows over these keys; Q: (B, H, n_q, d), K, V: (B, H_k, n_k, d).

    dtype: of O; None for that of the sums.
    """
    tiles = HopTiles(Q, K, mask, scale)
    O = Q.new_zeros((*Q.shape[:3], V.shape[3]), dtype=dtype or tiles.dtype)
    lse = Q.new_full(Q.shape[:3], -torch.inf, dtype=tiles.dtype)
    for rows in tiles.rows():
        m, l = lse[:, :, rows].clone(), torch.zeros_like(lse[:, :, rows])
        O_acc = torch.zeros_like(O[:, :, rows], dtype=tiles.dtype)
        for cols in tiles.seen(rows):
            S, _ = tiles.scores(rows, cols)
            m_old, m = m, torch.maximum(m, S.amax(dim=-1))
            shift = m.masked_fill(m == -torch.inf, 0)  # -inf - (-inf) would be nan
            P, alpha = S.sub_(shift[..., None]).exp_(), torch.exp(m_old - shift)
            l = l * alpha + P.sum(dim=-1)
            O_acc.mul_(alpha[..., None]).add_(tiles.ungrouped(tiles.grouped(P) @ tiles.cast(V, cols)))
        divisor = l.masked_fill(l == 0, 1)  # a row that sees no key: O = 0, lse = -inf
        O[:, :, rows] = O_acc.div_(divisor[..., None])
        lse[:, :, rows] = m + divisor.log()
    return Attention(O, lse)


def backward(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, lse: torch.Tensor, dO: torch.Tensor, delta: torch.Tensor,
    mask: Mask, scale: float,
) -> Grads:  # fmt: skip
    """Return what these rows and keys add to dQ, dK and dV. lse, delta: of whole rows, over all their keys."""
    tiles = HopTiles(Q, K, mask, scale)
    dQ, dK, dV = (torch.zeros(X.shape, dtype=tiles.dtype, device=X.device) for X in (Q, K, V))
    shift = lse.masked_fill(lse == -torch.inf, 0)
    for rows in tiles.rows():
        Q_i, dO_i = tiles.grouped(tiles.cast(Q, rows)), tiles.grouped(tiles.cast(dO, rows))
        for cols in tiles.seen(rows):
            S, slope = tiles.scores(rows, cols)
            P = S.sub_(shift[:, :, rows, None]).exp_()
            dV[:, :, cols] += tiles.grouped(P).mT @ dO_i
            dS = tiles.ungrouped(dO_i @ tiles.cast(V, cols).mT).sub_(delta[:, :, rows, None]).mul_(P)
            if slope is not None:
                dS.mul_(slope)
            dS = tiles.grouped(dS.mul_(scale))
            dQ[:, :, rows] += tiles.ungrouped(dS @ tiles.cast(K, cols))
            dK[:, :, cols] += dS.mT @ Q_i
    return Grads(dQ, dK, dV)


def merge(
    O: torch.Tensor, lse: torch.Tensor, O_j: torch.Tensor, lse_j: torch.Tensor, out: torch.Tensor | None = None
) -> None:
    """Make O and lse those over both sets of keys, in place. out: receives the rounded O, too."""
    both = torch.logaddexp(lse, lse_j)
    shift = both.masked_fill(both == -torch.inf, 0)
    O.mul_(torch.exp(lse - shift)[..., None]).addcmul_(O_j, torch.exp(lse_j - shift)[..., None])
    lse.copy_(both)
    if out is not None:
        out.copy_(O)


def delta_of(O: torch.Tensor, dO: torch.Tensor) -> torch.Tensor:
    """Return the row sums of dO * O, (B, H, n_q)."""
    dtype = torch.promote_types(O.dtype, torch.float32)
    parts = zip(O.split(B_R, dim=2), dO.split(B_R, dim=2), strict=True)
    found = [(O_i.to(dtype) * dO_i.to(dtype)).sum(dim=-1) for O_i, dO_i in parts]
    return torch.cat(found, dim=2) if found else O.new_zeros(O.shape[:3], dtype=dtype)


class HopTiles:
    """The tiles of a hop that are computed, and their scores, for all heads at once."""

    def __init__(self, Q: torch.Tensor, K: torch.Tensor, mask: Mask, scale: float) -> None:
        self.Q, self.K, self.mask, self.scale = Q, K, mask, scale
        self.dtype = torch.promote_types(Q.dtype, torch.float32)
        (self.B, self.H, self.N_q, _), (self.H_k, self.N_k) = Q.shape, K.shape[1:3]
        places = [Place(self.N_q, self.N_k, b) for b in range(mask.batches or 1)]
        found = [mask.keys(place) for place in places]
        self.keys = None if None in found else np.array(found).swapaxes(0, 1)  # first and end, (2, batches, N_q)

    def rows(self) -> Iterator[slice]:
        """Yield blocks of rows."""
        if self.B * self.H and self.N_k:
            yield from _blocks(0, self.N_q, B_R)

    def seen(self, rows: slice) -> Iterator[slice]:
        """Yield blocks of keys from which these rows may see one."""
        if self.keys is None:
            yield from _blocks(0, self.N_k, B_C)
            return
        first, end = self.keys[..., rows]
        some = first < end
        if some.any():
            yield from _blocks(int(first[some].min()), int(end[some].max()), B_C)

    def scores(self, rows: slice, cols: slice) -> tuple[torch.Tensor, torch.Tensor | float | None]:
        """Return the scores of a tile, (B, H, B_r, B_c), -inf where hidden, and the mask's slope, None for 1."""
        Q_i, K_j = self.cast(self.Q, rows), self.cast(self.K, cols)
        S, slope = self.ungrouped(self.grouped(Q_i) @ K_j.mT).mul_(self.scale), None
        if self.mask.changes_scores:
            at = self._at(rows, cols)
            slope = self.mask.slope(S, *at)
            S = self.mask.score(S, *at).clone()
        if self._cut(rows, cols):
            S.masked_fill_(~self.mask.sees(*self._at(rows, cols)), -torch.inf)
        return S, slope

    def cast(self, X: torch.Tensor, items: slice) -> torch.Tensor:
        """Return rows or keys of a tensor, in the dtype of the sums."""
        return X[:, :, items].to(self.dtype)

    def grouped(self, X: torch.Tensor) -> torch.Tensor:
        """Return a tensor of all heads with the rows of heads that read the same head of K below each other."""
        return X.reshape(self.B, self.H_k, -1, X.shape[-1])

    def ungrouped(self, X: torch.Tensor) -> torch.Tensor:
        """Undo `grouped`."""
        return X.reshape(self.B, self.H, -1, X.shape[-1])

    def _at(self, rows, cols):
        b, h = (torch.arange(n, device=self.Q.device) for n in (self.B, self.H))
        i, c = (torch.arange(x.start, x.stop, device=self.Q.device) for x in (rows, cols))
        place = Place(self.N_q, self.N_k, b[:, None, None, None], h[:, None, None])
        return place, i[:, None] + place.past, c

    def _cut(self, rows, cols):
        """Return whether some score of a tile may be hidden."""
        if self.keys is None:
            return True
        first, end = self.keys[..., rows]
        return cols.start < first.max() or cols.stop > end.min()


def _blocks(start, stop, size):
    for at in range(start, stop, size):
        yield slice(at, min(at + size, stop))
