"""The lines of an algorithm's source, found from the names that they assign."""

import ast
import inspect
import textwrap
from collections.abc import Callable
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
"""The parts of a step, in order, and the names that each assigns."""


def lines_of(function: Callable, *, causal: bool, parts: dict[str, tuple[str, ...]] = PARTS) -> dict:
    """Return the source lines of each part of a step, {part: [line, ...]}; no lines if the source cannot be read.

    Lines under `if causal:` or `if causal and ...:` count only if causal. A line belongs to the part whose name it
    assigns first. Outside the loop that yields, only loads and stores count: the sums are initialised there.
    """
    found = {part: [] for part in parts}
    for assigned, inside, lines in _assignments(function, causal):
        part = next((part for name in assigned for part, names in parts.items() if name in names), None)
        if part and (inside or part in ("load", "store")):
            found[part] += [line for line in lines if line not in found[part]]
    return found


@lru_cache(maxsize=8)
def _assignments(function, causal):
    """Return for each assignment in a loop its names, whether that loop yields, and its lines."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(text)
    except (OSError, TypeError, SyntaxError):  # a builtin, code typed into a shell, a lambda within a line
        return []
    lines = text.splitlines()
    at_step = max((depth for node, depth in _inside(tree, causal) if isinstance(node, ast.Yield)), default=0)
    return [
        (
            _names(node),
            depth >= at_step,
            [line.split("  #")[0].strip() for line in lines[node.lineno - 1 : node.end_lineno]],
        )
        for node, depth in _inside(tree, causal)
        if isinstance(node, ast.Assign | ast.AugAssign) and depth
    ]


LOOPS = ast.For | ast.While


def _inside(node, causal, depth=0):
    """Yield each node below `node`, in the order of the text, and how many loops enclose it."""
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
    """Return the names that an assignment sets, from left to right; for `O[rows]` it is `O`."""
    targets = assignment.targets if isinstance(assignment, ast.Assign) else [assignment.target]
    return [x.id for target in targets for x in ast.walk(target) if isinstance(x, ast.Name)]
