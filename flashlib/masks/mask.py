"""The base of all masks: what it answers, tile by tile, and how masks are combined."""

import copy
from typing import Any, NamedTuple

import numpy as np

from flashlib.inputs import check_counts
from flashlib.masks import new_kinds
from flashlib.types import Same

Interval = tuple[np.ndarray, np.ndarray]
"""The first key that each row sees and the one after its last."""


class Place(NamedTuple):
    """Where a mask is applied: the sizes, and the batch and head, numbers or, in torch, tensors of them."""

    N_q: int
    N_k: int
    b: Any = 0
    h: Any = 0

    @property
    def past(self) -> int:
        """The keys before the first query's own."""
        return self.N_k - self.N_q


class Mask:
    """The base class of masks. Used as it is, it hides nothing and leaves all scores as they are.

    To define a new kind of mask, derive from this class and override `sees`; every algorithm that accepts any mask
    then computes with it. Override `bounds` too if each row sees an interval of keys: tiles are then found without
    asking for each score. To change scores, override `score` together with `slope`, its derivative; the kernels
    change scores only as the masks of this package do, and refuse others. Override `check` to refuse sizes.
    Defining a class raises TypeError if some algorithm would ignore what it overrides: `bounds` without `sees`,
    `score` without `slope`, or a method of a kind that the kernels recognise, such as Window.

    batches, heads: how many sequences and heads the mask is made for; None for any. asks_batch, asks_head: whether
    `sees` may depend on place.b and place.h; True for a new kind unless it says otherwise. functions: the parts
    that may answer differently in the next call. of_call: whether the mask is for one call. biases: the tensors
    that changes of scores read, in their order; biased: whether there are any.
    """

    batches: int | None = None
    heads: int | None = None
    changes_scores = False
    asks_batch = asks_head = False
    functions: tuple = ()
    of_call = False
    biases: tuple = ()
    biased = False

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if not new_kinds.of_course(cls):
            new_kinds.complete(cls, Mask)

    def __repr__(self):
        return f"{type(self).__name__}()"

    def __and__(self, other):
        return Both(check_mask(self), check_mask(other))

    def __or__(self, other):
        return Either(check_mask(self), check_mask(other))

    def anew(self) -> "Mask":
        """Return the same mask as another object, for which nothing is kept yet; its functions are the same."""
        if not self.functions:
            return self
        mask = copy.copy(self)
        object.__setattr__(mask, "of_call", True)  # a dataclass may be frozen
        if isinstance(mask, Both | Either):
            mask.parts = tuple(part.anew() for part in mask.parts)
        return mask

    def looked_up(self) -> tuple | None:
        """Return what the mask's answers depend on besides their arguments; None if that is not known."""
        return None

    def without_kernel(self) -> "Mask":
        """Return the mask as a union asks it, without a kernel."""
        return self

    def on(self, N_q: int, N_k: int) -> "Tiles":
        """Return the mask for one head of N_q queries and N_k keys.

        Raises ValueError if it does not fit them, TypeError or ValueError unless both are whole numbers from 0.
        """
        check_counts(N_q=N_q, N_k=N_k)
        for name, count in (("heads", self.heads), ("sequences", self.batches)):
            if count not in (None, 1):
                raise ValueError(
                    f"the mask is made for {count} {name}, and this is one head of one sequence: pass the part "
                    "that belongs to it, e.g. alibi(slopes[h]) or documents(ids[b])"
                )
        return Tiles(self, Place(int(N_q), int(N_k)))

    def check(self, place: Place) -> None:
        """Raise ValueError if the mask does not fit these sizes."""

    def keys(self, place: Place) -> Interval | None:
        """Return the first key that each row sees and the one after its last, (N_q,) each, neither of which falls.

        None if what is seen is not such an interval.
        """
        return self.bounds(place, np.arange(place.N_q) + place.past)

    def bounds(self, place: Place, r: np.ndarray) -> Interval | None:
        """Return what `keys` does, for queries at the positions r alone, which rise."""
        if type(self).sees is not Mask.sees:
            return None
        return np.zeros(len(r), int), np.full(len(r), place.N_k)

    def sees(self, place: Place, r: Same, c: Same) -> Same:
        """Return whether queries at positions r see keys c: bool, of a shape that broadcasts to that of r and c.

        r, c: arrays or torch tensors of whole numbers, which broadcast.
        """
        return (r == r) & (c == c)

    def score(self, S: Same, place: Place, r: Same, c: Same) -> Same:
        """Return what becomes of scaled scores."""
        return S

    def slope(self, S: Same, place: Place, r: Same, c: Same) -> Same | float | None:
        """Return the derivative of `score` with respect to S; None if it is 1."""
        return None

    def bias_terms(self, S: Same, place: Place, r: Same, c: Same) -> tuple:
        """Return for each of the biases which entries scores read, an index, and the derivative by them."""
        return ()

    @property
    def known_by(self) -> tuple | None:
        """What is the same for all masks with which kernels do the same, whatever is in their biases.

        None: only this object is like it.
        """
        return None


