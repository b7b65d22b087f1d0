"""MergeTree: the State (m, l, O_acc) of the parts of a row, merged in any order."""

import numpy as np
import traitlets

from flashlib.language.phrases import counted
from flashlib.pictures.canvas import Picture
from flashlib.pictures.number_text import number
from flashlib.widgets.lab import Lab
from flashlib.widgets.merge_tree import figure
from flashlib.widgets.merge_tree.checks import check_cuts, check_moves, check_order, check_row, check_values
from flashlib.widgets.merge_tree.tree import differences, grow, moves_of, pack, roots_of, spread, whole_row
from flashlib.widgets.merge_tree.words import describe, explain
from flashlib.widgets.widget import script, style

SHOWN, KEPT = 4, 50  # of the orders tried
SEEDS, TRIES = 10**6, 64  # of random orders
X = (0.3, 1.7, -0.6, 2.2, 0.9, -1.4, 1.1, 0.1)
X_VALUES = ((1.0, 0.2), (-0.5, 0.8), (0.3, -1.1), (1.6, 0.4), (-0.9, 0.7), (0.6, -0.3), (0.1, 1.2), (-1.2, 0.5))


class MergeTree(Lab):
    """Cut a row of scores x, (N,), with values V, (N, d), anywhere, and merge its parts' States in any order.

    x: 2 to 16 numbers, finite or -inf; default: eight. V: finite, d from 1 to 4; default: two numbers a score.
    cuts: where the row is cut, as for np.split; default: into four parts. order: "left to right", "balanced" or
    "random order", to begin with everything merged. moves: the merges to begin with if there is no order; default:
    with three parts or more, the first two parts, so that a merge is visible. Everything is computed in fp64.
    `cuts`, `order` and `moves` can be set later, from Python or on the page. A move is [a, b], two nodes without a
    parent, or [] for the identity as one more leaf; nodes are numbered in order, first the parts, then one for
    each move.
    """

    _esm = script("merge_tree/merge_tree.js")
    _css = style("merge_tree/merge_tree.css")

    cuts = traitlets.List().tag(sync=True)
    moves = traitlets.List().tag(sync=True)
    order = traitlets.Unicode().tag(sync=True)  # "" for by hand
    plain_mean = traitlets.Bool(False).tag(sync=True)  # whether the wrong merge is shown too
    result = traitlets.Dict().tag(sync=True)

    def __init__(self, x=None, V=None, cuts=None, order="", moves=None):
        super().__init__({"cuts": cuts, "moves": moves, "order": order}, x=x, V=V)

    def _take(self, x, V):
        self._tried, self._seed = {}, 0  # the root of each order tried so far, by its tree
        self._x = check_row(X if x is None else x)
        N = len(self._x)
        self._V = check_values(_values(x, N) if V is None else V, N)
        self._whole = whole_row(self._x, self._V)

    def _checked(self, name, value):
        N = len(self._x)
        if name == "cuts":
            return check_cuts(sorted({N * k // 4 for k in (1, 2, 3)} - {0}) if value is None else value, N)
        if name == "order":
            check_order(value)
        return value

    def _computed(self, setting):
        """Return the requested tree; unless the moves were changed, they follow from cuts and order."""
        cuts, moves, order = setting.values()
        if moves is None:
            moves = [[0, 1]] if len(cuts) > 1 and not order else []
        if moves != self._setting.get("moves", []):
            return self._grown(cuts, moves, order="")
        return self._grown(**self._preset(cuts, order, identities=moves.count([])))

    def _preset(self, cuts, order, identities):
        """Return the setting that merges all nodes in an order, a fresh one if it is random, or nothing for ""."""
        (name, seed), parts = check_order(order), len(cuts) + 1
        moves = check_moves([[]] * identities, parts)
        if order == "random order":
            seed = self._fresh_seed(cuts, identities)
        if name:
            moves = moves_of(name, seed, parts, identities)
        if seed is not None:
            self._seed, name = seed, f"{name} {seed}"
        return {"cuts": cuts, "moves": moves, "order": name}

    def _fresh_seed(self, cuts, identities):
        """Return the next seed whose order was not tried yet, or just the next one if none is found quickly."""
        seeds = [(self._seed + k) % SEEDS for k in range(1, TRIES + 1)]
        for seed in seeds:
            moves = moves_of("random order", seed, len(cuts) + 1, identities)
            if grow(self._x, self._V, cuts, moves)[-1].key not in self._tried:
                return seed
        return seeds[0]

    def _grown(self, cuts, moves, order):
        """Return what the page shows: numbers as float64 in a buffer, since JSON has no inf and no NaN."""
        moves = check_moves(moves, len(cuts) + 1)
        self._nodes = nodes = grow(self._x, self._V, cuts, moves)
        (N, d), roots = self._V.shape, roots_of(nodes)
        root = nodes[-1] if len(roots) == 1 else None
        if root and moves:
            self._tried.pop(root.key, None)  # the newest is the last
            self._tried[root.key] = order or "by hand", root
        for key in list(self._tried)[:-KEPT]:
            del self._tried[key]
        tried = list(self._tried.values())
        recent = tried[: -SHOWN - 1 : -1]
        rows = [pack(node, d) for node in (*nodes, self._whole)]
        return {
            "setting": {"cuts": cuts, "moves": moves, "order": order},
            **{"N": N, "d": d, "roots": roots, "leaves": len(cuts) + 1 + moves.count([])},
            "nodes": [[node.name, node.ranges, node.children, node.place] for node in nodes],
            "words": explain(nodes, moves),
            "accounts": [describe(node, nodes) for node in nodes],
            "differences": root and differences(root, self._whole, d),
            "tried": [[name, node.tree, self._most(node, self._whole)] for name, node in recent],
            "count": len(tried),
            "spread": spread([pack(node, d) for _, node in tried], d),
            "buffer": np.concatenate([self._x, self._V.ravel(), *rows]).astype("<f8").tobytes(),
        }

    def _most(self, a, b):
        """Return the largest differences of m, l and O between two nodes."""
        found = differences(a, b, self._V.shape[1])
        return max(found[name] for name in "mlO")

    def figure(self) -> Picture:
        """Return a picture of the tree, in which nodes not merged yet are merged from left to right."""
        return figure.draw(self._x, self._V, self.cuts, self.moves, self.plain_mean)

    def _sizes(self):
        (N, d), roots = self._V.shape, roots_of(self._nodes)
        state, merges = self._nodes[-1].state, sum(map(len, self.moves)) // 2
        end = f"m = {number(state.m)}, l = {number(state.l)}" if len(roots) == 1 else f"{len(roots)} nodes left"
        return f"N={N}, d={d}, cuts={self.cuts}: {counted(merges, 'merge', 'merges')}, {end}"


def _values(x, N):
    return X_VALUES if x is None else np.random.default_rng(0).normal(size=(N, 2)).round(1)
