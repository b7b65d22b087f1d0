"""Which cells of a learner's notebook come from the course: those with the id of a cell in the course.

Some tools, such as nbstripout and jupytext, give cells new ids: `restore_ids` finds those cells by their source.
"""

import copy
import hashlib
import re
from collections import Counter
from difflib import SequenceMatcher
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import nbformat

from flashlib.checks.engine.verdict import MIME, Outcome
from flashlib.language.phrases import or_list

FOLDER = Path(__file__).resolve().parents[3] / "notebooks"
SANITIZE = FOLDER.parent / "tests" / "nbval.cfg"  # patterns that nbval does not compare
QUESTION = re.compile(r'checks\.predict\("\w+"\)')
VARIES = "nbval-ignore-output"  # the tag of a cell whose output may differ from run to run
ENOUGH = 2  # sources in common: one may be a coincidence
PASSES = (Outcome.RIGHT, Outcome.NOT_SOLVED)


class CellKind(StrEnum):
    """The kind of a code cell in a learner's notebook, which determines whether its outputs are compared."""

    COMPARED = "compared"
    OWN = "the learner's own"
    STUB = "an exercise's stub: its check is compared"
    QUESTION = "a question"
    DEPENDS = "shows the learner's own code"
    VARIES = "differs from run to run"
    CHANGED = "changed"


class StoredChapter(NamedTuple):
    """A chapter as the course stores it: its code cells, by id, and those of its solved notebook."""

    slug: str
    version: str
    cells: dict[str, Any]
    solved: dict[str, Any]


def version(nb: Any) -> str:
    """Return a hash of the sources of a chapter's cells."""
    return hashlib.sha256(repr([cell.source for cell in nb.cells]).encode()).hexdigest()[:12]


@cache
def chapters(folder: Path = FOLDER) -> tuple[StoredChapter, ...]:
    """Return the chapters in `folder`; raise FileNotFoundError if there are none."""
    paths = sorted(folder.glob("*.ipynb"))
    if not paths:
        raise FileNotFoundError(
            f"the course's notebooks are not in {folder}: install flashlib from a clone, pip install -e CLONE"
        )
    found = []
    for path in paths:
        nb, solved = nbformat.read(path, as_version=4), folder / "solutions" / path.name
        of_solved = _code_cells(nbformat.read(solved, as_version=4)) if solved.exists() else {}
        found.append(StoredChapter(path.stem, version(nb), _code_cells(nb), of_solved))
    return tuple(found)


def _code_cells(nb):
    return {cell.id: cell for cell in nb.cells if cell.cell_type == "code"}


def chapter_of(nb: Any, folder: Path = FOLDER) -> StoredChapter | None:
    """Return the chapter with the most code cells in common with the notebook `nb`, or None if none has any."""
    ids = {cell.get("id") for cell in nb.cells if cell.cell_type == "code"}
    most = max(chapters(folder), key=lambda chapter: len(ids & chapter.cells.keys()))
    return most if ids & most.cells.keys() else None


def restore_ids(nb: Any, folder: Path = FOLDER) -> int:
    """Give code cells of the notebook `nb`, in memory, the course's ids; return how many had lost theirs.

    A cell is identified by its source and by the order of cells. If no cell has an id of the course, changed cells
    are identified too, by the cells around them.
    """
    by_ids = chapter_of(nb, folder)
    chapter = by_ids or _chapter_by_sources(nb, folder)
    if chapter is None:
        return 0
    ids = {cell.get("id") for cell in nb.cells}
    gone = [cell for name, cell in chapter.cells.items() if name not in ids]
    unknown = [cell for cell in nb.cells if cell.cell_type == "code" and cell.get("id") not in chapter.cells]
    course, mine = ([stripped(cell.source) for cell in cells] for cells in (gone, unknown))
    found, matcher = 0, SequenceMatcher(a=course, b=mine, autojunk=False)
    for what, a, a_end, b, b_end in matcher.get_opcodes():
        if what == "equal" or what == "replace" and not by_ids and a_end - a == b_end - b:
            for original, cell in zip(gone[a:a_end], unknown[b:b_end], strict=True):
                cell["id"] = original.id
                found += 1
    return found


def stripped(source: str) -> str:
    """Return a source without what tools strip: blanks at the ends of lines, empty lines at both ends."""
    return "\n".join(line.rstrip() for line in source.splitlines()).strip("\n")


