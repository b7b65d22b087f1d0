"""How long a chapter takes a careful learner, computed from its notebook for its head and the tables.

130 words of text a minute, 7 seconds for a line of code that is shown, 1.5 minutes for a prediction, and for an
exercise three quarters of the time in its text, or all of it in Gluon. Of folded code the first line counts. A
section whose heading ends in "(optional)", such as "## More (optional)" at the end of a chapter, is counted apart.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

WORDS = 130  # a minute
LINE = 7 / 60  # minutes for a line of code
PREDICTION = 1.5  # minutes
EXERCISE_SHARE = 0.75  # of the time in the text of an exercise; in Gluon, all of it
STEP = 5  # times are rounded up to a multiple of it

OPTIONAL = "(optional)"  # the end of a heading
MORE = f"## More {OPTIONAL}"  # the last section of a chapter

EXERCISE = re.compile(r"^\*(\d+) minutes · \w+\*$", re.MULTILINE)
HEADING = re.compile(r"^(##+) (.+)$", re.MULTILINE)  # a single # is the title, or a comment in code
FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)
WORD = re.compile(r"\S*\w\S*")


class Minutes(NamedTuple):
    """The minutes of a chapter: of all that is not optional, and of what is optional."""

    core: float
    optional: float

    def __add__(self, other):
        return Minutes(*(a + b for a, b in zip(self, other, strict=True)))

    def rounded(self) -> "Minutes":
        return Minutes(*(-int(-minutes // STEP) * STEP for minutes in self))


def of(nb) -> Minutes:
    """Return how long a chapter takes."""
    total = Minutes(0, 0)
    in_gluon = {
        tag.partition(":")[2]
        for cell in nb.cells
        for tag in _tags(cell)
        if tag.startswith("stub:") and "@gluon.jit" in cell.source
    }
    for cell, part, is_optional in sections(nb):
        taken = _taken(cell, part, in_gluon)
        total += Minutes(0, taken) if is_optional else Minutes(taken, 0)
    return total


def in_words(total: float) -> str:
    """Return a time, rounded up to ten minutes or to half an hour."""
    return _hours(_half_hours(total)) if total > 60 else f"{-int(-total // 10) * 10} min"


def in_parts(totals: Sequence[float]) -> list[str]:
    """Return the times of parts in hours, which add up to that of all; the first is rounded up, as it is alone.

    Those that are furthest above a half hour are rounded up, the others down.
    """
    first, *others = totals
    counts = [_half_hours(first), *(int(total // 30) for total in others)]
    up = sorted(range(1, len(totals)), key=lambda k: totals[k] % 30, reverse=True)
    for k in up[: _half_hours(sum(totals)) - sum(counts)]:
        counts[k] += 1
    return [_hours(count) for count in counts]


def sections(nb):
    """Yield the cells of a chapter, split before each heading: (cell, text, whether its section is optional)."""
    level = None  # of the heading of an optional section
    for cell in nb.cells:
        for part in _sections(cell):
            if heading := HEADING.match(part):
                depth = len(heading[1])
                if level is None or depth <= level:
                    level = depth if heading[2].endswith(OPTIONAL) else None
            yield cell, part, level is not None


def _half_hours(total):
    """Return how many half hours these minutes are, rounded up."""
    return -int(-total // 30)


def _hours(count):
    return f"{count / 2:g} hours"


def _tags(cell):
    return cell.metadata.get("tags", [])


def _sections(cell):
    """Return the text of a cell, split before each heading."""
    if cell.cell_type == "code":
        return [cell.source]
    return re.split(r"(?m)^(?=##+ )", FOLDED.sub("", cell.source))


def _taken(cell, text, in_gluon) -> float:
    """Return the minutes of a part of a cell; those of an exercise are for its text and its cells."""
    tags = _tags(cell)
    if found := EXERCISE.search(text):
        is_gluon = any(tag.partition(":")[2] in in_gluon for tag in tags if tag.startswith("exercise:"))
        return float(found[1]) * (1 if is_gluon else EXERCISE_SHARE)
    if any(tag.startswith("stub:") for tag in tags):
        return 0.0
    if cell.cell_type != "code":
        return len(WORD.findall(text)) / WORDS
    if asked := text.count("checks.predict("):
        return PREDICTION * asked
    lines = sum(1 for line in text.splitlines() if line.strip())
    return LINE * (min(lines, 1) if "folded" in tags else lines)
