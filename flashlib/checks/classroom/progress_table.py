"""`checks.progress()`: which exercises are solved, chapter by chapter, and which of them are on the route."""

import html
from itertools import groupby

from flashlib.chapters import chapter
from flashlib.checks.engine.exercises import EXERCISES, Exercise
from flashlib.checks.engine.progress_file import solved

ROUTE = "→"  # shown before a chapter on the route
LEGEND = f"{ROUTE} on the route; in brackets: optional exercises"


class Progress:
    """The exercises of all chapters, and which of them are solved; `problem`: why this cannot be kept, or ""."""

    def __init__(self, done: dict[str, str], problem: str) -> None:
        self.done, self.problem = done, problem

    def chapters(self) -> list[tuple[str, list[tuple[Exercise, bool]]]]:
        """Return [(chapter, [(exercise, whether it is solved), ...]), ...]."""
        by_chapter = groupby(EXERCISES.values(), key=lambda exercise: exercise.chapter)
        return [(name, [(e, e.name in self.done) for e in exercises]) for name, exercises in by_chapter]

    def __repr__(self):
        lines = [self._counted()]
        for slug, exercises in self.chapters():
            marks = "  ".join(_mark(exercise, solved, exercise.name) for exercise, solved in exercises)
            of_it = chapter(slug)
            lines.append(f"{ROUTE if of_it.on_route else ' '} {of_it.number or of_it.title}  {marks}")
        return "\n".join([*lines, LEGEND, *filter(None, [self.problem])])

    def _repr_mimebundle_(self, include=None, exclude=None):
        rows = []
        for slug, exercises in self.chapters():
            marks = html.escape(" · ".join(_mark(e, solved, e.title) for e, solved in exercises))
            core = [solved for exercise, solved in exercises if not exercise.optional]
            count = f"{sum(core)} of {len(core)}"
            of_it = chapter(slug)
            link = f'<a href="{slug}.ipynb">{of_it.number or html.escape(of_it.title)}</a>'
            link = f"{ROUTE} <b>{link}</b>" if of_it.on_route else link
            left = 'style="text-align: left"'
            rows.append(f"<tr><td>{link}</td><td>{count}</td><td {left}>{marks}</td></tr>")
        below = "<br>".join(filter(None, [LEGEND, html.escape(self.problem)]))
        table = f"<p><b>{self._counted()}</b></p><table>{''.join(rows)}</table><p>{below}</p>"
        return {"text/plain": repr(self), "text/html": table}

    def _counted(self):
        of_route = [name for name, exercise in EXERCISES.items() if exercise.on_route]
        counts = [f"{sum(name in self.done for name in names)} of {len(names)}" for names in (EXERCISES, of_route)]
        return "{} exercises solved, {} on the route".format(*counts)


def _mark(exercise, solved, text):
    """Return the mark and text of an exercise, in brackets if it is optional."""
    mark = f"{'✓' if solved else '○'} {text}"
    return f"({mark})" if exercise.optional else mark


def progress() -> Progress:
    """Return which exercises are solved, for display in a notebook."""
    return Progress(*solved())
