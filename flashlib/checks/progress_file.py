"""Which exercises are solved, kept in a small file beside the learner's notebooks; it may be deleted at any time.

The file is `progress.json` in the folder `workspace` that the notebook is in, or what the environment variable
FLASHLIB_PROGRESS names ("off": none). Elsewhere nothing is kept, so tests and CI leave no file behind.
"""

import json
import os
from dataclasses import replace
from datetime import date
from pathlib import Path

VARIABLE = "FLASHLIB_PROGRESS"
LOG = "FLASHLIB_VERDICTS"  # names a file to which each verdict is added, a line of JSON, for the table of a class


def path():
    """Return the Path of the progress file, or None where nothing is kept."""
    named = os.environ.get(VARIABLE)
    if named:
        return None if named == "off" else Path(named)
    here = Path.cwd()
    return next((folder / "progress.json" for folder in (here, *here.parents) if folder.name == "workspace"), None)


def solved():
    """Return ({exercise: date of its first right answer}, a sentence on what hinders keeping it, or "")."""
    file = path()
    if file is None:
        return {}, "Progress is kept in the folder workspace, which make lab makes; it is not kept here."
    if not file.exists():
        return {}, ""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))["solved"]
        return {str(name): str(day) for name, day in found.items()}, ""
    except OSError as error:
        return {}, f"{file.name} cannot be read ({error.strerror}), so progress is not kept."
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}, f"{file.name} is not a progress file any more, and is left as it is: delete it to start anew."


def record(verdict):
    """Return the verdict, once it is recorded that its exercise is solved; with a note if that is not possible."""
    if log := os.environ.get(LOG):
        with open(log, "a", encoding="utf-8") as file:
            file.write(json.dumps(verdict.data) + "\n")
    file = path()
    if not verdict.right or file is None:
        return verdict
    done, problem = solved()
    if not problem and verdict.exercise not in done:
        text = json.dumps({"solved": {**done, verdict.exercise: date.today().isoformat()}}, indent=1) + "\n"
        part = file.with_suffix(f".{os.getpid()}")
        try:
            part.write_text(text, encoding="utf-8")
            part.replace(file)  # at once, so that no other notebook reads half a file
        except OSError as error:
            problem = f"{file.name} cannot be written ({error.strerror}), so progress is not kept."
    return replace(verdict, details=(*verdict.details, ("note", problem))) if problem else verdict
