"""A mask for tiled algorithms, which apply it tile by tile: which tiles are hidden, whole or cut."""

from typing import Any

import numpy as np

from flashlib.masks.place import Interval, Place


class Tiles:
    """A mask for one head, applied tile by tile: rows and cols are slices of queries and keys.

    all: the rows and cols of all scores. keys: what each row sees, as `Mask.keys` returns it. gaps: whether the
    keys that a block of rows sees may have a gap, as in a part of a mask, where a row may see no key in the
    middle.
    """

    def __init__(self, mask: Any, place: Place) -> None:
        mask.check(place)
        self.mask, self.place = mask, place
        self.all = slice(0, place.N_q), slice(0, place.N_k)
        self.keys: Interval | None = mask.keys(place)
        self.gaps = self.keys is not None and _gaps(self.keys, place.N_k)

    def hidden(self, rows: slice, cols: slice) -> bool:
        """Return whether no score of a tile is seen."""
        if self.keys is None or rows.start == rows.stop:
            return not self.seen(rows, cols).any()
        first, end = self.keys
        if cols.start >= end[rows.stop - 1] or cols.stop <= first[rows.start]:
            return True
        return self.gaps and not (np.maximum(first[rows], cols.start) < np.minimum(end[rows], cols.stop)).any()

    def cut(self, rows: slice, cols: slice) -> bool:
        """Return whether some score of a tile is not seen."""
        if self.keys is None or rows.start == rows.stop:
            return not self.seen(rows, cols).all()
        first, end = self.keys
        return cols.start < first[rows.stop - 1] or cols.stop > end[rows.start]

    def seen(self, rows: slice, cols: slice) -> np.ndarray:
        """Return which scores of a tile are seen, (B_r, B_c) of bool."""
        r, c = self._positions(rows, cols)
        return np.broadcast_to(self.mask.sees(self.place, r, c), (r.size, c.size))

    def scores(self, S_ij: np.ndarray, rows: slice, cols: slice) -> np.ndarray:
        """Return the scaled scores of a tile, (B_r, B_c), as the mask changes them, -inf where not seen."""
        if self.mask.changes_scores:
            changed = self.mask.score(S_ij, self.place, *self._positions(rows, cols))
            S_ij = changed.astype(S_ij.dtype, copy=False)  # whole numbers and slopes would make it fp64
        if self.cut(rows, cols):
            S_ij = np.where(self.seen(rows, cols), S_ij, -np.inf)
        return S_ij

    def gradient(self, dS_ij: np.ndarray, S_ij: np.ndarray, rows: slice, cols: slice) -> np.ndarray:
        """Return the gradient before `scores`. dS_ij: the gradient after it. S_ij: the scores before it."""
        if not self.mask.changes_scores:
            return dS_ij
        slope = self.mask.slope(S_ij, self.place, *self._positions(rows, cols))
        return dS_ij if slope is None else (dS_ij * slope).astype(dS_ij.dtype, copy=False)

    def add_bias_gradients(
        self, sums: tuple[np.ndarray, ...], dS_ij: np.ndarray, S_ij: np.ndarray, rows: slice, cols: slice
    ) -> None:
        """Add a tile's contribution to the gradients of the biases. dS_ij: the gradient after `scores`."""
        terms = self.mask.bias_terms(S_ij, self.place, *self._positions(rows, cols))
        for dT, (index, weight) in zip(sums, terms, strict=True):
            *at, terms_of = np.broadcast_arrays(*index, dS_ij * weight)
            dT = dT.reshape((1,) * (len(index) - dT.ndim) + dT.shape)  # the same memory
            np.add.at(dT, tuple(at), terms_of)  # an entry may be read by many scores of a tile

    def _positions(self, rows, cols):
        r, c = np.ogrid[rows, cols]
        return r + self.place.past, c


def _gaps(keys, N_k):
    """Return whether a row begins beyond the end of the one before, or sees nothing in the middle of the keys."""
    first, end = keys
    nothing = (first == end) & (0 < first) & (first < N_k)
    return bool(nothing.any() or (first[1:] > end[:-1]).any())
