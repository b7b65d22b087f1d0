"""The mask of some heads: a rank that computes only these counts them from 0."""

import functools

from flashlib.masks import Mask, some_heads

KEPT = 256  # parts; a part holds its mask, so that those of masks that are made at each step must go


def part(mask: Mask, start: int, stop: int) -> Mask:
    """Return the mask of heads start to stop - 1: the same object each time, for plans are kept by masks."""
    if not mask.tells_heads_apart():
        return mask
    if start == stop:
        return Mask()  # nothing is computed
    return _kept(mask, start, stop)


_kept = functools.lru_cache(maxsize=KEPT)(some_heads)
