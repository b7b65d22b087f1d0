"""What a page knows about the code cells of its chapter: the names that link them, and what they lack there.

A cell cannot run on a page if it imports what a page lacks, such as torch or processes, or needs a cell that does.
"""

import ast
from functools import cache
from pathlib import Path

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


def of_chapter(cells):
    """Return what a page needs to know about each code cell, in order.

    id; names: its Names as lists; imports: names; missing: what it needs that a page lacks, in words, or "".
    """
    code = [cell for cell in cells if cell.cell_type == "code" and cell.source.strip()]
    names = needs.all_names([cell.source for cell in code])
    missing = [missing_of(cell.source) for cell in code]
    for number in range(len(code)):
        needed = sorted(needs.needed(names, number))
        missing[number] = next(filter(None, [missing[number], *(missing[k] for k in needed)]), "")
    return [
        {
            "id": cell.id,
            "names": [sorted(part) for part in of_cell],
            "imports": sorted(needs.imported(cell.source)),
            "missing": what,
        }
        for cell, of_cell, what in zip(code, names, missing, strict=True)
    ]


def missing_of(source):
    """Return what code imports that a page does not have, in words, or ""."""
    for module in _imports(ast.parse(source), everywhere=True):
        root = module.split(".")[0]
        if root in MISSING:
            return f"This cell needs {MISSING[root]}."
        if root == "flashlib" and (package := missing_in(module)):
            return f"This cell needs {MISSING[package]}."
    return ""


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
