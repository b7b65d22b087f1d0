"""What each rank computes with the keys of each other: the hops of a ring, decided before anything runs.

A mask says it, asked where the rows and keys stand. A hop that sees nothing is skipped. Of the others only the
rows that see a key, and the keys that are seen, are computed: under a causal mask and zigzag, all rows with half
of an earlier rank's keys, or half of the rows with all of a later one's, and no mask at all.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flashlib.masks import Both, Mask, Place, check_mask, placed
from flashlib.masks.parts import Runs, count
from flashlib.ring import layouts

ASKED = 256  # rows at a time, where no interval says what they see


class Hop(NamedTuple):
    """What a rank computes with another's keys: rows of its own, keys of the other, and the mask for these."""

    rows: slice
    keys: slice
    mask: Mask


class Plan(NamedTuple):
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


def plan(mask: Mask, N_q: int, N_k: int, P: int, layout: str, *, ask: bool = True) -> Plan:
    """Return the Plan of an attention of N_q queries and N_k keys under a mask, over P ranks.

    mask: as `masks.combined` returns it; for several sequences or heads, what one of them sees is computed.
    ask: see `hop`. Raises TypeError or ValueError for sizes, a mask or a layout that do not fit.
    """
    layouts.check_cut(P, layout)
    rows, keys = (tuple(layouts.runs(N, P, r, layout) for r in range(P)) for N in (N_q, N_k))
    hops = tuple(tuple(hop(mask, N_q, N_k, own, theirs, ask=ask) for theirs in keys) for own in rows)
    last = tuple(max((h for h in range(P) if hops[(s + h) % P][s]), default=0) for s in range(P))
    return Plan(N_q, N_k, layout, rows, keys, hops, last)


def hop(mask: Mask, N_q: int, N_k: int, rows: Runs, keys: Runs, *, ask: bool = True) -> Hop | None:
    """Return what is computed of rows of Q with keys, as `placed` takes both; None if nothing is seen.

    ask: whether functions, tables and unions are asked for each score if a hop that intervals do not hide can be
    skipped. Without, it is computed: right too, and every rank decides alike if functions take tensors alone.
    """
    part, n_q, n_k = placed(check_mask(mask), N_q, N_k, rows, keys), count(rows), count(keys)
    some_rows, some_keys = _crop(part, n_q, n_k)
    if some_rows.start == some_rows.stop or some_keys.start == some_keys.stop:
        return None
    if ask and not (part.asks_head or part.asks_batch) and not _sees_any(part.on(n_q, n_k), n_q, n_k):
        return None
    return Hop(some_rows, some_keys, placed(mask, N_q, N_k, sliced(rows, some_rows), sliced(keys, some_keys)))


def sliced(runs: Runs, items: slice) -> Runs:
    """Return the items of runs from items.start to items.stop, counted from 0."""
    found, at = [], 0
    for run in runs:
        found.append(run[max(items.start - at, 0) : max(items.stop - at, 0)])
        at += len(run)
    return tuple(run for run in found if run)


def _crop(part, n_q, n_k):
    """Return slices of the rows that may see a key and of the keys that may be seen."""
    places = [Place(n_q, n_k, b) for b in range(part.batches or 1)]
    found = [np.array(_crop_of(part, place)) for place in places]
    lows, highs = np.array(found)[..., 0].min(axis=0), np.array(found)[..., 1].max(axis=0)
    return tuple(slice(int(low), int(max(low, high))) for low, high in zip(lows, highs, strict=True))


def _crop_of(part, place):
    """Return from and to of rows, and of keys, by those parts of a & that see intervals."""
    first, end = np.zeros(place.N_q, int), np.full(place.N_q, place.N_k)
    for one in _parts(part):
        keys = one.keys(place)
        if keys is not None:
            first, end = np.maximum(first, keys[0]), np.minimum(end, keys[1])
    some = np.flatnonzero(first < end)
    if not len(some):
        return (place.N_q, 0), (place.N_k, 0)
    return (some[0], some[-1] + 1), (first[some].min(), end[some].max())


def _parts(mask) -> Iterator[Mask]:
    if isinstance(mask, Both):
        for part in mask.parts:
            yield from _parts(part)
    else:
        yield mask


def _sees_any(tiles, n_q, n_k):
    blocks = (slice(start, min(start + ASKED, n_q)) for start in range(0, n_q, ASKED))
    return not all(tiles.hidden(rows, slice(0, n_k)) for rows in blocks)
