"""The settings of RingPlayer, the accepted values of each, and the mask that a name stands for."""

import math
from numbers import Real
from typing import Any

import numpy as np

from flashlib import masks
from flashlib.ring.layouts import LAYOUTS
from flashlib.widgets.settings import one_of, whole

COUNTS = {"ranks": (2, 8), "N": (8, 64)}  # name: the smallest and largest value
TIMES = {"tile": (0.1, 10), "token": (0, 10)}
MASKS = "causal", "none", "window", "documents"
WAYS = "ring", "all-gather"
OWN = "own"  # the way of a given program
STOPS = {  # of the sliders
    "ranks": [2, 3, 4, 5, 6, 7, 8],
    "N": [8, 16, 24, 32, 40, 48, 56, 64],
    "tile": [0.25, 0.5, 1, 1.5, 2, 4],
    "token": [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.5, 2, 3],
}


def checked(name: str, value: Any, *, own: bool = False) -> Any:
    """Return a setting as a built-in type; raise TypeError or ValueError if it is not accepted.

    own: whether a program was given, which can then be chosen.
    """
    if name in COUNTS:
        return whole(name, value, *COUNTS[name])
    if name in TIMES:
        return _time(name, value, *TIMES[name])
    if name == "cut":
        return one_of("layout", value, tuple(LAYOUTS))
    return one_of(name, value, MASKS if name == "mask" else ways(own))


def ways(own: bool) -> tuple[str, ...]:
    """Return the ways of moving that can be chosen."""
    return (OWN, *WAYS) if own else WAYS


def mask_of(name: str, N: int) -> masks.Mask | None:
    """Return the mask with this name for N tokens, or None for no mask."""
    if name == "none":
        return None
    if name == "window":
        return masks.window(N // 4, 0)
    if name == "documents":
        lengths = N // 2, N // 3, N - N // 2 - N // 3
        return masks.documents(np.repeat(range(3), lengths)) & masks.causal()
    return masks.causal()


def check_program(program: object) -> None:
    """Raise TypeError unless this is a program or None."""
    if program is not None and not callable(program):
        raise TypeError(
            f"program is {program!r:.60}; pass the function itself, which takes a ring.Rank and yields commands"
        )


def _time(name, value, low, high):
    accepted = f"pass a number from {low} to {high}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} is {value!r:.60}; {accepted}")
    if not math.isfinite(value) or not low <= value <= high:  # type: ignore[arg-type]
        raise ValueError(f"{name} is {value}; {accepted}")
    return float(value)  # type: ignore[arg-type]
