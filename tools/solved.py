"""The solved notebooks, and the solutions folded in the chapters: both made from flashlib.checks.solutions.

In a chapter the text of an exercise is a markdown cell tagged `exercise:name`, and the cell in which it is solved
is tagged `stub:name`.
"""

import copy
import json
import re

from flashlib.checks import solutions
from flashlib.checks.prediction import questions

SOLUTION = re.compile(r"(<summary>Solution</summary>\s*```python\n)(.*?)(```)", re.DOTALL)
PREDICTED = re.compile(r'checks\.predict\(\s*"(\w+)"')
UP = [  # a solved notebook lies one folder deeper
    (re.compile(r"\]\((?=\d\d_\w+\.ipynb\))"), "](../"),
    (re.compile(r'(?<=Path\(")(?=data/)'), "../"),
]


def named(cell, kind):
    """Return the name in the tag `kind:name` of a cell, or None."""
    tags = cell.metadata.get("tags", [])
    return next((tag.removeprefix(f"{kind}:") for tag in tags if tag.startswith(f"{kind}:")), None)


def with_solutions(nb):
    """Return a copy of a chapter in which the folded solutions are those of flashlib.checks.solutions."""
    nb = copy.deepcopy(nb)
    for cell in nb.cells:
        if name := named(cell, "exercise"):
            text = solutions.text(name)
            cell.source, n = SOLUTION.subn(lambda match: f"{match[1]}{text}\n{match[3]}", cell.source)  # noqa: B023
            if n != 1:
                raise ValueError(f"the text of exercise {name} has {n} folded solutions in Python; it needs one")
    return nb


def solved(nb):
    """Return a copy of a chapter, every exercise solved and every prediction right."""
    nb = copy.deepcopy(nb)
    for cell in nb.cells:
        if name := named(cell, "stub"):
            cell.source = solutions.text(name)
        if cell.cell_type == "code" and (match := PREDICTED.search(cell.source)):
            cell.source = _answered(cell.source, questions()[match[1]])
        for pattern, replacement in UP:
            cell.source = pattern.sub(replacement, cell.source)
    return nb


def has_exercises(nb):
    """Return whether there is anything to solve in a chapter."""
    return any(named(cell, "stub") for cell in nb.cells)


def _answered(source, question):
    """Return the text of a cell that calls checks.predict with the right answers in place of the dots."""
    right = question.answer()
    if not isinstance(right, dict):
        return source.replace("...", _written(right), 1)
    for part, value in right.items():
        source = re.sub(rf"\b{part}=\.\.\.", f"{part}={_written(value)}", source)
    return source


def _written(value):
    """Return a right answer as ruff would have it: a float to four digits, a set in order."""
    if isinstance(value, set | frozenset) and value:
        return f"{{{', '.join(map(_written, sorted(value)))}}}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return f"{value:.4g}" if isinstance(value, float) and not value.is_integer() else repr(value)
