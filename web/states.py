"""What the widgets of a chapter hold, and what its cards ask.

A stored notebook has pictures of its widgets, not what they play. So the few cells that a widget is made of are
run here, and no others: they are found by the names that they give and take. What they make must be, in words,
what the notebook has stored.
"""

import ast
import contextlib
import io
import linecache
import os
import symtable
import warnings
from pathlib import Path
from typing import NamedTuple

from ipywidgets import embed

from flashlib import widgets
from web import recorded

OTHERS = ("script", "layout", "tabbable", "tooltip")  # of its traits: a file, and what only Jupyter uses
NAMES = {*widgets.__all__, "CompilerLab", "predict"}  # what a cell calls that shows something that plays


class Names(NamedTuple):
    """Names of a cell: those that it gives, takes, changes what they stand for, and takes when it is called."""

    given: set
    taken: set
    changed: set
    late: set


def shows(source):
    """Return whether the cell may end in something that plays."""
    tree = ast.parse(source)
    called = {node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "") for node in ast.walk(tree)}
    return bool(called & NAMES)


def of_chapter(cells, folder, keep=lambda record: None):
    """Return {id of a cell: what the page is told that it shows} of the cells of a chapter, run in `folder`.

    keep: called with each Record of the settings of a widget.
    """
    code = [cell for cell in cells if cell.cell_type == "code"]
    names = _all_names([cell.source for cell in code])
    ran, space, found = set(), {"__name__": "chapter"}, {}
    for number, cell in enumerate(code):
        if not shows(cell.source):
            continue
        for k in sorted(needed(names, number) - ran):
            _run(code[k].source, space, folder)
            ran.add(k)
        shown = _run(cell.source, space, folder)
        ran.add(number)
        if hasattr(shown, "_esm"):
            _compare(cell, repr(shown))
            found[cell.id] = told(shown)
            if record := recorded.of(shown):
                keep(record)
                found[cell.id]["record"] = {"name": record.name, "settings": recorded.NAMES}
                found[cell.id]["state"]["frames"]["controls"] = recorded.NAMES
    return found


def needed(names, number):
    """Return the cells before cell `number` that it needs, by what all of them give, take and change."""
    found, first, late = set(), set(), set(names[number].taken)
    while late - first:  # what functions take is what it is when they are called
        first |= late
        wanted, found = set(first), set()
        for k in range(number - 1, -1, -1):
            if names[k].given & wanted or names[k].changed & wanted:
                found.add(k)
                wanted = wanted - names[k].given | names[k].taken
                late |= names[k].late
    return found


def _all_names(sources):
    """Return the Names of each cell. What is imported is not changed, whichever cell calls a function of it."""
    names, imported = zip(*map(_names, sources), strict=True)
    return [one._replace(changed=one.changed - set().union(*imported)) for one in names]


def _names(source):
    """Return the Names of a cell, and those that it imports."""
    tree = ast.parse(source)
    given, taken = set(), set()
    _follow(tree.body, given, taken)
    changed, imported = set(), set()
    for node in ast.walk(tree):
        match node:
            case ast.Import() | ast.ImportFrom():
                imported |= {(one.asname or one.name).split(".")[0] for one in node.names}
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name))):
                changed.add(name)  # perhaps, as a generator of random numbers is
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                changed.add(name)
    late = set().union(*(_late(node) for node in tree.body if isinstance(node, ast.FunctionDef)))
    return Names(given, taken, changed & taken, late), imported


def _late(function):
    """Return the names that a function takes from the cells when it is called."""
    table = symtable.symtable(ast.unparse(function), "<cell>", "exec")
    return {one.get_name() for scope in _scopes(table) for one in scope.get_symbols() if one.is_global()}


def _scopes(table):
    """Yield all scopes inside of one."""
    for scope in table.get_children():
        yield scope
        yield from _scopes(scope)


def _follow(body, given, taken):
    """Add what the statements give, and what they take that none before them gave."""
    for node in body:
        match node:
            case ast.For():
                heads = [ast.Assign([node.target], node.iter, lineno=0)]
            case ast.With():
                heads = [ast.Assign([one.optional_vars or ast.Name("_")], one.context_expr, lineno=0)
                         for one in node.items]  # fmt: skip
            case ast.If() | ast.While():
                heads = [node.test]
            case _:
                _add(node, given, taken)
                continue
        for head in heads:
            _add(head, given, taken)
        _follow(node.body, given, taken)
        _follow(getattr(node, "orelse", []), given, taken)


def _add(node, given, taken):
    table = symtable.symtable(ast.unparse(node), "<cell>", "exec")
    symbols = table.get_symbols()
    taken |= {one.get_name() for one in symbols if one.is_referenced()} - given
    taken |= {one.get_name() for scope in _scopes(table) for one in scope.get_symbols() if one.is_global()} - given
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        taken |= {node.target.id} - given
    given |= {one.get_name() for one in symbols if one.is_assigned() or one.is_imported() or one.is_namespace()}


def _run(source, space, folder):
    """Run a cell without its words and pictures; return the value that it ends in, or None."""
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


def told(widget):
    """Return what a page is told of a widget: its class, and its state less the scripts, which are files."""
    data = embed.embed_data(views=[widget], drop_defaults=False)
    model = data["manager_state"]["state"][widget.model_id]
    ours = {
        name: value for name, value in model["state"].items() if not name.startswith("_") and name not in OTHERS
    }
    buffers = [{"path": one["path"], "data": one["data"]} for one in model.get("buffers", [])]
    return {"class": type(widget).__name__, "state": ours, "buffers": buffers}
