"""What a model of a kernel over lists of tiles reads: entries of the lists, and rows of K and V."""

from typing import Any

import numpy as np


def listed(numbers: np.ndarray, place: int) -> int:
    """Return what a kernel loads from a list, in one piece; 0 outside of it."""
    return numbers.flat[place] if 0 <= place < numbers.size else 0


def in_memory(X: np.ndarray, c: np.ndarray, whole: np.ndarray, head: int) -> np.ndarray:
    """Return the rows c of X, as a kernel that masks c < len(X) loads them if X is that head's part of `whole`.

    The rows before the first belong to the previous head; before the first head they are nan.
    """
    c = c.ravel()
    before = whole.reshape(-1, *X.shape[1:])[: head * len(X)]
    rows = np.concatenate([before, X, np.zeros_like(X[:1])])  # the last row stands for all that the mask hides
    at = np.where(c < len(X), len(before) + c, len(rows) - 1)
    return np.where(at[:, None] < 0, np.nan, rows[np.maximum(at, 0)]).astype(X.dtype)


READ: dict[str, Any] = {"listed": listed, "in_memory": in_memory}
