"""`checks.progress()`: which exercises are solved, chapter by chapter."""

import html
from itertools import groupby

from flashlib.checks.engine.exercises import EXERCISES, Exercise
from flashlib.checks.engine.progress_file import solved


class Progress:
    """The exercises of all chapters, and which of them are solved; `problem` says why this cannot be kept."""

    def __init__(self, done: dict[str, str], problem: str) -> None:
        self.done, self.problem = done, problem

    def chapters(self) -> list[tuple[str, list[tuple[Exercise, bool]]]]:
        """Return [(chapter, [(exercise, whether it is solved), ...]), ...]."""
        by_chapter = groupby(EXERCISES.values(), key=lambda exercise: exercise.chapter)
        return [(name, [(e, e.name in self.done) for e in exercises]) for name, exercises in by_chapter]

    def __repr__(self):
        lines = [f"{sum(name in self.done for name in EXERCISES)} of {len(EXERCISES)} exercises solved"]
        for chapter, exercises in self.chapters():
            marks = "  ".join(f"{'✓' if solved else '○'} {e.name}" for e, solved in exercises)
            lines.append(f"{chapter[:2]}  {marks}")
        return "\n".join([*lines, *filter(None, [self.problem])])

    def _repr_mimebundle_(self, include=None, exclude=None):
        rows = []
        for chapter, exercises in self.chapters():
            marks = " · ".join(f"{'✓' if solved else '○'} {html.escape(e.title)}" for e, solved in exercises)
            count = f"{sum(solved for _, solved in exercises)} of {len(exercises)}"
            link = f'<a href="{chapter}.ipynb">{chapter[:2]}</a>'
            rows.append(f'<tr><td>{link}</td><td>{count}</td><td style="text-align: left">{marks}</td></tr>')
        head, *_ = repr(self).splitlines()
        table = f"<p><b>{head}</b></p><table>{''.join(rows)}</table><p>{html.escape(self.problem)}</p>"
        return {"text/plain": repr(self), "text/html": table}


def progress() -> Progress:
    """Return which exercises are solved, to be shown in a notebook."""
    return Progress(*solved())
