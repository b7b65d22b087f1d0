"""What each rank computes with the keys of each other: the hops of a ring, decided before anything runs.

A mask says it, asked where the rows and keys stand. A hop that sees nothing is skipped. Of the others only the
rows that see a key, and the keys that are seen, are computed: under a causal mask and zigzag, all rows with half
of an earlier rank's keys, or half of the rows with all of a later one's, and no mask at all.
"""

from typing import NamedTuple

import numpy as np

from flashlib.masks import Mask, Place, Placed, check_mask, placed
from flashlib.masks.runs import Runs, count
from flashlib.ring import layouts

ASKED = 256  # rows at a time, where no interval says what they see


class Hop(NamedTuple):
    """What a rank computes with another's keys: rows of its own, keys of the other, and the mask for these."""

    rows: slice
    keys: slice
    mask: Mask


class RingPlan(NamedTuple):
    """Who holds what, who needs whose keys, and how far these travel.

    rows, keys: Runs of each rank. hops: hops[r][s] is what rank r computes with the keys of s, None for nothing.
    last: for each rank, after how many hops round the ring its keys are needed no more.
    """

    N_q: int
    N_k: int
    layout: str
    rows: tuple[Runs, ...]
    keys: tuple[Runs, ...]
    hops: tuple[tuple[Hop | None, ...], ...]
    last: tuple[int, ...]

    @property
    def P(self) -> int:
        return len(self.rows)


def plan(mask: Mask, N_q: int, N_k: int, P: int, layout: str, *, ask: bool = True) -> RingPlan:
    """Return the RingPlan of an attention of N_q queries and N_k keys under a mask, over P ranks.

    mask: as `masks.combined` returns it; for several sequences or heads, what one of them sees is computed.
    ask: see `hop`. Raises TypeError or ValueError for sizes, a mask or a layout that do not fit.
    """
    layouts.check_cut(P, layout)
    rows, keys = (tuple(layouts.runs(N, P, r, layout) for r in range(P)) for N in (N_q, N_k))
    hops = tuple(tuple(hop(mask, N_q, N_k, own, theirs, ask=ask) for theirs in keys) for own in rows)
    last = tuple(max((h for h in range(P) if hops[(s + h) % P][s]), default=0) for s in range(P))
    return RingPlan(N_q, N_k, layout, rows, keys, hops, last)


def hop(mask: Mask, N_q: int, N_k: int, rows: Runs, keys: Runs, *, ask: bool = True) -> Hop | None:
    """Return what is computed of rows of Q with keys, as `placed` takes both; None if nothing is seen.

    ask: whether functions, tables and unions are asked for each score if a hop that intervals do not hide can be
    skipped. Without, it is computed: right too, and every rank decides alike if functions take tensors alone.
    """
    found = _crop(check_mask(mask), N_q, N_k, rows, keys)
    if found is None:
        return None
    some_rows, some_keys = found
    part = placed(mask, N_q, N_k, sliced(rows, some_rows), sliced(keys, some_keys))
    n_q, n_k = (part_of.stop - part_of.start for part_of in found)
    if ask and not (part.asks_head or part.asks_batch) and not _sees_any(part, n_q, n_k):
        return None
    return Hop(some_rows, some_keys, part)


def sliced(runs: Runs, items: slice) -> Runs:
    """Return the items of runs from items.start to items.stop, counted from 0."""
    found, at = [], 0
    for run in runs:
        found.append(run[max(items.start - at, 0) : max(items.stop - at, 0)])
        at += len(run)
    return tuple(run for run in found if run)


def _crop(mask, N_q, N_k, rows, keys):
    """Return slices of the rows that may see a key and of the keys that may be seen; None if there are none.

    Each run of rows is asked with each run of keys, which takes no time: only where such a pair is cut every row
    is asked.
    """
    kinds = np.array([[_kind(mask, N_q, N_k, own, theirs) for theirs in keys] for own in rows])
    if not kinds.size or (kinds == HIDDEN).all():
        return None
    a, b = (slice(at.min(), at.max() + 1) for at in np.nonzero(kinds != HIDDEN))
    if (kinds[a, b] == WHOLE).all():
        return _span(rows, a), _span(keys, b)
    if len(rows) == len(keys) == 1:
        band = placed(mask, N_q, N_k, rows, keys).band()
        if band is not None and not band.prefix:
            return _crop_of_band(band, count(rows), count(keys))
    return _crop_of_rows(mask, N_q, N_k, rows, keys)


HIDDEN, WHOLE, CUT = range(3)


def _kind(mask, N_q, N_k, rows, keys):
    """Return what is known of one run of rows with one of keys, from its first and last row."""
    n_q, n_k, kind = len(rows), len(keys), WHOLE
    for one in mask.conjuncts():
        for b in range(one.batches or 1):
            part, place = Placed(one, N_q, N_k, (rows,), (keys,)), Place(n_q, n_k, b)
            bounds = part.bounds(place, np.array([place.past, n_k - 1]))
            if bounds is not None and (one.batches or 1) == 1 and bounds[0][0] >= bounds[1][1]:
                return HIDDEN
            if bounds is None or bounds[0][1] or bounds[1][0] < n_k:
                kind = CUT
    return kind


def _span(runs, some):
    """Return which items some of the runs are."""
    ends = np.cumsum([0, *map(len, runs)])
    return slice(int(ends[some.start]), int(ends[some.stop]))


def _crop_of_band(band, n_q, n_k):
    """Return the crop of a band without a prefix, of n_q queries and n_k keys, in closed form."""
    past = n_k - n_q
    left, right = (n_q + n_k if n is None else n for n in (band.left, band.right))
    low, high = max(past, -right), min(n_k - 1, n_k - 1 + left)  # positions of the first and last row that sees
    if low > high or left + right < 0:
        return None
    return slice(low - past, high - past + 1), slice(max(low - left, 0), min(high + right + 1, n_k))


def _crop_of_rows(mask, N_q, N_k, rows, keys):
    """Return the crop by what each row sees, of those parts of a & that see intervals; of any sequence."""
    found = []
    for b in range(mask.batches or 1):
        place = Place(count(rows), count(keys), b)
        first, end = np.zeros(place.N_q, int), np.full(place.N_q, place.N_k)
        for one in mask.conjuncts():
            bounds = Placed(one, N_q, N_k, rows, keys).keys(place)
            if bounds is not None:
                first, end = np.maximum(first, bounds[0]), np.minimum(end, bounds[1])
        some = np.flatnonzero(first < end)
        if len(some):
            found.append((some[0], some[-1] + 1, first[some].min(), end[some].max()))
    if not found:
        return None
    at = np.array(found)
    return slice(int(at[:, 0].min()), int(at[:, 1].max())), slice(int(at[:, 2].min()), int(at[:, 3].max()))


def _sees_any(part, n_q, n_k):
    """Return whether some score is seen, where no interval says so."""
    if all(one.bounds(Place(n_q, n_k), np.array([n_k - n_q])) is not None for one in part.conjuncts()):
        return True
    tiles = part.on(n_q, n_k)
    blocks = (slice(start, min(start + ASKED, n_q)) for start in range(0, n_q, ASKED))
    return not all(tiles.hidden(rows, slice(0, n_k)) for rows in blocks)
