"""Checks of MergeTree's arguments. Each returns its argument in plain types, or raises with a sentence."""

import re
from numbers import Real
from typing import Any

import numpy as np

from flashlib.widgets.settings import is_whole

MAX_N, MAX_d, MAX_LEAVES = 16, 4, 10
LARGEST = 1e100  # of the values, so that their sums stay finite
ORDERS = ("left to right", "balanced", "random order")
WORDS_OF_X = f"accepted are 2 to {MAX_N} numbers, finite or -inf, e.g. [1, 3, 2, -inf]"


def check_row(x: object) -> np.ndarray:
    """Return x as a new fp64 array (N,); raise TypeError or ValueError unless it is a row that can be shown."""
    row = _numbers("x", x, WORDS_OF_X)
    if row.ndim != 1 or not 2 <= len(row) <= MAX_N:
        raise ValueError(f"x has shape {row.shape}; {WORDS_OF_X}")
    for x_j in row[~(row < np.inf)]:  # NaN too
        raise ValueError(f"x has {x_j} in it; {WORDS_OF_X}")
    return row


def check_values(V: object, N: int) -> np.ndarray:
    """Return V as a new fp64 array (N, d); raise TypeError or ValueError unless it fits a row of N scores."""
    accepted = f"expected ({N}, d) with d from 1 to {MAX_d}, a row of values for each score of x"
    values = _numbers("V", V, accepted)
    if values.ndim != 2 or len(values) != N or not 1 <= values.shape[1] <= MAX_d:
        raise ValueError(f"V has shape {values.shape}; {accepted}")
    for v in values[~(np.abs(values) <= LARGEST)]:
        raise ValueError(f"V has {v} in it; accepted are numbers from {-LARGEST} to {LARGEST}")
    return values


def check_cuts(cuts: object, N: int) -> list[int]:
    """Return the cuts in order; raise TypeError or ValueError unless each is a place between two of N scores."""
    accepted = f"accepted are whole numbers from 1 to {N - 1}, each once, e.g. ({N // 2},)"
    if not isinstance(cuts, list | tuple | np.ndarray):
        raise TypeError(f"cuts is {cuts!r:.30}; pass a list or a tuple: {accepted}")
    for cut in cuts:
        if not is_whole(cut):
            raise TypeError(f"cuts has {cut!r:.30} in it; {accepted}")
        if not 1 <= cut < N:
            raise ValueError(f"cuts has {cut} in it; {accepted}")
    if len(set(cuts)) < len(cuts):
        raise ValueError(f"cuts is {cuts!r:.60}; {accepted}")
    return sorted(map(int, cuts))


def check_moves(moves: Any, parts: int) -> list[list[int]]:
    """Return the moves as lists; raise TypeError or ValueError unless each is possible after those before it."""
    accepted = "accepted are [a, b], two nodes without a parent, and [], the identity as one more leaf"
    for move in moves:
        if not isinstance(move, list | tuple) or len(move) not in (0, 2) or not all(map(is_whole, move)):
            raise TypeError(f"a move is {move!r:.30}; {accepted}")
    leaves = parts + sum(len(move) == 0 for move in moves)
    if leaves > MAX_LEAVES:
        raise ValueError(
            f"That would make {leaves} leaves; {MAX_LEAVES} can be drawn: join two parts first, or start over "
            "without the identity"
        )
    free = set(range(parts))
    for k, move in enumerate(moves, parts):
        if len(free.intersection(move)) < len(move):
            raise ValueError(f"a move is {list(move)}, but free are {sorted(free)}; {accepted}")
        free = (free - set(move)) | {k}
    return [list(map(int, move)) for move in moves]


def check_order(order: object) -> tuple[str, int | None]:
    """Return the name of an order and its seed, or None; raise TypeError or ValueError for anything else."""
    accepted = f"accepted are {', '.join(map(repr, ORDERS))}, or 'random order 3' for one of a million"
    if not isinstance(order, str):
        raise TypeError(f"order is {order!r:.30}; {accepted}")
    seeded = re.fullmatch(r"random order ([0-9]{1,6})", order)
    if not seeded and order not in ("", *ORDERS):
        raise ValueError(f"order is {order!r:.40}; {accepted}")
    return ("random order", int(seeded[1])) if seeded else (order, None)


def _numbers(name, X, accepted):
    """Return X as a new fp64 array; raise TypeError or ValueError unless it contains real numbers."""
    if not isinstance(X, list | tuple | np.ndarray):
        raise TypeError(f"{name} is {X!r:.30}; pass a list or a NumPy array: {accepted}")
    try:
        array = np.array(X)
    except ValueError as error:  # lists of different lengths
        raise ValueError(f"{name} has rows that differ in length; {accepted}") from error
    if array.size and array.dtype.kind not in "iuf":
        items = np.array(X, dtype=object).ravel().tolist()
        odd = (f"{y!r:.30}" for y in items if isinstance(y, bool) or not isinstance(y, Real))
        found = next(odd, "a number too large")
        raise TypeError(f"{name} has {found} in it, which is not an fp64 number; {accepted}")
    with np.errstate(over="ignore"):  # from a long double, which is then refused
        return array.astype(np.float64)
