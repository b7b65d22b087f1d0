"""The mask of some heads: a rank that computes only these counts them from 0."""

import functools

import numpy as np

from flashlib.masks import Alibi, Both, Either, Mask, Place, Placed
from flashlib.masks.mask import Interval
from flashlib.types import Same

KEPT = 256  # parts; a part holds its mask, so that those of masks that are made at each step must go


def part(mask: Mask, start: int, stop: int) -> Mask:
    """Return the mask of heads start to stop - 1: the same object each time, for plans are kept by masks."""
    if not tells_apart(mask):
        return mask
    if start == stop:
        return Mask()  # nothing is computed
    return _kept(mask, start, stop)


def tells_apart(mask: Mask) -> bool:
    """Return whether a mask may be another for another head."""
    if isinstance(mask, Both | Either):
        return any(map(tells_apart, mask.parts))
    if isinstance(mask, Placed | OfHeads):
        return tells_apart(mask.mask)
    by_function = bool(hasattr(mask, "f") or mask.biased or mask.functions)
    return mask.asks_head or mask.heads not in (None, 1) or mask.changes_scores and by_function


@functools.lru_cache(maxsize=KEPT)
def _kept(mask, start, stop):
    return _part(mask, start, stop)


def _part(mask, start, stop):
    if not tells_apart(mask):
        return mask
    if isinstance(mask, Both | Either):
        return type(mask)(*(_part(one, start, stop) for one in mask.parts))
    if isinstance(mask, Placed):
        return Placed(_part(mask.mask, start, stop), mask.N_q, mask.N_k, mask.rows, mask.cols)
    if isinstance(mask, Alibi):
        return Alibi(mask.slopes[start:stop])
    return OfHeads(mask, start)


class OfHeads(Mask):
    """A mask whose head 0 is head `start` of another."""

    def __init__(self, mask: Mask, start: int) -> None:
        self.mask, self.start = mask, start
        self.batches, self.changes_scores = mask.batches, mask.changes_scores
        self.biases, self.biased = mask.biases, mask.biased
        self.asks_batch, self.asks_head = mask.asks_batch, mask.asks_head
        self.functions = tuple(part.without_kernel() for part in mask.functions)

    def __repr__(self):
        return f"<{self.mask!r} from head {self.start} on>"

    def check(self, place: Place) -> None:
        self.mask.check(place)

    def bounds(self, place: Place, r: np.ndarray) -> Interval | None:
        return self.mask.bounds(self._there(place), r)

    def sees(self, place: Place, r: Same, c: Same) -> Same:
        return self.mask.sees(self._there(place), r, c)

    def score(self, S: Same, place: Place, r: Same, c: Same) -> Same:
        return self.mask.score(S, self._there(place), r, c)

    def slope(self, S: Same, place: Place, r: Same, c: Same) -> Same | float | None:
        return self.mask.slope(S, self._there(place), r, c)

    def _there(self, place):
        return place._replace(h=place.h + self.start)
