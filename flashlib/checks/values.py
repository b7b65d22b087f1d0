"""Values as numbers, to compare, and as text, for a verdict."""

import inspect

import numpy as np

SHOWN = 24  # numbers of an array that are printed in full


def as_numbers(x):
    """Return x as an array of fp64; raises TypeError or ValueError if it is no number and no array of numbers."""
    if hasattr(x, "detach"):  # a torch tensor
        x = x.detach().cpu().double().numpy()
    X = np.asarray(x)
    if X.dtype.kind not in "biuf":
        raise TypeError(f"{X.dtype} is no number")
    return X.astype(np.float64)


def argument_names(answer, arguments):
    """Return the names of the answer's parameters, or numbers if they do not fit the arguments."""
    try:
        parameters = inspect.signature(answer).parameters.values()
        names = [p.name for p in parameters][: len(arguments)]  # those after them have defaults
    except (TypeError, ValueError):
        names = []
    return names if len(names) == len(arguments) else [f"argument {n}" for n in range(1, len(arguments) + 1)]


def describe(answer, arguments):
    """Return the arguments of a case as text, one to a line."""
    names = argument_names(answer, arguments)
    return "\n".join(f"{name} = {show(x)}" for name, x in zip(names, arguments, strict=True))


def show_outputs(result, outputs):
    """Return a result as text, each output with its name if there are several."""
    if len(outputs) > 1 and isinstance(result, tuple | list) and len(result) == len(outputs):
        return "\n".join(f"{name} = {show(x)}" for name, x in zip(outputs, result, strict=True))
    return show(result)


def show(x):
    """Return x as text, to four digits; of a large array the shape and the first numbers."""
    if isinstance(x, type):
        return x.__name__
    if isinstance(x, bool | int | str | set | dict) or x is None:
        return repr(x)
    if isinstance(x, list) and len(x) <= SHOWN and all(type(n) is int for n in x):
        return repr(x)
    if hasattr(x, "_fields") and hasattr(x, "m"):  # a State
        return ", ".join(f"{name} = {show(value)}" for name, value in x._asdict().items())
    try:
        if not isinstance(x, np.ndarray | np.generic | float | list) and not hasattr(x, "detach"):
            raise TypeError("no array")
        X = as_numbers(x)
    except (TypeError, ValueError):
        return repr(x) if len(repr(x)) < 200 else f"{repr(x)[:200]} ..."
    if X.ndim == 0:
        return np.array2string(X, precision=4) if abs(X) < 1e5 or not np.isfinite(X) else f"{X:.9g}"
    text = np.array2string(X, precision=4, suppress_small=np.abs(X[np.isfinite(X)]).max(initial=0) < 1e4)
    if X.size <= SHOWN:
        return " ".join(text.split()) if X.ndim > 1 and X.size <= 8 else text
    first = np.array2string(X.ravel()[:4], precision=4).rstrip("]")
    return f"shape {X.shape}, {first} ...]"


def describe_value(x):
    """Return what kind of thing x is, in a few words."""
    if isinstance(x, np.ndarray):
        return f"an array of shape {x.shape} and dtype {x.dtype}"
    if isinstance(x, bool | int | float | np.generic):
        return f"the number {show(x)}"
    if isinstance(x, tuple | list):
        return f"a {type(x).__name__} of {len(x)}"
    return f"a {type(x).__name__}"
