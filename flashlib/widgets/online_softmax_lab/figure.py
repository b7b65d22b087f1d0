"""The static picture of OnlineSoftmaxLab."""

import numpy as np

from flashlib.pictures.canvas import Picture, corners
from flashlib.pictures.chart import Chart
from flashlib.pictures.inks import INK, NEGATIVE, POSITIVE, WRONG
from flashlib.pictures.number_text import number, short

TOP, HEIGHT = 56, 160  # pixels, of a chart
PENDING = {"edge": INK, "dotted": True}


def draw(known: dict[str, np.ndarray], at: int, rescale: bool) -> Picture:
    """Draw the results of `scan` after the score `at`: the scores and m, the terms of l, and l over the scan."""
    m, l, wrong = (number(known[name][at]) for name in ("m", "l", "l_wrong"))
    words = f"Score {at + 1} of {len(known['x'])}: m = {m}, l = {l}, without the rescale {wrong}"
    picture = Picture(930, 286, words)
    for x, width in ((0, 334), (342, 290), (640, 290)):
        picture.shade(x, 0, width, 286)
    _draw_scores(picture, known, at)
    _draw_terms(picture, known, at, rescale)
    _draw_sums(picture, known, at, rescale)
    return picture


def _chart(picture, left, width, N, low, high, title, marks):
    """Return a chart with a column for each score; marks: {number: text}, on the vertical axis."""
    chart = Chart(picture, (left, TOP, width, HEIGHT), (0.4, N + 0.6), (low, high))
    across = range(1, N + 1) if N <= 10 else (1, N)
    chart.axes(title, {j: str(j) for j in across}, marks, "")
    return chart


def _draw_scores(picture, known, at):
    x, m = known["x"], known["m"]
    finite = x[x > -np.inf]
    size = np.abs(finite).max(initial=0) or 1  # divided by it, differences stay finite
    low, high, marks = _range(finite / size, size)
    chart = _chart(picture, 52, 270, len(x), low, high, f"Score {at + 1} of {len(x)}: m = {number(m[at])}", marks)
    base = min(max(0, low), high)
    for j, value in enumerate(x):
        if value == -np.inf:
            picture.hatch(corners(*chart.bar(j + 1, low, high)))
        elif j > at:
            picture.box(*chart.bar(j + 1, base, value / size), **PENDING)
        else:
            picture.box(*chart.bar(j + 1, base, value / size), fill=POSITIVE if value > 0 else NEGATIVE)
    seen = np.flatnonzero(m[: at + 1] > -np.inf)
    if len(seen):
        edges = np.repeat(np.append(seen, at + 1) + 0.5, 2)[1:-1]
        chart.line(edges, np.repeat(m[seen] / size, 2), thick=2)
    if low < 0 < high:
        chart.line(chart.xlim, (0, 0))
    picture.line([(54, 262), (72, 262)], thick=2)
    picture.text(78, 262, "m", 11)
    _draw_key(picture, 102, "seen", fill=POSITIVE)
    _draw_key(picture, 158, "to come", **PENDING)
    picture.hatch(corners(232, 257, 14, 10))
    picture.text(252, 262, "−∞", 11)


def _range(x, size):
    """Return both ends of the axis and its marks; zero is left out if it is far from all scores."""
    low, high = (x.min(), x.max()) if len(x) else (0.0, 0.0)
    ends, span = {low: short(low * size), high: short(high * size)}, high - low
    if low * high > 0 and min(abs(low), abs(high)) > 3 * span > 0:
        return low - span / 4, high + span / 4, ends
    first, last = min(low, 0), max(high, 0) or 1
    near = {end: text for end, text in ends.items() if abs(end) < 0.12 * (last - first)}
    return first, last, {0: "0"} | {end: text for end, text in ends.items() if end not in near}


def _draw_terms(picture, known, at, rescale):
    term, title = known["terms"][at], "Terms of l, never rescaled"
    if rescale:
        title = f"Terms of l: alpha = {number(known['alpha'][at])}"
    chart = _chart(picture, 380, 240, len(term), 0, 1.08, title, {0: "0", 0.5: "0.5", 1: "1"})
    before = known["terms"][at - 1] if at else 0 * term
    for j, value in enumerate(term):
        if not rescale and j <= at:
            picture.box(*chart.bar(j + 1, value, known["p"][j]), fill=WRONG)
        picture.box(*chart.bar(j + 1, 0, value), fill=POSITIVE)
        if rescale and before[j] > value:
            picture.box(*chart.bar(j + 1, 0, before[j]), **PENDING)
    _draw_key(picture, 382, "in l now", fill=POSITIVE)
    if rescale:
        _draw_key(picture, 462, "before the rescale", **PENDING)
    else:
        _draw_key(picture, 462, "▲ too much", fill=WRONG)


def _draw_sums(picture, known, at, rescale):
    l, wrong = known["l"], known["l_wrong"]
    j, highest = np.arange(1, len(l) + 1), max(l.max(), wrong.max()) or 1
    title = f"l = {number(l[at])}, without: {number(wrong[at])}"
    chart = _chart(picture, 684, 234, len(l), 0, 1.08 * highest, title, {0: "0", highest: short(highest)})
    chart.line(j, l, thick=2)
    chart.line(j, wrong, thick=1.4, dash=(5, 3))
    x, y = chart.at(at + 1, (l if rescale else wrong)[at])
    picture.polygon([(x + 5 * np.cos(turn), y + 5 * np.sin(turn)) for turn in np.linspace(0, 6, 16)])
    for left, text, style in (
        (684, "l", {"thick": 2}),
        (734, "without the rescale", {"thick": 1.4, "dash": (5, 3)}),
    ):
        picture.line([(left, 262), (left + 20, 262)], **style)
        picture.text(left + 26, 262, text, 11)


def _draw_key(picture, x, text, **style):
    picture.box(x, 257, 14, 10, **style)
    picture.text(x + 20, 262, text, 11)
