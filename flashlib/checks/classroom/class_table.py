"""Check the answers in the notebooks of a class.

Notebooks are not executed: the source of each answer is taken from its notebook (see `answer_source`) and runs in
the process that checks it, in a new folder. All notebooks are read before the first answer runs.
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
from flashlib.checks.engine.exercises import EXERCISES, examine_answer, gone
from flashlib.checks.engine.random_cases import new_seed
from flashlib.checks.engine.verdict import Outcome, Verdict
from flashlib.earlier import GONE
from flashlib.learner import process
from flashlib.learner.error_text import error_text

CALL = re.compile(r"^[^#\n]*\bchecks\.(\w+)\(", re.MULTILINE)
LONGEST = 300  # characters of a sentence


class TableRow(NamedTuple):
    """A line of the table: the outcome of an exercise in a notebook; exercise: "" for the whole notebook."""

    notebook: str
    exercise: str
    outcome: str
    sentence: str


class NotebookAnswers(NamedTuple):
    """The answers in a notebook, {exercise: its Answer, or why there is none}; problem: why it cannot be read."""

    name: str
    answers: dict
    problem: str


def read(folder: Path) -> list[NotebookAnswers]:
    """Return the NotebookAnswers under `folder`, sorted by name; raises ValueError if there are none."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{escaped(str(folder))} is not a folder; pass the folder that contains the notebooks")
    found = sorted(notebook_file.paths(folder), key=lambda one: one[0].relative_to(folder).parts)
    if not found:
        raise ValueError(f"there is no notebook (.ipynb) in {escaped(str(folder))}")
    return [_read(path, escaped(path.relative_to(folder).as_posix()), problem) for path, problem in found]


def _read(path, name, problem):
    if problem:
        return NotebookAnswers(name, {}, problem)
    try:
        return NotebookAnswers(name, _answers(notebook_file.cells(path)), "")
    except ValueError as error:
        return NotebookAnswers(name, {}, str(error))


def _answers(cells):
    """Return {exercise: its Answer, or why there is none, as a sentence}, in the order of the notebook."""
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
    answers |= {name: gone(name).sentence for name in first if name in GONE}
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


def verdicts(notebook: NotebookAnswers) -> list[TableRow]:
    """Return the rows of a notebook; the last check of each exercise counts."""
    if notebook.problem:
        return [TableRow(notebook.name, "", "failed", _line(notebook.problem))]
    rows = []
    for exercise, answer in notebook.answers.items():
        if isinstance(answer, str):
            rows.append(TableRow(notebook.name, exercise, "no verdict", _line(answer)))
            continue
        if EXERCISES[exercise].triton and not importlib.util.find_spec("triton"):
            rows.append(
                TableRow(notebook.name, exercise, "not checked", "it needs Triton, which is not installed")
            )
            continue
        if obstacles := EXERCISES[exercise].obstacles():
            rows.append(TableRow(notebook.name, exercise, "not checked", obstacles[0]))
            continue
        verdict = EXERCISES[exercise].judged(_examine, exercise, answer.source, answer.expression, new_seed())
        rows.append(TableRow(notebook.name, exercise, str(verdict.outcome), _line(verdict.sentence)))
    return rows or [TableRow(notebook.name, "", "no exercises", "")]


def _examine(exercise, source, expression, seed):
    """Return the Verdict on an answer, given as source; this runs in the process that checks it."""
    _close_streams()
    file = process.ANSWER_FILE
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # for Triton
    names = {"__name__": "__answer__"}
    try:
        exec(compile(source, file, "exec"), names)
        answer = eval(compile(ast.parse(expression, mode="eval"), file, "eval"), names)
    except BaseException as error:
        sentence = f"what defines the answer raises {error_text(error)}"
        return Verdict(exercise, Outcome.NOT_CHECKED, sentence)
    return examine_answer(exercise, answer, seed)


def _close_streams():
    """Keep the output of an answer from the terminal, which would interpret control characters."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)


def table(rows: list[TableRow]) -> str:
    """Return the rows as text in columns, and how many exercises are right."""
    head = TableRow("notebook", "exercise", "outcome", "")
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


def escaped(text: str) -> str:
    """Return a text with control characters, which a terminal would interpret, escaped as \\x1b."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _line(text):
    """Return the first line of a text, plain and cut."""
    line = escaped((text.splitlines() or [""])[0])
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} ..."


def run(folder: Path) -> Iterator[list[TableRow]]:
    """Yield the rows of each notebook under `folder`."""
    notebooks = read(folder)
    given = [name for nb in notebooks for name, answer in nb.answers.items() if not isinstance(answer, str)]
    if any(EXERCISES[name].triton for name in given):
        with contextlib.suppress(ImportError):
            import flashlib.kernels  # noqa: F401  now, so that the processes need not import it
    for notebook in notebooks:
        yield verdicts(notebook)
