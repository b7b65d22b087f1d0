"""Where a mask is evaluated: the sizes of an attention, its batch and head, and intervals of its keys."""

from typing import Any, NamedTuple

import numpy as np

Interval = tuple[np.ndarray, np.ndarray]
"""The first key that each row sees and the one after its last."""


class Place(NamedTuple):
    """Where a mask is applied: the sizes, and the batch and head, numbers or, in torch, tensors of them."""

    N_q: int
    N_k: int
    b: Any = 0
    h: Any = 0

    @property
    def past(self) -> int:
        """The keys before the first query's own."""
        return self.N_k - self.N_q


def inside(first: np.ndarray, end: np.ndarray, place: Place) -> Interval:
    """Return the interval with its bounds clipped to the keys; an empty one ends where it begins."""
    first = np.minimum(np.maximum(first, 0), place.N_k)  # for few numbers np.clip takes three times as long
    return first, np.maximum(np.minimum(end, place.N_k), first)
