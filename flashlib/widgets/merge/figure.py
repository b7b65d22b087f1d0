"""MergeTree as a static picture."""

from itertools import pairwise

import numpy as np
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from flashlib.figures import ACCENT, DIM, LINE, PANEL, TEXT, TINT, Picture, number, short
from flashlib.widgets.merge.numbers import differences, grow, moves_of, output, roots_of, whole_row

WIDTH, MARGIN, LEFT = 1000, 16, 40  # pixels; the row begins at LEFT
TOP, ROW_LINE = 36, 14  # of the row
LINE_HEIGHT, GAP = 15, 38  # of a card, and between two levels
STYLE = {"va": "center", "color": TEXT}


def draw(x, V, cuts, moves, plain_mean):
    """Return a Picture of the tree. What is not merged yet is merged from left to right, and the title says so."""
    nodes = grow(x, V, cuts, moves)
    rest = _finish(nodes)
    nodes = grow(x, V, cuts, moves + rest)
    column = (WIDTH - 2 * MARGIN) / sum(not node.children for node in nodes)
    texts = [_lines(node, V.shape[1], plain_mean, 2 if column > 130 else 1) for node in nodes]
    width, height = min(176, column - 8), LINE_HEIGHT * len(texts[0]) + 10
    row_end = TOP + ROW_LINE * (1 + V.shape[1]) + 8
    at = [
        (MARGIN + (node.place[0] + 0.5) * column, row_end + 28 + node.place[1] * (height + GAP)) for node in nodes
    ]
    page_height = at[-1][1] + height + 40
    picture = Picture(WIDTH / 100, page_height / 100)
    ax = picture.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, WIDTH), ylim=(page_height, 0))
    ax.axis("off")
    title = "The State of each part of the row, merged into that of the whole"
    ax.text(MARGIN, 16, title + (", here from left to right" if rest else ""), size=11, **STYLE)
    _draw_row(ax, x, V, cuts)
    for node, place, text in zip(nodes, at, texts, strict=True):
        _draw_edges(ax, node, place, at, (width, height), (row_end, len(x)))
        _draw_card(ax, node, place, (width, height), text, is_root=node is nodes[-1])
    verdict = _verdict(nodes[-1], whole_row(x, V), V.shape[1], plain_mean)
    ax.text(WIDTH / 2, page_height - 18, verdict, size=9.5, ha="center", **STYLE)
    return picture


def _finish(nodes):
    """Return the moves that merge what is left, from left to right."""
    roots = sorted(roots_of(nodes), key=lambda k: nodes[k].place[0])
    ids = [*roots, *range(len(nodes), len(nodes) + len(roots))]
    return [[ids[a], ids[b]] for a, b in moves_of("left to right", None, len(roots), 0)]


def _lines(node, d, plain_mean, room):
    """Return the text of a card, line by line, with room for so many numbers of a vector."""
    state = node.state
    lines = [node.name, f"$m$ {number(state.m)}   $l$ {number(state.l)}"]
    vectors = [("$O_{acc}$", np.broadcast_to(state.O_acc, d)), ("$O$", output(state, d))]
    for name, values in vectors + [("mean", node.plain)] * plain_mean:
        lines.append("  ".join([name, *map(number, values[:room]), *["…"] * (d > room)]))
    return lines


def _draw_row(ax, x, V, cuts):
    width = (WIDTH - MARGIN - LEFT) / len(x)
    names = ["$x$", *([f"$V_{k}$" for k in range(V.shape[1])] if V.shape[1] > 1 else ["$V$"])]
    for start, stop in pairwise([0, *cuts, len(x)]):
        corner, size = (LEFT + start * width + 3, TOP - 4), ((stop - start) * width - 6, ROW_LINE * len(names) + 8)
        ax.add_patch(Rectangle(corner, *size, facecolor=PANEL, edgecolor=LINE, linewidth=0.8))
    written = number if len(x) <= 10 else short
    for line, (name, values) in enumerate(zip(names, [x, *V.T], strict=True)):
        y = TOP + ROW_LINE * (line + 0.5)
        ax.text(MARGIN, y, name, size=9, **STYLE)
        for j, value in enumerate(values):
            weight = "normal" if line else "bold"
            ax.text(LEFT + (j + 0.5) * width, y, written(value), size=8, weight=weight, ha="center", **STYLE)


def _draw_edges(ax, node, place, at, card, row):
    (x, y), (width, height), (row_end, N) = place, card, row
    for start, stop in () if node.children else node.ranges:
        _draw_edge(ax, LEFT + (WIDTH - MARGIN - LEFT) * (start + stop) / 2 / N, row_end - 4, row_end - 2, x, y)
    ends = sorted(zip((at[child] for child in node.children), node.alphas, strict=True))
    for side, ((child_x, child_y), alpha) in zip((-1, 1), ends, strict=False):
        to = x + side * width / 4
        _draw_edge(ax, child_x, child_y + height, y - GAP + 2, to, y)
        label = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        style = STYLE | {"color": ACCENT}
        ax.text(to, y - 11, f"× {number(alpha)}", size=8, ha="center", bbox=label, **style)


def _draw_edge(ax, x, y, bend, to_x, to_y):
    """Draw a line from (x, y) down to the height `bend`, then over to to_x and down to to_y."""
    points = [(x, y), (x, bend), (x, bend + 14), (to_x, bend), (to_x, bend + 16), (to_x, to_y)]
    codes = [Path.MOVETO, Path.LINETO, Path.CURVE4, Path.CURVE4, Path.CURVE4, Path.LINETO]
    ax.add_patch(PathPatch(Path(points, codes), facecolor="none", edgecolor=DIM, linewidth=0.9))


def _draw_card(ax, node, place, card, text, is_root):
    (x, y), (width, height) = place, card
    colours = {"facecolor": TINT if is_root else PANEL, "edgecolor": ACCENT if is_root else LINE}
    lines = {"linewidth": 1.6 if is_root else 0.8, "linestyle": "solid" if node.state.m > -np.inf else "dashed"}
    ax.add_patch(Rectangle((x - width / 2, y), width, height, **lines, **colours))
    for k, line in enumerate(text):
        weight = "normal" if k else "bold"
        ax.text(x, y + 5 + LINE_HEIGHT * (k + 0.5), line, size=8, weight=weight, ha="center", **STYLE)


def _verdict(root, whole, d, plain_mean):
    found = differences(root, whole, d)
    most = max(found[name] for name in "mlO")
    words = f"differs by {number(most)} at most, rounding" if most else "is equal to the last bit"
    wrong = f" The plain mean of the outputs is wrong by {number(found['plain'])}." if plain_mean else ""
    return f"The State of the whole row, computed at once, {words}.{wrong}"
