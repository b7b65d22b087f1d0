"""Values as numbers, to compare, and as text, for a verdict."""

import inspect
from collections.abc import Callable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from flashlib.learner.error_text import cut

SHOWN = 24  # numbers of an array that are printed in full
LONGEST_TEXT = 2000  # characters of what is no array
LARGEST = 2**24  # numbers of a range that an array is made of


def as_array(x: Any) -> np.ndarray:
    """Return x as an array of its own dtype; raises TypeError or ValueError if it holds no numbers."""
    if hasattr(x, "detach"):  # a torch tensor
        x = x.detach().cpu()
        x = (x.double() if x.is_floating_point() else x).numpy()  # NumPy has no bf16
    if isinstance(x, str | bytes):
        raise TypeError("a text is not a number")  # NumPy would copy it, however long it is
    if isinstance(x, range) and x[LARGEST:]:
        raise ValueError("a range that is too long for an array")
    try:
        X = np.asarray(x)
        if X.dtype == object and all(isinstance(n, Real | Decimal) for n in X.flat):  # exact ones, as of Fraction
            X = X.astype(np.float64)
    except (OverflowError, RecursionError, MemoryError) as error:
        raise ValueError(f"not an array of numbers: {error}") from None
    if X.dtype.kind not in "biuf":
        raise TypeError(f"{X.dtype} is not a number")
    return X


def as_numbers(x: Any) -> np.ndarray:
    """Return x as an array of fp64; raises TypeError or ValueError unless it is made of numbers."""
    return as_array(x).astype(np.float64)


def same(given: object, expected: object, tolerance: float, size: float = 0.0) -> bool:
    """Return whether two results are equal to the tolerance; nan equals nan here, and infinities must be equal.

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
    whole = finite.all()  # mostly, and then a third of the work does
    size = max(np.abs(y if whole else y[finite]).max(initial=0), size, 1e-300)
    with np.errstate(all="ignore"):
        close = np.abs(x - y) <= tolerance * size
    return bool((close if whole else np.where(finite, close, (x == y) | (np.isnan(x) & np.isnan(y)))).all())


def argument_names(answer: Callable, arguments: Sequence) -> list[str]:
    """Return the names of the answer's parameters, or numbers if they do not fit the arguments."""
    try:
        parameters = inspect.signature(answer).parameters.values()
        names = [p.name for p in parameters][: len(arguments)]  # those after them have defaults
    except (TypeError, ValueError):
        names = []
    return names if len(names) == len(arguments) else [f"argument {n}" for n in range(1, len(arguments) + 1)]


def describe(answer: Callable, arguments: Sequence, most: int = SHOWN) -> str:
    """Return the arguments of a case as text, one to a line; most: as `show` takes it."""
    names = argument_names(answer, arguments)
    return "\n".join(f"{name} = {show(x, most=most)}" for name, x in zip(names, arguments, strict=True))


def show_outputs(result: object, outputs: Sequence[str], digits: int = 4, most: int = SHOWN) -> str:
    """Return a result as text, each output with its name if there are several; digits, most: as in `show`."""
    if len(outputs) > 1 and isinstance(result, tuple | list) and len(result) == len(outputs):
        return "\n".join(f"{name} = {show(x, digits, most)}" for name, x in zip(outputs, result, strict=True))
    return show(result, digits, most)


def show_apart(expected: object, given: object, outputs: Sequence[str], most: int = SHOWN) -> list[str]:
    """Return both results as text, with more digits if they would look alike."""
    return told_apart(lambda x, digits: show_outputs(x, outputs, digits, most), expected, given)


