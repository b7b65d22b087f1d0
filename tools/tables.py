"""Write the tables of the README, of chapter 00 and of docs/results.md: python -m tools.tables

The chapters come from `flashlib.chapters`, their times from the notebooks, the speeds from the recorded runs. In
the README and in chapter 00 a table stands between two comments that say so; `tools.results` makes docs/results.md
as a whole. Tests hold that all are up to date.
"""

from pathlib import Path

from flashlib.chapters import CHAPTERS, PARTS
from tools import markdown, minutes, notebooks, results

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
START_HERE = ROOT / "notebooks" / "00_start_here.ipynb"
RESULTS = ROOT / "docs" / "results.md"


def chapters(*, link) -> str:
    """Return the chapters as a table in Markdown; link: for chapter 00, whose neighbours the others are."""
    rows, in_all = [], minutes.Minutes(0, 0, 0)
    for part in PARTS:
        of_part = [c for c in CHAPTERS if c.part == part and not (link and c.slug == START_HERE.stem)]
        if of_part:
            rows.append([f"**{part}**", "", ""])
        for c in of_part:
            takes = minutes.of(notebooks.read(START_HERE.with_name(f"{c.slug}.ipynb")))
            in_all += takes
            title = f"[{c.title}]({c.slug}.ipynb)" if link else c.title
            rows.append([f"{c.number} {title}", c.idea, f"{takes.rounded().all} min"])
    hours, core = round(in_all.all / 60), round((in_all.all - in_all.optional) / 60)
    rows.append(["**in all**", f"without the sections that are marked optional: {core} hours", f"{hours} hours"])
    return markdown.table(["chapter", "the idea", "time with exercises"], rows)


def readme(text) -> str:
    """Return the text of the README with today's tables."""
    text = markdown.replaced(
        text, "speed", results.in_short(results.read("h100_hopper"), results.read("h200_hopper_backward"))
    )
    return markdown.replaced(text, "chapters", chapters(link=False))


def start_here(nb):
    """Return the notebook of chapter 00 with today's table."""
    (cell,) = (cell for cell in nb.cells if markdown.holds(cell.source, "chapters"))
    cell.source = markdown.replaced(cell.source, "chapters", chapters(link=True))
    return nb


if __name__ == "__main__":
    START_HERE.write_text(notebooks.to_text(start_here(notebooks.read(START_HERE))), encoding="utf-8")
    README.write_text(
        readme(README.read_text(encoding="utf-8")), encoding="utf-8"
    )  # it says how long chapter 00 is
    RESULTS.write_text(results.page(), encoding="utf-8")
