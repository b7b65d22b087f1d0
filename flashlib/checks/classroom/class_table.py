"""Run the notebooks of a class and collect the verdicts of the checks in them."""

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from flashlib.checks.classroom.notebook import execute
from flashlib.checks.engine import progress_file
from flashlib.checks.engine.exercises import EXERCISES
from flashlib.checks.engine.verdict import Outcome

CELL_TIMEOUT = 60  # seconds; then the cell is interrupted and the rest of the notebook is run
TIMEOUT = 600  # seconds for a notebook
CALL = re.compile(r"\bchecks\.(\w+)\(")
NOT_RUN = "its check was not run"


class Row(NamedTuple):
    """One line of the table: the outcome of an exercise in a notebook; "" for the notebook as a whole."""

    notebook: str
    exercise: str
    outcome: str
    sentence: str


def notebooks(folder: Path) -> list[Path]:
    """Return the paths of the notebooks under `folder`, sorted; raises ValueError if there are none."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; pass the one that holds the notebooks")
    found = sorted(p for p in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
    if not found:
        raise ValueError(f"there is no notebook (.ipynb) in {folder}")
    return found


def verdicts(path: Path, name: str) -> list[Row]:
    """Execute the notebook at `path`, which stays as it is, and return its Rows; `name` stands for it in them.

    For each exercise the last check that ran counts. Outputs that the notebook stores are thrown away.
    """
    try:
        nb = _without_outputs(json.loads(path.read_text(encoding="utf-8")))
        asked = _exercises(nb)
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "verdicts"
            variables: dict = {progress_file.VARIABLE: "off", progress_file.LOG: str(log)}
            times: dict = {"cell_timeout": CELL_TIMEOUT, "timeout": TIMEOUT, "interrupt": True}
            done = json.loads(execute(json.dumps(nb), path.parent, **times, **variables))
            given = _logged(log)
    except (TimeoutError, RuntimeError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[-1]
        return [Row(name, "", "failed", _line(said.removeprefix("nbclient.exceptions.")))]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return [Row(name, "", "failed", f"it is not a notebook that can be read ({type(error).__name__})")]
    reason = _first_error(done)
    rows = [Row(name, exercise, *given[exercise]) for exercise in given]
    rows += [Row(name, exercise, "no verdict", reason or NOT_RUN) for exercise in asked if exercise not in given]
    return rows or [Row(name, "", "no exercises", reason)]


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
    lines.append(
        f"{right} of {len(exercises)} exercises right" + (f", {failed} notebooks failed" if failed else "")
    )
    return "\n".join(line.rstrip() for line in lines)


def _without_outputs(nb):
    """Return a notebook without what it stores: some cells are not run, and would keep it."""
    for cell in nb["cells"]:
        cell.pop("outputs", None)
        if cell["cell_type"] == "code":
            cell["outputs"] = []
    return nb


def _exercises(nb):
    """Return the names of the exercises that a notebook has, by its tags or by calls of their checks, in order."""
    found = []
    for cell in nb["cells"]:
        if cell["cell_type"] == "code":
            tags = [tag.partition(":")[2] for tag in cell.get("metadata", {}).get("tags", []) if "stub:" in tag]
            found += [*tags, *CALL.findall("".join(cell["source"]))]
    return [name for name in dict.fromkeys(found) if name in EXERCISES]


def _logged(log):
    """Return {exercise: (outcome, sentence)} of the last verdict on each."""
    if not log.exists():
        return {}
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return {line["exercise"]: (line["outcome"], _line(line["sentence"])) for line in lines}


def _first_error(nb):
    """Return a sentence on the first cell that raised, or ""."""
    for number, cell in enumerate(nb["cells"]):
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                return _line(f"cell {number} raised {output['ename']}: {output['evalue']}")
    return ""


def _line(text):
    """Return the first line of a text."""
    return (str(text).splitlines() or [""])[0]


def run(folder: Path) -> Iterator[list[Row]]:
    """Yield the Rows of every notebook under `folder`."""
    folder = Path(folder)
    for path in notebooks(folder):
        yield verdicts(path, str(path.relative_to(folder)))
