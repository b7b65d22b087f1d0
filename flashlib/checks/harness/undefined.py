"""Lanes that a mask hides, in a load without other=: undefined in compiled kernels, 0 in interpreted ones.

An answer that is right with 0 in them runs again, with useless values: nan and infinity in turn, or large whole
numbers of either sign. If that changes a result, the result depends on undefined values.
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
}  # bits of nan, and of infinity or the largest number


def depends(watch: Watch, results: Any, again: Callable[[], Any]) -> Finding | None:
    """Return a Finding if results depend on hidden lanes, else None.

    watch: of the launches that gave the results. again: repeats the launches and returns the new results.
    """
    if not watch.undefined:
        return None
    try:
        with watched() as other:
            other.fill, other.most = anything, watch.accesses  # the bound of a loop may come from such a lane
            same = _same(results, again()) and not other.outside
    except Exception:  # of any kind: with 0 in these lanes nothing was raised
        same = False
    return None if same else Finding("undefined_lanes", names=or_list(sorted(watch.undefined)))


def anything(shape: tuple[int, ...], dtype: np.dtype, name: str) -> np.ndarray:
    """Return possible values of hidden lanes; dtype: NumPy's for the Triton dtype of this name."""
    if dtype.kind == "f":
        values = np.array([np.nan, np.inf], dtype)
    elif name in NO_FLOATS:
        values = np.array(NO_FLOATS[name], dtype)
    elif dtype.kind == "b":
        values = np.array([True])
    else:  # the first value ends loops: a hidden lane may be a bound
        limits = np.iinfo(dtype)
        values = np.array([limits.min // 2 or limits.max, limits.max // 2], dtype)
    return np.resize(values, shape)


def copied(results: Any) -> Any:
    """Return a copy of results, which later launches do not change."""
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
