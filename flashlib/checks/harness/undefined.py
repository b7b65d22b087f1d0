"""Lanes that a mask hides, of a load without other=: compiled they hold anything, interpreted 0.

An answer that is right with 0 in them runs once more, with what nobody can use: nan and infinity in turn, and of
whole numbers large ones of either sign. If that changes a result, it depends on what may be anything.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flashlib.checks.engine import Finding
from flashlib.checks.harness.watch import Watch, watched
from flashlib.language.phrases import or_list

NO_FLOATS = {
    "bf16": (0x7FC0, 0x7F80),
    "fp8e4nv": (0x7F, 0x7E),
    "fp8e5": (0x7F, 0x7C),
}  # bits of nan, of a large one


def depends(watch: Watch, results: Any, again: Callable[[], Any]) -> Finding | None:
    """Return the Finding that results depend on hidden lanes, or None.

    watch: of the launches that gave the results. again: launches the same and returns what that gives.
    """
    if not watch.undefined:
        return None
    try:
        with watched() as other:
            other.fill, other.most = anything, watch.accesses  # a loop may end where such a lane says
            same = _same(results, again()) and not other.outside
    except Exception:  # of whatever kind: with 0 in these lanes there was none
        same = False
    return None if same else Finding("undefined_lanes", names=or_list(sorted(watch.undefined)))


def anything(shape: tuple[int, ...], dtype: np.dtype, name: str) -> np.ndarray:
    """Return what hidden lanes may hold, in NumPy's dtype for Triton's of this name."""
    if dtype.kind == "f":
        values = np.array([np.nan, np.inf], dtype)
    elif name in NO_FLOATS:
        values = np.array(NO_FLOATS[name], dtype)
    elif dtype.kind == "b":
        values = np.array([True])
    else:  # the first ends loops: a bound may be hidden
        limits = np.iinfo(dtype)
        values = np.array([limits.min // 2 or limits.max, limits.max // 2], dtype)
    return np.resize(values, shape)


def copied(results: Any) -> Any:
    """Return results of which a later launch changes none."""
    if isinstance(results, tuple | list):
        return tuple(map(copied, results))
    return results.clone() if isinstance(results, torch.Tensor) else results


def _same(one, other):
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, torch.Tensor):
        return one.shape == other.shape and bool(((one == other) | (one.isnan() & other.isnan())).all())
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return True  # not what a kernel computed
