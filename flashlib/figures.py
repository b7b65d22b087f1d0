"""The inks that all pictures use, plots that can be read in light and dark notebooks, and numbers as text.

A picture has no ground of its own, so each ink is a middle one, with a contrast of at least 4 on white and on the
#111111 of dark notebooks. A fill brings its own ground, on which `ON_FILL` writes. A colour means what it means in
the widgets, see widgets/shared/palette.css; hatching means masked, and nothing else.
"""

import numpy as np

INK = "#75797f"  # text, axes, lines; twice as thick: what is at work or was picked
READ, WRITTEN = "#1b8a6b", "#9d60c6"  # bytes from HBM, and to it
WRONG = "#d9453f"  # never alone: a sign or a word says it too
BLUE, ORANGE, PINK, OLIVE = "#2a7cd0", "#b9662a", "#c8507f", "#7d8420"
SERIES = {BLUE: "-", ORANGE: "--", INK: "-.", PINK: ":", OLIVE: (0, (5, 1, 1, 1))}  # of curves
SOFT = 0.05  # the share of INK in the ground of a panel

NEGATIVE, ZERO, POSITIVE = "#ea9a57", "#ffffff", "#76aee8"  # fills: values, on a diverging scale
HIGHLIGHT = "#fff0b3"  # a fill: what is at work or was picked
ON_FILL = "#1d2126"


def style():
    """Draw the plots of this notebook with these inks, on no ground. The colour map of values is "values"."""
    import matplotlib.pyplot as plt
    from IPython import get_ipython
    from matplotlib.colors import LinearSegmentedColormap

    drawn = "text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "grid.color"
    plt.rcParams.update(dict.fromkeys(drawn, INK))
    plt.rcParams.update(
        {
            "axes.prop_cycle": plt.cycler(color=list(SERIES), linestyle=list(SERIES.values())),
            "axes.facecolor": "none",
            "savefig.facecolor": "none",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "figure.constrained_layout.use": True,
            "legend.frameon": False,
            "grid.alpha": 0.3,
        }
    )
    values = LinearSegmentedColormap.from_list("values", [NEGATIVE, ZERO, POSITIVE])
    plt.matplotlib.colormaps.register(values, force=True)
    if get_ipython():  # a figure whose own ground is transparent would be shown on a light one in a dark notebook
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("png", facecolor="none")


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
