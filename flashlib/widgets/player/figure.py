"""One step of FlashAttention as a static picture."""

import numpy as np
from matplotlib.patches import Rectangle

from flashlib import figures
from flashlib.figures import ACCENT, DIM, LINE, MASKED, PANEL, SCALE, TEXT, TINT, Picture, number, short

MAX_ROWS = 6  # of the state, in one picture


def draw(Q, K, V, steps, at, *, O=None, row=None) -> Picture:
    """Return a picture of one step as FlashPlayer shows it: Q, K, V, O, the tiles of S, and the rows' state.

    Q: (N_q, d); K, V: (N_k, d). steps: all of them; at: the index of the one to draw, or len(steps) for the end.
    O: (N_q, d) as memory held it then, NaN where nothing was written yet. row: the row told about, of the block
    of that step; default: the one whose maximum grew most. Raises IndexError for a step, or a row of it, that is
    not there.
    """
    steps = list(steps)
    if not 0 <= at <= len(steps):
        raise IndexError(f"at is {at}; there are {len(steps)} steps, so accepted are 0 .. {len(steps)}")
    step = steps[at] if at < len(steps) else None
    if step is not None:
        if row is None:
            row = step.rows.start + int(np.argmax(_growth(step)))
        elif not step.rows.start <= row < step.rows.stop:
            raise IndexError(f"row is {row}; step {at} has {_span('row', step.rows)}")
    page = _Page(1040, 372)
    _draw_memory(page, Q, K, V, O, step)
    _draw_grid(page, Q, K, steps, at)
    _draw_chip(page, Q, K, V, steps, step, row)
    page.panel(14, 320, 1012, 42, color=TINT)
    words = "Finished: every tile of S was computed and dropped, none was stored."
    if step is not None:
        words = _sentence(step, row)
    page.text(28, 341, words, size=9.5, va="center")
    return page.figure


class _Page:
    """Axes measured in pixels from the top left, and what is drawn on them."""

    def __init__(self, width, height):
        self.figure = Picture(width / 100, height / 100)
        self.ax = self.figure.add_axes((0, 0, 1, 1))
        self.ax.set(xlim=(0, width), ylim=(height, 0))
        self.ax.axis("off")

    def text(self, x, y, text, size=8, color=TEXT, **style):
        self.ax.text(x, y, text, size=size, color=color, **style)

    def rectangle(self, x, y, width, height, **style):
        self.ax.add_patch(Rectangle((x, y), width, height, **style))

    def panel(self, x, y, width, height, color=PANEL):
        self.rectangle(x, y, width, height, facecolor=color, edgecolor="none")

    def outline(self, x, y, width, height):
        self.rectangle(x, y, width, height, facecolor="none", edgecolor=ACCENT, linewidth=1.6)

    def matrix(self, x, y, X, width, height, peak, numbers=False):
        """Draw X as a heat map with cells of width x height, and its numbers; NaN cells are left empty."""
        peak = peak or 1
        rows, cols = X.shape
        if not X.size:
            return
        self.ax.pcolormesh(
            x + width * np.arange(cols + 1),
            y + height * np.arange(rows + 1),
            np.where(np.isneginf(X), -2 * peak, X),  # pcolormesh would leave -inf empty too
            cmap=SCALE,
            vmin=-peak,
            vmax=peak,
            edgecolors=PANEL if min(width, height) >= 6 else "face",
            linewidth=0.8 if min(width, height) >= 6 else 0,
        )
        for (r, c), value in np.ndenumerate(X) if numbers else ():
            self.text(x + (c + 0.5) * width, y + (r + 0.5) * height, short(value), 6.5, ha="center", va="center")


