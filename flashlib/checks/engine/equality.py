"""Values as arrays of numbers, and whether two of them are equal."""

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

LARGEST = 2**24  # numbers in the longest range that becomes an array


def as_array(x: Any) -> np.ndarray:
    """Return x as an array, with its dtype; raises TypeError or ValueError if it does not hold numbers."""
    if hasattr(x, "detach"):  # a torch tensor
        x = x.detach().cpu()
        x = (x.double() if x.is_floating_point() else x).numpy()  # NumPy has no bf16
    if isinstance(x, str | bytes):
        raise TypeError("a string is not a number")  # NumPy would copy it, even if it is long
    if isinstance(x, range) and x[LARGEST:]:
        raise ValueError("a range that is too long for an array")
    try:
        X = np.asarray(x)
        if X.dtype == object and all(isinstance(n, Real | Decimal) for n in X.flat):  # such as Fraction
            X = X.astype(np.float64)
    except (OverflowError, RecursionError, MemoryError) as error:
        raise ValueError(f"not an array of numbers: {error}") from None
    if X.dtype.kind not in "biuf":
        raise TypeError(f"{X.dtype} is not a number")
    return X


def as_numbers(x: Any) -> np.ndarray:
    """Return x as an array of fp64; raises TypeError or ValueError if it does not hold numbers."""
    return as_array(x).astype(np.float64)


def same(given: object, expected: object, tolerance: float, size: float = 0.0) -> bool:
    """Return whether two results are equal within the tolerance; nan equals nan, and infinities must be equal.

    tolerance: relative to the largest expected number, or to `size` if that is larger.
    """
    if isinstance(given, range) and isinstance(expected, range):  # of any length
        return given == expected
    try:
        x, y = as_array(given), as_array(expected)
    except (TypeError, ValueError):
        return type(given) is type(expected) and bool(given == expected)
    if x.shape != y.shape:
        return False
    x, y = x.astype(np.float64, copy=False), y.astype(np.float64, copy=False)
    finite = np.isfinite(y)
    whole = finite.all()  # the usual case, which takes a third of the work
    size = max(np.abs(y if whole else y[finite]).max(initial=0), size, 1e-300)
    with np.errstate(all="ignore"):
        close = np.abs(x - y) <= tolerance * size
    return bool((close if whole else np.where(finite, close, (x == y) | (np.isnan(x) & np.isnan(y)))).all())
