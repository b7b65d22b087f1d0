"""The mask of a part of attention: some rows of Q with some keys, which need not stand together.

A sequence that is cut over several processes meets itself in parts. A mask knows positions of the whole sequence,
and an algorithm counts the rows and keys of its part from 0; what is here stands between the two, so that every
algorithm takes a part as `mask=`.
"""

from collections.abc import Sequence

import numpy as np

from flashlib.inputs import check_counts
from flashlib.masks.kinds import Softcap, Window
from flashlib.masks.mask import Both, Interval, Mask, Place, check_mask
from flashlib.types import Same

Runs = tuple[range, ...]
"""Items of a sequence that rise, in pieces of equal steps: the rows 0, 1, 2, 9, 10 are range(3), range(9, 11)."""


def placed(mask: Mask, N_q: int, N_k: int, rows: range | Sequence[range], keys: range | Sequence[range]) -> Mask:
    """Return the mask for a part of an attention of N_q queries and N_k keys: rows of Q and keys by their numbers.

    rows, keys: ranges of positive steps, one or several, that rise: range(1, N_q, 4) is every fourth row,
    (range(0, 8), range(24, 32)) two pieces. The mask that is returned is for as many queries and keys as these
    have, in their order. It sees, and does to scores, what `mask` does where they stand.
    It is as plain as possible: Mask() where all are seen, causal() where it is, a window of a window in equal
    steps (whose bounds may be negative), a & of parts of a &; else a Placed.
    Raises TypeError or ValueError for other sizes or ranges, or if the mask does not fit N_q and N_k.
    Source: Brandon and others, Striped Attention (2023), whose hops are causal or strictly causal.
    """
    check_counts(N_q=N_q, N_k=N_k)
    check_mask(mask).check(Place(N_q, N_k))
    return _placed(mask, int(N_q), int(N_k), _runs("rows", rows, N_q), _runs("keys", keys, N_k))


class Placed(Mask):
    """What `mask` sees and does, for some of N_q queries and N_k keys: rows and cols, Runs of their numbers.

    lines: of rows and cols, what `line` returns.
    """

    def __init__(self, mask, N_q, N_k, rows, keys):
        self.mask, self.N_q, self.N_k, self.rows, self.cols = mask, N_q, N_k, rows, keys
        self.batches, self.heads, self.changes_scores = mask.batches, mask.heads, mask.changes_scores
        self.asks_batch, self.asks_head = mask.asks_batch, mask.asks_head
        self.biases, self.biased = mask.biases, mask.biased
        self.lines = line(rows), line(keys)
        by_kernel = None not in self.lines and getattr(mask, "kernel", None)  # else kernels have torch ask f
        self.functions = mask.functions if by_kernel else tuple(part.without_kernel() for part in mask.functions)

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
        found = self.mask.bounds(self._whole(place), self._at(place, r, r)[0])
        return None if found is None else tuple(before(self.cols, x) for x in found)  # type: ignore[return-value]

    def sees(self, place: Place, r: Same, c: Same) -> Same:
        return self.mask.sees(self._whole(place), *self._at(place, r, c))

    def score(self, S: Same, place: Place, r: Same, c: Same) -> Same:
        return self.mask.score(S, self._whole(place), *self._at(place, r, c))

    def slope(self, S: Same, place: Place, r: Same, c: Same) -> Same | float | None:
        return self.mask.slope(S, self._whole(place), *self._at(place, r, c))

    def bias_terms(self, S: Same, place: Place, r: Same, c: Same) -> tuple:
        return self.mask.bias_terms(S, self._whole(place), *self._at(place, r, c))

    def _whole(self, place):
        return place._replace(N_q=self.N_q, N_k=self.N_k)

    def _at(self, place, r, c):
        """Return the positions in the whole of those in the part."""
        return _stands(self.rows, r - place.past) + self.N_k - self.N_q, _stands(self.cols, c)


def count(runs: Runs) -> int:
    """Return how many items runs have."""
    return sum(map(len, runs))


def positions(runs: Runs) -> np.ndarray:
    """Return the items of runs, an array of whole numbers."""
    return np.concatenate([np.arange(run.start, run.stop, run.step) for run in runs] or [np.arange(0)])