def _chapter_by_sources(nb, folder):
    """Return the chapter that shares the most sources with `nb` that no other has; None for fewer than ENOUGH."""
    mine = {stripped(cell.source) for cell in nb.cells if cell.cell_type == "code"}
    shared = [mine & {stripped(cell.source) for cell in one.cells.values()} for one in chapters(folder)]
    times = Counter(source for sources in shared for source in sources)
    own = [sum(times[source] == 1 for source in sources) for sources in shared]
    most = max(own)
    return chapters(folder)[own.index(most)] if most >= ENOUGH else None


def kind(cell: Any, chapter: StoredChapter | None) -> CellKind:
    """Return the kind of the code cell `cell` in a copy of `chapter`; None: the notebook is not the course's."""
    original = chapter.cells.get(cell.get("id")) if chapter else None
    if chapter is None or original is None:
        return CellKind.OWN
    if QUESTION.match(original.source):
        return CellKind.QUESTION
    tags = original.metadata.get("tags", [])
    if any(tag.startswith("stub:") for tag in tags):
        return CellKind.STUB
    if cell.cell_type != "code" or stripped(cell.source) != stripped(original.source):
        return CellKind.CHANGED
    if VARIES in tags:
        return CellKind.VARIES
    solved = chapter.solved.get(original.id, original)
    return CellKind.COMPARED if _shown(solved) == _shown(original) else CellKind.DEPENDS


def _shown(cell):
    """Return the text of each output, the same whether an exercise is solved or not."""
    shown = [text(output) for output in passing(cell.outputs)]
    for pattern, replacement in _sanitizing():
        shown = [re.sub(pattern, replacement, one) for one in shown]
    return shown


@cache
def _sanitizing():
    """Return (pattern, replacement) for each text that may differ between two runs."""
    return re.findall(r"^regex: (.*)\nreplace: (.*)$", SANITIZE.read_text(encoding="utf-8"), re.MULTILINE)


def passing(outputs: list) -> list:
    """Return a copy of `outputs` in which all verdicts that pass, right or not solved yet, are the same."""
    outputs = copy.deepcopy(outputs)
    for output in outputs:
        verdict = output.get("data", {}).get(MIME, {})
        if verdict.get("outcome") in PASSES:
            output.data = {"text/plain": f"{verdict['exercise']}: {or_list(PASSES)}"}
    return outputs


def text(output: Any) -> str:
    """Return an output as plain text."""
    if output.output_type == "stream":
        return output.text
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}"
    return output.data.get("text/plain", ", ".join(output.data))


def remarks(nb: Any, chapter: StoredChapter | None) -> list[str]:
    """Return sentences about the notebook `nb`: what is compared, what is not, and whether it is outdated."""
    if chapter is None:
        return ["not of the course, by the ids and the sources of its cells: run, with nothing to compare"]
    code = [cell for cell in nb.cells if cell.cell_type == "code" or cell.get("id") in chapter.cells]
    of_kind = {k: [cell_name(nb, cell) for cell in code if kind(cell, chapter) == k] for k in CellKind}
    ids = {cell.get("id") for cell in nb.cells}
    gone = [cell_id for cell_id in chapter.cells if cell_id not in ids]
    said = [f"{len(of_kind[CellKind.COMPARED])} of {len(chapter.cells)} cells compared with {chapter.slug}"]
    made_from = nb.metadata.get("flashlib", {}).get("made_from")
    if made_from not in (None, chapter.version):
        said.append("from an earlier version of the course: what differs in today's is listed as changed or gone")
    for words, names in (
        ("changed: not compared", of_kind[CellKind.CHANGED]),
        ("shows code of your own: not compared", of_kind[CellKind.DEPENDS]),
        ("gone from it, or new in the course", gone),
        ("your own: run, not compared", of_kind[CellKind.OWN]),
    ):
        said += [f"{words}: {', '.join(names)}"] if names else []
    return said


def cell_name(nb: Any, cell: Any) -> str:
    """Return nbval's name of a cell, with its number among the code cells, and its id."""
    if cell.cell_type != "code":
        return f"a text ({cell.id})"
    number = [other.id for other in nb.cells if other.cell_type == "code"].index(cell.id)
    return f"Cell {number} ({cell.id})"
