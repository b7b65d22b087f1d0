"""Run the notebooks of a class and collect the verdicts in them."""

import json
import re
from pathlib import Path
from typing import NamedTuple

from flashlib.checks.exercise import EXERCISES
from flashlib.checks.notebook import execute
from flashlib.checks.progress_file import VARIABLE
from flashlib.checks.verdict import MIME

CELL_TIMEOUT = 60  # seconds; then the cell is interrupted and the rest of the notebook is run
TIMEOUT = 600  # seconds for a notebook
CALL = re.compile(r"\bchecks\.(\w+)\(")


class Row(NamedTuple):
    """One line of the table: what came of an exercise in a notebook; "" for the notebook as a whole."""

    notebook: str
    exercise: str
    outcome: str
    sentence: str


def notebooks(folder):
    """Return the paths of the notebooks under `folder`, sorted; raises ValueError if there are none."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder; pass the one that holds the notebooks")
    found = sorted(p for p in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
    if not found:
        raise ValueError(f"there is no notebook (.ipynb) in {folder}")
    return found


def verdicts(path, name) -> list[Row]:
    """Execute the notebook at `path`, which stays as it is, and return its Rows; `name` stands for it in them."""
    try:
        text = path.read_text(encoding="utf-8")
        asked = _exercises(json.loads(text))
        done = json.loads(
            execute(
                text,
                path.parent,
                cell_timeout=CELL_TIMEOUT,
                timeout=TIMEOUT,
                interrupt=True,
                **{VARIABLE: "off"},
            )
        )
    except (TimeoutError, RuntimeError) as error:
        return [Row(name, "", "failed", str(error).splitlines()[-1].removeprefix("nbclient.exceptions."))]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return [Row(name, "", "failed", f"it is no notebook that can be read ({type(error).__name__})")]
    given, first_error = _collected(done)
    rows = [Row(name, exercise, *given[exercise]) for exercise in asked if exercise in given]
    rows += [Row(name, exercise, "no verdict", first_error) for exercise in asked if exercise not in given]
    return rows or [Row(name, "", "no exercises", first_error)]


def table(rows) -> str:
    """Return the rows as text in columns, and how many exercises are right."""
    head = Row("notebook", "exercise", "outcome", "")
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(3)]
    lines = [
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, [*widths, 0], strict=True))
        for row in [head, *rows]
    ]
    exercises = [row for row in rows if row.exercise]
    right = sum(row.outcome == "right" for row in exercises)
    failed = sum(row.outcome == "failed" for row in rows)
    lines.append(
        f"{right} of {len(exercises)} exercises right" + (f", {failed} notebooks failed" if failed else "")
    )
    return "\n".join(line.rstrip() for line in lines)


def _exercises(nb):
    """Return the names of the exercises that are checked in a notebook, in order."""
    sources = ["".join(cell["source"]) for cell in nb["cells"] if cell["cell_type"] == "code"]
    return list(dict.fromkeys(name for text in sources for name in CALL.findall(text) if name in EXERCISES))


def _collected(nb):
    """Return {exercise: (outcome, sentence)} of the last verdict on each, and a sentence on the first error."""
    given, first_error = {}, ""
    for number, cell in enumerate(nb["cells"]):
        for output in cell.get("outputs", []):
            verdict = output.get("data", {}).get(MIME)
            if verdict:
                given[verdict["exercise"]] = verdict["outcome"], verdict["sentence"]
            elif output["output_type"] == "error" and not first_error:
                first_error = f"cell {number} raised {output['ename']}: {output['evalue']}".splitlines()[0]
    return given, first_error


def run(folder):
    """Yield the Rows of every notebook under `folder`."""
    folder = Path(folder)
    for path in notebooks(folder):
        yield verdicts(path, str(path.relative_to(folder)))