def line(runs: Runs) -> tuple[int, int, int, int] | None:
    """Return start, step, split, jump: item x is start + step * x, and from x = split on so much more.

    None for more than two pieces, or for other steps.
    """
    first = runs[0]
    if len(runs) == 1:
        return first.start, first.step, len(first), 0
    if len(runs) > 2 or runs[1].step != first.step:
        return None
    return first.start, first.step, len(first), runs[1].start - first.start - first.step * len(first)


def before(runs: Runs, x: np.ndarray) -> np.ndarray:
    """Return how many items of runs are smaller than x."""
    smaller = np.zeros_like(x)
    for run in runs:
        found = -((run.start - x) // run.step)
        smaller += np.minimum(np.maximum(found, 0), len(run))  # of few numbers np.clip takes thrice as long
    return smaller


def _placed(mask, N_q, N_k, rows, keys):
    """Return `placed` of arguments that were checked."""
    if type(mask) is Mask or isinstance(mask, Softcap):
        return mask  # it does not ask where anything stands
    if isinstance(mask, Both):
        first, second = (_placed(part, N_q, N_k, rows, keys) for part in mask.parts)
        return second if type(first) is Mask else first if type(second) is Mask else Both(first, second)
    if isinstance(mask, Window) and len(rows) == len(keys) == 1 and rows[0].step == keys[0].step:
        return _window(mask, N_k - N_q, rows[0], keys[0])
    return _plainest(Placed(mask, N_q, N_k, rows, keys), Place(count(rows), count(keys)))


def _window(mask, past, rows, keys):
    """Return a window in equal steps as one of the part, by floor division, without bounds that hide nothing."""
    apart, step, n_q, n_k = rows.start + past - keys.start, rows.step, len(rows), len(keys)
    left = n_k if mask.left is None else (mask.left - apart) // step + n_k - n_q
    right = n_q if mask.right is None else (mask.right + apart) // step - n_k + n_q
    if left >= n_k - 1 and right >= n_q - 1:
        return Mask()
    return Window(None if left >= n_k - 1 else left, None if right >= n_q - 1 else right)


def _plainest(part, place):
    """Return Mask() or causal() if `part` sees the same; else the part."""
    if part.changes_scores or part.asks_batch or part.asks_head:
        return part
    if all_see_all(part, place):
        return Mask()
    keys, causal = part.keys(place), Window(None, 0)
    if keys is None or keys[0].any() or not np.array_equal(keys[1], causal.keys(place)[1]):
        return part
    return causal


def all_see_all(mask: Mask, place: Place) -> bool:
    """Return whether all rows see all keys, by what the first and the last row see: False if it is not known."""
    if not place.N_q:
        return True
    keys = mask.bounds(place, np.array([place.past, place.N_k - 1]))
    return keys is not None and not keys[0][1] and keys[1][0] == place.N_k


def _stands(runs, x):
    """Return the items of runs by their numbers x, an array or a tensor: a sum, so that nothing is looked up."""
    start, step, begin = runs[0].start, runs[0].step, len(runs[0])
    item = start + step * x
    for run in runs[1:]:  # from x = begin on it is this one
        new = run.start - run.step * begin
        item = item + (x >= begin) * (new - start + (run.step - step) * x)
        start, step, begin = new, run.step, begin + len(run)
    return item


def _runs(name, given, N):
    """Return Runs; raise TypeError or ValueError unless they are among N items, and rise."""
    pieces = (given,) if isinstance(given, range) else given
    if not isinstance(pieces, list | tuple) or not all(isinstance(run, range) for run in pieces):
        raise TypeError(f"{name} is {given!r:.60}; pass a range, such as range(1, {N}, 4), or several in a tuple")
    runs, end = tuple(run for run in pieces if len(run)), 0
    for run in runs:
        if run.step < 1 or run.start < end or run[-1] >= N:
            raise ValueError(
                f"{name} is {given!r:.80}; pass ranges of positive steps within the {N} {name}, each of which "
                "begins after the end of the one before"
            )
        end = run[-1] + 1
    return runs or (range(0),)
