"""TilingLab as a static picture, drawn from its `result`."""

import numpy as np
from matplotlib.patches import Rectangle

from flashlib.figures import ACCENT, DIM, LINE, MASKED, SCALE, TEXT, TINT, Picture, number
from flashlib.widgets.tiling.numbers import KB, megabytes

WIDTH, HEIGHT = 1040, 480  # pixels
MORE, LESS, PALE = SCALE(0.0), SCALE(1.0), SCALE(0.7)
PEAK = 4  # doublings, of the strongest colour
SMALL = {"size": 8, "color": TEXT}


def draw(result):
    """Return a Picture of the result of a TilingLab."""
    figure = Picture(WIDTH / 100, HEIGHT / 100)
    _tiles(_axes(figure, 52, 62, 200, 200), result)
    _bytes(_axes(figure, 285, 62, 245, 200), result["traffic"])
    _sram(_axes(figure, 52, 312, 478, 42), result)
    _map(_axes(figure, 596, 62, 430, 290), result)
    figure.add_artist(Rectangle((0.013, 0.015), 0.974, 0.165, facecolor=TINT, transform=figure.transFigure))
    for k, words in enumerate(result["words"]):
        figure.text(0.025, 0.145 - 0.048 * k, words, va="center", size=9, color=TEXT)
    return figure


def _axes(figure, left, top, width, height):
    """Return axes at a place in pixels from the top left, without a frame."""
    ax = figure.add_axes((left / WIDTH, 1 - (top + height) / HEIGHT, width / WIDTH, height / HEIGHT))
    ax.tick_params(length=0, labelsize=8, labelcolor=DIM)
    ax.spines[:].set_visible(False)
    return ax


def _title(ax, title, pad):
    ax.set_title(title, size=10, color=TEXT, loc="left", pad=pad)


def _tiles(ax, result):
    grid, N = result["grid"], result["N"]
    ax.set(xlim=(0, N), ylim=(N, 0), xticks=[], yticks=[])
    ax.add_patch(Rectangle((0, 0), N, N, facecolor=MASKED, edgecolor=LINE, hatch="////", linewidth=0.5))
    rows, cols = grid["rows"], grid["cols"]
    for k, (whole, some) in enumerate(zip(grid["whole"], grid["some"], strict=True)):
        for count, colour in ((some, PALE), (whole, LESS)):
            corner, size = (0, rows[k]), (cols[count], rows[k + 1] - rows[k])
            ax.add_patch(Rectangle(corner, *size, facecolor=colour, edgecolor="none"))
    ax.hlines(rows, 0, N, color="white", linewidth=0.4)
    ax.vlines(cols, 0, N, color="white", linewidth=0.4)
    _title(ax, f"S: {grid['T_r']} × {grid['T_c']} tiles", 8)
    computed = number(100 * grid["computed"] / grid["tiles"])
    ax.set_xlabel(f"N = {N} keys; computed: {computed}%", **SMALL, labelpad=3)
    ax.set_ylabel(f"N = {N} queries", **SMALL, labelpad=3)


def _bytes(ax, traffic):
    names = list(traffic)
    read, written = (np.array([traffic[name][key] / 1e6 for name in names]) for key in ("read", "written"))
    ax.barh(names, read, 0.34, color=LESS, label="read")
    ax.barh(
        names, written, 0.34, left=read, color="white", edgecolor=DIM, hatch="////", linewidth=0.6, label="written"
    )
    ax.axvline(read[0] + written[0], color=TEXT, linewidth=0.8, linestyle="--")
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}  # over the dashed line
    for y, name in enumerate(names):
        ratio = traffic[name]["ratio"]
        mark = "" if y == 0 else f"   × {number(ratio)}" + ("  ▲ more" if ratio > 1 else "")
        ax.text(0, y - 0.28, f"{name}: {megabytes(traffic[name]['total'])}{mark}", **SMALL, bbox=paper)
    ax.set(ylim=(2.5, -0.6), xlim=(0, 1.02 * max(read + written)), yticks=[])
    ax.legend(loc="lower left", bbox_to_anchor=(-0.02, -0.13), ncols=2, frameon=False, fontsize=8, borderpad=0)
    ax.tick_params(labelbottom=False)
    _title(ax, "Bytes moved, × standard", 8)


def _sram(ax, result):
    sram = result["sram"]
    left, room = 0, sram["room"] / KB
    full = max(sram["held"] / KB, room)
    for k, (name, held) in enumerate(sram["pieces"].items()):
        ax.barh(0, held / KB, 0.8, left=left, color=LESS if k < 3 else MORE, edgecolor="white")
        if held / KB > 0.06 * full:
            label = f"${name.replace('acc', '{acc}').replace('ij', '{ij}')}$"
            ax.text(left + held / KB / 2, 0, label, ha="center", va="center", **SMALL)
        left += held / KB
    if not sram["fits"]:
        ax.barh(0, left - room, 0.8, left=room, color="none", edgecolor=DIM, hatch="////", linewidth=0.8)
    ax.axvline(room, color=ACCENT, linewidth=2)
    verdict = "fits into" if sram["fits"] else "does not fit into"
    _title(ax, f"One tile holds {number(left)} KB: {verdict} {result['capacity']} KB", 5)
    ax.set(ylim=(-0.5, 0.5), xlim=(0, 1.02 * full), yticks=[])
    ax.set_xlabel("KB of SRAM; the line: what there is", **SMALL, labelpad=1)


def _map(ax, result):
    blocks, ratios, fits = (np.array(result["map"][key]) for key in ("blocks", "ratios", "fits"))
    n = len(blocks)
    ax.imshow(-np.log2(ratios).clip(-PEAK, PEAK), cmap=SCALE, vmin=-PEAK, vmax=PEAK, aspect="auto")
    for r, c in np.ndindex(n, n):
        text = f"{ratios[r, c]:.2f}" if ratios[r, c] < 9.995 else f"{ratios[r, c]:.1f}"
        ax.text(c, r, text, ha="center", va="center", **SMALL)
        if not fits[r, c]:
            style = {"facecolor": "none", "edgecolor": DIM, "hatch": "///", "linewidth": 0}
            ax.add_patch(Rectangle((c - 0.5, r - 0.5), 1, 1, **style, alpha=0.5))
        for dr, dc in ((1, 0), (0, 1)):  # the edge to the cell below, to that on the right
            if r + dr < n and c + dc < n and (ratios[r, c] > 1) != (ratios[r + dr, c + dc] > 1):
                ends = ([c - 0.5, c + 0.5], [r + 0.5] * 2) if dr else ([c + 0.5] * 2, [r - 0.5, r + 0.5])
                ax.plot(*ends, color=TEXT, linewidth=2)
    here = [np.log2(result[name] / blocks[0]) - 0.5 for name in ("B_c", "B_r")]
    ax.add_patch(Rectangle(here, 1, 1, facecolor="none", edgecolor=ACCENT, linewidth=2.4))
    if best := result["map"]["best"]:
        ax.plot(*(np.log2(best[name] / blocks[0]) + 0.36 for name in ("B_c", "B_r")), "*", color=TEXT, ms=7, mew=0)
    ax.set_xticks(range(n), blocks)
    ax.set_yticks(range(n), blocks)
    ax.set_ylabel("$B_r$", **SMALL, labelpad=1)
    ax.set_xlabel("$B_c$   (hatched: does not fit; line: break-even; ★: best that fits)", **SMALL, labelpad=2)
    _title(ax, f"{result['order'].upper()} traffic over standard attention", 8)
