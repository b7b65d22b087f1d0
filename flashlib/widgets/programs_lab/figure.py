"""ProgramsLab as a static picture, drawn from its `result`: the program that is shown first."""

import textwrap

import numpy as np

from flashlib.pictures.canvas import Picture, corners
from flashlib.pictures.inks import INK, ON_FILL, READ, WRITTEN, WRONG, ZERO
from flashlib.widgets.programs_lab.tensors import ELEMENT, MASKED, NOWHERE

LINE = 17  # pixels, of a line of the kernel
WIDE = 930
CELL, HIGH = 26, 22  # pixels, of an element
MOST_LINES, MOST_ROWS, MOST_COLUMNS = 16, 12, 16
SIGNS = 122  # of a line of words
FILLS = {"load": "#9fd0c1", "store": "#d5b9e6"}
INKS = {"load": READ, "store": WRITTEN}
TITLES = {"load": "It loads from {}", "store": "It stores to {}"}


def draw(result: dict) -> Picture:
    """Return a Picture of the result of a ProgramsLab."""
    number, grid = result["opens"], result["grid"]["words"]
    programs = result["programs"]
    sentences = [*result["said"], grid, *([programs[number]["words"]] if programs else [])]
    accesses = [access for access in result["accesses"] if access["program"] == number]
    shown = [next((one for one in accesses if one["kind"] == kind), None) for kind in ("load", "store")]
    sentences += [f"✕ {one['fault']}" for one in shown if one and one["fault"]]
    words = [line for line in textwrap.wrap(" ".join(sentences), SIGNS)]
    lines = result["lines"][:MOST_LINES]
    tensors = [one and result["tensors"][one["tensor"]] for one in shown]
    below = 24 + 18 * len(words) + LINE * len(lines) + 30
    high = max([_rows(tensor) * HIGH for tensor in tensors if tensor], default=0)
    picture = Picture(WIDE, below + high + 44, " ".join(sentences))
    for k, text in enumerate(words):
        picture.text(14, 18 + 18 * k, text, 11, face="code")
    _draw_lines(picture, 24 + 18 * len(words), lines, result["values"], number)
    places = np.frombuffer(result["buffer"], "<i4").reshape(-1, 4)
    for k, (one, tensor) in enumerate(zip(shown, tensors, strict=True)):
        picture.shade(469 * k, below, 461, high + 44)
        if one:
            its = places[one["start"] : one["start"] + int(np.prod(one["shape"]))]
            _draw_tensor(picture, 469 * k + 14, below, one, tensor, its.tolist())
    return picture


def _draw_lines(picture, top, lines, values, number):
    """Draw the kernel, and beside each line what it gives in the program that is shown."""
    picture.shade(0, top, WIDE, LINE * len(lines) + 16)
    shown = {line: text for program, line, turn, text in values if program == number and turn == 0}
    for k, line in enumerate(lines):
        y = top + 16 + LINE * k
        indent = len(line["text"]) - len(line["text"].lstrip())
        picture.text(20 + 7 * indent, y, line["text"].strip(), 11, face="code")
        if ink := INKS.get(line["kind"]):
            picture.box(10, y - 8, 3, 15, fill=ink)
        if text := shown.get(line["key"]):
            picture.text(916, y, text, 11, align="r", face="code")


def _rows(tensor):
    """Return how many rows of elements are drawn."""
    low, high = tensor["around"][2:]
    return -(-(high - low) // MOST_COLUMNS) if len(tensor["shape"]) < 2 else _ends(tensor)[1]


def _ends(tensor):
    """Return the first rows and columns of a matrix that are not drawn any more."""
    _, bottom, _, right = tensor["around"]
    return min(right, MOST_COLUMNS), min(bottom, MOST_ROWS)


def _draw_tensor(picture, left, top, access, tensor, places):
    """Draw the elements of a tensor with their offsets, and on them what the program touches."""
    picture.text(left, top + 18, TITLES[access["kind"]].format(tensor["name"]), 12, face="code")
    vector = len(tensor["shape"]) < 2
    stride, step = (0, (*tensor["strides"], 1)[0]) if vector else tensor["strides"][-2:]
    end, bottom = _ends(tensor)
    texts = {}
    rows, columns = (
        (1, tensor["columns"]) if vector else (min(tensor["rows"], bottom), min(tensor["columns"], end))
    )
    for row in range(rows):
        for column in range(columns):
            texts[row, column] = str(access["base"] + row * stride + column * step), "element"
    for offset, state, row, column in places:
        if row != NOWHERE and row >= 0 and column >= 0 and (vector or (row < bottom and column < end)):
            texts[row, column] = str(offset), {MASKED: "masked", ELEMENT: access["kind"]}.get(state, "wrong")
    for (row, column), (text, mark) in texts.items():
        y, x = divmod(column - min(tensor["around"][2], 0), MOST_COLUMNS) if vector else (row, column)
        if y < MOST_ROWS:
            _draw_element(picture, left + CELL * x, top + 34 + HIGH * y, text, mark)


def _draw_element(picture, x, y, text, mark):
    if mark == "masked":
        picture.hatch(corners(x + 1, y + 1, CELL - 2, HIGH - 2))
    picture.box(x, y, CELL - 1, HIGH - 1, fill=FILLS.get(mark), edge=WRONG if mark == "wrong" else INK)
    if mark == "masked":  # the number must be read on the hatching
        picture.box(x + 5, y + 5, CELL - 11, HIGH - 11, fill=ZERO)
    if mark == "wrong":
        picture.text(x + CELL / 2, y + HIGH / 2, f"✕{text}", 9, WRONG, "m")
    else:
        picture.text(x + CELL / 2, y + HIGH / 2, text, 9, ON_FILL if mark in (*FILLS, "masked") else INK, "m")
