"""A row of scores, read and checked, and the scan of online softmax over it, for OnlineSoftmaxLab."""

from numbers import Real
from typing import Any

import numpy as np

from flashlib import softmax, tiled

MAX_N = 64
SCANNED = ("m_old", "m", "alpha", "l_old", "l")  # of each Step
ROWS = ("x", *SCANNED, "p", "kept", "error", "l_wrong", "error_wrong", "weight", "weight_wrong")
ACCEPTED = f"accepted are 1 to {MAX_N} numbers, finite or -inf, e.g. 1, 3, 2, -inf"


def examples() -> dict[str, np.ndarray]:
    """Return instructive rows, by name."""
    rng = np.random.default_rng(0)
    return {
        "increasing": np.arange(8.0),
        "decreasing": np.arange(8.0)[::-1],
        "random": rng.normal(scale=2, size=12).round(2),
        "large last": np.append(rng.normal(size=11).round(2), 6),
        "drifting": (np.linspace(-2, 6, MAX_N) + rng.normal(size=MAX_N)).round(2),
        "masked": np.where(np.arange(12) % 3 == 0, -np.inf, rng.normal(scale=2, size=12).round(2)),
    }


def check_row(x: object) -> np.ndarray:
    """Return x as a new fp64 array (N,); raise TypeError or ValueError unless it is a row that can be shown."""
    if not isinstance(x, list | tuple | np.ndarray):
        raise TypeError(f"x is a {type(x).__name__}; pass a list, a tuple or a NumPy array: {ACCEPTED}")
    try:
        row = np.array(x)
    except ValueError as error:  # lists of different lengths
        raise ValueError(f"x is not one row of numbers; {ACCEPTED}") from error
    if row.ndim != 1:
        raise ValueError(f"x has shape {row.shape}; expected one row, (N,): {ACCEPTED}")
    if not 1 <= len(row) <= MAX_N:
        raise ValueError(f"x has {len(row)} numbers; {ACCEPTED}")
    if row.dtype.kind not in "iuf":
        odd = (x_j for x_j in x if isinstance(x_j, bool) or not isinstance(x_j, Real))
        word = next((f"{x_j!r:.30}" for x_j in odd), "a number too large")
        raise TypeError(f"x has {word} in it, which is not an fp64 number; {ACCEPTED}")
    with np.errstate(over="ignore"):  # from a long double, which is then refused
        row = row.astype(np.float64)
    for j in np.flatnonzero(~(row < np.inf)):  # NaN too
        raise ValueError(f"number {j + 1} of x is {row[j]}; {ACCEPTED}")
    return row


def read(text: str) -> np.ndarray:
    """Return the numbers in a text, separated by commas or spaces, as a row (N,); raise ValueError otherwise."""
    words = text.replace("−", "-").replace("∞", "inf").replace(",", " ").split()
    if len(words) > MAX_N:
        raise ValueError(f"x has {len(words)} numbers; {ACCEPTED}")
    row = []
    for word in words:
        try:
            row.append(float(word))
        except ValueError:
            shown = word if len(word) <= 20 else f"{word[:20]}…"
            raise ValueError(f"“{shown}” is not a number; {ACCEPTED}") from None
    return check_row(row)


def write(row: np.ndarray) -> str:
    """Return a text that `read` turns into this row, bit for bit."""
    return ", ".join(repr(float(x_j)).removesuffix(".0") for x_j in row)


def scan(x: np.ndarray) -> dict[str, Any]:
    """Return what is known after each score of x (N,): arrays (N,) under the names in ROWS, and two more.

    p: exp(x_j - m), as it was added; kept: alpha * l_old; l_wrong: the sum of p without any rescale; error,
    error_wrong: of l and l_wrong, relative to the sum over the scores so far, computed at once. weight,
    weight_wrong: exp(x - m) / l with the last m and l. The two more are `terms` (N, N), whose row j has what each
    score contributes to l after score j, and `steps`, the Steps of `tiled.steps` from which all of this comes.
    """
    with np.errstate(over="ignore"):  # a difference beyond fp64 is -inf, and its exponential 0, as it should be
        trace = tiled.steps(np.ones((1, 1)), x[:, None], np.ones((len(x), 1)), B_r=1, B_c=1, scale=1.0)
        steps = list(trace)
        known = {name: np.array([getattr(step, name).item() for step in steps]) for name in SCANNED}
        known |= {"x": x, "p": np.array([step.P_ij.item() for step in steps])}
        known["kept"] = known["alpha"] * known["l_old"]
        known["l_wrong"] = np.cumsum(known["p"])
        whole = np.array([softmax.summarise(x[: j + 1]).l for j in range(len(x))])
        m = known["m"][-1]
        p = np.exp(x - (0 if m == -np.inf else m))
    for name, l, error in (("weight", "l", "error"), ("weight_wrong", "l_wrong", "error_wrong")):
        known[name] = p / (known[l][-1] or 1)
        known[error] = np.abs(known[l] - whole) / np.where(whole == 0, 1, whole)
    terms = np.diag(known["p"])
    for j in range(1, len(x)):
        terms[j, :j] = known["alpha"][j] * terms[j - 1, :j]
    return known | {"terms": terms, "steps": steps}
