"""The state of an allocator as it reports it: the pages and the length of each sequence."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class AllocatorFault(Exception):
    """What an allocator does wrong, in a sentence, and the pages in which it shows."""

    def __init__(self, words, pages=()):
        super().__init__(words)
        self.pages = [int(page) for page in pages]


class Look(NamedTuple):
    """A snapshot: for each sequence, by name, its pages and its length; and the pages kept by content."""

    pages: dict
    lengths: dict
    kept: tuple = ()

    def owners(self, page: int) -> list[str]:
        """Return the names of the sequences that have a page."""
        return [name for name, pages in self.pages.items() if page in pages]


def look(allocator: Any, handles: dict, n_pages: int) -> Look:
    """Return an allocator's state; raise AllocatorFault if it reports none. handles: its sequences, by name."""
    pages, lengths = {}, {}
    for name, handle in handles.items():
        table = ask(lambda h=handle: np.asarray(allocator.table([h])), f"table([{name}])")
        if table.ndim != 2 or len(table) != 1 or (table.size and table.dtype.kind not in "iu"):
            raise AllocatorFault(
                f"table([{name}]) has to be one row of page numbers, (1, pages); it is {short_repr(table)}."
            )
        pages[name] = table[0].tolist()
        length = ask(lambda h=handle: np.asarray(allocator.lengths([h])), f"lengths([{name}])")
        if length.shape != (1,) or length.dtype.kind not in "iu":
            raise AllocatorFault(
                f"lengths([{name}]) has to be the length of one sequence, (1,); it is {short_repr(length)}."
            )
        lengths[name] = int(length[0])
    for name, own in pages.items():
        if wrong := [page for page in own if not 0 <= page < n_pages]:
            raise AllocatorFault(f"{name} has page {wrong[0]}, and there are pages 0 to {n_pages - 1}.")
        if len(set(own)) < len(own):
            twice = [page for page in own if own.count(page) > 1]
            raise AllocatorFault(f"Page {twice[0]} appears twice in the block table of {name}.", twice[:1])
    return Look(pages, lengths, _kept(allocator, pages, n_pages))


def ask(question: Callable, call: str) -> Any:
    """Return an allocator's answer; whatever it raises becomes an AllocatorFault."""
    try:
        return question()
    except AssertionError as error:
        words = " ".join(str(error).split()) or "something is wrong"
        raise AllocatorFault(f"{call} says: {words:.200}.") from error
    except Exception as error:
        raise AllocatorFault(f"{call} raised {error_in_words(error)}.") from error


def error_in_words(error: Exception) -> str:
    """Return an exception in words."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words:.200}".rstrip(": .")


def short_repr(x: object) -> str:
    """Return the beginning of the repr of x, on one line."""
    return f"{' '.join(repr(x).split()):.60}"


def _kept(allocator, pages, n_pages):
    """Return the pages without an owner in an allocator's `kept_by_age`; none if it has no such attribute."""
    try:
        kept = [int(page) for page in getattr(allocator, "kept_by_age", ())]
    except Exception:  # the attribute means something else there
        return ()
    owned = {page for own in pages.values() for page in own}
    return tuple(sorted(page for page in set(kept) - owned if 0 <= page < n_pages))
