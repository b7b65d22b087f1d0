"""The allocator of a paged key/value cache: who owns which page. It knows nothing of the numbers in K and V.

A page has rows for `page` tokens. The pages of a sequence, in order, form its row of the block table, and only the
last may have empty rows. Each page is in one of three states: owned, by one sequence or by several that share it;
kept, if nobody owns it but its content is known; or free. A page is written only while it has a single owner.

The content of a page is the tokens in it and all tokens before them, since K and V depend on these too. It is
identified by a hash of both, so equal tokens after different beginnings are different contents.

Source: Kwon and others, Efficient Memory Management for Large Language Model Serving with PagedAttention (2023);
sharing by content is the automatic prefix caching of vLLM, which implements the paper.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from flashlib.inputs import check_counts
from flashlib.types import Array

NOTHING_BEFORE = bytes(32)  # represents the content before the first page


class OutOfPages(MemoryError):
    """Raised if more pages are needed than are free or kept; nothing was changed."""


@dataclass
class _Sequence:
    pages: list
    tokens: list  # None for an unknown one


class Pages:
    """n_pages pages of `page` tokens, a power of two, and the sequences that own them.

    A sequence is a number that `start` or `fork` returned; a number is never reused. Tokens are given as ids,
    whole numbers of at least 0, or as a count if their ids are unknown; then they are not shared by content. Every
    method raises TypeError or ValueError for anything else, and an error changes nothing.
    """

    def __init__(self, n_pages, page):
        check_counts(at_least=1, n_pages=n_pages, page=page)
        if page & (page - 1):
            raise ValueError(f"page is {page}; accepted are powers of two, such as 16")
        self.n_pages, self.page = int(n_pages), int(page)
        self._free = list(reversed(range(self.n_pages)))  # taken from the end
        self._kept = OrderedDict()  # pages as keys, the least recently used first
        self._owners = [0] * self.n_pages
        self._content = {}  # {page: its hash}
        self._index = {}  # {hash: all pages with this content}
        self._sequences = {}
        self._next = 0

    def start(self, tokens: int | Sequence[int] | Array = ()) -> tuple[int, int]:
        """Return a new sequence that shares the pages that begin like `tokens`, and how many tokens they hold.

        Those are known: go on with append(sequence, tokens[known:]). At least one token is left to compute,
        because the model's output for the last one is needed. No page is allocated.
        """
        n, ids = _read(tokens)
        shared, content = [], NOTHING_BEFORE
        for at in range(0, (n - 1) // self.page * self.page if ids else 0, self.page):
            content = _hash(content, ids[at : at + self.page])
            if content not in self._index:
                break
            shared.append(max(self._index[content], key=self._owners.__getitem__))
        known = len(shared) * self.page
        return self._add(shared, ids[:known] if ids else []), known

    def append(self, sequence: int, tokens: int | Sequence[int] | Array) -> np.ndarray:
        """Return the slots of new tokens at the end of the sequence: (n, 2), int32, the page and row of each.

        Pages that become full can be shared immediately, so write K and V to the slots before anyone reads them,
        and `drop` the tokens if that fails. A last page with other owners is copied first (copy on write). Raises
        OutOfPages, before any change, if more pages are needed than are free or kept.
        """
        slots = self._append(sequence, tokens)
        return np.array(slots, np.int32).reshape(len(slots), 2)

    def _append(self, sequence, tokens):
        """As `append`; the slots are a list of pairs."""
        own = self._of(sequence)
        n, ids = _read(tokens)
        N = len(own.tokens)
        goes_on = bool(n and N % self.page)  # in the last page
        more = -(-(N + n) // self.page) - len(own.pages)
        self._check_room(n, more + (goes_on and self._owners[own.pages[-1]] > 1))
        if goes_on:
            own.pages[-1] = self._to_write(own.pages[-1])
        own.pages += [self._take() for _ in range(more)]
        own.tokens += [None] * n if ids is None else ids
        first = N // self.page
        self._know(own, first)
        return [(own.pages[at // self.page], at % self.page) for at in range(N, N + n)]

    def fork(self, sequence: int) -> int:
        """Return a new sequence with the same tokens, in the same pages."""
        own = self._of(sequence)
        return self._add(own.pages, own.tokens)

    def drop(self, sequence: int, n: int) -> None:
        """Remove the last n tokens of a sequence, such as rejected guesses.

        Pages that hold no other tokens become free, and are not kept.
        """
        own = self._of(sequence)
        check_counts(n=n)
        N = len(own.tokens) - n
        if N < 0:
            raise ValueError(
                f"n is {n} and sequence {sequence} has {len(own.tokens)} tokens; drop no more than it has"
            )
        needed = -(-N // self.page)
        for page in reversed(own.pages[needed:]):
            self._release(page, keep=False)
        del own.pages[needed:], own.tokens[N:]
        if N % self.page and self._owners[own.pages[-1]] == 1:
            self._forget(own.pages[-1])

    def free(self, sequence: int) -> None:
        """End a sequence. Its full pages of known content are kept until the space is needed."""
        own = self._of(sequence)
        del self._sequences[sequence]
        for page in reversed(own.pages):  # so that its end is evicted before its beginning
            self._release(page, keep=True)

    def table(self, sequences: Sequence[int], width: int | None = None) -> Array:
        """Return the block table: (B, width), int32, the pages of each sequence, then 0.

        width: the number of columns; None for as many as the longest sequence has pages. A fixed width suits a
        CUDA graph.
        """
        pages = [self._of(sequence).pages for sequence in sequences]
        most = max(map(len, pages), default=0)
        if width is None:
            width = most
        check_counts(width=width)
        if width < most:
            raise ValueError(f"width is {width} and a sequence has {most} pages; pass a width of at least {most}")
        rows = [[*own, *[0] * (width - len(own))] for own in pages]
        return np.array(rows, np.int32).reshape(len(pages), width)

    def lengths(self, sequences: Sequence[int]) -> Array:
        """Return how many tokens each sequence has: (B,), int32."""
        return np.array([len(self._of(sequence).tokens) for sequence in sequences], np.int32)

    @property
    def used(self) -> int:
        """The number of pages that have an owner."""
        return self.n_pages - len(self._free) - len(self._kept)

    @property
    def kept(self) -> int:
        """The number of pages without an owner that are kept for their content."""
        return len(self._kept)

    @property
    def kept_by_age(self) -> list[int]:
        """The kept pages, least recently used first, which is the order in which they are evicted."""
        return list(self._kept)

    @property
    def free_pages(self) -> int:
        """The number of free pages; `append` can use these and the kept ones."""
        return len(self._free)

    @property
    def waste(self) -> int:
        """The number of rows in owned pages that hold no token."""
        rows = [0] * self.n_pages
        for own in self._sequences.values():
            last = len(own.tokens) - (len(own.pages) - 1) * self.page
            for page in own.pages[:-1]:
                rows[page] = self.page
            for page in own.pages[-1:]:
                rows[page] = max(rows[page], last)
        return self.used * self.page - sum(rows)

    def check(self) -> None:
        """Raise AssertionError with a sentence if pages are lost, owned and free at once, or miscounted."""
        owned = [page for page, owners in enumerate(self._owners) if owners]
        states = sorted([*self._free, *self._kept, *owned])
        assert states == list(range(self.n_pages)), "a page is not exactly one of owned, kept and free"
        stands_in = [0] * self.n_pages
        for sequence, own in self._sequences.items():
            full, needed = len(own.tokens) // self.page, -(-len(own.tokens) // self.page)
            assert len(own.pages) == needed, f"sequence {sequence} has {len(own.pages)} pages and needs {needed}"
            for page in own.pages:
                stands_in[page] += 1
            known = [self._content.get(page) for page in own.pages[:full]]
            assert known == self._hashes(own.tokens), f"a full page of sequence {sequence} has another content"
        assert stands_in == self._owners, "a page has another number of owners than tables that it stands in"
        self._check_rows()
        self._check_index()

    def _check_index(self):
        pairs = {(content, page) for content, pages in self._index.items() for page in pages}
        assert pairs == {(h, page) for page, h in self._content.items()}, "the index does not match the contents"
        assert all(self._index.values()), "the index has a content without a page"
        assert not set(self._free) & set(self._content), "a free page has a content"
        for page in self._kept:
            assert page in self._content, f"page {page} is kept and its content is unknown"
            assert len(self._index[self._content[page]]) == 1, f"page {page} is kept and another has its content"

    def _check_rows(self):
        held = {}  # of a page: its position in its sequences, and the most tokens that any of them has in it
        for sequence, own in self._sequences.items():
            for i, page in enumerate(own.pages):
                tokens = own.tokens[i * self.page : (i + 1) * self.page]
                at, others = held.setdefault(page, (i, tokens))
                n = min(len(tokens), len(others))
                same = at == i and tokens[:n] == others[:n]
                assert same, f"sequence {sequence} has page {page}, which was written for another"
                held[page] = i, max(tokens, others, key=len)

    def _hashes(self, tokens):
        """Return the content of each full page of these tokens, None from the first unknown token on."""
        found, content = [], NOTHING_BEFORE
        for at in range(self.page, len(tokens) + 1, self.page):
            content = _hash(content, tokens[at - self.page : at])
            found.append(content)
        return found

    def _of(self, sequence):
        if type(sequence) is int and sequence in self._sequences:  # nearly always; the rest is slower
            return self._sequences[sequence]
        wrong = isinstance(sequence, bool) or not isinstance(sequence, Integral)
        if wrong or sequence not in self._sequences:
            raise ValueError(
                f"there is no sequence {sequence!r}: it was freed, or never existed; pass one from start or fork"
            )
        return self._sequences[sequence]

    def _check_room(self, n, needed):
        if needed > self.free_pages + self.kept:
            raise OutOfPages(
                f"{n} more tokens need {needed} pages; of {self.n_pages}, {self.free_pages} are free, and "
                f"{self.kept} more, kept for their content, can be taken; free a sequence, or make n_pages larger"
            )

    def _add(self, pages, tokens):
        for page in pages:
            self._kept.pop(page, None)
            self._owners[page] += 1
        sequence, self._next = self._next, self._next + 1
        self._sequences[sequence] = _Sequence(list(pages), list(tokens))
        return sequence

    def _take(self):
        if not self._free:
            self._evict()
        page = self._free.pop()
        self._owners[page] = 1
        return page

    def _to_write(self, page):
        """Return a page with the same rows that a single owner may write: this one, or a copy if it is shared."""
        if self._owners[page] == 1:
            self._forget(page)
            return page
        to = self._take()
        self._copy(page, to)
        self._owners[page] -= 1
        return to

    def _copy(self, page, to):
        """Copy the rows of a page; there is nothing to do without storage."""

    def _release(self, page, keep):
        """Remove one owner of a page. One page of each content can be kept, if no other page with it is owned."""
        self._owners[page] -= 1
        if self._owners[page]:
            return
        if keep and page in self._content and len(self._index[self._content[page]]) == 1:
            self._kept[page] = None
        else:
            self._forget(page)
            self._free.append(page)

    def _evict(self, page=None):
        """Free a kept page, by default the least recently used one."""
        if page is None:
            page = next(iter(self._kept))
        del self._kept[page]
        self._forget(page)
        self._free.append(page)

    def _know(self, own, first):
        """Add the full pages of a sequence to the index, starting at its page `first`."""
        full = len(own.tokens) // self.page
        if first == full:
            return
        content = self._content.get(own.pages[first - 1]) if first else NOTHING_BEFORE
        for i in range(first, full):
            content = _hash(content, own.tokens[i * self.page : (i + 1) * self.page])
            if content is None:
                return
            for other in self._index.get(content, set()) & self._kept.keys():
                self._evict(other)
            self._content[own.pages[i]] = content
            self._index.setdefault(content, set()).add(own.pages[i])

    def _forget(self, page):
        """Remove a page from the index, if it is there."""
        content = self._content.pop(page, None)
        if content is not None:
            self._index[content].remove(page)
            if not self._index[content]:
                del self._index[content]


def _hash(before, tokens):
    """Return the content of these tokens after the content `before`; None if any of it is unknown."""
    if before is None or None in tokens:
        return None
    return hashlib.sha256(before + repr(tokens).encode()).digest()


def _read(tokens):
    """Return how many tokens are given, and the list of their ids, or None if only a count is given."""
    given = tokens.tolist() if hasattr(tokens, "tolist") else tokens  # of NumPy or torch
    if not isinstance(given, list | tuple | range):
        if isinstance(given, Integral) and not isinstance(given, bool):
            check_counts(tokens=given)
            return int(given), None
        raise TypeError(f"tokens is {tokens!r}; pass a list of token ids, or a count")
    for token in given:
        if type(token) is int and token >= 0:  # nearly always; the rest takes ten times as long
            continue
        if isinstance(token, bool) or not isinstance(token, Integral) or token < 0:
            raise TypeError(f"tokens has {token!r}; token ids are whole numbers of at least 0")
    return len(given), [int(token) for token in given]
