"""The known mistakes, read from the tables in `mistakes.txt` of the chapters and in `shared/*.txt`.

    $RESCALE = multiply what was summed before by alpha     a text that sentences share
    [block_step]                                            a table, for an exercise or shared
        def my_block_step(m, l, O_acc):                     the right program, which the rows edit; without it, it
            ...                                             is the solution, or the exercise makes it
    use update                                              the rows of another table
    drop masks_all                                          except this one
    not_rescaled: l is not rescaled when m grows: $RESCALE  an id and a sentence
        l = l_old + P_ij.sum(axis=1)                        a way to make the mistake, see `ProgramText.edited`,
        alpha -> 1                                          or another way
        l -> (l + {1e-6|1e-9})                              two ways, one with each number
        yield Finish() -> yield Finish()                    a way whose new text goes on in the next line of the
            yield Arrive(empty)                             program: all lines that are indented further
        m = m_old;                                          a way of two edits, one on each line: the first ends
            alpha -> 1                                      in a semicolon

A row without a way is the sentence for something that a check finds out by itself; it may have {fields}. If the id
of a row exists already, its sentence replaces the old one, and its ways, if it has any, the old ways. A star after
the id marks a mistake that often comes together with another; `drop *` removes the stars from the rows above. A
line that begins with # is a comment, and blanks at the end of a line are ignored.
`python -m flashlib.checks.mistakes CHAPTER` shows the mistakes in the tables of a chapter.
"""

import re
import string
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from flashlib.checks.engine import folders
from flashlib.language.texts import say

CHECKS = Path(__file__).parents[1]
ROW = re.compile(r"(\w+)(\*?): (.+)")
EITHER = re.compile(r"\{([^{}|]+(?:\|[^{}|]+)+)\}")
INDENT = " " * 4


@dataclass(frozen=True)
class Mistake:
    """A known mistake: its id, the sentence that names it, the ways to make it, whether it often joins another."""

    id: str
    sentence: str
    ways: tuple[str, ...] = ()
    often: bool = False


class Table(dict):
    """{id: Mistake}. program: the text of the right program that the rows edit, "" if it is defined elsewhere."""

    program = ""


@cache
def tables() -> dict[str, Table]:
    """Return the tables of all files, by name."""
    found: dict[str, Table] = {}
    for path in (*sorted((CHECKS / "shared").glob("*.txt")), *folders.files("mistakes*.txt")):
        read(path, found)
    return found


def table(name: str) -> dict[str, Mistake]:
    """Return {id: Mistake}: those that any check may find, then a table's; raises KeyError if there is none."""
    own = tables()[name]
    return {id: mistake for id, mistake in tables()["any"].items() if id not in own} | own


def read(path: Path, found: dict[str, Table], joined: bool = False) -> None:
    """Add the tables of a file to `found`, by name.

    joined: an id may occur again in a table, with different words; the key of a row is then both, `id: sentence`.
    Raises ValueError, which names file and line.
    """
    reader = _Reader(found, joined)
    for number, line in _lines(path.read_text(encoding="utf-8")):
        try:
            reader.take(line)
        except ValueError as error:
            shown = path.relative_to(CHECKS.parents[1]) if path.is_relative_to(CHECKS) else path
            raise ValueError(f"{shown}, line {number}: {error}") from None


def _lines(text):
    """Yield the number and the text of each line that is not a comment, joined with those indented further."""
    number, whole = 0, ""
    for n, line in enumerate(map(str.rstrip, text.splitlines()), start=1):
        if line.startswith(2 * INDENT) and whole.startswith(INDENT):
            whole += f" {line.lstrip()}" if whole.endswith(";") else f"\\n{line.removeprefix(INDENT)}"
        elif line and not line.startswith("#"):
            if whole:
                yield number, whole
            number, whole = n, line
    if whole:
        yield number, whole


class _Reader:
    """Reads the lines of a file, one by one."""

    def __init__(self, found, joined):
        self.found, self.joined = found, joined
        self.texts, self.rows, self.last = {}, None, ""
        self.replaces = False  # whether the next way replaces those that the row has

    def take(self, line):
        """Add a line to the tables; raises ValueError if it does not belong there."""
        said = string.Template(line).safe_substitute(self.texts)
        if line.startswith("["):
            self._begin(line.strip("[]"))
        elif line.startswith("$") and " = " in line:
            key, _, self.texts[key] = said[1:].partition(" = ")
        elif self.rows is None:
            raise ValueError(f"a row belongs in a table, below a line [NAME]: {line}")
        elif line.startswith(INDENT):
            self._add(line.removeprefix(INDENT))
        elif line.startswith("use "):
            self._use(line.removeprefix("use "))
        elif line.startswith("drop "):
            self._drop(line.removeprefix("drop ").split())
        elif row := ROW.fullmatch(said):
            self.last, self.replaces = f"{row[1]}: {row[3]}" if self.joined else row[1], not self.joined
            ways = self.rows[self.last].ways if self.last in self.rows else ()
            self.rows[self.last] = Mistake(row[1], say(row[3]), ways, bool(row[2]))
        else:
            raise ValueError(f"it does not belong in a table; a row is `id: sentence`: {line}")

    def _begin(self, name):
        if name in self.found:
            raise ValueError(f"there are two tables {name}")
        self.rows = self.found[name] = Table()
        self.last = ""

    def _add(self, way):
        if not self.last and not self.rows:
            self.rows.program += way.replace("\\n", "\n") + "\n"
            return
        if not self.last:
            raise ValueError(f"a way to make a mistake belongs below its row: {way}")
        if way.startswith(" "):
            raise ValueError(f"put a text that begins with a blank in backticks: {way}")
        old = self.rows[self.last]
        before = () if self.replaces else old.ways
        self.rows[self.last], self.replaces = replace(old, ways=(*before, *_ways(way))), False

    def _use(self, name):
        if name not in self.found:
            raise ValueError(f"there is no table {name} above; there are {', '.join(self.found)}")
        others = self.found[name]
        if twice := self.rows.keys() & others.keys():
            raise ValueError(f"{', '.join(sorted(twice))} would overwrite the rows above")
        self.rows |= others

    def _drop(self, ids):
        for id in ids:
            if id == "*":
                self.rows |= {id: replace(row, often=False) for id, row in self.rows.items()}
            elif self.rows.pop(id, None) is None:
                raise ValueError(f"there is no row {id} above to drop; there are {', '.join(self.rows)}")


def _ways(text):
    """Return the ways of a line: one, or one for each of the texts in {a|b}, the same wherever that occurs."""
    either = EITHER.search(text)
    if not either:
        return [text]
    return [way for one in either[1].split("|") for way in _ways(text.replace(either[0], one))]
