"""The base class of all masks, and how masks are combined."""

import functools
from collections.abc import Iterable

import numpy as np

from flashlib.inputs import check_counts
from flashlib.masks import new_kinds
from flashlib.masks.for_kernels import Band, BlockTable, DeviceChange, DeviceTest
from flashlib.masks.place import Interval, Place, inside
from flashlib.masks.runs import Runs
from flashlib.masks.tiles import Tiles
from flashlib.types import Same


class Mask:
    """The base class of masks. Used as it is, it hides nothing and leaves all scores as they are.

    To define a new kind of mask, derive from this class and override methods, in this order:

    sees              which scores are seen. Every algorithm that accepts any mask then computes with it
    bounds            the interval of keys that each row sees, if it is one: tiles need no test for each score
    check             to refuse sizes
    score, slope      to change scores, and the derivative; kernels refuse that without `device_change`
    device_test       how a kernel tests what is seen; without it torch does, and kernels load a bit for each score
    device_change     how a kernel changes scores
    band, block_table, document_ids, candidates
                      what is seen in a special form, for code that uses it; None if it does not have this form
    closed_part, some_heads
                      the mask of a part, or of some heads, as a mask of a known kind

    Defining a class raises TypeError if some algorithm would ignore what it overrides.

    batches, heads: how many sequences and heads the mask is made for; None for any. asks_batch, asks_head: whether
    `sees` may depend on place.b and place.h. asks_positions: whether `score` may depend on anything but S.
    may_change: whether results may differ in the next call, so that kernels evaluate the mask anew. All of these
    are True for a new kind unless it sets them. biases: the tensors that changes of scores read, in their order.
    biased: whether there are any.
    """

    batches: int | None = None
    heads: int | None = None
    changes_scores = False
    asks_batch = asks_head = False
    asks_positions = True
    may_change = False
    biases: tuple = ()
    biased = False

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if not new_kinds.in_package(cls):
            new_kinds.complete(cls, Mask)

    def __repr__(self):
        return f"{type(self).__name__}()"

    def __and__(self, other):
        return Both(check_mask(self), check_mask(other))

    def __or__(self, other):
        return Either(check_mask(self), check_mask(other))

    def on(self, N_q: int, N_k: int) -> Tiles:
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
        """Return the first key that each row sees and the one after its last, (N_q,) each, both non-decreasing.

        None if rows do not see such intervals.
        """
        return self.bounds(place, np.arange(place.N_q) + place.past)

    def bounds(self, place: Place, r: np.ndarray) -> Interval | None:
        """Return the same as `keys`, but only for queries at positions r, which increase."""
        if self.hides_scores():
            return None
        return np.zeros(len(r), int), np.full(len(r), place.N_k)

    def sees(self, place: Place, r: Same, c: Same) -> Same:
        """Return whether queries at positions r see keys c: bool, of a shape that broadcasts to that of r and c.

        r, c: arrays or torch tensors of whole numbers, which broadcast.
        """
        return (r == r) & (c == c)

    def score(self, S: Same, place: Place, r: Same, c: Same) -> Same:
        """Return scaled scores as the mask changes them."""
        return S

    def slope(self, S: Same, place: Place, r: Same, c: Same) -> Same | float | None:
        """Return the derivative of `score` with respect to S; None if it is 1."""
        return None

    def bias_terms(self, S: Same, place: Place, r: Same, c: Same) -> tuple:
        """Return, per bias, the index of the entries that scores read, and the derivative with respect to them."""
        return ()

    def conjuncts(self) -> "tuple[Mask, ...]":
        """Return the masks of which this is the intersection (&), in their order; none for a plain Mask."""
        return () if type(self) is Mask else (self,)

    def hides_scores(self) -> bool:
        """Return whether it may hide scores; masks that only change them do not."""
        return type(self).sees is not Mask.sees

    def device_test(self, place: Place) -> DeviceTest | None:
        """Return how kernels test what `sees` returns; None if they cannot."""
        return None

    def device_change(self, place: Place, H: int) -> DeviceChange:
        """Return how kernels change scores of H heads; raise TypeError or ValueError if no kernel can."""
        raise TypeError(
            f"no kernel changes scores as {type(self).__name__} does: pass masks.score(f, slope, kernel=...), "
            "with & if it hides some too"
        )

    def band(self) -> Band | None:
        """Return what is seen as a Band."""
        return None

    def block_table(self) -> BlockTable | None:
        """Return what is seen as a table of blocks."""
        return None

    def document_ids(self) -> np.ndarray | None:
        """Return an id for each token, (N_k,) or (B, N_k), if a query sees the keys of its own id."""
        return None

    def candidates(self) -> np.ndarray | None:
        """Return which of the last N_q keys, the candidates, each query sees, if all see every key before them.

        (N_q, N_q), or (B, N_q, N_q), of bool.
        """
        return None

    def closed_part(self, N_q: int, N_k: int, rows: Runs, keys: Runs) -> "Mask | None":
        """Return the mask of a part, see `masks.placed`, if it is one of a known kind."""
        return None

    def some_heads(self, start: int, stop: int) -> "Mask | None":
        """Return the mask of heads start to stop - 1, counted from 0, if it is one of a known kind."""
        return None

    def tells_heads_apart(self) -> bool:
        """Return whether heads may see different scores, or change them differently."""
        return self.asks_head or self.heads not in (None, 1) or self.changes_scores

    @property
    def known_by(self) -> tuple | None:
        """A key that is equal for masks with which kernels do the same, whatever the values of their biases.

        None: no other mask is equal to this one.
        """
        return None


class Both(Mask):
    """The scores that two masks both see; they are changed by the first, then by the second."""

    def __init__(self, first, second):
        self.parts = first, second
        self.asks_batch = first.asks_batch or second.asks_batch
        self.asks_head = first.asks_head or second.asks_head
        self.batches, self.heads = (_common(name, first, second) for name in ("batches", "heads"))
        self.changes_scores = first.changes_scores or second.changes_scores
        self.may_change = first.may_change or second.may_change
        self.biases, self.biased = first.biases + second.biases, first.biased or second.biased

    def __repr__(self):
        return " & ".join(f"({part!r})" if isinstance(part, Either) else repr(part) for part in self.parts)

    def conjuncts(self) -> tuple[Mask, ...]:
        return tuple(one for part in self.parts for one in part.conjuncts())

    def tells_heads_apart(self) -> bool:
        return any(part.tells_heads_apart() for part in self.parts)

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
    """The scores that at least one of two masks sees."""

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
        self.may_change = first.may_change or second.may_change

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


def intersection(parts: Iterable[Mask]) -> Mask:
    """Return the intersection of these masks, which change scores one after the other; Mask() for none."""
    parts = tuple(parts)
    return functools.reduce(Both, parts) if parts else Mask()


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
        "blocks(table, B_r, B_c), dense(seen) or from_function(lambda r, c: ...)"
    )


def _by_value(mask):
    """Return a mask that compares by value, None for one that equals only itself."""
    return None if mask.may_change or type(mask).__hash__ is object.__hash__ else mask


def _common(name, first, second):
    """Return how many batches or heads two masks distinguish; raise ValueError if they disagree.

    One, as with a single slope, stands for all heads, and agrees with any number of them.
    """
    a, b = getattr(first, name), getattr(second, name)
    if a in (None, 1):
        return a if b is None else b
    if b not in (None, 1, a):
        what = "sequences" if name == "batches" else name
        raise ValueError(f"one mask is made for {a} {what} and the other for {b}; they must agree")
    return a
