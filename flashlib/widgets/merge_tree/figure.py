"""MergeTree as a static picture."""

from itertools import pairwise

import numpy as np

from flashlib.pictures.canvas import Picture
from flashlib.pictures.inks import HIGHLIGHT, INK, ON_FILL
from flashlib.pictures.number_text import number, short
from flashlib.widgets.merge_tree.tree import differences, grow, moves_of, output, roots_of, whole_row

WIDTH, MARGIN, LEFT = 930, 8, 36  # pixels; the row begins at LEFT
TOP, ROW_LINE = 44, 16  # of the row
LINE_HEIGHT, GAP = 16, 38  # of a card, and between two levels


def draw(x: np.ndarray, V: np.ndarray, cuts: list[int], moves: list[list[int]], plain_mean: bool) -> Picture:
    """Return a Picture of the tree. Nodes not merged yet are merged from left to right, and the title says so."""
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
    verdict = _verdict(nodes[-1], whole_row(x, V), V.shape[1], plain_mean)
    picture = Picture(WIDTH, page_height, verdict)
    title = "The State of each part of the row, merged into that of the whole"
    if rest:
        title = "The State of each part of the row, merged into that of the whole, here from left to right"
    picture.text(MARGIN, 16, title, 13, face="bold")
    _draw_row(picture, x, V, cuts)
    for node, place, text in zip(nodes, at, texts, strict=True):
        _draw_edges(picture, node, place, at, (width, height), (row_end, len(x)))
        _draw_card(picture, node, place, (width, height), text, is_root=node is nodes[-1])
    picture.text(WIDTH / 2, page_height - 18, verdict, 13, align="m")
    return picture


def _finish(nodes):
    """Return the moves that merge the remaining nodes from left to right."""
    roots = sorted(roots_of(nodes), key=lambda k: nodes[k].place[0])
    ids = [*roots, *range(len(nodes), len(nodes) + len(roots))]
    return [[ids[a], ids[b]] for a, b in moves_of("left to right", None, len(roots), 0)]


def _lines(node, d, plain_mean, room):
    """Return the lines of a card, with room for this many numbers of a vector."""
    state = node.state
    lines = [node.name, f"m {number(state.m)}   l {number(state.l)}"]
    vectors = [("O_acc", np.broadcast_to(state.O_acc, d)), ("O", output(state, d))]
    for name, values in vectors + [("mean", node.plain)] * plain_mean:
        lines.append("  ".join([name, *map(number, values[:room]), *["…"] * (d > room)]))
    return lines


def _draw_row(picture, x, V, cuts):
    width = (WIDTH - MARGIN - LEFT) / len(x)
    names = ["x", *([f"V_{k}" for k in range(V.shape[1])] if V.shape[1] > 1 else ["V"])]
    for start, stop in pairwise([0, *cuts, len(x)]):
        place = LEFT + start * width + 3, TOP - 4, (stop - start) * width - 6, ROW_LINE * len(names) + 8
        picture.shade(*place)
        picture.box(*place, edge=INK)
    written = number if len(x) <= 10 else short
    for line, (name, values) in enumerate(zip(names, [x, *V.T], strict=True)):
        y = TOP + ROW_LINE * (line + 0.5)
        picture.text(MARGIN, y, name, 12, face="italic")
        for j, value in enumerate(values):
            picture.text(LEFT + (j + 0.5) * width, y, written(value), 11, align="m", face="" if line else "bold")


def _draw_edges(picture, node, place, at, card, row):
    (x, y), (width, height), (row_end, N) = place, card, row
    for start, stop in () if node.children else node.ranges:
        _draw_edge(picture, LEFT + (WIDTH - MARGIN - LEFT) * (start + stop) / 2 / N, row_end - 4, row_end, x, y)
    ends = sorted(zip((at[child] for child in node.children), node.alphas, strict=True))
    for side, ((child_x, child_y), alpha) in zip((-1, 1), ends, strict=False):
        to = x + side * width / 4
        _draw_edge(picture, child_x, child_y + height, y - GAP + 4, to, y)
        picture.text(to + 5, y - 9, f"× {number(alpha)}", 11, face="bold")


def _draw_edge(picture, x, y, bend, to_x, to_y):
    """Draw a line from (x, y) down to the height `bend`, then over to to_x and down to to_y."""
    t = np.linspace(0, 1, 13)[:, None]
    ends = [np.array(point) for point in ((x, bend), (x, bend + 14), (to_x, bend), (to_x, bend + 16))]
    curve = sum(
        n * (1 - t) ** (3 - k) * t**k * end for k, (n, end) in enumerate(zip((1, 3, 3, 1), ends, strict=True))
    )
    picture.line([(x, y), *map(tuple, curve), (to_x, to_y)])


def _draw_card(picture, node, place, card, text, is_root):
    (x, y), (width, height) = place, card
    ink = ON_FILL if is_root else INK
    box = x - width / 2, y, width, height
    picture.shade(*box)
    if is_root:
        picture.box(*box, fill=HIGHLIGHT)
    picture.box(*box, edge=INK, thick=3 if is_root else 1, dotted=node.state.m == -np.inf)
    for k, line in enumerate(text):
        picture.text(x, y + 5 + LINE_HEIGHT * (k + 0.5), line, 11, ink, "m", "" if k else "bold")


def _verdict(root, whole, d, plain_mean):
    found = differences(root, whole, d)
    most = max(found[name] for name in "mlO")
    sentence = "The State of the whole row, computed at once, is equal to the last bit."
    if most:
        sentence = f"The State of the whole row, computed at once, differs by {number(most)} at most, rounding."
    if not plain_mean:
        return sentence
    return f"{sentence} The plain mean of the outputs is wrong by {number(found['plain'])}."
