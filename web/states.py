"""The states of the widgets of a chapter, and the questions of its cards.

A stored notebook has pictures of its widgets, not what they play. So the few cells that make a widget are run
here, and no others: they are found by the names that they define and use. The text of the result must be the one
that the notebook has stored.
"""

import ast
import contextlib
import io
import linecache
import os
import sys
import warnings
from pathlib import Path

from ipywidgets import embed

from flashlib import widgets
from web import recorded
from web.live.inside import needs

OTHERS = ("script", "layout", "tabbable", "tooltip")  # its traits that are a file, or that only Jupyter uses
NAMES = {*widgets.__all__, "CompilerLab", "predict"}  # what a cell that shows a widget calls


def shows(source):
    """Return whether the cell may end in a widget or a card."""
    tree = ast.parse(source)
    called = {node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "") for node in ast.walk(tree)}
    return bool(called & NAMES)


@contextlib.contextmanager
def _gradients_restored():
    """Turn torch's gradients on again: Real models turns them off, and other chapters run in this process."""
    try:
        yield
    finally:
        if torch := sys.modules.get("torch"):
            torch.set_grad_enabled(True)


@_gradients_restored()
def of_chapter(cells, folder, keep=lambda record: None):
    """Return {id of a cell: what it shows, for the page} for the cells of a chapter, run in `folder`.

    keep: called with the Record of each widget's settings.
    """
    code = [cell for cell in cells if cell.cell_type == "code"]
    names = needs.all_names([cell.source for cell in code])
    ran, space, found = set(), {"__name__": "chapter"}, {}
    for number, cell in enumerate(code):
        if not shows(cell.source):
            continue
        for k in sorted(needs.needed(names, number) - ran):
            run(code[k].source, space, folder)
            ran.add(k)
        shown = run(cell.source, space, folder)
        ran.add(number)
        if hasattr(shown, "_esm"):
            _compare(cell, repr(shown))
            found[cell.id] = for_page(shown)
            if record := recorded.of(shown):
                keep(record)
                found[cell.id]["record"] = {"name": record.name, "settings": recorded.NAMES}
    return found


def run(source, space, folder):
    """Run a cell in `folder` without its output and pictures; return the value of its last expression, or None."""
    tree = ast.parse(source)
    last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
    name = f"<cell {hash(source)}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name  # inspect asks for it
    here = Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(tree, name, "exec"), space)
            return eval(compile(last, name, "eval"), space) if last else None
    finally:
        os.chdir(here)


def _compare(cell, words):
    stored = ["".join(output.data.get("text/plain", "")) for output in cell.outputs if "data" in output]
    if words not in stored:
        raise ValueError(f"cell {cell.id} shows {words!r} here, but its notebook has {stored}: run make notebooks")


def for_page(widget):
    """Return what a page needs of a widget: its class, and its state without the scripts, which are files."""
    data = embed.embed_data(views=[widget], drop_defaults=False)
    model = data["manager_state"]["state"][widget.model_id]
    ours = {
        name: value for name, value in model["state"].items() if not name.startswith("_") and name not in OTHERS
    }
    buffers = [{"path": one["path"], "data": one["data"]} for one in model.get("buffers", [])]
    return {"class": type(widget).__name__, "state": ours, "buffers": buffers}
