"""How long a chapter takes, computed from its notebook for its head and the tables.

A reader reads 180 words of text or code a minute, and takes 3 minutes for a prediction, and for an exercise the
time in its text. A reader may skip a section whose heading ends in one of MARKS; who takes the route skips those
that are not on it (`flashlib.chapters.ROUTES`).
"""

import copy
import re
from typing import NamedTuple

WORDS = 180  # a minute
PREDICTION = 3  # minutes
STEP = 5  # times are rounded up to a multiple of it

MARKS = {"(optional)": "optional", "(not on the route)": "aside"}  # {end of a heading: the field of Minutes}

EXERCISE = re.compile(r"^\*(\d+) minutes · \w+\*$", re.MULTILINE)
HEADING = re.compile(r"^(##+) (.+)$", re.MULTILINE)  # a single # is the title, or a comment in code
FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)
WORD = re.compile(r"\S*\w\S*")
SAID = re.compile(r"\*About .*?\.(?=[\s*])", re.DOTALL)


class Minutes(NamedTuple):
    """The minutes of a chapter: all of them, and those for exercises, in optional sections, and not on the route.

    The last two include exercises.
    """

    all: float
    exercises: float
    optional: float
    aside: float

    def __add__(self, other):
        return Minutes(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def route(self) -> float:
        """The minutes of a reader who takes the route."""
        return self.all - self.optional - self.aside

    def rounded(self) -> "Minutes":
        return Minutes(*(-int(-minutes // STEP) * STEP for minutes in self))


def of(nb) -> Minutes:
    """Return how long a chapter takes."""
    total = Minutes(0, 0, 0, 0)
    for cell, part, mark in sections(nb):
        taken = _taken(cell, part)
        total += taken._replace(**{mark: taken.all}) if mark else taken
    return total


def sections(nb):
    """Yield the cells of a chapter, split before each heading: (cell, text, value of its section in MARKS)."""
    level, mark = None, None
    for cell in nb.cells:
        for part in _sections(cell):
            if heading := HEADING.match(part):
                depth = len(heading[1])
                if level is None or depth <= level:
                    mark = next((MARKS[end] for end in MARKS if heading[2].endswith(end)), None)
                    level = depth if mark else None
            yield cell, part, mark


def stated(nb):
    """Return a copy of a chapter whose head says how long it takes."""
    nb = copy.deepcopy(nb)
    head = nb.cells[0]
    head.source, n = SAID.subn(f"*{sentence(of(nb))}", head.source)
    if n != 1:
        raise ValueError(f'the first cell has {n} sentences that begin with "*About"; it needs one')
    return nb


def sentence(minutes) -> str:
    """Return a sentence that says how long a chapter takes."""
    total, *rest = minutes.rounded()
    words = ("for exercises", "optional", "not on the route")
    *before, last = [f"{n} are {what}" for n, what in zip(rest, words, strict=True) if n] or [""]
    parts = " and ".join(filter(None, [", ".join(before), last]))
    return f"About {total} minutes{', of which ' if parts else ''}{parts}."


def _sections(cell):
    """Return the text of a cell, split before each heading."""
    if cell.cell_type == "code":
        return [cell.source]
    return re.split(r"(?m)^(?=##+ )", FOLDED.sub("", cell.source))


def _taken(cell, text) -> Minutes:
    """Return the Minutes of a part of a cell; those of an exercise include its text and its cells."""
    exercise = float(found[1]) if (found := EXERCISE.search(text)) else 0.0
    own = exercise or any(tag.startswith("stub:") for tag in cell.metadata.get("tags", []))
    reading = 0.0 if own else len(WORD.findall(text)) / WORDS
    asked = PREDICTION * text.count("checks.predict(") if cell.cell_type == "code" else 0
    return Minutes(reading + asked + exercise, exercise, 0.0, 0.0)
