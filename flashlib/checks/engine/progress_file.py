"""Solved exercises and predictions, kept in a small file next to the notebooks; it may be deleted at any time.

The file is `progress.json` in the folder `workspace` that contains the notebook, or the file named by the
environment variable FLASHLIB_PROGRESS ("off": none). Elsewhere nothing is kept, so tests and CI leave no file
behind.
"""

import json
import os
from dataclasses import replace
from datetime import date
from pathlib import Path

from flashlib.checks.engine.verdict import Verdict

VARIABLE = "FLASHLIB_PROGRESS"


def path() -> Path | None:
    """Return the Path of the progress file, or None if nothing is kept."""
    named = os.environ.get(VARIABLE)
    if named:
        return None if named == "off" else Path(named)
    try:
        here = Path.cwd()
    except OSError:  # the folder is gone
        return None
    return next((folder / "progress.json" for folder in (here, *here.parents) if folder.name == "workspace"), None)


def solved() -> tuple[dict[str, str], str]:
    """Return ({exercise: date of its first right answer}, why progress cannot be kept, as a sentence, or "")."""
    found, problem = _read()
    return found["solved"], problem


def predicted() -> dict[str, dict[str, str]]:
    """Return {question: {part: what was typed}}."""
    return _read()[0]["predicted"]


def _read():
    """Return the contents of the file, {"solved": ..., "predicted": ...}, and why it cannot be kept, or ""."""
    nothing = {"solved": {}, "predicted": {}}
    file = path()
    if file is None:
        return nothing, "Progress is kept in the folder workspace, which make lab makes; it is not kept here."
    try:
        if not file.exists():
            return nothing, ""
        found = json.loads(file.read_text(encoding="utf-8"))
        days = {str(name): str(day) for name, day in found["solved"].items()}
        typed = found.get("predicted", {}).items()
        parts = {str(name): {str(part): str(text) for part, text in given.items()} for name, given in typed}
        return {"solved": days, "predicted": parts}, ""
    except OSError as error:
        return nothing, f"{file.name} cannot be read ({error.strerror}), so progress is not kept."
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return (
            nothing,
            f"{file.name} is no longer a progress file, and is left as it is: delete it to start over.",
        )


def _write(found):
    """Replace the file; return why that is not possible, or ""."""
    file = path()
    part = file.with_suffix(f".{os.getpid()}")
    try:
        part.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        part.replace(file)  # atomic, so that no other notebook reads half a file
    except OSError as error:
        return f"{file.name} cannot be written ({error.strerror}), so progress is not kept."
    return ""


def keep_prediction(name: str, given: dict[str, str]) -> None:
    """Store what was typed, {part: text}, if a file can be kept."""
    found, problem = _read()
    if not problem:
        found["predicted"][name] = given
        _write(found)


def record(verdict: Verdict) -> Verdict:
    """Record that the exercise of a right verdict is solved; return the verdict, with a note if that failed."""
    if not verdict.right or path() is None:
        return verdict
    found, problem = _read()
    if not problem and verdict.exercise not in found["solved"]:
        found["solved"][verdict.exercise] = date.today().isoformat()
        problem = _write(found)
    return replace(verdict, details=(*verdict.details, ("note", problem))) if problem else verdict
