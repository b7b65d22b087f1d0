"""Recognise transformers' mask functions as a window around a query, and documents.

A mask function says of each score whether it is seen. A window instead allows whole tiles to be skipped, without a
call for each score. Only functions of `transformers.masking_utils` are recognised, by their names and closure
variables, and only if that module's own examples agree with what is read from them. All others are called for
every score.
"""

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import NamedTuple

import torch
from transformers import masking_utils

FAR = 2**30  # no bound


class Pattern(NamedTuple):
    """A query at q sees keys k from q - left to q + right, in its own document if there are ids, (B, N)."""

    left: int = FAR
    right: int = FAR
    ids: torch.Tensor | None = None

    def both(self, other: "Pattern") -> "Pattern | None":
        """Return what both see; None if both have ids."""
        if self.ids is not None and other.ids is not None:
            return None
        ids = other.ids if self.ids is None else self.ids
        return Pattern(min(self.left, other.left), min(self.right, other.right), ids)

    def sees(self, b: int, q: int, k: int) -> bool:
        """Return whether the query at q sees the key at k."""
        same = self.ids is None or bool(self.ids[b, q] == self.ids[b, k])
        return same and q - self.left <= k <= q + self.right


def recognised(function: Callable) -> Pattern | None:
    """Return the pattern of a mask function; None if it is not recognised."""
    return _read(function) if _agree() else None


def _read(function):
    if getattr(function, "__module__", None) != masking_utils.__name__:
        return None
    reader = READERS.get(function.__qualname__.partition(".<locals>")[0])
    if reader is None:
        return None
    try:
        return reader(**inspect.getclosurevars(function).nonlocals)
    except TypeError:  # it reads other variables than it did
        return None


def _and(mask_functions):
    packed = [_closed_over(f, "packed_sequence_mask") for f in mask_functions]
    ids = next((ids for ids in packed if ids is not None), None)
    found = Pattern()
    for function in mask_functions:
        own = _closed_over(function, "position_ids")
        if own is not None:  # positions within documents: distances within a document are the same
            pattern = _remapped(function, own, ids)
        else:
            pattern = _read(function)
        found = None if found is None or pattern is None else found.both(pattern)
    return found


def _remapped(function, positions, ids):
    if ids is None or not torch.equal((positions.diff(dim=-1) != 1).cumsum(-1), ids[:, 1:] - ids[:, :1]):
        return None
    pattern = _read(_closed_over(function, "mask_function"))
    return None if pattern is None or pattern.ids is not None else pattern


def _closed_over(function, name):
    """Return the value of this closure variable of a transformers mask function, or None."""
    if not inspect.isfunction(function) or function.__module__ != masking_utils.__name__:
        return None
    return inspect.getclosurevars(function).nonlocals.get(name)


READERS = {
    "causal_mask_function": lambda: Pattern(right=0),
    "bidirectional_mask_function": Pattern,
    "sliding_window_overlay": lambda sliding_window: Pattern(left=sliding_window - 1),
    "sliding_window_bidirectional_overlay": lambda sliding_window: Pattern(sliding_window, sliding_window),
    "packed_sequence_mask_function": lambda packed_sequence_mask: Pattern(ids=packed_sequence_mask),
    "and_masks": _and,
}


@functools.cache
def _agree() -> bool:
    """Return whether the examples are recognised at all, and as patterns that see what they see."""
    try:
        agree = all(map(_agrees, _samples()))
    except Exception:  # whatever another version raises
        agree = False
    if not agree:
        warnings.warn(
            "the masks of this version of transformers are not those that flashlib knows: every score is asked "
            "for, and no tile is skipped",
            stacklevel=2,
        )
    return agree


def _samples():
    m, positions = masking_utils, torch.tensor([[0, 1, 2, 0, 1, 0, 1, 2, 3]])
    ids = m.find_packed_sequence_indices(positions)
    yield m.causal_mask_function
    yield m.bidirectional_mask_function
    for function in (m.causal_mask_function, m.sliding_window_causal_mask_function(3)):
        packed = m.packed_sequence_mask_function(ids)
        yield m.and_masks(m.remap_positions_for_packed_sequence(function, positions), packed)
    yield m.sliding_window_causal_mask_function(3)
    yield m.sliding_window_bidirectional_mask_function(2)


def _agrees(function):
    pattern, numbers = _read(function), torch.arange(9)
    seen = function(torch.zeros((), dtype=int), torch.zeros((), dtype=int), numbers[:, None], numbers)
    return pattern is not None and seen.expand(9, 9).tolist() == [
        [pattern.sees(0, q, k) for k in range(9)] for q in range(9)
    ]
