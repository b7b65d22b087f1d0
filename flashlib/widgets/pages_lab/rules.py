"""The rules that must hold after each operation of any allocator.

`PageRows` tracks what each row of each page would hold if K and V were written where the allocator says.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from flashlib.language.phrases import by_number, counted
from flashlib.widgets.pages_lab.look import AllocatorFault, Look, ask, short_repr
from flashlib.widgets.settings import is_whole

ONE_OWNER = "A page is written only while it has one owner."


class PageRows:
    """The token in each row of each page, and the tokens of each sequence.

    A token is a number that depends on its id and all tokens before it, like its K and V; without an id it
    differs from all others.
    """

    def __init__(self, page):
        self.page = page
        self.tokens = {}  # of each sequence, by name
        self._held = {}  # (page, row): the token there, and the name of the sequence that wrote it
        self._numbers, self._last = {}, 0

    def add(self, name: str, tokens: Any) -> list[int]:
        """Return the numbers of tokens added to a sequence, given as ids or as a count."""
        own = self.tokens.setdefault(name, [])
        first = len(own)
        for token in [None] * tokens if is_whole(tokens) else tokens:
            self._last += 1
            before = own[-1] if own else 0
            own.append(self._last if token is None else self._numbers.setdefault((before, token), self._last))
        return own[first:]

    def copy(self, source: int, target: int) -> None:
        """Copy a page, as the owner of K and V would."""
        for row in range(self.page):
            self._held[target, row] = self._held.get((source, row))

    def write(self, name: str, slots: list[tuple[int, int]], tokens: list[int]) -> None:
        for (page, row), token in zip(slots, tokens, strict=True):
            self._held[page, row] = token, name

    def check(self, name: str, seen: Look) -> None:
        """Raise AllocatorFault unless the pages of a sequence hold its tokens."""
        for at, token in enumerate(self.tokens[name]):
            page, row = seen.pages[name][at // self.page], at % self.page
            held = self._held.get((page, row))
            if held is None:
                raise AllocatorFault(
                    f"Token {at} of {name} is read from page {page}, row {row}; nothing was written there.", [page]
                )
            if held[0] != token:
                whose = f"another token of {name}" if held[1] == name else f"a token that {held[1]} wrote"
                raise AllocatorFault(
                    f"Token {at} of {name} is read from page {page}, row {row}; {whose} is there.", [page]
                )


def check_length(name: str, length: int, seen: Look, page: int) -> None:
    """Raise AllocatorFault unless a sequence has this length and as many pages as it needs."""
    if seen.lengths[name] != length:
        raise AllocatorFault(
            f"{name} has to have {length} tokens now; lengths([{name}]) says {seen.lengths[name]}."
        )
    own, needed = seen.pages[name], -(-length // page)
    if len(own) != needed:
        raise AllocatorFault(
            f"{name} has {length} tokens, which need {needed} pages of {page}; its block table has {len(own)}.",
            own,
        )


def check_others(name: str, before: Look, after: Look) -> None:
    """Raise AllocatorFault if an operation on one sequence changed another."""
    for other, pages in before.pages.items():
        if other == name or other not in after.pages:
            continue
        if after.pages[other] != pages:
            raise AllocatorFault(f"The operation was on {name}, and it changed the block table of {other}.", pages)
        if after.lengths[other] != before.lengths[other]:
            raise AllocatorFault(f"The operation was on {name}, and it changed the length of {other}.")


def read_slots(slots: object, n: int) -> list[tuple[int, int]]:
    """Return append's result as [(page, row), ...]; raise AllocatorFault unless these are n slots."""
    try:
        array = np.asarray(slots)
    except ValueError:  # lists of different lengths
        array = np.empty(0, object)
    if array.shape == (0,) and n == 0:
        return []
    if array.shape != (n, 2) or (n and array.dtype.kind not in "iu"):
        raise AllocatorFault(
            f"append has to return the slots of the {n} new tokens, ({n}, 2): the page and row of each. "
            f"It returned {short_repr(slots)}."
        )
    return [tuple(slot) for slot in array.tolist()]


