"""The sizes of a pass of attention, for which a mask is prepared."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from flashlib import masks


class PassSizes(NamedTuple):
    """The sizes, and the tiles that a pass computes. transposed: the kernel holds keys and streams rows."""

    B: int
    H: int
    N_q: int
    N_k: int
    B_R: int
    B_C: int
    device: Any
    transposed: bool = False

    @property
    def place(self) -> masks.Place:
        return masks.Place(self.N_q, self.N_k)

    def told_apart_by(self, hide: Iterable[masks.Mask]) -> "PassSizes":
        """Return the sizes with one batch, or one head, if these masks do not distinguish them."""
        B, H = any(part.asks_batch for part in hide), any(part.asks_head for part in hide)
        return self._replace(B=self.B if B else min(self.B, 1), H=self.H if H else min(self.H, 1))
