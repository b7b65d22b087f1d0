"""MaskLab as a static picture, drawn from its `result`."""

import numpy as np

from flashlib.pictures.canvas import Picture, corners
from flashlib.pictures.inks import INK, ON_FILL, ZERO
from flashlib.pictures.number_text import number
from flashlib.widgets.mask_lab.tile_counts import CUT, HIDDEN

SIDE = 300  # pixels, at most, of the scores
COMPUTED, SEEN = "#e1e1e1", "#a9a9a9"  # as the shares of INK in `inks` on white
LINE = 76  # characters


def draw(result: dict) -> Picture:
    """Return a Picture of the result of a MaskLab."""
    picture = Picture(930, 372, " ".join(result["words"]))
    picture.shade(0, 0, 344, 372)
    picture.shade(352, 0, 578, 372)
    _draw_scores(picture, result)
    tiles, scores = result["tiles"], result["scores"]
    picture.text(368, 22, result["code"], 13, face="bold")
    _draw_key(picture, 368, 56, f"{tiles['whole']} whole", COMPUTED, SEEN)
    _draw_key(picture, 480, 56, f"{tiles['cut']} cut", COMPUTED, None, hatched=True)
    _draw_key(picture, 592, 56, f"{tiles['hidden']} hidden, skipped", None, None, hatched=True)
    y = 88
    seen = scores["seen"] / max(scores["computed"], 1)
    share = "seen, of computed scores", f"{scores['seen']} of {scores['computed']}", seen, f"{number(100 * seen)}%"
    bars = [(row["name"], row["text"], row["ratio"], row["percent"]) for row in result["against"]]
    for name, text, ratio, percent in [*bars, share]:
        picture.text(368, y, name, 12)
        picture.text(700, y, text, 12, align="r")
        picture.box(716, y - 6, 130, 12, edge=INK)
        picture.box(716, y - 6, 130 * ratio, 12, fill=SEEN)
        picture.text(914, y, percent, 12, align="r")
        y += 24
    y += 8
    for sentence in result["words"]:
        for line in _lines(sentence):
            picture.text(368, y, line, 12)
            y += 18
        y += 6
    return picture


def _draw_scores(picture, result):
    """Draw the scores: hidden tiles hatched, computed ones filled, and in these the seen scores darker."""
    setting = result["setting"]
    N_q, N_k, B_r, B_c = (setting[name] for name in ("N_q", "N_k", "B_r", "B_c"))
    picture.text(14, 18, f"S: {N_q} × {N_k} scores, tiles of {B_r} × {B_c}", 13, face="bold")
    wide, high = cell(N_q, N_k)
    left, top, width, height = 22, 48, wide * N_k, high * N_q

    def place(row, end_row, start, end):
        return left + wide * start, top + high * row, wide * (end - start), high * (end_row - row)

    picture.hatch(corners(left, top, width, height))
    for i, kinds in enumerate(result["kinds"]):
        for j, kind in enumerate(kinds):
            if kind != HIDDEN:
                at = place(i * B_r, min((i + 1) * B_r, N_q), j * B_c, min((j + 1) * B_c, N_k))
                picture.box(*at, fill=COMPUTED)
                if kind == CUT:
                    picture.hatch(corners(*at))
    for row, runs in enumerate(result["runs"]):
        for start, end in runs:
            picture.box(*place(row, row + 1, start, end), fill=SEEN)
    for k in range(B_c, N_k, B_c):
        picture.box(round(left + wide * k), top, 1, height, fill=ZERO)
    for k in range(B_r, N_q, B_r):
        picture.box(left, round(top + high * k), width, 1, fill=ZERO)
    picture.box(left - 1, top - 1, width + 2, height + 2, edge=INK)
    if lengths := result["lengths"]:
        ends = np.cumsum([0, *lengths])
        for start, end in zip(ends[:-1], ends[1:], strict=True):
            picture.box(left + wide * start, top - 16, wide * (end - start), 13, fill=COMPUTED, edge=INK)
            if wide * (end - start) > 18:
                picture.text(left + wide * (start + end) / 2, top - 9, str(end - start), 10, ON_FILL, "m")


def cell(N_q: int, N_k: int) -> tuple[float, float]:
    """Return the width and height of a score in pixels; neither is more than three times the other."""
    wide, high = (min(24, SIDE / N) for N in (N_k, N_q))
    return min(wide, 3 * high), min(high, 3 * wide)


def _draw_key(picture, x, y, text, fill, inner, hatched=False):
    picture.box(x, y - 7, 18, 14, fill=inner or fill, edge=INK)
    if hatched:
        picture.hatch(corners(x, y - 7, 18, 14))
    picture.text(x + 26, y, text, 12)


def _lines(sentence):
    """Return the lines of a sentence, each of at most LINE characters."""
    lines = [""]
    for word in sentence.split():
        if len(lines[-1]) + len(word) > LINE:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
