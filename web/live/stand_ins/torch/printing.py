"""How a tensor is printed: as torch prints it."""

import math

import numpy as np

from .dtypes import bool_, float32, int64

MANY, EDGE, WIDTH, DIGITS = 1000, 3, 80, 4  # elements that are not all shown; of these, how many on each side


def text(X):
    """Return the text of a tensor."""
    values = X._numbers()
    if not X._array.size:
        words = "[]" if X.ndim == 1 else f"[], size={tuple(X.shape)}"
    else:
        cut = X._array.size > MANY
        words = _rows(values, _format_of(_shown(values) if cut else values, X.ndim), len("tensor("), cut)
    usual = X.dtype in (float32, int64, bool_) and (X._array.size or X.dtype is float32)
    return f"tensor({words})" if usual else f"tensor({words}, dtype={X.dtype!r})"


def _shown(values):
    """Return the elements that are shown of many: a few at each end of each axis."""
    for axis, n in enumerate(values.shape):
        if n > 2 * EDGE:
            values = np.take(values, [*range(EDGE), *range(n - EDGE, n)], axis)
    return values


def _format_of(values, ndim):
    """Return a function that writes a number, each as wide as the widest."""
    write = _writer(values)
    width = max(len(write(x)) for x in values.reshape(-1).tolist()) if ndim else 0
    return lambda x: write(x).rjust(width)


def _writer(values):
    if values.dtype.kind != "f":
        return str
    finite = np.abs(values[np.isfinite(values) & (values != 0)].astype(np.float64))
    if not finite.size:
        return lambda x: f"{x:.0f}." if math.isfinite(x) else str(x)
    most, least = finite.max(), finite.min()
    whole = bool((finite == np.ceil(finite)).all())
    if most / least > 1000 or most > 1e8 or (least < 1e-4 and not whole):
        return lambda x: f"{x:.{DIGITS}e}"
    if whole:
        return lambda x: f"{x:.0f}." if math.isfinite(x) else str(x)
    return lambda x: f"{x:.{DIGITS}f}"


def _rows(values, write, indent, cut):
    """Return the text of an array in brackets, line by line."""
    if not values.ndim:
        return write(values.item())
    n = len(values)
    parts = [*range(EDGE), None, *range(n - EDGE, n)] if cut and n > 2 * EDGE else range(n)
    if values.ndim == 1:
        words = ["..." if k is None else write(values[k].item()) for k in parts]
        width = max((len(one) for one in words if one != "..."), default=1) + 2
        each = max(1, (WIDTH - indent) // width)
        lines = [", ".join(words[k : k + each]) for k in range(0, len(words), each)]
        return "[" + f",\n{' ' * (indent + 1)}".join(lines) + "]"
    rows = ["..." if k is None else _rows(values[k], write, indent + 1, cut) for k in parts]
    return "[" + ("," + "\n" * (values.ndim - 1) + " " * (indent + 1)).join(rows) + "]"
