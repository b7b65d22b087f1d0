"""The arguments that an answer gets, and whether it changed them: they are the caller's."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flashlib.checks.engine.cases import Case
from flashlib.checks.engine.value_text import argument_names, show
from flashlib.softmax import State


def copied(x: Any) -> Any:
    """Return a copy of x. A border of nan surrounds an array of floats: what is read outside of it is nan."""
    if isinstance(x, list):
        return copy.deepcopy(x)
    if isinstance(x, State):
        return State(*map(copied, x))
    if not isinstance(x, np.ndarray) or x.ndim == 0 or x.dtype.kind != "f":
        return x.copy() if isinstance(x, np.ndarray) else x
    bordered = np.full([n + 2 for n in x.shape], np.nan, x.dtype)
    inside = bordered[(slice(1, -1),) * x.ndim]
    inside[...] = x
    return inside.view(type(x)) if type(x) is not np.ndarray else inside


def changed_argument(
    answer: Callable, case: Case, arguments: Sequence
) -> tuple[()] | tuple[str, tuple[str, str], tuple[str, str]]:
    """Return the name of an argument that the answer changed, and details about it, or ().

    case: has the arguments as they were; arguments: the copies that the answer got.
    """
    for name, before, after in zip(argument_names(answer, case.arguments), case.arguments, arguments, strict=True):
        if isinstance(before, np.ndarray) and before.tobytes() != after.tobytes():
            return name, ("before", show(before)), ("after", show(after))
        if isinstance(before, list) and before != after:
            return name, ("before", show(before)), ("after", show(after))
    return ()
