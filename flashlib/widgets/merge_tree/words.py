"""The sentences of MergeTree: how the State of a node was computed, with its numbers."""

import numpy as np

from flashlib.pictures.number_text import number
from flashlib.widgets.merge_tree.tree import Node, output


def explain(nodes: list[Node], moves: list[list[int]]) -> str:
    """Return sentences on what the last move did, with its numbers."""
    if moves:
        return describe(nodes[-1], nodes)
    if len(nodes) == 1:
        return "The row is in one part, so its State is computed at once. Cut it anywhere."
    return f"{len(nodes)} parts, each with its own State. Merge them in any order, or cut the row elsewhere."


def describe(node: Node, nodes: list[Node]) -> str:
    """Return lines on how the State of a node was computed, with its numbers."""
    state, d = node.state, len(node.plain)
    if node.name == "identity":
        lines = ["The identity is the State of no scores:", "m = −∞", "l = 0", "O_acc = 0"]
    elif node.children and state.m == -np.inf:
        lines = [*_origin(node, nodes), "Neither has a finite score: l and O_acc stay 0."]
    elif node.children:
        lines = [*_origin(node, nodes), *_sums(node, nodes)]
    else:
        O = f"O = O_acc / l = {_vector(output(state, d), d)}" if state.l else "There is no finite score: O is 0."
        lines = ["Computed at once, from its part of the row:", f"m = {number(state.m)}", f"l = {number(state.l)}"]
        lines += [f"O_acc = {_vector(state.O_acc, d)}", O]
    return "\n".join(lines)


def _origin(node, nodes):
    a, b = (nodes[child] for child in node.children)
    m = f"m = max({number(a.state.m)}, {number(b.state.m)}) = {number(node.state.m)}"
    return [f"{node.name.capitalize()}, of a = {a.name} and b = {b.name}:", m]


def _sums(node, nodes):
    state, d = node.state, len(node.plain)
    pairs = [(nodes[child].state, number(alpha)) for child, alpha in zip(node.children, node.alphas, strict=True)]
    m = f"({number(state.m)})" if state.m < 0 else number(state.m)
    factors = [f"exp({number(child.m)} − {m}) = {alpha}" for child, alpha in pairs]
    terms = " + ".join(f"{alpha} · {number(child.l)}" for child, alpha in pairs)
    lines = [f"alpha_a = {factors[0]}", f"alpha_b = {factors[1]}", f"l = {terms} = {number(state.l)}"]
    lines += [f"O_acc = {_vector(state.O_acc, d)}, likewise", f"O = O_acc / l = {_vector(output(state, d), d)}"]
    if -np.inf in (pairs[0][0].m, pairs[1][0].m):
        lines.append("A State of no scores has no weight; the other one stays.")
    return lines


def _vector(values, d):
    """Return d numbers as text; 0 means d zeros."""
    texts = ", ".join(map(number, np.broadcast_to(values, d)))
    return f"({texts})" if d > 1 else texts
