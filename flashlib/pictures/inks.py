"""The inks of all pictures, and plots that can be read in light and dark notebooks.

A picture has a transparent background, so each ink is a mid-tone with a contrast of at least 4 on white and on the
#111111 of dark notebooks. A fill brings its own background, on which `ON_FILL` writes. Colours mean the same as in
the widgets, see widgets/shared/palette.css; hatching always means masked.
"""

import os

INK = "#75797f"  # text, axes, lines; twice as thick: at work, or selected
READ, WRITTEN = "#1b8a6b", "#9d60c6"  # bytes from HBM and to HBM
WRONG = "#d9453f"  # never alone: a sign or a word says so too
BLUE, ORANGE, PINK, OLIVE = "#2a7cd0", "#b9662a", "#c8507f", "#7d8420"
SERIES = {BLUE: "-", ORANGE: "--", INK: "-.", PINK: ":", OLIVE: (0, (5, 1, 1, 1))}  # of curves
STORED = "FLASHLIB_STORED"  # set in the environment where notebooks are executed to be stored, see `plots`
SOFT = 0.05  # the share of INK in the background of a panel

NEGATIVE, ZERO, POSITIVE = "#ea9a57", "#ffffff", "#76aee8"  # fills: values, on a diverging scale
HIGHLIGHT = "#fff0b3"  # a fill: at work, or selected
COMPUTED, SEEN = 0.22, 0.62  # shares of INK: scores of tiles that a mask does not hide, and those that are seen
ON_FILL = "#1d2126"


def use() -> None:
    """Draw this notebook's plots with these inks on a transparent background, with the colour map "values"."""
    import matplotlib.pyplot as plt
    from IPython import get_ipython
    from matplotlib.colors import LinearSegmentedColormap

    drawn = "text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "grid.color"
    plt.rcParams.update(dict.fromkeys(drawn, INK))  # type: ignore[arg-type]  # the stubs list all names
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
            "svg.fonttype": "none",
            "svg.hashsalt": "flashlib",  # or names in an SVG would be random
        }
    )
    if "values" not in plt.matplotlib.colormaps:  # the cell may run twice
        plt.matplotlib.colormaps.register(LinearSegmentedColormap.from_list("values", [NEGATIVE, ZERO, POSITIVE]))
    if shell := get_ipython():  # or a transparent figure would get a light background in a dark notebook
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        stored = STORED in os.environ
        set_matplotlib_formats(*([] if stored else ["svg"]), facecolor="none")
        if stored:
            from flashlib.pictures import plots

            shell.display_formatter.mimebundle_formatter.for_type(plt.Figure, plots.bundle)