def check_slots(name: str, slots: list[tuple[int, int]], before: Look, after: Look, page: int) -> None:
    """Raise AllocatorFault unless new tokens are where the block table says, in pages with no other owner."""
    first = before.lengths[name]
    owners = {number: after.owners(number) for number in {number for number, _ in slots}}
    for at, slot in enumerate(slots, start=first):
        right = after.pages[name][at // page], at % page
        if slot != right:
            raise AllocatorFault(
                f"Token {at} of {name} belongs to page {right[0]}, row {right[1]}, as its block table says; "
                f"append returned page {slot[0]}, row {slot[1]}.",
                [right[0]],
            )
        if others := [other for other in owners[slot[0]] if other != name]:
            taken = slot[0] not in before.pages[name]
            what = f"{name} took page {slot[0]}, which {others[0]} has." if taken else ""
            what = what or f"{name} wrote into page {slot[0]}, row {slot[1]}, and {others[0]} has this page too."
            raise AllocatorFault(f"{what} {ONE_OWNER}", [slot[0]])


def check_known(known: Any, tokens: Sequence[int]) -> None:
    """Raise AllocatorFault unless `start` can know this many of these tokens."""
    if not is_whole(known) or not 0 <= known <= max(len(tokens) - 1, 0):
        most = f"0 to {len(tokens) - 1}" if tokens else "0"
        raise AllocatorFault(
            f"start says that {short_repr(known)} tokens are known; of {len(tokens)} it can be {most}."
        )


def check_refusal(needed: int, before: Look, after: Look, n_pages: int) -> None:
    """Raise AllocatorFault if pages were refused though there were enough, or if the refusal changed something."""
    room = n_pages - len({page for own in before.pages.values() for page in own})
    if needed <= room:
        pages = counted(needed, "page", "pages")
        left = by_number(room, "1 has no owner", f"{room} have no owner")
        raise AllocatorFault(f"append says that no pages are left. It needs {pages}, and {left}: some are lost.")
    if (after.pages, after.lengths) != (before.pages, before.lengths):
        raise AllocatorFault(
            "append found no pages, and yet it changed a block table: after an error everything must be as before."
        )


def check_counts(allocator: Any, seen: Look, n_pages: int, page: int) -> None:
    """Raise AllocatorFault if one of the counts that an allocator reports is wrong."""
    names = "used", "kept", "free_pages", "waste"
    said = {name: ask(lambda name=name: getattr(allocator, name, None), name) for name in names}
    said = {name: int(count) for name, count in said.items() if is_whole(count)}
    filled = filled_rows(seen, n_pages, page)
    used = sum(rows > 0 for rows in filled)
    if said.get("used", used) != used:
        raise AllocatorFault(f"used says {said['used']}; {used} pages are in block tables.")
    waste = used * page - sum(filled)
    if said.get("waste", waste) != waste:
        raise AllocatorFault(
            f"waste says {said['waste']}; {waste} rows of the pages in block tables hold no token."
        )
    if "free_pages" in said:
        total = used + said.get("kept", 0) + said["free_pages"]
        if total != n_pages:
            lost = f"{n_pages - total} are lost" if total < n_pages else f"{total - n_pages} are counted twice"
            raise AllocatorFault(f"Pages that are owned, kept and free make {total} of {n_pages}: {lost}.")
    if callable(check := ask(lambda: getattr(allocator, "check", None), "check")):
        ask(check, "check()")


def filled_rows(seen: Look, n_pages: int, page: int) -> list[int]:
    """Return how many rows of each page hold a token of some sequence."""
    filled = [0] * n_pages
    for name, own in seen.pages.items():
        left = seen.lengths[name]
        for one in own:
            rows = page if left > page else left  # `min` and `max` would take most of the time
            if rows > filled[one]:
                filled[one] = rows
            left -= page
    return filled


def count(tokens: Any) -> int:
    """Return the number of tokens, given as a count or as a list of ids."""
    return tokens if is_whole(tokens) else len(tokens)
