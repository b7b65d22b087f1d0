"""A learner's copies of chapters whose number has changed since: today, another chapter may have that number."""

import json
from pathlib import Path

from flashlib.checks.classroom import course


def renumbered(source: Path, workspace: Path) -> dict[str, list[str]]:
    """Return {name of a copy: the slugs of today's chapters that its cells are in, in their order}.

    source: the folder of today's chapters. Copies are recognised by the ids of their cells. One whose name begins
    with a slug of today, such as a copy that was set aside, has its number still.
    """
    today = {path.stem: _ids(path) for path in sorted(source.glob("*.ipynb"))}
    copies = [p for p in sorted(workspace.glob("[0-9][0-9]_*.ipynb")) if not p.stem.startswith(tuple(today))]
    found = {path.name: course.sharing(_ids(path), today) for path in copies}
    return {name: sorted(slugs) for name, slugs in found.items() if slugs}


def _ids(path):
    """Return the ids of the code cells of a notebook; none if it cannot be read, which must not stop anyone."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return {str(cell["id"]) for cell in cells if cell["cell_type"] == "code"}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()
