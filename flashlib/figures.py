"""Parts of static pictures, and one of the order of tiles: for a page without a kernel, a printed chapter.

What is drawn is read from the Steps; a tile without one was skipped. Figures are made without pyplot, so none is
left open, and show themselves in a notebook.
"""

import io

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

TEXT, DIM, LINE, PANEL, ACCENT, TINT = "#1d2126", "#5b6169", "#b3b8bf", "#f4f5f6", "#1565c0", "#e3edf8"
MASKED = "#dcdcdc"
SCALE = LinearSegmentedColormap.from_list("orange to blue", ["#ea9a57", "#ffffff", "#76aee8"])
SCALE = SCALE.with_extremes(under=MASKED, bad="none")  # -inf; NaN


class Picture(Figure):
    """A Figure that a notebook shows as a PNG, whether pyplot was imported or not."""

    def __init__(self, width, height):
        super().__init__(figsize=(width, height), facecolor="white")
        FigureCanvasAgg(self)

    def png(self) -> bytes:
        """Return the picture as a PNG of few colours: small, and the same bytes every time."""
        file = io.BytesIO()
        self.canvas.draw()
        image = Image.fromarray(np.asarray(self.canvas.buffer_rgba())).convert("RGB")
        image.quantize(128, dither=Image.Dither.NONE).save(file, format="png", optimize=True)
        return file.getvalue()

    _repr_png_ = png


def number(x) -> str:
    """Return x to four significant digits, small whole numbers as they are, with a true minus sign."""
    if not np.isfinite(x):
        return "NaN" if np.isnan(x) else "∞" if x > 0 else "−∞"
    if x == int(x) and abs(x) < 1e4:
        return _tidy(f"{int(x)}")
    return _tidy(f"{x:.3e}" if abs(x) < 1e-4 else f"{x:#.4g}".rstrip("."))


def short(x) -> str:
    """Return x with one decimal, where space is short."""
    return _tidy(f"{x:.1f}" if abs(x) < 99.95 else f"{x:.0e}") if np.isfinite(x) else number(x)


def telling_step(steps) -> int:
    """Return the index of a telling step: some maximum grew, and it is about two thirds through."""
    grew = [k for k, step in enumerate(steps) if grown(step).any()]
    wanted = 2 * len(steps) // 3
    return min(grew, key=lambda k: abs(k - wanted), default=wanted)


def grown(step):
    """Return which rows had a maximum already and saw it grow."""
    return (step.m_old > -np.inf) & (step.m > step.m_old)


def tile_order(steps, N_q, N_k, *, ax=None, title=None) -> Figure:
    """Draw the tiles of S, (N_q, N_k), numbered in the order in which the steps computed them; return the figure.

    steps: with rows, cols and S_ij, as `tiled.steps` gives them. A tile without a step is hatched: skipped. One
    that the mask cuts in part has a corner: some of its scores are -inf. Draws into `ax` if one is given.
    """
    steps = list(steps)
    if ax is None:
        ax = Picture(3.6, 3.8).add_axes((0.1, 0.04, 0.86, 0.8))
    tiles, ticks_i, ticks_j = tiles_of(steps, N_q, N_k)
    size = max(5, min(11, 60 / max(len(ticks_i), len(ticks_j), 1)))
    for rows, cols, k in tiles:
        corner, width, height = (cols.start, rows.start), cols.stop - cols.start, rows.stop - rows.start
        style = {"facecolor": "white", "hatch": "////"}
        if k is not None:
            style = {"facecolor": SCALE(0.5 + 0.4 * (k + 1) / len(steps))}
            middle = (cols.start + width / 2, rows.start + height / 2)
            ax.text(*middle, str(k + 1), ha="center", va="center", size=size, color=TEXT)
        ax.add_patch(Rectangle(corner, width, height, edgecolor=LINE, linewidth=0.8, clip_on=False, **style))
        if k is not None and np.isneginf(steps[k].S_ij).any():
            x, y = [cols.stop, cols.stop, cols.stop - width / 3], [rows.start, rows.start + height / 3, rows.start]
            ax.fill(x, y, color=DIM, linewidth=0)
    ax.set(xlim=(0, max(N_k, 1)), ylim=(max(N_q, 1), 0), aspect="equal")
    for name, axis, ticks in (("j", ax.xaxis, ticks_j), ("i", ax.yaxis, ticks_i)):
        labelled = range(0, len(ticks), -(-len(ticks) // 10) or 1)
        axis.set_ticks([ticks[k] for k in labelled], [f"{name}={k}" for k in labelled])
    ax.tick_params(length=0, labelsize=8, labelcolor=DIM, top=True, labeltop=True, bottom=False, labelbottom=False)
    ax.spines[:].set_visible(False)
    if title:
        ax.set_title(title, size=11, color=TEXT, loc="left")
    return ax.figure


def tiles_of(steps, N_q, N_k):
    """Return each tile of S, (rows, columns, index of its step or None if skipped), and where to label i and j."""
    blocks_i = _blocks(N_q, ((s.i, s.rows) for s in steps))
    blocks_j = _blocks(N_k, ((s.j, s.cols) for s in steps))
    computed = {(s.i, s.j): k for k, s in enumerate(steps)}
    tiles = [
        (rows, cols, computed.get((i, j))) for i, rows in enumerate(blocks_i) for j, cols in enumerate(blocks_j)
    ]
    return tiles, *([(block.start + block.stop) / 2 for block in blocks] for blocks in (blocks_i, blocks_j))


def _blocks(N, seen):
    """Return the slices that cut N as the blocks seen, (index, slice), do; a single one if none was seen."""
    B = max((block.start // index if index else block.stop for index, block in seen), default=max(N, 1))
    return [slice(start, min(start + B, N)) for start in range(0, N, B)]


def _tidy(text):
    """Return a number's text with a true minus sign and an exponent without padding."""
    mantissa, e, exponent = text.partition("e")
    return (mantissa + (f"e{int(exponent)}" if e else "")).replace("-", "−")