class Both(Mask):
    """What two masks both see; scores are changed by the first, then by the second."""

    def __init__(self, first, second):
        self.parts = first, second
        self.asks_batch = first.asks_batch or second.asks_batch
        self.asks_head = first.asks_head or second.asks_head
        self.batches, self.heads = (_common(name, first, second) for name in ("batches", "heads"))
        self.changes_scores = first.changes_scores or second.changes_scores
        self.functions = first.functions + second.functions
        self.biases, self.biased = first.biases + second.biases, first.biased or second.biased

    def __repr__(self):
        return " & ".join(f"({part!r})" if isinstance(part, Either) else repr(part) for part in self.parts)

    def check(self, place: Place) -> None:
        for part in self.parts:
            part.check(place)

    def bounds(self, place: Place, r: np.ndarray) -> Interval | None:
        first, second = (part.bounds(place, r) for part in self.parts)
        if first is None or second is None:
            return None
        return inside(np.maximum(first[0], second[0]), np.minimum(first[1], second[1]), place)

    def sees(self, place: Place, r: Same, c: Same) -> Same:
        first, second = self.parts
        return first.sees(place, r, c) & second.sees(place, r, c)

    def score(self, S: Same, place: Place, r: Same, c: Same) -> Same:
        first, second = self.parts
        return second.score(first.score(S, place, r, c), place, r, c)

    def slope(self, S: Same, place: Place, r: Same, c: Same) -> Same | float | None:
        first, second = self.parts
        inner, outer = first.slope(S, place, r, c), second.slope(first.score(S, place, r, c), place, r, c)
        return inner if outer is None else outer if inner is None else inner * outer

    def bias_terms(self, S: Same, place: Place, r: Same, c: Same) -> tuple:
        first, second = self.parts
        between = first.score(S, place, r, c)
        inner, outer = first.bias_terms(S, place, r, c), second.slope(between, place, r, c)
        if outer is not None:
            inner = tuple((index, weight * outer) for index, weight in inner)
        return inner + second.bias_terms(between, place, r, c)

    @property
    def known_by(self) -> tuple | None:
        if not self.biased:
            return None
        known = tuple(part.known_by or _by_value(part) for part in self.parts)
        return None if None in known else known


class Either(Mask):
    """What one of two masks sees, or both."""

    def __init__(self, first, second):
        for part in (first, second):
            if part.changes_scores:
                raise ValueError(
                    f"{type(part).__name__.lower()} changes scores, and a union does not say whether those "
                    "that only the other mask sees are changed: unite masks first, then use &"
                )
        self.parts = first, second
        self.asks_batch = first.asks_batch or second.asks_batch
        self.asks_head = first.asks_head or second.asks_head
        self.batches, self.heads = (_common(name, first, second) for name in ("batches", "heads"))
        self.functions = tuple(part.without_kernel() for part in first.functions + second.functions)

    def __repr__(self):
        return " | ".join(map(repr, self.parts))

    def check(self, place: Place) -> None:
        for part in self.parts:
            part.check(place)

    def bounds(self, place: Place, r: np.ndarray) -> Interval | None:
        return None

    def sees(self, place: Place, r: Same, c: Same) -> Same:
        first, second = self.parts
        return first.sees(place, r, c) | second.sees(place, r, c)


class Repeated(Mask):
    """A mask for B sequences, repeated for `times` batches of B, one after the other."""

    asks_batch = True

    def __init__(self, mask, B, times):
        self.mask, self.B, self.batches, self.heads = mask, B, B * times, mask.heads
        self.asks_head, self.functions = mask.asks_head, tuple(part.without_kernel() for part in mask.functions)

    def __repr__(self):
        return f"<{self.mask!r}, {self.batches // max(self.B, 1)} times>"

    def check(self, place: Place) -> None:
        self.mask.check(place)

    def bounds(self, place: Place, r: np.ndarray) -> Interval | None:
        return self.mask.bounds(place._replace(b=place.b % self.B), r)

    def sees(self, place: Place, r: Same, c: Same) -> Same:
        return self.mask.sees(place._replace(b=place.b % self.B), r, c)


def repeated(mask: Mask, B: int, times: int) -> Mask:
    """Return a mask for B sequences as one for `times` batches of them, one after the other."""
    if isinstance(mask, Both):
        return Both(*(repeated(part, B, times) for part in mask.parts))
    return Repeated(mask, B, times) if mask.asks_batch and not mask.changes_scores else mask


