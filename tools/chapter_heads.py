"""The head of a chapter: its title, and a line that says how long it takes, what it builds on and where it runs.

Of the chapters that it builds on, the line leaves out those that another one of them builds on. Title and line are
computed, and so are the link to the next chapter and the file of every link to a chapter: a text names a chapter,
as in `[Tiling](tiling.ipynb)`, and the file becomes that of the registry, `05_tiling.ipynb`. `tools.notebooks` and
`tools.tables` write them.
"""

import copy
import re

from flashlib.chapters import CHAPTERS, Chapter, named
from tools import minutes

TITLE = re.compile(r"\A# .*\n*(?:\*\d+ minutes.*\*(?:\n+|\Z))?")
NEXT = re.compile(r"\n+Next: .*\Z", re.DOTALL)
LINK = re.compile(r"\]\((\.\./)?(?:\d\d_)?(\w+)\.ipynb")
NO_GPU = "no GPU needed"
RUNS = {"triton": f"on Linux, {NO_GPU}", "weights": f"after `make models`, {NO_GPU}"}  # {a need: where}


def stated(nb, chapter: Chapter):
    """Return a copy of a notebook with its title, its line and its links to chapters."""
    nb = copy.deepcopy(nb)
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            cell.source = linked(cell.source)
    head = nb.cells[0]
    above = "\n\n".join(filter(None, (f"# {chapter.heading}", line(chapter, minutes.of(nb)))))
    head.source = f"{above}\n\n{TITLE.sub('', head.source)}".rstrip("\n")
    more = [n for n, cell in enumerate(nb.cells) if cell.source.startswith(minutes.MORE)]
    last = nb.cells[more[0] - 1 if more else -1]
    last.source = NEXT.sub("", last.source) + following(chapter)
    return nb


def linked(text: str) -> str:
    """Return a text in Markdown whose links to chapters have the files of the registry; raise KeyError for a name
    that no chapter has."""
    return LINK.sub(lambda found: f"]({found[1] or ''}{named(found[2]).slug}.ipynb", text)


def line(chapter: Chapter, takes: minutes.Minutes, is_live: bool = False) -> str:
    """Return the line of a chapter, in Markdown; "" for the glossary, which is looked up and not read.

    is_live: whether it is for a page whose code runs, where the needs of the notebook do not count.
    """
    if not chapter.widgets and not chapter.builds_on and not chapter.number:
        return ""
    core, optional = takes.rounded()
    before = [named(name) for name in chapter.builds_on]
    before = [on for on in before if not any(on.name in other.all_before() for other in before)]
    runs = [where for need, where in RUNS.items() if need in chapter.needs and not is_live]
    route = f"[on the route]({CHAPTERS[0].slug}.ipynb)"
    facts = [
        f"{core} minutes" + f" (+ {optional} optional)" * bool(optional),
        route if chapter.on_route else "an elective" * (chapter in CHAPTERS[1:]),
        "builds on " * bool(before) + ", ".join(f"[{on.short_title}]({on.slug}.ipynb)" for on in before),
        *(runs or [NO_GPU]),
    ]
    return f"*{' · '.join(filter(None, facts))}*"


def following(of_it: Chapter) -> str:
    """Return the last line of a chapter, a link to the next one; "" if there is none."""
    if of_it not in CHAPTERS[:-1]:
        return ""
    to = CHAPTERS[CHAPTERS.index(of_it) + 1]
    return f"\n\nNext: [{to.heading}]({to.slug}.ipynb)."
