"""TilingLab as a static picture, drawn from its `result`."""

import numpy as np

from flashlib.pictures.canvas import Picture, corners
from flashlib.pictures.inks import HIGHLIGHT, INK, ON_FILL, READ, WRITTEN, ZERO
from flashlib.pictures.number_text import number
from flashlib.widgets.tiling_lab.tile_costs import KB, megabytes

DOUBLINGS = 4  # of the strongest colour
CELL = 42, 23  # pixels, of the map
LIGHT = {"whole": "#bebebe", "some": "#e1e1e1", "O_acc": "#bebebe", "m, l": "#bebebe", "S_ij": "#d2d2d2"}


def draw(result: dict) -> Picture:
    """Return a Picture of the result of a TilingLab."""
    if result["panels"] == "less":
        return _draw_first_look(result)
    picture = Picture(930, 408, " ".join(result["words"]))
    for place in ((0, 0, 214, 252), (222, 0, 244, 252), (0, 260, 466, 80), (474, 0, 456, 340)):
        picture.shade(*place)
    _draw_tiles(picture, result)
    _draw_bytes(picture, result["traffic"])
    _draw_sram(picture, result)
    _draw_map(picture, result)
    for k, words in enumerate(result["words"]):
        picture.text(12, 358 + 20 * k, words, 12)
    return picture


def _draw_first_look(result):
    """Draw only the tiles, with the sentences next to them."""
    picture = Picture(930, 252, " ".join(result["words"]))
    picture.shade(0, 0, 214, 252)
    _draw_tiles(picture, result)
    for k, words in enumerate(result["words"]):
        picture.text(232, 60 + 24 * k, words, 12)
    picture.box(232, 130, 18, 14, fill=LIGHT["whole"], edge=INK)
    picture.hatch(corners(232, 156, 18, 14))
    picture.box(232, 156, 18, 14, edge=INK)
    for y, name in ((137, "computed"), (163, "skipped")):
        picture.text(258, y, name, 12)
    return picture


def _draw_tiles(picture, result):
    """Draw the computed tiles, lighter where only some tiles of a square are computed, and hatch the rest."""
    grid, N, (left, top, side) = result["grid"], result["N"], (14, 38, 186)
    picture.text(12, 18, f"S: {grid['T_r']} × {grid['T_c']} tiles", 13, face="bold")
    xs, ys = (np.array(grid[edges]) * side / N for edges in ("cols", "rows"))
    picture.hatch(corners(left, top, side, side))
    for k, (whole, some) in enumerate(zip(grid["whole"], grid["some"], strict=True)):
        for start, end, light in ((0, whole, "whole"), (whole, some, "some")):
            size = xs[end] - xs[start], ys[k + 1] - ys[k]
            picture.box(left + xs[start], top + ys[k], *size, fill=LIGHT[light])
        picture.box(left, top + ys[k], xs[some], 1, fill=ZERO)
    for c, x in enumerate(xs[:-1]):
        first = ys[np.searchsorted(grid["some"], c, side="right")]  # the first square of the column that is drawn
        picture.box(left + x, top + first, 1, side - first, fill=ZERO)
    computed = number(100 * grid["computed"] / grid["tiles"])
    picture.text(12, 238, f"N = {N}; computed: {computed}%", 11)


def _draw_bytes(picture, traffic):
    picture.text(234, 18, "Bytes moved, no cache", 13, face="bold")
    most, width = max(moved["total"] for moved in traffic.values()), 220
    for k, (name, moved) in enumerate(traffic.items()):
        y, ratio = 56 + 52 * k, moved["ratio"]
        mark = f"   × {number(ratio)}" * bool(k) + "  ▲ more" * (ratio > 1)
        picture.text(234, y, f"{name}: {megabytes(moved['total'])}{mark}", 11)
        read = width * moved["read"] / most
        picture.box(234, y + 12, read, 14, fill=READ)
        picture.box(234 + read, y + 12, max(width * moved["written"] / most, 1), 14, fill=WRITTEN)
    level = 234 + width * traffic["standard"]["total"] / most
    picture.line([(level, 62), (level, 198)], thick=1.4, dash=(4, 3))
    for x, text, ink in ((234, "read", READ), (290, "written", WRITTEN)):
        picture.box(x, 233, 14, 10, fill=ink)
        picture.text(x + 20, 238, text, 11)
    picture.line([(372, 238), (388, 238)], thick=1.4, dash=(4, 3))
    picture.text(393, 238, "standard", 11)


