"""The tree of MergeTree: leaves that cover a row, and moves that merge them."""

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from flashlib.softmax import IDENTITY, State, merge, summarise


class Node(NamedTuple):
    """A leaf or a merge. `key` is the same for trees that differ only in left and right."""

    name: str
    tree: str  # what was merged with what
    key: Any
    ranges: tuple  # of the scores that it covers, each (start, stop)
    state: State
    plain: Any  # (d,), its output if outputs were merged as a plain mean
    place: tuple  # column, level; (0, 0) is the leaf at the left
    children: tuple = ()  # ids a, b of nodes
    alphas: tuple = ()  # alpha_a, alpha_b: the factors of the children


@np.errstate(over="ignore")  # a difference beyond fp64 is -inf, and its exponential 0, as it should be
def grow(x: np.ndarray, V: np.ndarray, cuts: list[int], moves: list[list[int]]) -> list[Node]:
    """Return the Nodes of a tree: a leaf for each part of x (N,) and V (N, d), then one for each move.

    A move is [], the identity as one more leaf, or [a, b], two nodes that are merged; see `check_moves`.
    """
    leaves = len(cuts) + 1
    last = leaves - 1 + moves.count([])  # column
    parts = pairwise([0, *cuts, len(x)])
    nodes = [_part(x, V, start, stop, column) for column, (start, stop) in enumerate(parts)]
    for move in moves:
        if move:
            nodes.append(_merged(*move, nodes, last, f"merge {len(nodes) - leaves + 1}"))  # type: ignore[call-arg]
        else:
            nodes.append(_leaf("identity", (), IDENTITY, V.shape[1], leaves))
            leaves += 1
    return nodes


def moves_of(order: str, seed: int | None, parts: int, identities: int) -> list[list[int]]:
    """Return the moves that merge this many parts and identities in one of the ORDERS."""
    leaves = parts + identities
    roots, pairs = list(range(leaves)), []

    def join(a, b):
        pairs.append([a, b])
        return leaves + len(pairs) - 1

    rng = np.random.default_rng(seed)
    while len(roots) > 1:
        if order == "left to right":
            roots[:2] = [join(*roots[:2])]
        elif order == "balanced":  # a level; an odd node waits for the next
            pairs_of = [roots[k : k + 2] for k in range(0, len(roots), 2)]
            roots = [join(*pair) if len(pair) == 2 else pair[0] for pair in pairs_of]
        else:
            a = roots.pop(rng.integers(len(roots)))
            b = roots.pop(rng.integers(len(roots)))
            roots.append(join(a, b))
    return [[]] * identities + pairs


def roots_of(nodes: list[Node]) -> list[int]:
    """Return the ids of the nodes without a parent."""
    children = {child for node in nodes for child in node.children}
    return [k for k in range(len(nodes)) if k not in children]


@np.errstate(over="ignore")
def whole_row(x: np.ndarray, V: np.ndarray) -> Node:
    """Return the leaf of the whole row, computed at once."""
    return _part(x, V, 0, len(x), 0)


def output(state: State, d: int) -> np.ndarray:
    """Return O = O_acc / l, (d,); 0 if there is nothing to attend to."""
    return np.broadcast_to(state.O_acc / state.l if state.l else 0.0, d)


def pack(node: Node, d: int) -> np.ndarray:
    """Return the numbers of a node, (3 d + 4,): m, l, O_acc, O, O from the plain mean, alpha_a, alpha_b."""
    O_acc, alphas = np.broadcast_to(node.state.O_acc, d), node.alphas or (np.nan, np.nan)
    return np.concatenate([[node.state.m, node.state.l], O_acc, output(node.state, d), node.plain, alphas])


def differences(node: Node, whole: Node, d: int) -> dict[str, float]:
    """Return the largest differences of m, l, O, and O from the plain mean, between a node and `whole`."""
    return {
        "m": _difference(node.state.m, whole.state.m),
        "l": _difference(node.state.l, whole.state.l),
        "O": _difference(output(node.state, d), output(whole.state, d)),
        "plain": _difference(node.plain, output(whole.state, d)),
    }


def spread(rows: list[np.ndarray], d: int) -> float:
    """Return the largest differences of m, l and O between any two rows of `pack`."""
    if not rows:
        return 0.0
    known = np.delete(rows, np.s_[2 : 2 + d], axis=1)[:, : 2 + d]  # m, l, O
    highest, lowest = known.max(axis=0), known.min(axis=0)
    difference = np.subtract(highest, lowest, where=highest != lowest, out=np.zeros(2 + d))  # -inf is -inf
    return float(difference.max())


def _part(x, V, start, stop, column):
    state = summarise(x[start:stop], V[start:stop])
    return _leaf(f"x[{start}:{stop}]", ((start, stop),), state, V.shape[1], column)


def _leaf(name, ranges, state, d, column):
    return Node(name, name, ranges, ranges, state, output(state, d), (column, 0))


def _merged(a, b, nodes, last, name):
    left, right = nodes[a], nodes[b]
    state = merge(left.state, right.state)
    shift = 0 if state.m == -np.inf else state.m
    return Node(
        name=name,
        tree=f"({left.tree}, {right.tree})",
        key=frozenset((left.key, right.key)),
        ranges=_union(left.ranges + right.ranges),
        state=state,
        plain=(left.plain + right.plain) / 2,
        place=_free_place(a, b, nodes, last),
        children=(a, b),
        alphas=tuple(np.exp(child.state.m - shift) for child in (left, right)),
    )


def _free_place(a, b, nodes, last):
    """Return the place for the parent of a and b: about midway, but not on another card or another node's edge."""
    level = 1 + max(nodes[a].place[1], nodes[b].place[1])
    bottom = {child: node.place[1] for node in nodes for child in node.children}  # where the edge of a node ends
    cards, edges = [], []  # columns
    for k, node in enumerate(nodes):
        column, top = node.place
        if top == level:
            cards.append(column)
        elif k not in (a, b) and bottom.get(k, math.inf) > level:  # its edge passes here, or ours would cross it
            edges.append(column)
    middle = (nodes[a].place[0] + nodes[b].place[0]) / 2
    places = [middle, *(c + by for c in cards for by in (-1, 1)), *(c + by for c in edges for by in (-0.5, 0.5))]
    places = [x for x in places if 0 <= x <= last and all(abs(x - c) > 1 - 1e-9 for c in cards)]
    clear = [x for x in places if all(abs(x - c) > 0.5 - 1e-9 for c in edges)]
    return min(clear or places, key=lambda x: abs(x - middle)), level


def _union(ranges):
    joined = []
    for start, stop in sorted(ranges):
        if joined and joined[-1][1] == start:
            start = joined.pop()[0]
        joined.append((start, stop))
    return tuple(joined)


def _difference(a, b):
    pairs = zip(np.atleast_1d(a).tolist(), np.atleast_1d(b).tolist(), strict=True)
    return max(0.0 if y == z else math.fabs(y - z) for y, z in pairs)  # -inf is -inf
