"""SplitLab as a static picture, drawn from its `result`."""

import math

import numpy as np

from flashlib.pictures.canvas import Picture
from flashlib.pictures.chart import Chart
from flashlib.pictures.inks import BLUE, HIGHLIGHT, INK
from flashlib.pictures.number_text import brief

LEFT, WIDE = 110, 806  # pixels, of the keys
BUSY, LIGHT, DARK = "#a9a9a9", "#e1e1e1", "#c4c4c4"
TOP = 204  # pixels, of the GPU and of the time
LINE = 56  # characters
LABEL = 60  # pixels, of the time next to the chosen point


def draw(result: dict) -> Picture:
    """Return a Picture of the result of a SplitLab."""
    sentences = [result["words"][0], result["merges"], result["equal"], result["words"][2]]
    picture = Picture(930, 490, " ".join([*sentences, result["words"][1]]))
    for place in ((0, 0, 930, TOP - 8), (0, TOP, 372, 490 - TOP), (380, TOP, 550, 490 - TOP)):
        picture.shade(*place)
    _draw_parts(picture, result, np.frombuffer(result["buffer"], "<f8"))
    _draw_chip(picture, result)
    _draw_times(picture, result["n"], result["times"], result["record"])
    for k, sentence in enumerate(sentences):
        picture.text(14, 118 + 20 * k, sentence, 12)
    return picture


def _draw_parts(picture, result, numbers):
    """Draw the keys, cut into parts, and below each part the weight of its State."""
    N_k, n, D, bins = result["setting"]["N_k"], result["n"], result["D"], result["bins"]
    nodes = numbers[bins:][: (2 * n - 1) * (D + 4)].reshape(-1, D + 4)
    weights = np.exp(nodes[:n, 0] - nodes[-1, 0])
    picture.text(14, 20, f"One query's {N_k} keys", 13, face="bold")
    picture.text(14, 46, "parts", 12)
    picture.text(14, 78, "exp(m_s − m)", 12)
    for k, (begin, end) in enumerate(result["ranges"]):
        x, wide = LEFT + WIDE * begin / N_k, WIDE * (end - begin) / N_k
        picture.box(x, 36, wide, 20, fill=(LIGHT, DARK)[k % 2])
        picture.box(x, 92 - 30 * weights[k], max(wide - 1, 1), 30 * weights[k], fill=BUSY)
    picture.box(LEFT, 36, WIDE, 20, edge=INK)
    picture.line([(LEFT, 92), (LEFT + WIDE, 92)])


def _draw_chip(picture, result):
    """Draw the multiprocessors, each with its places for programs, in the first wave."""
    chip, gpu = result["chip"], result["setting"]["gpu"]
    picture.text(14, TOP + 20, f"{gpu}: {chip['sms']} multiprocessors", 13, face="bold")
    running, columns = min(chip["programs"], chip["places"]), 16
    for k in range(chip["sms"]):
        x, y = 14 + 22 * (k % columns), TOP + 38 + 20 * (k // columns)
        its = running // chip["sms"] + (k < running % chip["sms"])
        for place in range(chip["at_a_time"]):
            wide = 18 / chip["at_a_time"]
            if place < its:
                picture.box(x + wide * place, y, wide - 1, 15, fill=BUSY)
        picture.box(x - 1, y - 1, 19, 17, edge=INK)
    for k, line in enumerate(_lines(result["words"][1])):
        picture.text(14, TOP + 242 + 18 * k, line, 11)


def _draw_times(picture, n, times, record):
    """Draw the model's curve, the chosen point and the measured ones."""
    xs, ys = zip(*times["curve"], strict=True)
    now, known = times["now"]["total"], [*ys, *(time for _, time in record)]
    low, high = math.log2(min(known)) - 0.2, math.log2(max(known)) + 0.2
    chart = Chart(picture, (440, TOP + 42, 470, 190), (0, max(math.log2(xs[-1]), 1)), (low, high))
    marks = [digit * 10.0**power for power in range(-1, 7) for digit in (1, 2, 5)]
    ticks = {math.log2(y): f"{y:.12g}" for y in marks if low < math.log2(y) < high}
    chart.axes("µs by the model", {k: str(2**k) for k in range(int(np.log2(xs[-1])) + 1)}, ticks, "parts")
    chart.line(np.log2(xs), np.log2(ys), BLUE, thick=2)
    crosses = [chart.at(math.log2(parts), math.log2(time)) for parts, time in record]
    for x, y in crosses:
        picture.line([(x - 4, y - 4), (x + 4, y + 4)], thick=2)
        picture.line([(x - 4, y + 4), (x + 4, y - 4)], thick=2)
    x, y = chart.at(math.log2(n), math.log2(now))
    picture.box(x - 5, y - 5, 10, 10, fill=HIGHLIGHT, edge=INK, thick=2)
    left = min(x + 10, 830)
    top = min([y, *(cross for at, cross in crosses if left - 10 < at < left + LABEL)])  # above the crosses
    picture.text(left, max(top - 12, TOP + 48), f"{brief(now)} µs", 11, face="bold")


def _lines(sentence):
    """Return the lines of a sentence, each of at most LINE characters."""
    words, lines = sentence.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) > LINE:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
