"""Print the known mistakes of a chapter, as diffs: python -m flashlib.checks.mistakes inference

For each exercise it prints the rows of its table: the id, the sentence, and for each way to make the mistake the
changes in the right program. `engine.mistake_tables` explains how tables are written.
"""

import argparse
import difflib
import sys
from collections.abc import Iterator

from flashlib.chapters import NOTEBOOKS, Chapter
from flashlib.checks import EXERCISES
from flashlib.checks.engine.exercises import Exercise
from flashlib.checks.engine.mistake_tables import tables


def chapter_of(text: str) -> Chapter:
    """Return the Chapter with a number, a slug or a name; raises ValueError if none with exercises has it."""
    chapters = [c for c in NOTEBOOKS if any(e.chapter == c.slug for e in EXERCISES.values())]
    for chapter in chapters:
        if text.lower() in (chapter.number, chapter.number.lstrip("0"), chapter.slug, chapter.name):
            return chapter
    names = ", ".join(f"{c.number} {c.name}".lstrip() for c in chapters)
    raise ValueError(f"there is no chapter {text!r} with exercises; pass the number or the name of one: {names}")


def description(exercise: Exercise) -> Iterator[str]:
    """Yield lines that describe the known mistakes of an exercise; ValueError names a way that is not an edit."""
    program = exercise.known.program
    for mistake in tables()[exercise.known.table].values():
        yield f"{mistake.id}{'*' * mistake.often}: {mistake.sentence}"
        for way in mistake.ways:
            try:
                right, wrong = (text.splitlines() for text in (program.source, program.edited(way).source))
            except ValueError as error:
                raise ValueError(f"[{exercise.name}] {mistake.id}: {error}") from None
            yield from difflib.unified_diff(right, wrong, exercise.name, mistake.id, lineterm="")
            yield ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.checks.mistakes", description=__doc__)
    parser.add_argument("chapter", help="its number, slug or name: 15, 15_pages or pages")
    try:
        chapter = chapter_of(parser.parse_args().chapter)
        for exercise in EXERCISES.values():
            if exercise.chapter == chapter.slug:
                print(f"\n==== {exercise.name}: {exercise.title}", *description(exercise), sep="\n")
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
