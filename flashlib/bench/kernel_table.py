"""KernelTable: numbers of kernels in columns, with sentences below them."""

import textwrap
from dataclasses import dataclass, field

WIDTH = 100  # columns of the sentences


@dataclass(frozen=True)
class KernelTable:
    """A table about kernels: its title, column heads and rows, sentences on them, and a table that follows.

    Without rows it is its title.
    """

    title: str
    heads: tuple[str, ...] = ()
    rows: list[tuple] = field(default_factory=list, repr=False)
    sentences: tuple[str, ...] = ()
    then: "KernelTable | None" = None

    def __repr__(self):
        lines = [self.title, *self._columns()]
        if self.sentences:
            lines += ["", *(textwrap.fill(sentence, WIDTH) for sentence in self.sentences)]
        return "\n".join(lines + (["", repr(self.then)] if self.then else []))

    def _columns(self):
        if not self.rows:
            return []
        lines = [self.heads, *[tuple(map(str, row)) for row in self.rows]]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        lefts = [isinstance(x, str) for x in self.rows[0]]
        cells = (
            "  ".join(x.ljust(n) if left else x.rjust(n) for x, n, left in zip(line, widths, lefts, strict=True))
            for line in lines
        )
        return map(str.rstrip, cells)
