"""Check the answers in the notebooks of a class.

No notebook is executed: the source of each answer is taken out of it (see `answer_source`) and runs in the process
that checks it, in a folder of its own. All notebooks are read before the first answer runs.
"""

import ast
import contextlib
import importlib.util
import linecache
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from flashlib.checks.classroom import answer_source, notebook_file
from flashlib.checks.engine.exercises import EXERCISES, examine_answer
from flashlib.checks.engine.random_cases import new_seed
from flashlib.checks.engine.verdict import Outcome, Verdict
from flashlib.learner import process
from flashlib.learner.error_text import error_text

CALL = re.compile(r"^[^#\n]*\bchecks\.(\w+)\(", re.MULTILINE)
LONGEST = 300  # characters of a sentence


class Row(NamedTuple):
    """One line of the table: the outcome of an exercise in a notebook; "" for the notebook as a whole."""

    notebook: str
    exercise: str
    outcome: str
    sentence: str


class Notebook(NamedTuple):
    """A notebook that was read. answers: {exercise: its Answer, or why there is none}; problem: what is wrong."""

    name: str
    answers: dict
    problem: str


def read(folder: Path) -> list[Notebook]:
    """Return the Notebooks under `folder`, sorted by their names; raises ValueError if there are none."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{plain(str(folder))} is not a folder; pass the one that holds the notebooks")
    found = sorted(notebook_file.paths(folder), key=lambda one: one[0].relative_to(folder).parts)
    if not found:
        raise ValueError(f"there is no notebook (.ipynb) in {plain(str(folder))}")
    return [_read(path, plain(path.relative_to(folder).as_posix()), problem) for path, problem in found]


def _read(path, name, problem):
    if problem:
        return Notebook(name, {}, problem)
    try:
        return Notebook(name, _answers(notebook_file.cells(path)), "")
    except ValueError as error:
        return Notebook(name, {}, str(error))


def _answers(cells):
    """Return {exercise: its Answer, or a sentence on why there is none}, in the order of the notebook."""
    found, owners, broken, first = [], [], "", {}
    for cell in cells:
        first.setdefault(cell.stub, cell.number)
        try:
            found += (new := answer_source.statements(cell.source))
            owners += [cell.number] * len(new)
        except SyntaxError as error:
            broken = broken or f"cell {cell.number} is not Python ({error.msg}, line {error.lineno})"
            for name in CALL.findall(cell.source):
                first.setdefault(name, cell.number)
    not_run = f"its check was not run; {broken}" if broken else "its check was not run"
    answers = {name: not_run for name in first if name in EXERCISES}
    for number, name, given in answer_source.calls(found, EXERCISES):
        first[name] = min(owners[number], first.get(name, owners[number]))
        try:
            answers[name] = _reason(made := answer_source.answer(found, number, given), broken) or made
        except (RecursionError, MemoryError):
            answers[name] = "what it uses is nested too deeply to be taken out of the notebook"
    return dict(sorted(answers.items(), key=lambda one: first[one[0]]))


def _reason(answer, broken):
    """Return why an Answer cannot be checked, or ""."""
    if answer.missing:
        names = ", ".join(answer.missing)
        return f"it uses {names}, made by code that is not run for the table: define it at the top of a cell"
    if answer.undefined:
        why = f"{', '.join(answer.undefined)} is not defined before its check"
        return f"{why}; {broken}" if broken else why
    return ""


def verdicts(notebook: Notebook) -> list[Row]:
    """Return the Rows of a Notebook; for each exercise the last check in it counts."""
    if notebook.problem:
        return [Row(notebook.name, "", "failed", _line(notebook.problem))]
    rows = []
    for exercise, answer in notebook.answers.items():
        if isinstance(answer, str):
            rows.append(Row(notebook.name, exercise, "no verdict", _line(answer)))
            continue
        if EXERCISES[exercise].triton and not importlib.util.find_spec("triton"):
            rows.append(Row(notebook.name, exercise, "not checked", "it needs Triton, which is not installed"))
            continue
        verdict = EXERCISES[exercise].judged(_examine, exercise, answer.source, answer.expression, new_seed())
        rows.append(Row(notebook.name, exercise, str(verdict.outcome), _line(verdict.sentence)))
    return rows or [Row(notebook.name, "", "no exercises", "")]


def _examine(exercise, source, expression, seed):
    """Return the Verdict on an answer, given by its source; this runs in the process that checks it."""
    _close_streams()
    file = process.ANSWER_FILE
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # Triton reads it
    names = {"__name__": "__answer__"}
    try:
        exec(compile(source, file, "exec"), names)
        answer = eval(compile(ast.parse(expression, mode="eval"), file, "eval"), names)
    except BaseException as error:
        sentence = f"what defines the answer raises {error_text(error)}"
        return Verdict(exercise, Outcome.NOT_CHECKED, sentence)
    return examine_answer(exercise, answer, seed)


def _close_streams():
    """Let nothing that an answer writes reach the terminal, which would act on some characters."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)


def table(rows: list[Row]) -> str:
    """Return the rows as text in columns, and how many exercises are right."""
    head = Row("notebook", "exercise", "outcome", "")
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(3)]
    lines = [
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, [*widths, 0], strict=True))
        for row in [head, *rows]
    ]
    exercises = [row for row in rows if row.exercise]
    right = sum(row.outcome == Outcome.RIGHT for row in exercises)
    failed = sum(row.outcome == "failed" for row in rows)
    lines.append(f"{right} of {len(exercises)} exercises right")
    if failed:
        lines[-1] = f"{right} of {len(exercises)} exercises right, {failed} notebooks failed"
    return "\n".join(line.rstrip() for line in lines)


def plain(text: str) -> str:
    """Return a text with what a terminal would act on written out, as \\x1b."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _line(text):
    """Return the first line of a text, plain, and cut."""
    line = plain((text.splitlines() or [""])[0])
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} ..."


def run(folder: Path) -> Iterator[list[Row]]:
    """Yield the Rows of every notebook under `folder`."""
    notebooks = read(folder)
    if any(EXERCISES[name].triton for notebook in notebooks for name in notebook.answers):
        with contextlib.suppress(ImportError):
            import flashlib.kernels  # noqa: F401  now, so that not each process imports it anew
    for notebook in notebooks:
        yield verdicts(notebook)
