"""Masks that evaluate another mask somewhere else: in another sequence, or for another head."""

import numpy as np

from flashlib.masks.for_kernels import Band, BlockTable, DeviceChange, DeviceTest
from flashlib.masks.mask import Mask, intersection
from flashlib.masks.place import Interval, Place
from flashlib.types import Same


class Wrapper(Mask):
    """A mask that evaluates another one. A subclass defines where: `_where`."""

    def __init__(self, mask: Mask) -> None:
        self.mask = mask
        self.batches, self.heads, self.changes_scores = mask.batches, mask.heads, mask.changes_scores
        self.asks_batch, self.asks_head, self.asks_positions = (
            mask.asks_batch, mask.asks_head, mask.asks_positions,
        )  # fmt: skip
        self.may_change, self.biases, self.biased = mask.may_change, mask.biases, mask.biased

    def _where(self, place, r, c):
        """Return the place and the positions at which `mask` is evaluated."""
        return place, r, c

    def hides_scores(self) -> bool:
        return self.mask.hides_scores()

    def tells_heads_apart(self) -> bool:
        return self.mask.tells_heads_apart()

    def check(self, place: Place) -> None:
        self.mask.check(place)

    def bounds(self, place: Place, r: np.ndarray) -> Interval | None:
        return self.mask.bounds(self._where(place, r, r)[0], r)

    def sees(self, place: Place, r: Same, c: Same) -> Same:
        return self.mask.sees(*self._where(place, r, c))

    def score(self, S: Same, place: Place, r: Same, c: Same) -> Same:
        return self.mask.score(S, *self._where(place, r, c))

    def slope(self, S: Same, place: Place, r: Same, c: Same) -> Same | float | None:
        return self.mask.slope(S, *self._where(place, r, c))

    def bias_terms(self, S: Same, place: Place, r: Same, c: Same) -> tuple:
        return self.mask.bias_terms(S, *self._where(place, r, c))


class Repeated(Wrapper):
    """A mask for B sequences, repeated for `times` batches of B, one after the other."""

    def __init__(self, mask: Mask, B: int, times: int) -> None:
        super().__init__(mask)
        self.B, self.batches, self.asks_batch = B, B * times, True

    def __repr__(self):
        return f"<{self.mask!r}, {self.batches // max(self.B, 1)} times>"

    def _where(self, place, r, c):
        return place._replace(b=place.b % self.B), r, c


def repeated(mask: Mask, B: int, times: int) -> Mask:
    """Return a mask for B sequences as one for `times` batches of them, one after the other."""
    return intersection(
        Repeated(part, B, times) if part.asks_batch and part.hides_scores() else part for part in mask.conjuncts()
    )


class HeadsFrom(Wrapper):
    """A mask whose head 0 is head `start` of another."""

    def __init__(self, mask: Mask, start: int) -> None:
        super().__init__(mask)
        self.start, self.heads = start, None

    def __repr__(self):
        return f"<{self.mask!r} from head {self.start} on>"

    def _where(self, place, r, c):
        return place._replace(h=place.h + self.start), r, c


def some_heads(mask: Mask, start: int, stop: int) -> Mask:
    """Return the mask of heads start to stop - 1 of a mask, counted from 0."""
    if not mask.tells_heads_apart():
        return mask
    parts = mask.conjuncts()
    if len(parts) > 1:
        return intersection(some_heads(part, start, stop) for part in parts)
    return mask.some_heads(start, stop) or HeadsFrom(mask, start)


class InOneCall(Wrapper):
    """A mask that may change, for one call: each call makes a new object, which keeps the mask's results."""

    def __init__(self, mask: Mask) -> None:
        super().__init__(mask)
        self.may_change = False

    def __repr__(self):
        return repr(self.mask)

    def device_test(self, place: Place) -> DeviceTest | None:
        return self.mask.device_test(place)

    def device_change(self, place: Place, H: int) -> DeviceChange:
        return self.mask.device_change(place, H)

    def band(self) -> Band | None:
        return self.mask.band()

    def block_table(self) -> BlockTable | None:
        return self.mask.block_table()


def in_one_call(mask: Mask) -> Mask:
    """Return a mask for one call, in which kernels evaluate it once: the mask itself, unless it may change."""
    if not mask.may_change:
        return mask
    return intersection(InOneCall(part) if part.may_change else part for part in mask.conjuncts())
