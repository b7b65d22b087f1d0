"""Lists, counts, and sentences that depend on a count: "rows 0, 2 and 3", "1 row", "2 rows"."""

from collections.abc import Iterable

from flashlib.language.texts import say


def and_list(names: Iterable[str]) -> str:
    """Return "a", "a and b" or "a, b and c"; "" without names."""
    *others, last = [say(name) for name in names] or [""]
    return f"{', '.join(others)} and {last}" if others else last


def or_list(names: Iterable[str]) -> str:
    """Return "a", "a or b" or "a, b or c"; "" without names."""
    *others, last = [say(name) for name in names] or [""]
    return f"{', '.join(others)} or {last}" if others else last


def by_number(n: int, one: str, several: str) -> str:
    """Return the sentence about one thing or about several, as its verb depends on how many there are."""
    return one if n == 1 else several


def counted(n: float, one: str, several: str, form: str = "") -> str:
    """Return "1 row" or "2 rows"; form: the format of the number, as in an f-string."""
    return f"{n:{form}} {one if n == 1 else several}"
