"""A mask for speculative decoding: several continuations of one text, verified at once."""

import numpy as np

from flashlib.masks.kinds import array, like, without_one
from flashlib.masks.mask import Mask
from flashlib.masks.place import Interval, Place
from flashlib.types import Same


class Tree(Mask):
    """The keys before the candidates and, among the last N_q, a candidate's own key and its ancestors'.

    parents: (N_q,), or (B, N_q): the earlier candidate that each one continues; -1: the text itself.
    """

    def __init__(self, parents):
        self.parents = _checked_parents(parents)
        self.batches = None if self.parents.ndim == 1 else len(self.parents)
        self.asks_batch = self.batches is not None
        N = self.parents.shape[-1]
        self.ancestors = np.zeros((*self.parents.shape, N), bool)  # [..., i, k]: k is i, or an ancestor of i
        for own, parent in zip(self.ancestors.reshape(-1, N, N), np.atleast_2d(self.parents), strict=True):
            for i in range(N):
                own[i] = own[parent[i]] if parent[i] >= 0 else False
                own[i, i] = True

    def __repr__(self):
        if self.batches is None and self.parents.size <= 8:
            return f"tree({self.parents.tolist()})"
        n = self.parents.shape[-1]
        if self.batches is None:
            return f"tree(<{n} candidates>)"
        return f"tree(<{self.batches} sequences of {n} candidates>)"

    def check(self, place: Place) -> None:
        N = self.parents.shape[-1]
        if N != place.N_q or N > place.N_k:
            raise ValueError(
                f"parents has shape {self.parents.shape}, and there are {place.N_q} queries and {place.N_k} keys: "
                "pass a parent for each query; the last N_q keys are those of the same candidates"
            )

    def bounds(self, place: Place, r: np.ndarray) -> Interval | None:
        return None

    def sees(self, place: Place, r: Same, c: Same) -> Same:
        ancestors, last = like(self.ancestors, c), self.parents.shape[-1] - 1
        own, node = (r - place.past).clip(0, last), (c - place.past).clip(0, last)
        at = (own, node) if self.batches is None else (place.b, own, node)
        return (c < place.past) | ancestors[at]

    def candidates(self) -> np.ndarray | None:
        return self.ancestors


def _checked_parents(parents):
    parents = array("parents", parents, "whole numbers, (N_q,) or (B, N_q)")
    if parents.ndim not in (1, 2) or parents.dtype.kind not in "iu" or not parents.size:
        raise TypeError(
            f"parents has shape {parents.shape} and dtype {parents.dtype}; pass whole numbers, (N_q,) or "
            "(B, N_q): the candidate that each one continues, -1 for the text itself"
        )
    wrong = np.argwhere((parents < -1) | (parents >= np.arange(parents.shape[-1])))
    if len(wrong):
        at = tuple(map(int, wrong[0]))
        name = f"parents{list(at)}"
        raise ValueError(
            f"{name} is {parents[at]}; candidate {at[-1]} continues one of a smaller number, or -1, "
            "the text itself"
        )
    return without_one(parents)
