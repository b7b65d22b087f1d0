"""Padding as a mask: each sequence has an interval of keys that are not padding."""

import numpy as np
import torch

from flashlib.masks import Mask, Place
from flashlib.masks.kinds import like
from flashlib.masks.place import Interval, inside
from flashlib.types import Same


class Present(Mask):
    """Keys first[b] to end[b] of sequence b, and none before or after: no query sees padding."""

    batches: int
    asks_batch = True

    def __init__(self, first: np.ndarray, end: np.ndarray):
        self.first, self.end, self.batches = first, end, len(first)

    def __repr__(self):
        return f"<keys that are no padding, of {self.batches} sequences>"

    @classmethod
    def of(cls, present: torch.Tensor) -> "Present | None":
        """Return the mask for (B, N_k) of bool; None if the keys of some sequence are not contiguous."""
        there = present.cpu().numpy()
        count = there.sum(1)
        first = np.where(count > 0, there.argmax(1), 0) if there.shape[1] else count
        numbers = np.arange(there.shape[1])
        together = (numbers >= first[:, None]) & (numbers < (first + count)[:, None])
        return cls(first, first + count) if (together == there).all() else None

    def bounds(self, place: Place, r: np.ndarray) -> Interval | None:
        b = place.b if self.batches > 1 else 0
        return inside(np.full(len(r), self.first[b]), np.full(len(r), self.end[b]), place)

    def sees(self, place: Place, r: Same, c: Same) -> Same:
        b = place.b if self.batches > 1 else 0
        return (c >= like(self.first, c)[b]) & (c < like(self.end, c)[b]) & (r == r)
