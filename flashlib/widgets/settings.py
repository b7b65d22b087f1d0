"""The checks of most widgets' settings: an integer in a range, or one of some words."""

from collections.abc import Collection
from numbers import Integral
from typing import Any


def is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def whole(name: str, value: Any, low: int, high: int, accepted: str = "") -> int:
    """Return an integer from low to high; raise TypeError or ValueError for anything else.

    accepted: what the error says is accepted, if it is more than the range.
    """
    accepted = accepted or f"pass a whole number from {low} to {high}"
    if not is_whole(value):
        raise TypeError(f"{name} is {value!r:.60}; {accepted}")
    if not low <= value <= high:
        raise ValueError(f"{name} is {value}; {accepted}")
    return int(value)


def one_of(name: str, value: object, choices: Collection[str]) -> str:
    """Return one of the words that can be chosen; raise ValueError for anything else."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} is {value!r:.60}; pass one of {', '.join(map(repr, choices))}")
    return value
