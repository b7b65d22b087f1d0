"""The lines of an algorithm's source, found by the names that they assign."""

import ast
import inspect
import textwrap
from functools import lru_cache

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


@lru_cache(maxsize=8)
def lines_of(function, *, causal) -> dict:
    """Return the source lines of each part of a step, {part: [line, ...]}; no lines where no source can be read.

    What stands under `if causal:` or `if causal and ...:` counts only if causal. A line belongs to the part whose
    name it assigns first. Outside the loop that yields only loads and stores count: there, m, l and O_acc are set
    to their first values.
    """
    found = {part: [] for part in PARTS}
    try:
        text = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(text)
    except (OSError, TypeError, SyntaxError):  # built in, typed into a shell, a lambda in the middle of a line
        return found
    lines = text.splitlines()
    at_step = max((depth for node, depth in _inside(tree, causal) if isinstance(node, ast.Yield)), default=0)
    for node, depth in _inside(tree, causal):
        if not isinstance(node, ast.Assign | ast.AugAssign):
            continue
        part = next((part for name in _names(node) for part, names in PARTS.items() if name in names), None)
        if part and (depth >= max(at_step, 1) or depth and part in ("load", "store")):
            statement = [line.split("  #")[0].strip() for line in lines[node.lineno - 1 : node.end_lineno]]
            found[part] += [line for line in statement if line not in found[part]]
    return found


LOOPS = ast.For | ast.While


def _inside(node, causal, depth=0):
    """Yield each node below `node`, in the order of the text, and in how many loops it is."""
    for child in ast.iter_child_nodes(node):
        yield child, depth
        if causal or not _asks_for_causal(child):
            yield from _inside(child, causal, depth + isinstance(child, LOOPS))


def _asks_for_causal(node):
    """Return whether a node is `if causal:` or `if causal and ...:`."""
    if not isinstance(node, ast.If):
        return False
    conditions = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
    return any(isinstance(part, ast.Name) and part.id == "causal" for part in conditions)


def _names(assignment):
    """Return the names that an assignment sets, `O` for `O[rows]` too, from left to right."""
    targets = assignment.targets if isinstance(assignment, ast.Assign) else [assignment.target]
    return [x.id for target in targets for x in ast.walk(target) if isinstance(x, ast.Name)]
