"""The known mistakes, read from the tables in `mistakes.txt` of the chapters and in `shared/*.txt`.

    $RESCALE = multiply what was summed before by alpha     a text that sentences share
    [block_step]                                            a table, that of an exercise or a shared one
    use update                                              the rows of another table
    drop masks_all                                          without this one of them
    not_rescaled: l is not rescaled when m grows: $RESCALE  an id and a sentence
        l = l_old + P_ij.sum(axis=1)                        what makes it, as `Program.edited` takes it,
        alpha -> 1                                          or another way to make it
        l -> (l + {1e-6|1e-9})                              two ways, one with each

A row without a way to make it is the sentence of what a check finds out by itself; it may have {fields}. Of a row
whose id is there already, the sentence is replaced, and the ways if there are any. A star after the id marks a
mistake that is often made beside another; `drop *` takes the stars off the rows above. A line that begins with #
is a comment.
"""

import re
import string
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from flashlib.checks import chapters

SHARED = Path(__file__).parents[1] / "shared"
ROW = re.compile(r"(\w+)(\*?): (.+)")
EITHER = re.compile(r"\{([^{}|]+(?:\|[^{}|]+)+)\}")


@dataclass(frozen=True)
class Mistake:
    """A known mistake: its id, the sentence that names it, the ways to make it, whether others come with it."""

    id: str
    sentence: str
    ways: tuple[str, ...] = ()
    often: bool = False


@cache
def tables() -> dict[str, dict[str, Mistake]]:
    """Return {table: {id: Mistake}} of all files."""
    found: dict[str, dict[str, Mistake]] = {}
    for path in (*sorted(SHARED.glob("*.txt")), *chapters.files("mistakes.txt")):
        read(path, found)
    return found


def table(name) -> dict[str, Mistake]:
    """Return {id: Mistake} of a table, after those that any check may find; raises KeyError if there is none."""
    return tables()["any"] | tables()[name]


def read(path, found, joined=False):
    """Add the tables of a file to those found. joined: an id may come again in a table, and its ways are added."""
    _read(path.read_text(encoding="utf-8"), found, joined)


def _read(text, found, joined=False):
    texts, rows, last, lines = {}, None, "", text.splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        said = string.Template(line).safe_substitute(texts)
        if line.startswith("    "):
            old = rows[last]
            rows[last] = Mistake(old.id, old.sentence, (*old.ways, *_ways(line[4:])), old.often)
        elif line.startswith("["):
            name = line.strip("[] ")
            if name in found:
                raise ValueError(f"line {number}: there are two tables {name}")
            rows = found[name] = {}
        elif line.startswith("$"):
            key, _, value = said[1:].partition(" = ")
            texts[key] = value
        elif line.startswith("use "):
            others = found[line.removeprefix("use ").strip()]
            if twice := rows.keys() & others.keys():
                raise ValueError(f"line {number}: {', '.join(sorted(twice))} would lose what stands above")
            rows |= others
        elif line.startswith("drop "):
            for key in line.removeprefix("drop ").split():
                if key == "*":
                    rows |= {id: replace(row, often=False) for id, row in rows.items()}
                else:
                    del rows[key]
        elif row := ROW.fullmatch(said):
            last, often = row[1], bool(row[2])
            has_ways = number < len(lines) and lines[number].startswith("    ")
            ways = rows[last].ways if last in rows and (joined or not has_ways) else ()
            rows[last] = Mistake(last, row[3], ways, often)
        else:
            raise ValueError(f"line {number} does not belong in a table: {line}")


def _ways(text):
    """Return the ways of a line: one, or one with each of the texts in {a|b}, the same wherever that stands."""
    either = EITHER.search(text)
    if not either:
        return [text]
    return [way for one in either[1].split("|") for way in _ways(text.replace(either[0], one))]
