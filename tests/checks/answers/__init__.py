"""Answers for the tests: wrong ones, each with the mistake that its check must name, and right ones.

The folder of a chapter has three kinds of files with answers. The rest of a file's name, after `right`, `edits` or
`wrong`, is free: `edits_reader.txt` is from readers who had not seen the known mistakes.

`right*.py`: right answers in other styles, each below a line `# exercise: a few words`.

`edits*.txt`: wrong answers that are edits of right ones, in the syntax of the tables of known mistakes
(`flashlib.checks.engine.mistake_tables`), except that an id may occur again:

    [longest]                           edits of the solution
    raises: the root of a float         the id that must be named, and a few words
        capacity // -> capacity /
    [longest: counted up]               edits of the right answer with these words in right*.py
    one_too_large: one step too far     a way of two edits, one on each line: the first ends in a semicolon
        N = 1;
            itemsize <= capacity -> itemsize < capacity

Tables that the files of several chapters use are in `shared/*.txt`.

`wrong*.py`: wrong answers in a completely different style, each below a line `# exercise, id: a few words`.

Other answers are generated. If the program of an exercise is an answer, each way to make a known mistake in it is
a wrong answer. If it is the model of a kernel, so is each way that the kernel's terms translate
(`kernel_terms.py`). If two wrong answers have the same text, the later one is used.
"""

import ast
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from flashlib.checks.engine import mistake_tables, solutions
from flashlib.checks.engine.exercises import EXERCISES
from flashlib.checks.engine.program import ProgramText
from tests.checks.answers.kernel_terms import TERMS, UNLIKE

FOLDER = Path(__file__).parent
WORD = re.compile(r"\.?\b[A-Za-z_]\w*| @ ")  # a name, with its dot if it has one
OTHERS = {".element_ty", ".shape", "axis", "dim", "float", "inf"}  # in addition to the names in triton.language
MARK = re.compile(r"^# (\w+)(?:, (\w+(?: and \w+)?))?: (.+)\n", re.MULTILINE)


class Answer(NamedTuple):
    """An answer: its exercise, the id of the mistake that must be named ("" if it is right), words, its text.

    origin: where a wrong answer comes from: "table" of known mistakes, "terms" of a kernel, "edit" or "written".
    """

    exercise: str
    mistake: str
    words: str
    program: ProgramText
    origin: str = ""

    @property
    def source(self):
        return self.program.source


@cache
def wrong() -> list[Answer]:
    """Return all wrong answers, each once."""
    found = [*_generated(), *_translated(), *_edited(), *_written("wrong*.py")]
    return list({(answer.exercise, answer.source): answer for answer in found}.values())


@cache
def right() -> list[Answer]:
    """Return all right answers other than the solutions: programs that mistakes edit, and those in files."""
    programs = [(e.name, e.known.program) for e in EXERCISES.values() if _is_answer(e)]
    found = [Answer(name, "", "program", program) for name, program in programs]
    others = [answer for answer in found if answer.source != solutions.program(answer.exercise).source]
    return others + _written("right*.py")


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
    """Return the kernel with an edit of its model, or None if it has no line for it or model's words remain."""
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
    for path in sorted(FOLDER.glob("*/edits*.txt")):
        yield from edits(path)


def edits(path):
    """Yield the wrong answers of a file of edits; raises ValueError, which names the file and the row."""
    shared: dict = {}
    for other in sorted(FOLDER.glob("shared/*.txt")):
        mistake_tables.read(other, shared, joined=True)
    tables = dict(shared)
    mistake_tables.read(path, tables, joined=True)
    for title, rows in tables.items():
        if title in shared:
            continue
        name, _, words = title.partition(": ")
        if name not in EXERCISES and any(rows.items() <= t.items() for t in tables.values() if t is not rows):
            continue  # a table that other tables use
        where = f"{path.parent.name}/{path.name}, [{title}]"
        base = _base(name, words, where)
        for row in rows.values():
            where_row = f"{where}, {row.id}: {row.sentence}"
            if not row.ways:
                raise ValueError(f"{where_row}: an edit belongs below it, indented by four blanks")
            for way in row.ways:
                try:
                    program = base.edited(way)
                except ValueError as error:
                    raise ValueError(f"{where_row}: {error}") from None
                yield Answer(name, row.id, row.sentence, program, "edit")


def _base(name, words, where):
    """Return the ProgramText that a table edits: the solution, or the right answer with these words."""
    if name not in EXERCISES:
        raise ValueError(f"{where}: there is no exercise {name!r}; there are {', '.join(EXERCISES)}")
    if not words:
        return solutions.program(name)
    written = [answer for answer in _written("right*.py") if answer.exercise == name]
    found = [answer.program for answer in written if answer.words == words]
    if len(found) != 1:
        others = "".join(f"\n[{name}: {answer.words}]" for answer in written)
        raise ValueError(f"{where}: {len(found)} right answers have these words, not one; there are{others}")
    return found[0]


@cache
def _written(pattern):
    found = []
    for path in sorted(FOLDER.glob(f"*/{pattern}")):
        _, *sections = MARK.split(path.read_text(encoding="utf-8"))
        for name, mistake, words, text in zip(*(sections[n::4] for n in range(4)), strict=True):
            program = ProgramText(text.strip("\n"), solutions.globals_of(name))
            found.append(Answer(name, mistake or "", words, program, "written"))
    return found
