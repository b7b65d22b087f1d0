"""Answers for the tests: wrong ones, each with the mistake that its check must name, and right ones.

Where the program of an exercise is an answer, each way to make a known mistake in it gives a wrong answer. Where
it is the model of a kernel, so does each way that the kernel's terms translate. Others are edits of the solution,
in the table of the exercise in `wrong.txt` of its chapter: rows are the id that must be named and a few words, and
an id may come again. `wrong_reader.txt` has such edits that a reader made of their own right answer, which stands
first, before they saw the known mistakes. Answers in another style altogether stand in `wrong*.py` and
`right*.py`, each after a line `# exercise, id: a few words`, or `# exercise: a few words`. If two have the same
text, the later one counts.
"""

import ast
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from flashlib.checks.engine import mistake_tables, solutions
from flashlib.checks.engine.exercises import EXERCISES
from flashlib.checks.engine.program import Program
from tests.checks.answers.terms import TERMS, UNLIKE

FOLDER = Path(__file__).parent
WORD = re.compile(r"\.?\b[A-Za-z_]\w*| @ ")  # a name, with its dot if it has one
OTHERS = {".element_ty", ".shape", "axis", "dim", "float", "inf"}  # beside those of triton.language
MARK = re.compile(r"^# (\w+)(?:, (\w+(?: and \w+)?))?: (.+)\n", re.MULTILINE)


class Answer(NamedTuple):
    """An answer: its exercise, the id of the mistake that must be named ("" if it is right), words, its text.

    origin: of a wrong one, "table", "terms", "edit" or "written", in the order of the docstring above.
    """

    exercise: str
    mistake: str
    words: str
    program: Program
    origin: str = ""

    @property
    def source(self):
        return self.program.source


@cache
def wrong() -> list[Answer]:
    """Return all wrong answers, each once."""
    found = [*_generated(), *_translated(), *_edited(), *_of_readers(), *_written("wrong*.py")]
    return list({(answer.exercise, answer.source): answer for answer in found}.values())


@cache
def right() -> list[Answer]:
    """Return all right answers beside the solutions: programs of which mistakes are edits, and others."""
    programs = [(e.name, e.known.program) for e in EXERCISES.values() if _is_answer(e)]
    found = [Answer(name, "", "program", program) for name, program in programs]
    of_readers = [Answer(name, "", "of a reader", program, "written") for name, program, _ in _readers()]
    others = [answer for answer in found if answer.source != solutions.program(answer.exercise).source]
    return others + of_readers + _written("right*.py")


def _is_answer(exercise):
    program = exercise.known.program
    return program is not None and f"def my_{exercise.name}(" in program.source


def _generated():
    for exercise in filter(_is_answer, EXERCISES.values()):
        for mistake in exercise.known.mistakes():
            for way in mistake.ways:
                yield Answer(exercise.name, mistake.id, way, exercise.known.program.edited(way), "table")


def _translated():
    for name, terms in TERMS.items():
        known = EXERCISES[name].known
        kernel = replace(solutions.program(name), terms=known.program.terms | terms)
        for mistake in known.mistakes():
            for way in () if mistake.id in UNLIKE.get(name, ()) else mistake.ways:
                if made := _in_kernel(kernel, way):
                    yield Answer(name, mistake.id, way, made, "terms")


def _in_kernel(kernel, way):
    """Return the kernel with an edit of its model, or None if it has no line for it or words of the model stay."""
    try:
        made = kernel.edited(way)
        ast.parse(made.source)
    except (ValueError, SyntaxError):
        return None
    tl = kernel.names["tl"]
    left = _words(made.source) - _words(kernel.source) - {f".{name}" for name in dir(tl) + dir(tl.tensor)} - OTHERS
    return None if left or made.source == kernel.source else made


def _words(source):
    return set(WORD.findall(re.sub("#.*", "", source)))


def _edited():
    tables = {}
    for path in sorted(FOLDER.glob("*/wrong.txt")):
        mistake_tables.read(path, tables, joined=True)
    for name in EXERCISES:
        program = solutions.program(name)
        for row in tables.get(name, {}).values():
            for way in row.ways:
                yield Answer(name, row.id, row.sentence, program.edited(way), "edit")


def _of_readers():
    for name, program, rows in _readers():
        for row in rows:
            for way in row.ways:
                yield Answer(name, row.id, row.sentence, program.edited(way), "written")


def _readers():
    """Return the exercise, the right answer and the rows of edits of each table that a reader wrote."""
    found = []
    for path in sorted(FOLDER.glob("*/wrong_reader.txt")):
        tables = {}
        mistake_tables.read(path, tables, joined=True)
        for name, rows in tables.items():
            text = re.sub(r"(?m)^(@|def my_)", r"\n\n\1", rows.program).strip()
            found.append((name, Program(text, solutions.program(name).names), rows.values()))
    return found


def _written(pattern):
    found = []
    for path in sorted(FOLDER.glob(f"*/{pattern}")):
        _, *sections = MARK.split(path.read_text(encoding="utf-8"))
        for name, mistake, words, text in zip(*(sections[n::4] for n in range(4)), strict=True):
            program = Program(text.strip("\n"), solutions.globals_of(name))
            found.append(Answer(name, mistake or "", words, program, "written"))
    return found
