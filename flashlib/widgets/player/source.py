"""The lines of an algorithm's source, found by the names that they assign."""

import ast
import inspect
import textwrap
from functools import cache

PARTS = {
    "load": ("Q_i", "K_j", "V_j", "O_acc_old"),
    "scores": ("S_ij",),
    "maximum": ("m_old", "m"),
    "rescale": ("shift", "alpha"),
    "weights": ("P_ij",),
    "add": ("l", "O_acc"),
    "store": ("divisor", "O", "lse", "m_hbm"),
}
"""The parts of a step, in their order, and the names that each assigns."""


@cache
def lines_of(function, *, causal) -> dict:
    """Return the source lines of each part of a step, {part: [line, ...]}; no lines where no source can be read.

    What stands under `if causal:` counts only if causal. A line belongs to the part whose name it assigns first.
    Outside the innermost loop only loads and stores count: there, m, l and O_acc are set to their first values.
    """
    found = {part: [] for part in PARTS}
    try:
        text = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(text)
    except (OSError, TypeError, SyntaxError):  # built in, typed into a shell, a lambda in the middle of a line
        return found
    lines = text.splitlines()
    for node, depth, innermost in _assignments(tree, causal):
        part = next((part for name in _names(node) for part, names in PARTS.items() if name in names), None)
        if part and depth and (innermost or part in ("load", "store")):
            statement = [line.split("  #")[0].strip() for line in lines[node.lineno - 1 : node.end_lineno]]
            found[part] += [line for line in statement if line not in found[part]]
    return found


LOOPS = ast.For | ast.While


def _assignments(node, causal, depth=0):
    """Yield each assignment under `node`, in how many loops it is, and whether no other loop is inside these."""
    below = (x for child in ast.iter_child_nodes(node) for x in ast.walk(child))
    innermost = not any(isinstance(x, LOOPS) for x in below)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Assign | ast.AugAssign):
            yield child, depth, innermost
        elif causal or not _asks_for_causal(child):
            yield from _assignments(child, causal, depth + isinstance(child, LOOPS))


def _asks_for_causal(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "causal"


def _names(assignment):
    """Return the names that an assignment sets, `O` for `O[rows]` too, from left to right."""
    targets = assignment.targets if isinstance(assignment, ast.Assign) else [assignment.target]
    return [x.id for target in targets for x in ast.walk(target) if isinstance(x, ast.Name)]
