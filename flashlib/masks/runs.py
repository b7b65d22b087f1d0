"""Some items of a sequence, such as the rows or the keys of a part of attention, which need not be contiguous."""

from collections.abc import Sequence

import numpy as np

from flashlib.masks.for_kernels import Line
from flashlib.types import Same

Runs = tuple[range, ...]
"""Increasing items of a sequence, in pieces of equal steps: the rows 0, 1, 2, 9, 10 are range(3), range(9, 11)."""


def count(runs: Runs) -> int:
    """Return how many items runs have."""
    return sum(map(len, runs))


def positions(runs: Runs) -> np.ndarray:
    """Return the items of runs, an array of whole numbers."""
    return np.concatenate([np.arange(run.start, run.stop, run.step) for run in runs] or [np.arange(0)])


def line(runs: Runs) -> Line | None:
    """Return start, step, split, jump: item x is start + step * x, plus jump from x = split on.

    None for more than two pieces, or for unequal steps.
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
        smaller += np.minimum(np.maximum(found, 0), len(run))  # for few numbers np.clip takes three times as long
    return smaller


def item_at(runs: Runs, x: Same) -> Same:
    """Return items number x of runs, x being an array or a tensor: a sum, so that nothing is looked up."""
    start, step, begin = runs[0].start, runs[0].step, len(runs[0])
    item = start + step * x
    for run in runs[1:]:  # from x = begin on it is this one
        new = run.start - run.step * begin
        item = item + (x >= begin) * (new - start + (run.step - step) * x)
        start, step, begin = new, run.step, begin + len(run)
    return item


def checked_runs(name: str, given: range | Sequence[range], N: int) -> Runs:
    """Return Runs; raise TypeError or ValueError unless they are among N items, and increase."""
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
