"""EightBitsLab as a static picture, drawn from its `result`."""

import math

from flashlib.pictures.canvas import Picture, length
from flashlib.pictures.inks import INK, ON_FILL
from flashlib.widgets.eight_bits_lab.words import percent

INKS = ["#a9a9a9", "#d2d2d2", "#e1e1e1", "#8b8f95", "#c4c4c4", INK]  # of the causes
BUSY = "#a9a9a9"
WIDE = 400  # pixels, of a whole bar
LEFT = 494  # pixels, of the histograms
SIZE = 418, 38  # pixels, of a histogram
LINE = 62  # characters


def draw(result: dict) -> Picture:
    """Return a Picture of the result of an EightBitsLab."""
    picture = Picture(930, 430, " ".join(result["words"]))
    picture.shade(0, 0, 472, 430)
    picture.shade(480, 0, 450, 430)
    _draw_causes(picture, result)
    picture.text(LEFT, 20, "The numbers by size, and their grid", 13, face="bold")
    for k, rounding in enumerate(result["rounding"]):
        grid = result["grids"]["qk" if k < 2 else "pv"]
        _draw_tensor(picture, 42 + 98 * k, rounding, grid, result["octaves"])
    return picture


def _draw_causes(picture, result):
    """Draw the error of O that each cause makes alone, and the error of all at once, divided by their squares."""
    total, causes = result["total"], result["causes"]
    unit = WIDE / (max(total, *(cause["error"] for cause in causes)) or 1)
    picture.text(14, 20, "Where the error of O comes from", 13, face="bold")
    picture.text(14, 44, "all at once", 12)
    picture.text(14 + WIDE, 44, percent(total), 12, align="r", face="bold")
    x = 14.0
    for ink, cause in zip(INKS, causes, strict=True):
        wide = unit * total * cause["part"]
        picture.box(x, 54, wide, 20, fill=ink)
        if wide > length(_plain(cause["name"]), 10) + 8:
            picture.text(x + wide / 2, 64, _plain(cause["name"]), 10, ON_FILL, "m")
        x += wide
    for k, (ink, cause) in enumerate(zip(INKS, causes, strict=True)):
        y = 96 + 36 * k
        picture.text(14, y, _plain(cause["name"]), 12)
        picture.text(126, y, cause["how"], 11)
        picture.text(14 + WIDE, y, percent(cause["error"]), 12, align="r")
        picture.box(14, y + 9, max(unit * cause["error"], 1), 8, fill=ink)
    for k, line in enumerate(line for sentence in result["words"] for line in _lines(sentence)):
        picture.text(14, 322 + 17 * k, line, 11)


def _draw_tensor(picture, top, rounding, grid, octaves):
    """Draw a histogram of a tensor's numbers by size, and below it the numbers of its format."""
    wide, high = SIZE
    picture.text(LEFT, top + 8, rounding["name"], 12, face="bold")
    picture.text(LEFT + 22, top + 8, rounding["words"], 11)
    bars, foot = rounding["bars"], top + 22 + high
    step, unit = wide / len(bars), high / (max(bars) or 1)
    for k, share in enumerate(bars):
        picture.box(LEFT + k * step, foot - unit * share, step - 1, unit * share, fill=BUSY)
    picture.line([(LEFT, foot), (LEFT + wide, foot)])
    for value in grid:
        octave = math.log2(value / grid[-1])
        if octave >= -octaves:
            picture.box(LEFT + wide * (octaves + octave) / octaves, foot + 3, 1, 9, fill=INK)
    for octave in range(0, octaves, 4):
        at = LEFT + wide * (octaves - octave) / octaves
        picture.text(at, foot + 21, f"1/{2**octave}" if octave else "1", 10, align="m" if octave else "r")


def _plain(name):
    return name.replace("^T", "ᵀ")


def _lines(sentence):
    """Return the lines of a sentence, each of at most LINE characters."""
    lines = [""]
    for word in _plain(sentence).split():
        if len(lines[-1]) + len(word) > LINE:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