def told_apart(text: Callable[[Any, int], str], expected: object, given: object) -> list[str]:
    """Return text(x, digits) of both, with as many digits as it takes for them to differ.

    If that does not help, as the numbers are the same, with their dtypes. Otherwise these are not what is wrong.
    """
    for digits in (4, 8, 12, 17):
        both = [text(x, digits) for x in (expected, given)]
        if both[0] != both[1]:
            return both
    kinds = [_dtypes(x) for x in (expected, given)]
    alike = kinds[0] == kinds[1] or not _agree(expected, given)
    kinds = ["", ""] if alike else [f", {kind}" if kind else "" for kind in kinds]
    return [
        text(x, 4) + kind for x, kind in zip((expected, given), kinds, strict=True)
    ]  # they may differ further on


def _agree(x, y):
    """Return whether both have the same numbers, but for what a dtype may round."""
    if isinstance(x, tuple | list):
        return isinstance(y, tuple | list) and len(x) == len(y) and all(map(_agree, x, y))
    try:
        X, Y = as_array(x), as_array(y)
    except (TypeError, ValueError):
        return True
    return X.shape == Y.shape and np.allclose(X, Y, rtol=0.01, equal_nan=True)


def _dtypes(x):
    """Return the dtype of an array, or those of several, as text."""
    if isinstance(x, tuple | list):
        return ", ".join(filter(None, map(_dtypes, x)))
    return str(getattr(x, "dtype", "")).removeprefix("torch.")


def show(x: Any, digits: int = 4, most: int = SHOWN) -> str:
    """Return x as text, to so many digits, whole numbers as they are; of a longer array than `most` its first."""
    if isinstance(x, type):
        return x.__name__
    if isinstance(x, bool | str | set | dict) or x is None:
        return _text(x)
    if isinstance(x, list) and len(x) <= SHOWN and all(type(n) is int for n in x):
        return _text(x)
    if isinstance(x, int):
        return _represented(x)
    if hasattr(x, "_fields") and hasattr(x, "m"):  # a State
        return (
            f"State({', '.join(f'{name} = {show(value, digits, most)}' for name, value in x._asdict().items())})"
        )
    try:
        if not isinstance(x, np.ndarray | np.generic | float | list) and not hasattr(x, "detach"):
            raise TypeError("no array")
        X = as_array(x)
    except (TypeError, ValueError):
        return _represented(x)
    if not X.size and X.ndim > 1:
        return f"shape {X.shape}, []"
    if X.size > most:
        return f"shape {X.shape}, {np.array2string(_plain(X.flat[:4]), precision=digits).rstrip(']')} ...]"
    X = _plain(X)
    if X.ndim == 0 and X.dtype.kind != "f":
        return str(X)
    if X.ndim == 0:
        small = abs(X) < 1e5 or not np.isfinite(X)
        return np.array2string(X, precision=digits) if small else f"{X:.{max(9, digits)}g}"
    largest = np.abs(X[np.isfinite(X)]).max(initial=0)
    text = np.array2string(X, precision=digits, suppress_small=1e-3 < largest < 1e4)
    return " ".join(text.split()) if X.ndim > 1 and X.size <= 8 else text


def _plain(X):
    """Return an array whose floats are fp64; whole numbers stay what they are."""
    return X.astype(np.float64) if X.dtype.kind == "f" else X


def describe_value(x: object) -> str:
    """Return what kind of thing x is, in a few words."""
    if isinstance(x, np.ndarray):
        return f"an array of shape {x.shape} and dtype {cut(str(x.dtype), 100)}"
    if isinstance(x, bool | int | float | np.generic):
        return f"the number {show(x)}"
    if isinstance(x, tuple | list):
        return f"a {type(x).__name__} of {len(x)}" if x else f"an empty {type(x).__name__}"
    return _type(x)


def _represented(x):
    """Return repr(x), cut."""
    text = _text(x)
    return text if len(text) < 200 else f"{text[:200]} ..."


def _text(x):
    """Return repr(x), cut if it is very long; its type, where that raises."""
    try:
        return cut(str(repr(x)), LONGEST_TEXT)
    except BaseException:  # SystemExit too
        return _type(x)


def _type(x):
    name = cut(type(x).__name__, 100)
    return f"an {name}" if name[:1] in "aeiouAEIOU" else f"a {name}"
