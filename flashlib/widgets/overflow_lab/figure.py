"""OverflowLab as a static picture, drawn from its `result`."""

import textwrap

import numpy as np

from flashlib.pictures.canvas import Picture, length
from flashlib.pictures.inks import INK, ON_FILL, WRONG, ZERO
from flashlib.pictures.number_text import number
from flashlib.widgets.overflow_lab.row_softmax import COLUMNS

WIDTH, LEFT, RIGHT, LINE_HEIGHT = 930, 78, 918, 20  # pixels
MARKS = {"overflow": "▲", "underflow": "▼", "subnormal": "≈", "wrong": "✕"}
HEADERS = {  # and the left end of each column
    "x_j": 78,
    "exp(x_j)": 188,
    "naive": 336,
    "x_j − m": 448,
    "exp(x_j − m)": 540,
    "safe": 680,
    "exact": 820,
}
NOWHERE = 0.2  # the share of INK where the format has no numbers


def draw(result: dict) -> Picture:
    """Return a Picture of the result of an OverflowLab."""
    n = result["n"]
    numbers = np.frombuffer(result["buffer"], "<f8")
    columns, rest = numbers[:-7].reshape(len(COLUMNS), n), numbers[-7:]
    lines = [line for text in result["words"] for line in textwrap.wrap(text, 136)]
    height = 2 * LINE_HEIGHT * (n + 1) + 152 + LINE_HEIGHT * len(lines)
    picture = Picture(WIDTH, height, " ".join(result["words"]))
    copies = result["asked"]["copies"]
    title = f"{result['name']}, x = {result['x'][1]}"
    title = f"{title} · the row {copies} times over" if copies > 1 else title
    picture.text(12, 18, title, 13, face="bold")
    bottom = _draw_axis(picture, result, columns, rest, 64)
    bottom = _draw_table(picture, result, columns, rest, bottom + 52)
    for k, line in enumerate(lines):
        picture.text(12, bottom + 20 + LINE_HEIGHT * k, line, 12)
    return picture


def _draw_axis(picture, result, columns, rest, top):
    """Draw a bar for each exp(x_j) and for l on a log axis, and a diamond for the safe one; return the bottom."""
    low, high = (end + result["shift"] for end in result["range"])
    bottom = top + LINE_HEIGHT * (result["n"] + 1)

    def place(log_value):
        return LEFT + (RIGHT - LEFT) * (min(max(log_value, low), high) - low) / (high - low)

    smallest, normal, largest = (place(result["limits"][name][0]) for name in ("smallest", "normal", "largest"))
    for left, right in ((LEFT, smallest), (largest, RIGHT)):
        picture.shade(left, top, right - left, bottom - top, NOWHERE)
    picture.dots(smallest, top, normal - smallest, bottom - top)
    picture.box(LEFT, top, RIGHT - LEFT, bottom - top, edge=INK)
    picture.line([(place(0), top), (place(0), bottom)])
    bars = [(f"exp(x_{j + 1})", columns[0, j], columns[3, j]) for j in range(result["n"])]
    for k, (label, naive, safe) in enumerate([*bars, ("sum l", *rest[5:])]):
        middle = top + LINE_HEIGHT * (k + 0.5)
        start, end = sorted((place(0), place(naive)))
        picture.text(LEFT - 8, middle, label, 11, align="r")
        picture.box(start, middle - 6, end - start, 12, fill=INK)
        picture.polygon(_diamond(place(safe), middle), ON_FILL, ZERO)
    for name, x, align in (("smallest", smallest, "r"), ("normal", normal, "l"), ("largest", largest, "m")):
        picture.text(x, bottom + 12, f"{name} {number(result['limits'][name][1])}", 10, align=align)
    picture.text(place(0), bottom + 12, "1", 10, align="m")
    _draw_legend(picture, top - 20)
    return bottom


def _diamond(x, y):
    return [(x - 6, y), (x, y - 6), (x + 6, y), (x, y + 6)]


def _draw_legend(picture, y):
    picture.box(78, y - 5, 16, 10, fill=INK)
    picture.text(100, y, "naive: exp(x_j), from 1, on a log axis", 11)
    picture.polygon(_diamond(348, y), ON_FILL, ZERO)
    picture.text(360, y, "safe: exp(x_j − m)", 11)
    picture.shade(498, y - 5, 16, 10, NOWHERE)
    picture.box(498, y - 5, 16, 10, edge=INK)
    picture.text(520, y, "no numbers there", 11)
    picture.dots(646, y - 5, 16, 10)
    picture.box(646, y - 5, 16, 10, edge=INK)
    picture.text(668, y, "subnormal: digits are lost", 11)


def _draw_table(picture, result, columns, rest, top):
    """Write the numbers of each score and the sums below them; return the bottom."""
    for header, x in HEADERS.items():
        picture.text(x, top, header, 12, face="bold")
    columns_of_marks = [result["marks"].get(name, [""] * result["n"]) for name in COLUMNS]
    for j in range(result["n"]):
        middle = top + LINE_HEIGHT * (j + 1)
        picture.text(12, middle, str(j + 1), 11)
        texts = [result["scores"][j], *(number(column[j]) for column in columns[1:])]
        for k, (text, found) in enumerate(zip(texts, columns_of_marks, strict=True)):
            _write(picture, k, middle, text, found[j])
    bottom = top + LINE_HEIGHT * (result["n"] + 1)
    picture.line([(12, bottom - LINE_HEIGHT / 2), (RIGHT, bottom - LINE_HEIGHT / 2)])
    picture.text(12, bottom, "sum", 11)
    _, l, l_safe, total, total_safe, *_ = rest
    sums = {1: ("l", l), 2: ("naive_total", total), 4: ("l_safe", l_safe), 5: ("safe_total", total_safe)}
    for column, (name, value) in sums.items():
        _write(picture, column, bottom, number(value), result["marks"][name][0])
    _write(picture, 6, bottom, "1", "")
    return bottom + LINE_HEIGHT / 2


def _write(picture, column, y, text, mark):
    """Write a number and its mark, in smaller type if the column is too narrow."""
    x, end = [*HEADERS.values(), RIGHT][column : column + 2]
    text = text.replace("∞", "inf") + (f" {MARKS[mark]} {mark}" if mark else "")
    face = "bold" * bool(mark)
    size = next((size for size in (11, 10, 9) if x + length(text, size, face) < end), 8)
    picture.text(x, y, text, size, WRONG if mark == "wrong" else INK, face=face)