def _draw_sram(picture, result):
    sram = result["sram"]
    left, width, top = 12, 440, 286
    full = max(sram["held"], sram["room"])
    verdict = "✓ fits into" if sram["fits"] else "✕ does not fit into"
    title = f"One tile holds {number(sram['held'] / KB)} KB: {verdict} {result['capacity']} KB of SRAM"
    picture.text(left, 274, title, 13, face="bold")
    x = left
    for name, held in sram["pieces"].items():
        size = width * held / full
        picture.box(x, top + 4, size, 28, fill=LIGHT.get(name, "#f0f0f0"), edge=INK)
        if size > 34:
            picture.text(x + size / 2, top + 18, name, 12, ON_FILL, "m")
        x += size
    room = left + width * sram["room"] / full
    picture.line([(room, top), (room, top + 40)], thick=3)


def _draw_map(picture, result):
    blocks, ratios, fits = (np.array(result["map"][key]) for key in ("blocks", "ratios", "fits"))
    n, (left, top), (width, height) = len(blocks), (526, 66), CELL
    picture.text(486, 18, f"{result['order'].upper()} traffic over standard attention", 13, face="bold")
    picture.text(518, 48, "B_r \\ B_c", 11, align="r")
    picture.matrix(left, top, np.where(fits, -np.log2(ratios), np.nan), width, height, DOUBLINGS, lambda _: "")
    for r, c in np.ndindex(n, n):
        text = f"{ratios[r, c]:.2f}" if ratios[r, c] < 9.995 else f"{ratios[r, c]:.1f}"
        x, y = left + (c + 0.5) * width, top + (r + 0.5) * height
        picture.text(x, y, text, 11, ON_FILL if fits[r, c] else INK, "m")
        if not fits[r, c]:
            picture.line([(x - 15, y), (x + 15, y)])
        for dr, dc in ((1, 0), (0, 1)):  # the edge to the cell below, and to the cell on the right
            if r + dr < n and c + dc < n and (ratios[r, c] > 1) != (ratios[r + dr, c + dc] > 1):
                start = left + (c + dc) * width - 1, top + (r + dr) * height - 1
                picture.line([start, (start[0] + dr * width, start[1] + dc * height)], thick=3)
    for k, block in enumerate(blocks):
        picture.text(left + (k + 0.5) * width, top - 18, str(block), 11, align="m")
        picture.text(left - 8, top + (k + 0.5) * height, str(block), 11, align="r")

    def place(B_c, B_r):
        return left + np.log2(B_c / blocks[0]) * width, top + np.log2(B_r / blocks[0]) * height

    for ink, thick in ((HIGHLIGHT, 5), (ON_FILL, 2)):
        picture.box(*place(result["B_c"], result["B_r"]), *CELL, edge=ink, thick=thick)
    if best := result["map"]["best"]:
        x, y = place(best["B_c"], best["B_r"])
        picture.text(x + width - 7, y + height - 7, "★", 11, ON_FILL, "m")
    y = top + n * height + 18
    picture.line([(486, y), (504, y)], thick=3)
    picture.text(510, y, "break-even", 11)
    picture.line([(592, y), (616, y)])
    picture.text(622, y, "does not fit", 11)
    picture.box(710, y - 6, 18, 12, fill=HIGHLIGHT, edge=ON_FILL, thick=2)
    picture.text(736, y, "this tile", 11)
    picture.text(800, y, "★ best that fits", 11)
