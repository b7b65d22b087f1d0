"""The mask of a part of attention: some rows of Q with some keys, which need not be contiguous.

If a sequence is split over several processes, each computes attention of parts. A mask is defined for positions in
the whole sequence, but an algorithm counts the rows and keys of its part from 0. This module translates between
the two, so that every algorithm takes a part as `mask=`.
"""

from collections.abc import Sequence

import numpy as np

from flashlib.inputs import check_counts
from flashlib.masks.for_kernels import DeviceChange, DeviceTest, Line
from flashlib.masks.kinds import Window
from flashlib.masks.mask import Mask, check_mask, intersection
from flashlib.masks.place import Interval, Place
from flashlib.masks.runs import before, checked_runs, count, item_at, line
from flashlib.masks.wrappers import Wrapper, some_heads


def placed(mask: Mask, N_q: int, N_k: int, rows: range | Sequence[range], keys: range | Sequence[range]) -> Mask:
    """Return the mask for a part of an attention of N_q queries and N_k keys: some rows of Q with some keys.

    rows, keys: their numbers, as one or several increasing ranges of positive steps: range(1, N_q, 4) is every
    fourth row, (range(0, 8), range(24, 32)) two pieces. The result is a mask for this many queries and keys, in
    their order. It sees and changes scores as `mask` does at their positions in the whole.
    It is as plain as possible: Mask() if all are seen, causal() if it is that, a window for a window in equal
    steps (whose bounds may be negative), blocks for blocks if none is cut, an & of the parts for an &; else a
    Placed. Raises TypeError or ValueError for other sizes or ranges, or if the mask does not fit N_q and N_k.
    Source: Brandon and others, Striped Attention (2023), whose hops are causal or strictly causal.
    """
    check_counts(N_q=N_q, N_k=N_k)
    check_mask(mask).check(Place(N_q, N_k))
    return _placed(mask, int(N_q), int(N_k), checked_runs("rows", rows, N_q), checked_runs("keys", keys, N_k))


class Placed(Wrapper):
    """The mask `mask` for some of N_q queries and N_k keys: rows and cols, Runs of their numbers.

    lines: the results of `line` for rows and cols.
    """

    def __init__(self, mask, N_q, N_k, rows, keys):
        super().__init__(mask)
        self.N_q, self.N_k, self.rows, self.cols = N_q, N_k, rows, keys
        self.lines = line(rows), line(keys)

    def __repr__(self):
        return f"<{self.mask!r}, {count(self.rows)} of {self.N_q} rows, {count(self.cols)} of {self.N_k} keys>"

    def check(self, place: Place) -> None:
        expected = count(self.rows), count(self.cols)
        if (place.N_q, place.N_k) != expected:
            raise ValueError(
                f"the mask is placed for {expected[0]} rows and {expected[1]} keys, and there are {place.N_q} and "
                f"{place.N_k}: pass the rows and keys of this part to masks.placed"
            )
        self.mask.check(self._whole(place))

    def bounds(self, place: Place, r: np.ndarray) -> Interval | None:
        whole, r, _ = self._where(place, r, r)
        found = self.mask.bounds(whole, r)
        return None if found is None else tuple(before(self.cols, x) for x in found)  # type: ignore[return-value]

    def device_test(self, place: Place) -> DeviceTest | None:
        test, lines = self.mask.device_test(self._whole(place)), self._lines(place)
        return None if test is None or test.lines or not lines else test._replace(sized=True, lines=lines)

    def device_change(self, place: Place, H: int) -> DeviceChange:
        change, lines = self.mask.device_change(self._whole(place), H), self._lines(place)
        if change.lines or not lines:
            raise ValueError(
                f"the mask is {self!r}, and kernels change scores of a part in one or two pieces of equal steps: "
                "place the mask of the whole, and compute other parts one by one"
            )
        return change._replace(lines=lines)

    def some_heads(self, start: int, stop: int) -> Mask:
        return Placed(some_heads(self.mask, start, stop), self.N_q, self.N_k, self.rows, self.cols)

    def _whole(self, place):
        return place._replace(N_q=self.N_q, N_k=self.N_k)

    def _where(self, place, r, c):
        r = item_at(self.rows, r - place.past) + self.N_k - self.N_q
        return self._whole(place), r, item_at(self.cols, c)

    def _lines(self, place) -> tuple[Line, Line] | None:
        """Return the Lines that map positions of rows, which count from place.past, and of keys to the whole."""
        rows, keys = self.lines
        if rows is None or keys is None:
            return None
        start, step, split, jump = rows
        return (start + self.N_k - self.N_q - step * place.past, step, split + place.past, jump), keys


def _placed(mask, N_q, N_k, rows, keys):
    """Return `placed` for arguments that were checked."""
    each = (_placed_one(one, N_q, N_k, rows, keys) for one in mask.conjuncts())
    return intersection(part for one in each for part in one.conjuncts())


def _placed_one(mask, N_q, N_k, rows, keys):
    if not (mask.hides_scores() or mask.asks_positions):
        return mask
    closed = mask.closed_part(N_q, N_k, rows, keys)
    return closed or _plainest(Placed(mask, N_q, N_k, rows, keys), Place(count(rows), count(keys)))


def _plainest(part, place):
    """Return Mask() or causal() if `part` sees the same, else `part`."""
    if part.changes_scores or part.asks_batch or part.asks_head:
        return part
    if all_see_all(part, place):
        return Mask()
    keys, causal = part.keys(place), Window(None, 0)
    if keys is None or keys[0].any() or not np.array_equal(keys[1], causal.keys(place)[1]):
        return part
    return causal


def all_see_all(mask: Mask, place: Place) -> bool:
    """Return whether all rows see all keys, judged from the first and the last row; False if that is not known."""
    if not place.N_q:
        return True
    keys = mask.bounds(place, np.array([place.past, place.N_k - 1]))
    return keys is not None and not keys[0][1] and keys[1][0] == place.N_k
