"""Values as text, for a verdict."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flashlib.checks.engine.equality import as_array
from flashlib.learner.error_text import cut

SHOWN = 24  # numbers in the largest array that is printed in full
LONGEST_TEXT = 2000  # characters of a value that is not an array


def argument_names(answer: Callable, arguments: Sequence) -> list[str]:
    """Return the names of the answer's parameters, or numbered names if they do not match the arguments."""
    try:
        parameters = inspect.signature(answer).parameters.values()
        names = [p.name for p in parameters][: len(arguments)]  # the remaining ones have defaults
    except (TypeError, ValueError):
        names = []
    return names if len(names) == len(arguments) else [f"argument {n}" for n in range(1, len(arguments) + 1)]


def describe(answer: Callable, arguments: Sequence, most: int = SHOWN) -> str:
    """Return the arguments of a case as text, one on each line; most: see `show`."""
    names = argument_names(answer, arguments)
    return "\n".join(f"{name} = {show(x, most=most)}" for name, x in zip(names, arguments, strict=True))


def show_outputs(result: object, outputs: Sequence[str], digits: int = 4, most: int = SHOWN) -> str:
    """Return a result as text, each output with its name if there are several; digits, most: see `show`."""
    if len(outputs) > 1 and isinstance(result, tuple | list) and len(result) == len(outputs):
        return "\n".join(f"{name} = {show(x, digits, most)}" for name, x in zip(outputs, result, strict=True))
    return show(result, digits, most)


def show_both(expected: object, given: object, outputs: Sequence[str], most: int = SHOWN) -> list[str]:
    """Return both results as text, with more digits if they would look the same."""
    return distinct_texts(lambda x, digits: show_outputs(x, outputs, digits, most), expected, given)


def distinct_texts(text: Callable[[Any, int], str], expected: object, given: object) -> list[str]:
    """Return text(x, digits) of both, with as many digits as it takes for the texts to differ.

    If they never do because the numbers are the same, the texts include the dtypes, unless these are the same too.
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
    ]  # they may differ in numbers that are not shown


def _agree(x, y):
    """Return whether both have the same numbers, up to the rounding of a dtype."""
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
    """Return x as text: floats to `digits` digits; of an array of more than `most` numbers only the first."""
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
            raise TypeError("not an array")
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
    """Return X with floats converted to fp64 and whole numbers unchanged."""
    return X.astype(np.float64) if X.dtype.kind == "f" else X


def describe_value(x: object) -> str:
    """Return a short description of x: its type, with its shape, value or length."""
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
    """Return repr(x), cut if it is very long, or the type of x if that raises."""
    try:
        return cut(str(repr(x)), LONGEST_TEXT)
    except BaseException:  # SystemExit too
        return _type(x)


def _type(x):
    name = cut(type(x).__name__, 100)
    return f"an {name}" if name[:1] in "aeiouAEIOU" else f"a {name}"
