"""The mask of a table with an entry for each score."""

from typing import Any

import numpy as np

from flashlib.masks.kinds import like
from flashlib.masks.mask import Mask
from flashlib.masks.place import Interval, Place
from flashlib.types import Array, Same


class Dense(Mask):
    """The scores that a table marks as seen: an array or a tensor of bool, (B, H, N_q, N_k), any axis may be 1."""

    def __init__(self, seen: Any) -> None:
        self.seen = _checked_table(seen)
        self.batches, self.heads = (n if n > 1 else None for n in self.seen.shape[:2])
        self.asks_batch, self.asks_head = self.batches is not None, self.heads is not None

    def __repr__(self):
        return f"dense(<{tuple(self.seen.shape)}>)"

    def check(self, place: Place) -> None:
        _, _, rows, keys = self.seen.shape
        for name, n, given in (("queries", rows, place.N_q), ("keys", keys, place.N_k)):
            if n not in (1, given):
                raise ValueError(
                    f"seen has {n} {name}, and there are {given}: pass a table that broadcasts to (B, H, N_q, N_k)"
                )

    def bounds(self, place: Place, r: np.ndarray) -> Interval | None:
        return None

    def sees(self, place: Place, r: Same, c: Same) -> Same:
        at = place.b, place.h, r - place.past, c
        index = tuple(0 if n == 1 else x for x, n in zip(at, self.seen.shape, strict=True))
        return like(self.seen, c)[index] & super().sees(place, r, c)


def _checked_table(seen: Any) -> Array:
    """Return a copy with four axes; raise TypeError or ValueError for anything but a table of bool."""
    if hasattr(seen, "detach"):
        table, dtype = seen.detach().clone(), str(seen.dtype).removeprefix("torch.")
    else:
        try:
            table = np.array(seen)
        except (TypeError, ValueError) as error:
            raise TypeError(f"seen is {seen!r:.60}; pass an array or a tensor of bool: {error}") from None
        dtype = str(table.dtype)
    if dtype != "bool":
        raise TypeError(f"seen has dtype {dtype}; pass bools: True where a score is seen, e.g. seen != 0")
    if table.ndim not in (2, 4):
        raise ValueError(
            f"seen has shape {tuple(table.shape)}; pass (N_q, N_k) or (B, H, N_q, N_k), with axes of 1 for what "
            "is the same for all"
        )
    return table.reshape((1,) * (4 - table.ndim) + tuple(table.shape))
