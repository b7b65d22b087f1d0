"""Which cells of a learner's notebook come from the course: those with the id of a cell in the course.

Ids are looked up over all chapters, whatever the notebook is called: the cells of a copy from an earlier version
of the course may be in several of today's chapters. Some tools, such as nbstripout and jupytext, give cells new
ids: `restore_ids` finds those cells by their source.
"""

import copy
import hashlib
import re
from collections import Counter
from collections.abc import Collection, Mapping, Set
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
ENOUGH = 2  # ids or sources in common: one may be a coincidence
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


def sharing(ids: Set[str], of_chapters: Mapping[str, Collection[str]]) -> list[str]:
    """Return the slugs of the chapters that cells with these ids are in, the one with most of them first.

    of_chapters: {slug: ids of its cells}. Cells of two chapters may have the same id, so a further chapter needs
    ENOUGH ids that are in none before it.
    """
    found: list[str] = []
    rest = set(ids)
    while of_chapters:
        most = max(of_chapters, key=lambda slug: len(rest.intersection(of_chapters[slug])))
        shared = rest.intersection(of_chapters[most])
        if len(shared) < (ENOUGH if found else 1):
            break
        found.append(most)
        rest -= shared
    return found


def parts(nb: Any) -> list[StoredChapter]:
    """Return the chapters that cells of the notebook `nb` are in, the one with most of them first."""
    ids = {cell.get("id") for cell in nb.cells if cell.cell_type == "code"}
    by_slug = {chapter.slug: chapter for chapter in chapters()}
    return [by_slug[slug] for slug in sharing(ids, {slug: c.cells.keys() for slug, c in by_slug.items()})]


def home(cell: Any, of: list[StoredChapter]) -> StoredChapter | None:
    """Return the chapter, of some, that has the code cell `cell`; if several have its id, one with its source."""
    having = [chapter for chapter in of if cell.get("id") in chapter.cells]
    same = [c for c in having if stripped(c.cells[cell.id].source) == stripped(cell.source)]
    return next(iter(same or having), None)


def restore_ids(nb: Any) -> int:
    """Give code cells of the notebook `nb`, in memory, the course's ids; return how many had lost theirs.

    A cell is identified by its source and by the order of cells. If no cell has an id of the course, and all are
    of one chapter, changed cells are identified too, by the cells around them.
    """
    by_ids = parts(nb)
    of = by_ids or _parts_by_sources(nb)
    return sum(_restored(nb, chapter, of, changed=not by_ids and len(of) == 1) for chapter in of)


def _restored(nb, chapter, of, changed):
    """Give cells of one chapter, of those `of` which the notebook has cells, their ids; return how many."""
    ids = {cell.get("id") for cell in nb.cells}
    gone = [cell for name, cell in chapter.cells.items() if name not in ids]
    unknown = [cell for cell in nb.cells if cell.cell_type == "code" and not home(cell, of)]
    course, mine = ([stripped(cell.source) for cell in cells] for cells in (gone, unknown))
    found, matcher = 0, SequenceMatcher(a=course, b=mine, autojunk=False)
    for what, a, a_end, b, b_end in matcher.get_opcodes():
        if what == "equal" or what == "replace" and changed and a_end - a == b_end - b:
            for original, cell in zip(gone[a:a_end], unknown[b:b_end], strict=True):
                cell["id"] = original.id
                found += 1
    return found


def stripped(source: str) -> str:
    """Return a source without what tools strip: blanks at the ends of lines, empty lines at both ends."""
    return "\n".join(line.rstrip() for line in source.splitlines()).strip("\n")


def _parts_by_sources(nb):
    """Return the chapters that share at least ENOUGH sources with `nb` that no other has, that with most first."""
    mine = {stripped(cell.source) for cell in nb.cells if cell.cell_type == "code"}
    shared = [mine & {stripped(cell.source) for cell in one.cells.values()} for one in chapters()]
    times = Counter(source for sources in shared for source in sources)
    own = [sum(times[source] == 1 for source in sources) for sources in shared]
    found = [(n, chapter) for n, chapter in zip(own, chapters(), strict=True) if n >= ENOUGH]
    return [chapter for _, chapter in sorted(found, key=lambda one: -one[0])]


def kind(cell: Any, of: list[StoredChapter]) -> CellKind:
    """Return the kind of the code cell `cell` in a notebook with cells of some chapters."""
    chapter = home(cell, of)
    if chapter is None:
        return CellKind.OWN
    original = chapter.cells[cell.id]
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


def remarks(nb: Any, of: list[StoredChapter]) -> list[str]:
    """Return sentences about the notebook `nb`: what is compared, what is not, and whether it is outdated.

    of: its `parts`. What is gone is said of the chapter that most of its cells are from.
    """
    if not of:
        return ["not of the course, by the ids and the sources of its cells: run, with nothing to compare"]
    code = [cell for cell in nb.cells if cell.cell_type == "code" or home(cell, of)]
    of_kind = {k: [cell for cell in code if kind(cell, of) == k] for k in CellKind}
    compared = Counter(part.slug for cell in of_kind[CellKind.COMPARED] if (part := home(cell, of)))
    ids = {cell.get("id") for cell in nb.cells}
    gone = [cell_id for cell_id in of[0].cells if cell_id not in ids]
    said = [", ".join(f"{compared[c.slug]} of {len(c.cells)} cells compared with {c.slug}" for c in of)]
    made_from = nb.metadata.get("flashlib", {}).get("made_from")
    if made_from not in (None, of[0].version):
        said.append("from an earlier version of the course: what differs in today's is listed as changed or gone")
    for words, names in (
        ("changed: not compared", _names(nb, of_kind[CellKind.CHANGED])),
        ("shows code of your own: not compared", _names(nb, of_kind[CellKind.DEPENDS])),
        ("gone from it, or new in the course", gone),
        ("your own: run, not compared", _names(nb, of_kind[CellKind.OWN])),
    ):
        said += [f"{words}: {', '.join(names)}"] if names else []
    return said


def _names(nb, cells):
    return [cell_name(nb, cell) for cell in cells]


def cell_name(nb: Any, cell: Any) -> str:
    """Return nbval's name of a cell, with its number among the code cells, and its id."""
    if cell.cell_type != "code":
        return f"a text ({cell.id})"
    number = [other.id for other in nb.cells if other.cell_type == "code"].index(cell.id)
    return f"Cell {number} ({cell.id})"
