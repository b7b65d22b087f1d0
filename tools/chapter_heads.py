"""The head of a chapter: its title, the line that says where in the course it is, and how long it takes.

All three are computed, and so are the link to the next chapter and the file of every link to a chapter: a text
names a chapter, as in `[Tiling](tiling.ipynb)`, and the file becomes that of the registry, `05_tiling.ipynb`.
`tools.notebooks` and `tools.tables` write them.
"""

import copy
import re

from flashlib.chapters import CHAPTERS, FROM_ZERO, KNOWN, Chapter, named
from tools import minutes

LINE = re.compile(r"^\*\*(?:On the route|An elective)\*\*(?:.|\n(?!\n))*\n\n", re.MULTILINE)
TITLE = re.compile(r"# (?:\d\d · )?.*")
NEXT = re.compile(r"\n+Next: .*\Z", re.DOTALL)
LINK = re.compile(r"\]\((\.\./)?(?:\d\d_)?(\w+)\.ipynb")


def stated(nb, chapter: Chapter):
    """Return a copy of a notebook with its title, its place in the course, its time and its links to chapters."""
    is_timed = chapter.number or minutes.SAID.search(nb.cells[0].source)
    nb = minutes.stated(nb) if is_timed else copy.deepcopy(nb)
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            cell.source = linked(cell.source)
    head = nb.cells[0]
    text = TITLE.sub(f"# {chapter.heading}", LINE.sub("", head.source), count=1)
    said = f"{line(chapter)}\n\n".lstrip("\n")
    head.source = minutes.SAID.sub(lambda found: said + found[0], text)
    more = [n for n, cell in enumerate(nb.cells) if cell.source.startswith(minutes.MORE)]
    last = nb.cells[more[0] - 1 if more else -1]
    last.source = NEXT.sub("", last.source) + following(chapter)
    return nb


def linked(text: str) -> str:
    """Return a text in Markdown whose links to chapters have the files of the registry; raise KeyError for a name
    that no chapter has."""
    return LINK.sub(lambda found: f"]({found[1] or ''}{named(found[2]).slug}.ipynb", text)


def line(of_it: Chapter) -> str:
    """Return the line of a chapter, in Markdown; "" for the first chapter, which lists the routes."""
    if of_it is CHAPTERS[0] or of_it not in CHAPTERS:
        return ""
    part = f"in the part *{of_it.part}*"
    if not of_it.on_route:
        return f"**An elective** {part}: not on [the route]({CHAPTERS[0].slug}.ipynb). {_later(of_it)}"
    places = [f"chapter {_place(of_it, FROM_ZERO)} from zero"]
    if of_it.number in KNOWN.numbers:
        places += [f"{_place(of_it, KNOWN)} if you know softmax and attention"]
    return f"**On the route**, {part}: {', '.join(places)} ([the routes]({CHAPTERS[0].slug}.ipynb))."


def following(of_it: Chapter) -> str:
    """Return the last line of a chapter, a link to the next one; "" if there is none."""
    if of_it not in CHAPTERS[:-1]:
        return ""
    to = CHAPTERS[CHAPTERS.index(of_it) + 1]
    return f"\n\nNext: [{to.heading}]({to.slug}.ipynb)."


def _place(of_it, route):
    return f"{route.numbers.index(of_it.number) + 1} of {len(route.numbers)}"


def _later(of_it):
    """Return a sentence that says which chapters build on it."""
    later = [f"[{c.title}]({c.slug}.ipynb)" for c in CHAPTERS if of_it.name in c.builds_on]
    if not later:
        return "No chapter builds on it."
    *before, last = later
    return f"{', '.join(before)} and {last} build on it." if before else f"{last} builds on it."