class Tiles:
    """A mask for one head, asked tile by tile: rows and cols are slices of queries and keys.

    all: the rows and cols of all scores. keys: what each row sees, as `Mask.keys` gives it. gaps: whether a block
    of rows may see no interval, as in a part of a mask, where a row may see none of the keys in the midst.
    """

    def __init__(self, mask, place):
        mask.check(place)
        self.mask, self.place = mask, place
        self.all = slice(0, place.N_q), slice(0, place.N_k)
        self.keys = mask.keys(place)
        self.gaps = self.keys is not None and _gaps(*self.keys, place.N_k)

    def hidden(self, rows: slice, cols: slice) -> bool:
        """Return whether no score of a tile is seen."""
        if self.keys is None or rows.start == rows.stop:
            return not self.seen(rows, cols).any()
        first, end = self.keys
        if cols.start >= end[rows.stop - 1] or cols.stop <= first[rows.start]:
            return True
        return self.gaps and not (np.maximum(first[rows], cols.start) < np.minimum(end[rows], cols.stop)).any()

    def cut(self, rows: slice, cols: slice) -> bool:
        """Return whether some score of a tile is not seen."""
        if self.keys is None or rows.start == rows.stop:
            return not self.seen(rows, cols).all()
        first, end = self.keys
        return cols.start < first[rows.stop - 1] or cols.stop > end[rows.start]

    def seen(self, rows: slice, cols: slice) -> np.ndarray:
        """Return which scores of a tile are seen, (B_r, B_c) of bool."""
        r, c = self._positions(rows, cols)
        return np.broadcast_to(self.mask.sees(self.place, r, c), (r.size, c.size))

    def scores(self, S_ij: np.ndarray, rows: slice, cols: slice) -> np.ndarray:
        """Return the scaled scores of a tile, (B_r, B_c), as the mask changes them, -inf where not seen."""
        if self.mask.changes_scores:
            changed = self.mask.score(S_ij, self.place, *self._positions(rows, cols))
            S_ij = changed.astype(S_ij.dtype, copy=False)  # whole numbers and slopes would make it fp64
        if self.cut(rows, cols):
            S_ij = np.where(self.seen(rows, cols), S_ij, -np.inf)
        return S_ij

    def gradient(self, dS_ij: np.ndarray, S_ij: np.ndarray, rows: slice, cols: slice) -> np.ndarray:
        """Return the gradient by the scores before `scores`. dS_ij: the one after; S_ij: the scores before."""
        if not self.mask.changes_scores:
            return dS_ij
        slope = self.mask.slope(S_ij, self.place, *self._positions(rows, cols))
        return dS_ij if slope is None else (dS_ij * slope).astype(dS_ij.dtype, copy=False)

    def add_bias_gradients(
        self, sums: tuple[np.ndarray, ...], dS_ij: np.ndarray, S_ij: np.ndarray, rows: slice, cols: slice
    ) -> None:
        """Add to the gradients of the biases what a tile contributes. dS_ij: by the scores after `scores`."""
        terms = self.mask.bias_terms(S_ij, self.place, *self._positions(rows, cols))
        for dT, (index, weight) in zip(sums, terms, strict=True):
            *at, terms_of = np.broadcast_arrays(*index, dS_ij * weight)
            dT = dT.reshape((1,) * (len(index) - dT.ndim) + dT.shape)  # the same memory
            np.add.at(dT, tuple(at), terms_of)  # an entry may be read by many scores of a tile

    def _positions(self, rows, cols):
        r, c = np.ogrid[rows, cols]
        return r + self.place.past, c


def _by_value(mask):
    """Return a mask that equals all that are like it, None for one that equals only itself."""
    return None if mask.functions or type(mask).__hash__ is object.__hash__ else mask


def check_mask(mask: Mask) -> Mask:
    """Return the mask; raise TypeError if it is not a Mask."""
    if isinstance(mask, Mask):
        new_kinds.check_instance(mask)
        return mask
    if callable(mask) and str(getattr(mask, "__module__", "")).startswith("flashlib.masks"):
        name = mask.__name__
        call = "masks.causal()" if name == "causal" else f"masks.{name}(...)"
        raise TypeError(f"mask is {name} itself; call it: {call}")
    raise TypeError(
        f"mask is of type {type(mask).__name__}; pass one of flashlib.masks, e.g. window(128, 0), "
        "blocks(table, B_r, B_c) or from_function(lambda r, c: ...)"
    )


def _common(name, first, second):
    """Return how many batches or heads two masks tell apart; raise ValueError if they disagree.

    One, as with a single slope, is for all heads, and agrees with any number of them.
    """
    a, b = getattr(first, name), getattr(second, name)
    if a in (None, 1):
        return a if b is None else b
    if b not in (None, 1, a):
        what = "sequences" if name == "batches" else name
        raise ValueError(f"one mask is made for {a} {what} and the other for {b}; they must agree")
    return a


def _gaps(first, end, N_k):
    """Return whether a row begins beyond the end of the one before, or sees nothing in the midst of the keys."""
    nothing = (first == end) & (0 < first) & (first < N_k)
    return bool(nothing.any() or (first[1:] > end[:-1]).any())


def inside(first: np.ndarray, end: np.ndarray, place: Place) -> Interval:
    """Return the interval with its bounds among the keys; an empty one ends where it begins."""
    first = np.minimum(np.maximum(first, 0), place.N_k)  # of few numbers np.clip takes thrice as long
    return first, np.maximum(np.minimum(end, place.N_k), first)
