"""The solved notebooks, and the solutions folded in the chapters, both made from flashlib.checks.engine.solutions.

In a chapter the text of an exercise is a markdown cell tagged `exercise:name`, and the cell in which it is solved
is tagged `stub:name`.
"""

import copy
import json
import re

from flashlib.checks.engine import solutions
from flashlib.checks.engine.prediction import questions

SOLUTION = re.compile(r"(<summary>Solution</summary>\s*```python\n)(.*?)(```)", re.DOTALL)
WIDTH = 115  # of a line, as in pyproject.toml
PREDICTED = re.compile(r'checks\.predict\("(\w+)"\)')
UP = [  # a solved notebook is one folder deeper
    (re.compile(r"\]\((?=\w+\.ipynb\b)"), "](../"),
    (re.compile(r'(?<=Path\(")(?=data/)'), "../"),
]


def named(cell, kind):
    """Return the name in the tag `kind:name` of a cell, or None."""
    tags = cell.metadata.get("tags", [])
    return next((tag.removeprefix(f"{kind}:") for tag in tags if tag.startswith(f"{kind}:")), None)


def with_solutions(nb):
    """Return a copy of a chapter in which the folded solutions are those of flashlib.checks.engine.solutions."""
    nb = copy.deepcopy(nb)
    for cell in nb.cells:
        if name := named(cell, "exercise"):
            text = solutions.text(name)
            cell.source, n = SOLUTION.subn(lambda match: f"{match[1]}{text}\n{match[3]}", cell.source)  # noqa: B023
            if n != 1:
                raise ValueError(f"the text of exercise {name} has {n} folded solutions in Python, not one")
    return nb


def solved(nb):
    """Return a copy of a chapter with every exercise solved and every prediction right."""
    nb = copy.deepcopy(nb)
    for cell in nb.cells:
        if name := named(cell, "stub"):
            cell.source = solutions.text(name)
        if cell.cell_type == "code" and (match := PREDICTED.search(cell.source)):
            cell.source = _answered(questions()[match[1]])
        for pattern, replacement in UP:
            cell.source = pattern.sub(replacement, cell.source)
    return nb


def asks(nb):
    """Return whether a chapter has exercises or predictions, and so a solved notebook."""
    return any(
        named(cell, "stub") or (cell.cell_type == "code" and PREDICTED.search(cell.source)) for cell in nb.cells
    )


def _answered(question):
    """Return the call of checks.predict with the right answers, formatted as by ruff."""
    right = question.answer()
    parts = right.items() if isinstance(right, dict) else [("", right)]
    given = [f'"{question.name}"', *(f"{part}={_written(x)}" if part else _written(x) for part, x in parts)]
    one, two = ", ".join(given), f"    {', '.join(given)}"
    if len(f"checks.predict({one})") <= WIDTH:
        return f"checks.predict({one})"
    lines = [two] if len(two) <= WIDTH else [f"    {x}," for x in given]
    return "\n".join(["checks.predict(", *lines, ")"])


def _written(value):
    """Return a right answer formatted as by ruff: a float with four digits, a set in order."""
    if isinstance(value, set | frozenset) and value:
        return f"{{{', '.join(map(_written, sorted(value)))}}}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return f"{value:.4g}" if isinstance(value, float) and not value.is_integer() else repr(value)
