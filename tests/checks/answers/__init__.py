"""Answers for the tests: wrong ones, each with the mistake that its check must name, and right ones.

Where the program of an exercise is an answer, each way to make a known mistake in it gives a wrong answer. Others
are edits of the solution, in the table of the exercise in `wrong.txt` of its chapter: rows are the id that must be
named and a few words, and an id may come again. Answers in another style altogether stand in `wrong*.py` and
`right*.py`, each after a line `# exercise, id: a few words`, or `# exercise: a few words`.
"""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from flashlib.checks.engine import mistakes, solutions
from flashlib.checks.engine.exercise import EXERCISES
from flashlib.checks.engine.program import Program

FOLDER = Path(__file__).parent
MARK = re.compile(r"^# (\w+)(?:, (\w+(?: and \w+)?))?: (.+)\n", re.MULTILINE)


class Answer(NamedTuple):
    """An answer: its exercise, the id of the mistake that must be named ("" if it is right), words, its text."""

    exercise: str
    mistake: str
    words: str
    program: Program

    @property
    def source(self):
        return self.program.source


@cache
def wrong() -> list[Answer]:
    """Return all wrong answers, each once."""
    found = [*_generated(), *_edited(), *_written("wrong*.py")]
    return list({(answer.exercise, answer.source): answer for answer in found}.values())


@cache
def right() -> list[Answer]:
    """Return all right answers beside the solutions: programs of which mistakes are edits, and others."""
    programs = [(e.name, e.known.program) for e in EXERCISES.values() if _is_answer(e)]
    found = [Answer(name, "", "program", program) for name, program in programs]
    return [a for a in found if a.source != solutions.text(a.exercise)] + _written("right*.py")


def _is_answer(exercise):
    program = exercise.known.program
    return program is not None and f"def my_{exercise.name}(" in program.source


def _generated():
    for exercise in filter(_is_answer, EXERCISES.values()):
        for mistake in exercise.known.mistakes():
            for way in mistake.ways:
                yield Answer(exercise.name, mistake.id, way, exercise.known.program.edited(way))


def _edited():
    tables = {}
    for path in sorted(FOLDER.glob("*/wrong.txt")):
        mistakes.read(path, tables, joined=True)
    for name in EXERCISES:
        program = solutions.program(name)
        for row in tables.get(name, {}).values():
            for way in row.ways:
                yield Answer(name, row.id, row.sentence, program.edited(way))


def _written(pattern):
    found = []
    for path in sorted(FOLDER.glob(f"*/{pattern}")):
        _, *sections = MARK.split(path.read_text(encoding="utf-8"))
        for name, mistake, words, text in zip(*(sections[n::4] for n in range(4)), strict=True):
            program = Program(text.strip("\n"), solutions.program(name).names)
            found.append(Answer(name, mistake or "", words, program))
    return found
