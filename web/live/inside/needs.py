"""Which cells of a chapter a cell needs, from the names that they define, use and change.

The build uses this to run the few cells that make a widget, and so does the page, where a reader may run any
of them.
"""

import ast
import symtable
from typing import NamedTuple

READS = {  # methods that do not change their object
    *("all", "any", "argmax", "astype", "copy", "dot", "max", "mean", "min", "reshape", "round", "std", "sum"),
    *("to", "tolist", "transpose", "format", "get", "items", "join", "keys", "split", "startswith", "values"),
}

DRAWN = (
    "rand",
    "randint",
    "randn",
    "randn_like",
    "randperm",
)  # functions of torch that draw from its generator, or from another
TORCH = "torch.manual_seed"  # stands for torch's own generator, as if it were a name


class Names(NamedTuple):
    """Names of a cell: those it defines, uses, changes the objects of, and uses when its functions are called."""

    given: set
    taken: set
    changed: set
    late: set


def needed(names, number):
    """Return the cells before cell `number` that it needs, from what all of them define, use and change."""
    found, first, late = set(), set(), set(names[number].taken)
    while late - first:  # functions use what a name means when they are called
        first |= late
        wanted, found = set(first), set()
        for k in range(number - 1, -1, -1):
            if names[k].given & wanted or names[k].changed & wanted:
                found.add(k)
                wanted = wanted - names[k].given | names[k].taken
                late |= names[k].late
    return found


def all_names(sources, others=frozenset()):
    """Return the Names of each cell. Calling a function of an imported module does not count as changing it.

    others: names that cells other than these import.
    """
    all_imported = set(others).union(*map(imported, sources))
    return [one._replace(changed=one.changed - all_imported) for one in map(_names, sources)]


def without_drawing(names):
    """Return Names of a cell as if it did not draw numbers from torch's own generator."""
    return Names(*(part - {TORCH} for part in names))


def imported(source):
    """Return the names that a cell imports."""
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    return {(one.asname or one.name).split(".")[0] for node in found for one in node.names}


def _names(source):
    tree = ast.parse(source)
    given, taken, changed = set(), set(), set()
    _follow(tree.body, given, taken)
    if "torch.manual_seed(" in source:
        given.add(TORCH)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=attr)) if attr in DRAWN:
                if not any(one.arg == "generator" for one in node.keywords):
                    changed.add(TORCH)
                    taken |= {TORCH} - given  # a cell that seeds it does so first
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method not in READS:
                changed.add(name)  # perhaps: a generator of random numbers is
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                changed.add(name)
            case ast.keyword(arg="generator", value=ast.Name(id=name)):
                changed.add(name)
    late = set().union(*(_late(node) for node in tree.body if isinstance(node, ast.FunctionDef)))
    return Names(given, taken, changed & taken, late)


def _late(function):
    """Return the names that a function uses from the cells when it is called."""
    table = symtable.symtable(ast.unparse(function), "<cell>", "exec")
    return {one.get_name() for scope in _scopes(table) for one in scope.get_symbols() if one.is_global()}


def _scopes(table):
    """Yield all scopes inside one."""
    for scope in table.get_children():
        yield scope
        yield from _scopes(scope)


def _follow(body, given, taken):
    """Add the names that the statements define, and those that they use and none before them defined."""
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