def _draw_memory(page, Q, K, V, O, step):
    page.panel(14, 14, 246, 296)
    page.text(28, 34, "HBM", 10, weight="bold")
    page.text(248, 34, "S and P: never here", 8, ACCENT, ha="right", weight="bold")
    cell = min(11, 190 / max(len(Q), len(K), 1))
    width = min(max(cell, 3), 46 / Q.shape[1])
    for k, (name, X) in enumerate((("Q", Q), ("K", K), ("V", V), ("O", O))):
        if X is None:
            continue
        x, y = 28 + 56 * k, 74
        page.text(x, 62, name, 9, style="italic", weight="bold")
        page.rectangle(x, y, X.shape[1] * width, len(X) * cell, facecolor="white", edgecolor=LINE, linestyle=":")
        page.matrix(x, y, X, width, cell, _peak(X))
        if step is not None and name != "O":
            rows = step.rows if name == "Q" else step.cols
            page.outline(x - 2, y + rows.start * cell, X.shape[1] * width + 4, (rows.stop - rows.start) * cell)
    if O is not None:
        page.text(28, 296, f"O: {int((~np.isnan(O[:, 0])).sum())} of {len(O)} rows written", 8, DIM)


def _draw_grid(page, Q, K, steps, at):
    page.panel(270, 14, 306, 296)
    tiles, ticks_i, ticks_j = figures.tiles_of(steps, len(Q), len(K))
    T_r, T_c = len(ticks_i), len(ticks_j)
    page.text(284, 34, "$S = Q K^T$ · scale", 10)
    tile = f"tile ({steps[at].i}, {steps[at].j}) of " if at < len(steps) else ""
    page.text(562, 34, f"{tile}{T_r} × {T_c} tiles", 8, DIM, ha="right")
    width, height = min(31, 246 / max(len(K), 1)), min(27, 216 / max(len(Q), 1))
    left, top = 314, 64
    for rows, cols, k in tiles:
        style = {"facecolor": "none", "linestyle": ":"}
        if k is None:
            style = {"facecolor": MASKED}
        elif k < at:
            style = {"facecolor": "none", "hatch": "////"}
        x, y = left + cols.start * width, top + rows.start * height
        size = ((cols.stop - cols.start) * width, (rows.stop - rows.start) * height)
        page.rectangle(x, y, *size, edgecolor=LINE, linewidth=0.8, **style)
    if at < len(steps):
        s = steps[at]
        x, y = left + s.cols.start * width, top + s.rows.start * height
        rows, cols = s.S_ij.shape
        page.matrix(x, y, s.S_ij, width, height, _peak(*(t.S_ij for t in steps)), min(width - 6, height) > 15)
        page.outline(x, y, cols * width, rows * height)
    for j in range(0, T_c, max(1, -(-T_c // 9))):
        page.text(left + ticks_j[j] * width, top - 5, f"j={j}", 7, DIM, ha="center")
    for i in range(0, T_r, max(1, -(-T_r // 14))):
        page.text(left - 5, top + ticks_i[i] * height, f"i={i}", 7, DIM, ha="right", va="center")
    x = 284
    skipped = [("skipped", {"facecolor": MASKED})] if len(steps) < T_r * T_c else []
    for name, style in [
        ("dropped", {"facecolor": "none", "hatch": "////"}),
        ("now", {"facecolor": "none", "edgecolor": ACCENT, "linewidth": 1.6}),
        ("to come", {"facecolor": "none", "linestyle": ":"}),
        *skipped,
    ]:
        page.rectangle(x, 290, 11, 9, **{"edgecolor": LINE, "linewidth": 0.8} | style)
        page.text(x + 16, 298, name, 7.5, DIM)
        x += 72


def _draw_chip(page, Q, K, V, steps, step, row):
    page.panel(586, 14, 440, 296)
    page.text(600, 34, "SRAM", 10, weight="bold")
    if step is None:
        page.text(1012, 34, "empty: no tile of S or P is left", 8, DIM, ha="right")
        return
    page.text(1012, 34, f"{_span('row', step.rows)}, {_span('column', step.cols)}", 8, DIM, ha="right")
    for name, x, y, room, X, peak in (
        ("Q_i", 600, 66, 104, Q[step.rows], _peak(Q)),
        ("K_j", 716, 66, 44, K[step.cols], _peak(K)),
        ("V_j", 716, 127, 44, V[step.cols], _peak(V)),
        ("S_{ij}", 832, 66, 104, step.S_ij, _peak(*(s.S_ij for s in steps))),
        ("P_{ij}", 926, 66, 104, step.P_ij, 1),
    ):
        page.text(x, y - 5, f"${name}$", 9)
        width, height = min(26, (84 if name[0] in "SP" else 104) / X.shape[1]), min(15, room / X.shape[0])
        page.matrix(x, y, X, width, height, peak, numbers=width > 20 and height > 10)
    lefts = {"row": 600, "m_{old}": 630, "m": 684, "alpha": 757, "l": 806, "O_{acc}": 900}
    for name, left in lefts.items():
        page.text(left, 184, name if name in ("row", "alpha") else f"${name}$", 8.5, DIM)
    first = max(0, row - step.rows.start - MAX_ROWS + 1)
    shown = range(first, min(first + MAX_ROWS, len(step.m)))
    new, height = figures.grown(step) | (np.isneginf(step.m_old) & ~np.isneginf(step.m)), 18
    width = min(26, 112 / Q.shape[1])
    O_acc_peak, l_peak = _peak(*(s.O_acc for s in steps)), _peak(*(s.l for s in steps))
    for k, r in enumerate(shown):
        y = 190 + k * height
        if step.rows.start + r == row:
            page.rectangle(594, y, 424, height, facecolor=TINT, edgecolor="none")
        style = {"size": 8, "va": "center"}
        accent = {"color": ACCENT, "weight": "bold"} if new[r] else {}
        middle = y + height / 2
        page.text(lefts["row"], middle, str(step.rows.start + r), **style)
        page.text(lefts["m_{old}"], middle, number(step.m_old[r]), **style)
        page.text(lefts["m"], middle, number(step.m[r]) + (" ↑" if new[r] else ""), **style, **accent)
        page.text(lefts["alpha"], middle, number(step.alpha[r]), **style, **accent)
        page.rectangle(
            lefts["l"], y + 5, 36 * step.l[r] / (l_peak or 1), 8, facecolor=SCALE(1.0), edgecolor="none"
        )
        page.text(lefts["l"] + 42, middle, number(step.l[r]), **style)
        page.matrix(
            lefts["O_{acc}"], y + 1, step.O_acc[r : r + 1], width, height - 2, O_acc_peak, numbers=width > 18
        )
    if len(step.m) > MAX_ROWS:
        page.text(1012, 184, f"{len(shown)} of {len(step.m)} rows", 7, DIM, ha="right")


def _sentence(step, row):
    r = row - step.rows.start
    m_old, m, alpha = number(step.m_old[r]), number(step.m[r]), number(step.alpha[r])
    if step.m[r] == -np.inf:
        return f"Row {row} sees no key yet: m stays −∞, l and O_acc stay 0."
    if step.m_old[r] == -np.inf:
        return f"Row {row}: the first scores it sees; their maximum is {m}. There is nothing to rescale yet."
    if step.m[r] == step.m_old[r]:
        return f"Row {row}: the maximum did not grow, it stays {m}; alpha = {alpha}, nothing is rescaled."
    return (
        f"Row {row}: the maximum grew from {m_old} to {m}, so everything summed so far is multiplied by "
        f"alpha = exp({m_old} − {f'({m})' if step.m[r] < 0 else m}) = {alpha}."
    )


def _growth(step):
    """Return by how much the maximum of each row grew, 0 where there was none before."""
    return np.subtract(step.m, step.m_old, where=figures.grown(step), out=np.zeros(len(step.m)))


def _span(name, block):
    """Return "row 4" or "rows 4–7"."""
    last = block.stop - 1
    return f"{name} {last}" if block.start == last else f"{name}s {block.start}–{last}"


def _peak(*arrays):
    """Return the largest size of a finite number in the arrays, 0 if there is none."""
    return max(
        (float(np.abs(X, where=np.isfinite(X), out=np.zeros(X.shape)).max(initial=0)) for X in arrays), default=0.0
    )
