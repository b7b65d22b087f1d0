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

KERNEL_PARTS = {
    "load": ("q", "k", "v"),
    "scores": ("S", "s", "qk"),
    "maximum": ("m_old", "m", "m_i", "m_new", "new"),
    "rescale": ("shift", "safe", "alpha", "keep"),
    "weights": ("P", "p"),
    "add": ("l", "l_i", "O_acc", "acc"),
    "store": ("divisor", "O", "lse"),
}
"""The same in a kernel, whose outer loop is the grid."""


def lines_of(function: Callable, *, causal: bool, parts: dict[str, tuple[str, ...]] = PARTS) -> dict:
    """Return the source lines of each part of a step, {part: [line, ...]}; no lines if the source cannot be read.

    Lines under `if causal:` or `if causal and ...:` count only if causal. A line belongs to the part whose name it
    assigns first. Outside the loop that yields, only loads and stores count: the sums are initialised there.
    """
    return _by_part(parts, _assignments(function, causal))


def lines_of_kernel(text: str, *, causal: bool) -> dict:
    """Return the same of the text of a kernel, or of the function with its loop; "" if it is not known."""
    return _by_part(KERNEL_PARTS, _assignments_in(text, causal, 1))


def _by_part(parts, assignments):
    found = {part: [] for part in parts}
    for assigned, inside, lines in assignments:
        part = next((part for name in assigned for part, names in parts.items() if name in names), None)
        if part and (inside or part in ("load", "store")):
            found[part] += [line for line in lines if line not in found[part]]
    return found


@lru_cache(maxsize=8)
def _assignments(function, causal):
    """Return for each assignment in a loop its names, whether that loop yields, and its lines."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):  # built in, typed into a shell
        return []
    return _assignments_in(text, causal, 0)


@lru_cache(maxsize=8)
def _assignments_in(text, causal, outside):
    """Return the same of a text. outside: in how many loops all of it is."""
    text = textwrap.dedent(text)
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a lambda within a line
        return []
    lines = text.splitlines()
    steps = ast.Yield if not outside else ast.Assign
    at_step = max((depth for node, depth in _inside(tree, causal, outside) if isinstance(node, steps)), default=0)
    return [
        (
            _names(node),
            depth >= at_step,
            [line.split("  #")[0].strip() for line in lines[node.lineno - 1 : node.end_lineno]],
        )
        for node, depth in _inside(tree, causal, outside)
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
    return any(isinstance(part, ast.Name) and part.id.lower() == "causal" for part in conditions)


def _names(assignment):
    """Return the names that an assignment sets, from left to right; for `O[rows]` it is `O`."""
    targets = assignment.targets if isinstance(assignment, ast.Assign) else [assignment.target]
    return [x.id for target in targets for x in ast.walk(target) if isinstance(x, ast.Name)]
