"""Write the tables of the README, notebooks, CHANGELOG and docs/results.md, totals, heads and cards' questions.

python -m tools.tables

The chapters come from `flashlib.chapters`, those of before from `flashlib.earlier`, times from the notebooks,
speeds from the recorded runs, totals (`tools.totals`) from the tests' answers. In a text, each is between two
comments that say so. `tools.results` makes the whole docs/results.md, `tools.chapter_heads` the heads of chapters,
and `tools.card_questions` the questions on cards. Tests check that all are up to date. At the end it prints which
chapters to execute again.
"""

from pathlib import Path

from flashlib.chapters import CHAPTERS, NOTEBOOKS, PARTS, ROUTES, named
from flashlib.checks import EXERCISES
from flashlib.earlier import EARLIER_CHAPTERS
from tools import card_questions, chapter_heads, kernel_list, markdown, minutes, notebooks, results, solved, totals

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
CHANGELOG = ROOT / "CHANGELOG.md"
START_HERE = ROOT / "notebooks" / "00_start_here.ipynb"
RESULTS = ROOT / "docs" / "results.md"
KERNELS = ROOT / "docs" / "kernels.md"
ELECTIVES = (
    "Before you start one, do the chapters that it builds on. "
    "Missing numbers are kept for chapters still to be written."
)


def times() -> dict[str, minutes.Minutes]:
    """Return how long each chapter takes: {number: Minutes}."""
    paths = {c.number: START_HERE.with_name(f"{c.slug}.ipynb") for c in CHAPTERS}
    return {number: minutes.of(notebooks.read(path)) for number, path in paths.items()}


def chapters() -> str:
    """Return the chapters as a table in Markdown, for the README."""
    rows = [[name, what, time] for name, what, _, time in (*_rows(*PARTS), _in_all())]
    return markdown.table(["chapter", "the idea", "time with exercises"], rows)


def linked_chapters() -> str:
    """Return the chapters for Start here, with links: those of the route, and folded the electives."""
    route, *others = PARTS
    titles = ["chapter", "the idea", "builds on", "time with exercises"]
    electives = markdown.table(titles, [*_rows(*others, link=True), _in_all()])
    return (
        f"{markdown.table(titles, _rows(route, link=True))}\n"
        f"<details><summary>The electives</summary>\n\n{ELECTIVES}\n\n{electives}\n</details>\n"
    )


def _rows(*parts, link=False):
    """Return a row for each of these parts of the course and for each of its chapters."""
    rows, takes = [], times()
    hours = dict(zip(PARTS, minutes.in_parts(_of_parts()), strict=True))
    for part in parts:
        of_part = [c for c in CHAPTERS if c.part == part]
        rows.append([f"*{part}*", "", "", hours[part]])
        for c in of_part:
            title = f"[{c.title}]({c.slug}.ipynb)" if link and c.slug != START_HERE.stem else c.title
            builds_on = ", ".join(sorted(named(name).number for name in c.builds_on))
            rows.append([f"{c.number} {title}", c.idea, builds_on, f"{takes[c.number].rounded().core} min"])
    return rows


def _of_parts():
    """Return the minutes of each part of the course, without Start here, as the routes count."""
    takes = times()
    return [sum(takes[c.number].core for c in CHAPTERS[1:] if c.part == part) for part in PARTS]


def _in_all():
    more = minutes.in_words(sum(taken.optional for taken in times().values()))
    whole = minutes.in_words(sum(_of_parts()))
    return ["*the whole course*", f"optional sections take {more} more", "", whole]


def routes() -> str:
    """Return the routes as a table in Markdown."""
    takes = times()
    rows = [
        [one.name, ", ".join(one.numbers), minutes.in_words(sum(takes[n].core for n in one.numbers)), one.end]
        for one in ROUTES
    ]
    return markdown.table(["", "chapters", "time", "what you will have"], rows)


def readme(text) -> str:
    """Return the text of the README with current tables."""
    text = markdown.replaced(
        text, "speed", results.in_short(results.read("h200_hopper"), results.read("h200_hopper_backward"))
    )
    text = markdown.replaced(text, "routes", routes())
    return markdown.replaced(text, "chapters", chapters())


def changelog(text) -> str:
    """Return the text of CHANGELOG with the current table of where each earlier chapter is."""
    rows = [
        [f"{was.number} {was.title}", ", ".join(f"{c.number} {c.title}".strip() for c in was.chapters())]
        for was in EARLIER_CHAPTERS
    ]
    return markdown.replaced(text, "earlier chapters", markdown.table(["before", "now"], rows))


def start_here(nb):
    """Return the notebook Start here with current tables."""
    for name, made in (("chapters", linked_chapters()), ("routes", routes())):
        (cell,) = (cell for cell in nb.cells if markdown.holds(cell.source, name))
        cell.source = markdown.replaced(cell.source, name, made)
    return nb


def headed() -> set[str]:
    """Write the heads of all chapters, links to the next, and heads of the solved notebooks.

    Return the numbers of the chapters that changed.
    """
    changed = set()
    for c in NOTEBOOKS:
        path = START_HERE.with_name(f"{c.slug}.ipynb")
        nb = chapter_heads.stated(notebooks.read(path), c)
        if notebooks.write(path, notebooks.to_text(nb)):
            changed.add(c.number or c.name)
        answers = path.parent / notebooks.SOLVED / path.name
        if answers.exists():
            of_answers = notebooks.read(answers)
            for at in (0, -1):
                of_answers.cells[at].source = solved.solved(nb).cells[at].source
            notebooks.write(answers, notebooks.to_text(of_answers))
    return changed


def write() -> set[str]:
    """Write everything; return the numbers of the chapters to execute again.

    These are the chapters whose head changed, since their solved notebooks lack the change, and Start here if its
    stored list of exercises is out of date.
    """
    changed = headed()
    notebooks.write(START_HERE, notebooks.to_text(start_here(notebooks.read(START_HERE))))
    changed |= headed()  # reading the tables takes time too
    notebooks.write(README, readme(README.read_text(encoding="utf-8")))  # it has the time of Start here
    notebooks.write(CHANGELOG, changelog(CHANGELOG.read_text(encoding="utf-8")))
    notebooks.write(RESULTS, results.page())
    card_questions.write()
    for path, name, made in (
        (README, "totals", totals.in_short()),
        (CONTRIBUTING, "totals", totals.in_full()),
        (KERNELS, "kernels", kernel_list.table()),
    ):
        notebooks.write(path, markdown.replaced(path.read_text(encoding="utf-8"), name, made))
    if f" of {len(EXERCISES)} exercises solved" not in START_HERE.read_text(encoding="utf-8"):
        changed.add(CHAPTERS[0].number)
    return changed


if __name__ == "__main__":
    if again := write():
        print("Execute again:", "; ".join(f"make notebooks CHAPTER={number}" for number in sorted(again)))
