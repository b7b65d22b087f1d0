"""What a page knows about the code cells of its chapter: the names that link them, and what they lack there.

A cell cannot run on a page if it imports what a page lacks, such as torch or processes, if it checks an exercise
whose solution does, if it is tagged `slow`, or if it needs a cell that cannot run.
"""

import ast
import re
from functools import cache
from pathlib import Path

from flashlib.checks.engine import solutions
from tools.notebooks import tags
from web.live.inside import needs

ROOT = Path(__file__).resolve().parents[2]
MISSING = {  # package: why a page has none
    "torch": "torch, which does not run in a page",
    "triton": "Triton, which does not run in a page",
    "transformers": "transformers, which does not run in a page",
    "ipywidgets": "ipywidgets, which the page does without",
    "subprocess": "another process, which a page cannot start",
    "multiprocessing": "another process, which a page cannot start",
}
SLOW = "This cell takes too long on a page."  # more than a few seconds
LATER = {"CompilerLab": "triton"}  # what is imported only when it is used
CARD = re.compile(r'checks\.predict\("(\w+)"\)\s*')
PROGRESS_CALL = "checks.progress()"
CHECK = re.compile(r"^checks\.(\w+)\(")


def of_chapter(cells):
    """Return what a page needs to know about each code cell, in order.

    id; names: its Names as lists; imports: names; missing: what it needs that a page lacks, in words, or "".
    """
    code = [cell for cell in cells if cell.cell_type == "code" and cell.source.strip()]
    names = needs.all_names([cell.source for cell in code])
    missing = _handed_on([SLOW if "slow" in tags(cell) else missing_of(cell.source) for cell in code], names)
    checked = {
        found[1]: what for cell, what in zip(code, missing, strict=True) if (found := CHECK.match(cell.source))
    }
    for number, cell in enumerate(code):  # nothing is written where nothing can check it
        missing[number] = missing[number] or checked.get(exercise_of(cell), "")
    missing = _handed_on(missing, names)
    return [
        {
            "id": cell.id,
            "names": [sorted(part) for part in of_cell],
            "imports": sorted(needs.imported(cell.source)),
            "missing": what,
        }
        for cell, of_cell, what in zip(code, names, missing, strict=True)
    ]


def _handed_on(missing, names):
    """Return what each cell lacks, itself or in a cell that it needs."""
    missing = list(missing)
    for number in range(len(missing)):
        needed = sorted(needs.needed(names, number))
        missing[number] = next(filter(None, [missing[number], *(missing[k] for k in needed)]), "")
    return missing


def exercise_of(cell):
    """Return the name of the exercise whose stub a cell is, "" if it is none."""
    return next((tag.partition(":")[2] for tag in tags(cell) if tag.startswith("stub:")), "")


def running(cells, told):
    """Return the cells that a reader can run on the page: not the cards, which play by themselves.

    told: what `of_chapter` returns for the cells.
    """
    lacks = {one["id"] for one in told if one["missing"]}
    code = [cell for cell in cells if cell.cell_type == "code" and cell.source.strip() and cell.id not in lacks]
    return [cell for cell in code if not CARD.fullmatch(cell.source) and not cell.source.endswith(PROGRESS_CALL)]


def missing_of(source):
    """Return what code needs that a page does not have, in words, or ""; a check needs what the solution does."""
    modules = list(_imports(ast.parse(source), everywhere=True))
    if (check := CHECK.match(source)) and check[1] in solutions.names():
        modules += _of_solution(check[1])
    for module in modules:
        first, last = module.split(".")[0], module.split(".")[-1]
        package = first if first in MISSING else LATER.get(last) or first == "flashlib" and missing_in(module)
        if package:
            return f"This cell needs {MISSING[package]}."
    return ""


def _of_solution(exercise):
    """Return the modules that the solution of an exercise needs: of imports under a condition, those it uses."""
    tree, head = ast.parse(solutions.program(exercise).source), ast.parse(solutions.imports(exercise))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    found = list(_imports(head))
    for node in ast.walk(head):
        if isinstance(node, ast.Import) and node not in head.body:
            found += [one.name for one in node.names if (one.asname or one.name).split(".")[0] in used]
    return found


def _imports(tree, everywhere=False):
    """Yield the modules that code imports; those that a function imports when it is called, only on demand."""
    for node in ast.walk(tree) if everywhere else tree.body:
        match node:
            case ast.Import():
                yield from (one.name for one in node.names)
            case ast.ImportFrom(level=0):
                yield node.module
                yield from (f"{node.module}.{one.name}" for one in node.names)
            case _:
                pass


@cache
def missing_in(module):
    """Return which of MISSING a module of flashlib needs to be imported, or "" if none."""
    seen, left = set(), [module]
    while left:
        seen.add(path := _file(left.pop()))
        imports = _imports_of(path) if path else ()
        if found := next(
            (other.split(".")[0] for other in imports if other.split(".")[0] in ("torch", "triton")), ""
        ):
            return found
        left += [other for other in imports if other.startswith("flashlib.") and _file(other) not in seen]
    return ""


@cache
def _imports_of(path):
    return tuple(_imports(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def _file(module):
    """Return the Path of a module of flashlib, or None if the name is not one of a module."""
    path = ROOT.joinpath(*module.split("."))
    return next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)
