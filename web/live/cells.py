"""What a page is told of the code cells of its chapter: the names by which they need each other, and what is missing.

A cell cannot run in a page if it imports what is not there, such as torch or processes, or needs a cell that does.
"""

import ast
import importlib.util
from functools import cache
from pathlib import Path

from web.live.inside import needs

MISSING = {  # package: why a page has none
    "torch": "torch, which does not run in a page",
    "triton": "Triton, which does not run in a page",
    "transformers": "transformers, which does not run in a page",
    "ipywidgets": "ipywidgets, which the page does without",
    "subprocess": "another process, which a page cannot start",
    "multiprocessing": "another process, which a page cannot start",
}


def of_chapter(cells):
    """Return [what a page is told of a code cell], in order: its id, its Names as lists, what is missing or ""."""
    code = [cell for cell in cells if cell.cell_type == "code" and cell.source.strip()]
    names = needs.all_names([cell.source for cell in code])
    missing = [missing_of(cell.source) for cell in code]
    for number in range(len(code)):
        needed = sorted(needs.needed(names, number))
        missing[number] = next(filter(None, [missing[number], *(missing[k] for k in needed)]), "")
    return [
        {"id": cell.id, "names": [sorted(part) for part in of_cell], "missing": what}
        for cell, of_cell, what in zip(code, names, missing, strict=True)
    ]


def missing_of(source):
    """Return what code imports that a page has not, in words, or ""."""
    for module in _imports(ast.parse(source), everywhere=True):
        root = module.split(".")[0]
        if root in MISSING:
            return f"This cell needs {MISSING[root]}."
        if root == "flashlib" and (package := missing_in(module)):
            return f"This cell needs {MISSING[package]}."
    return ""


def _imports(tree, everywhere=False):
    """Yield the modules that code imports; those that a function imports when it is called only on demand."""
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
    """Return which of MISSING a module of flashlib needs to be imported, or ""."""
    _LOOKED_AT.add(module)
    path = _file(module)
    if path is None:
        return ""
    for other in _imports(ast.parse(path.read_text(encoding="utf-8"))):
        root = other.split(".")[0]
        if root in ("torch", "triton"):
            return root
        if root == "flashlib" and other not in _LOOKED_AT and (found := missing_in(other)):
            return found
    return ""


_LOOKED_AT: set[str] = set()  # what is being looked at


def _file(module):
    """Return the Path of a module of flashlib, or None for another name in one."""
    root = Path(importlib.util.find_spec("flashlib").origin).parent.parent
    path = root.joinpath(*module.split("."))
    return next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)
