"""The head of a chapter: its title, the line that says where in the course it is, and how long it takes.

All three are computed, and so is the title in the link to the next chapter. `tools.notebooks` and `tools.tables`
write them.
"""

import re

from flashlib.chapters import CHAPTERS, FROM_ZERO, KNOWN, Chapter
from tools import minutes

LINE = re.compile(r"^\*\*(?:On the route|An elective)\*\*(?:.|\n(?!\n))*\n\n", re.MULTILINE)
TITLE = re.compile(r"# (\d\d) · .*")
NEXT = re.compile(r"^Next: \[[^\]]*\]\((\d\d)_\w+\.ipynb\)", re.MULTILINE)


def stated(nb):
    """Return a copy of a chapter whose head has its title, its place in the course and the time it takes."""
    nb = minutes.stated(nb)
    head = nb.cells[0]
    title = TITLE.match(head.source)
    of_it = next((c for c in CHAPTERS if title and c.number == title[1]), None)
    if of_it is None:
        return nb
    text = TITLE.sub(f"# {of_it.number} · {of_it.title}", LINE.sub("", head.source), count=1)
    said = f"{line(of_it)}\n\n".lstrip("\n")
    head.source = minutes.SAID.sub(lambda found: said + found[0], text)
    nb.cells[-1].source = NEXT.sub(_link, nb.cells[-1].source)
    return nb


def line(of_it: Chapter) -> str:
    """Return the line of a chapter, in Markdown; "" for the first chapter, which lists the routes."""
    if of_it is CHAPTERS[0]:
        return ""
    part = f"in the part *{of_it.part}*"
    if not of_it.on_route:
        return f"**An elective** {part}: not on [the route]({CHAPTERS[0].slug}.ipynb). {_later(of_it)}"
    places = [f"chapter {_place(of_it, FROM_ZERO)} from zero"]
    if of_it.number in KNOWN.numbers:
        places += [f"{_place(of_it, KNOWN)} if you know softmax and attention"]
    return f"**On the route**, {part}: {', '.join(places)} ([the routes]({CHAPTERS[0].slug}.ipynb))."


def _link(found):
    """Return the link to the chapter of that number, with its registered title and file; else what was found."""
    to = next((c for c in CHAPTERS if c.number == found[1]), None)
    return f"Next: [{to.number} · {to.title}]({to.slug}.ipynb)" if to else found[0]


def _place(of_it, route):
    return f"{route.numbers.index(of_it.number) + 1} of {len(route.numbers)}"


def _later(of_it):
    """Return a sentence that says which chapters build on it."""
    later = [c.number for c in CHAPTERS if of_it.number in c.builds_on]
    if not later:
        return "No chapter builds on it."
    *before, last = later
    return f"Chapters {', '.join(before)} and {last} build on it." if before else f"Chapter {last} builds on it."
