"""OverflowLab as a static picture, drawn from its `result`."""

import textwrap

import numpy as np
from matplotlib.patches import Rectangle

from flashlib.figures import ACCENT, DIM, LINE, MASKED, SCALE, TEXT, TINT, Picture, number
from flashlib.widgets.overflow.numbers import COLUMNS

WIDTH, LEFT, RIGHT, LINE_HEIGHT = 1040, 90, 1020, 20  # pixels
MARKS = {"overflow": "▲", "underflow": "▼", "subnormal": "≈", "wrong": "×"}
HEADERS = ["$x_j$", "exp$(x_j)$", "naive", "$x_j - m$", "exp$(x_j - m)$", "safe", "exact weight"]
KEY = "log axis · bar: 1 to exp$(x_j)$, naive · ◇ exp$(x_j - m)$, safe · hatched: no numbers · dotted: subnormal"
PLACES = (90, 215, 375, 505, 595, 750, 905)  # of the columns


def draw(result):
    """Return a Picture of the result of an OverflowLab."""
    n = result["n"]
    numbers = np.frombuffer(result["buffer"], "<f8")
    columns, rest = numbers[:-7].reshape(len(COLUMNS), n), numbers[-7:]
    lines = [line for text in result["words"] for line in textwrap.wrap(text, 150)]
    height = 2 * LINE_HEIGHT * (n + 1) + 122 + LINE_HEIGHT * len(lines)
    figure = Picture(WIDTH / 100, height / 100)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, WIDTH), ylim=(height, 0))
    ax.axis("off")
    copies = result["asked"]["copies"]
    times = f" · the row {copies} times over" if copies > 1 else ""
    ax.text(16, 20, f"{result['name']}, x = {result['x'][1]}{times}", size=11, color=TEXT, va="center")
    ax.text(RIGHT, 20, KEY, size=8.5, color=DIM, ha="right", va="center")
    bottom = _draw_axis(ax, result, columns, rest, 40)
    bottom = _draw_table(ax, result, columns, rest, bottom + 46)
    ax.add_patch(Rectangle((10, bottom + 4), WIDTH - 20, height - bottom - 12, facecolor=TINT, linewidth=0))
    for k, line in enumerate(lines):
        ax.text(20, bottom + 18 + LINE_HEIGHT * k, line, size=9, color=TEXT, va="center")
    return figure


def _draw_axis(ax, result, columns, rest, top):
    """Draw a bar for each exp(x_j) and for l on a log axis, and a diamond for the safe one; return the bottom."""
    low, high = (end + result["shift"] for end in result["range"])
    bottom = top + LINE_HEIGHT * (result["n"] + 1)

    def place(log_value):
        return LEFT + (RIGHT - LEFT) * (min(max(log_value, low), high) - low) / (high - low)

    smallest, normal, largest = (place(result["limits"][name][0]) for name in ("smallest", "normal", "largest"))
    for left, right, style in (
        (LEFT, smallest, {"facecolor": MASKED, "hatch": "////"}),
        (smallest, normal, {"facecolor": "white", "hatch": "...."}),
        (normal, largest, {"facecolor": "white"}),
        (largest, RIGHT, {"facecolor": MASKED, "hatch": "////"}),
    ):
        ax.add_patch(Rectangle((left, top), right - left, bottom - top, edgecolor=LINE, linewidth=0.8, **style))
    ax.plot([place(0)] * 2, [top, bottom], color=DIM, linewidth=0.8)
    bars = [(f"exp$(x_{{{j + 1}}})$", columns[0, j], columns[3, j]) for j in range(result["n"])]
    bars.append(("sum $l$", *rest[5:]))
    for k, (label, naive, safe) in enumerate(bars):
        middle = top + LINE_HEIGHT * (k + 0.5)
        ends = sorted((place(0), place(naive)))
        ax.text(LEFT - 8, middle, label, size=9, color=TEXT, ha="right", va="center")
        ax.add_patch(Rectangle((ends[0], middle - 6), ends[1] - ends[0], 12, facecolor=SCALE(1.0), linewidth=0))
        ax.plot(place(safe), middle, "D", markersize=5, color="white", markeredgecolor=TEXT)
    for name, at, align in (
        ("smallest", smallest, "right"),
        ("normal", normal, "left"),
        ("largest", largest, "center"),
    ):
        text = f"{name} {number(result['limits'][name][1])}"
        ax.text(at, bottom + 12, text, size=8, color=DIM, ha=align, va="center")
    ax.text(place(0), bottom + 12, "1", size=8, color=DIM, ha="center", va="center")
    return bottom


def _draw_table(ax, result, columns, rest, top):
    """Write the numbers of each score and, beneath, the sums; return the bottom."""
    for place, header in zip(PLACES, HEADERS, strict=True):
        ax.text(place, top, header, size=9, color=DIM, va="center")
    columns_of_marks = [result["marks"].get(name, [""] * result["n"]) for name in COLUMNS]
    for j in range(result["n"]):
        middle = top + LINE_HEIGHT * (j + 1)
        ax.text(LEFT - 30, middle, str(j + 1), size=9, color=DIM, va="center")
        texts = [result["scores"][j], *(number(column[j]) for column in columns[1:])]
        for place, text, found in zip(PLACES, texts, columns_of_marks, strict=True):
            _write(ax, place, middle, text, found[j])
    bottom = top + LINE_HEIGHT * (result["n"] + 1)
    ax.plot([16, RIGHT], [bottom - LINE_HEIGHT / 2] * 2, color=LINE, linewidth=0.8)
    ax.text(LEFT - 30, bottom, "sum", size=9, color=DIM, va="center")
    _, l, l_safe, total, total_safe, *_ = rest
    sums = {1: ("l", l), 2: ("naive_total", total), 4: ("l_safe", l_safe), 5: ("safe_total", total_safe)}
    for column, (name, value) in sums.items():
        _write(ax, PLACES[column], bottom, number(value), result["marks"][name][0])
    _write(ax, PLACES[6], bottom, "1", "")
    return bottom + LINE_HEIGHT / 2


def _write(ax, x, y, text, mark):
    word = f" {MARKS[mark]} {mark}" if mark else ""
    ax.text(x, y, text.replace("∞", "inf") + word, size=9, va="center", color=ACCENT if mark else TEXT)
