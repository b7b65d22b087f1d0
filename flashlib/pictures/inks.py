"""The inks that all pictures use, and plots that can be read in light and dark notebooks.

A picture has no ground of its own, so each ink is a middle one, with a contrast of at least 4 on white and on the
#111111 of dark notebooks. A fill brings its own ground, on which `ON_FILL` writes. A colour means what it means in
the widgets, see widgets/shared/palette.css; hatching means masked, and nothing else.
"""

INK = "#75797f"  # text, axes, lines; twice as thick: what is at work or was picked
READ, WRITTEN = "#1b8a6b", "#9d60c6"  # bytes from HBM, and to it
WRONG = "#d9453f"  # never alone: a sign or a word says it too
BLUE, ORANGE, PINK, OLIVE = "#2a7cd0", "#b9662a", "#c8507f", "#7d8420"
SERIES = {BLUE: "-", ORANGE: "--", INK: "-.", PINK: ":", OLIVE: (0, (5, 1, 1, 1))}  # of curves
SOFT = 0.05  # the share of INK in the ground of a panel

NEGATIVE, ZERO, POSITIVE = "#ea9a57", "#ffffff", "#76aee8"  # fills: values, on a diverging scale
HIGHLIGHT = "#fff0b3"  # a fill: what is at work or was picked
ON_FILL = "#1d2126"


def use() -> None:
    """Draw the plots of this notebook with these inks, on no ground. The colour map of values is "values"."""
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
        }
    )
    if "values" not in plt.matplotlib.colormaps:  # the cell may run twice
        plt.matplotlib.colormaps.register(LinearSegmentedColormap.from_list("values", [NEGATIVE, ZERO, POSITIVE]))
    if get_ipython():  # a figure whose own ground is transparent would be shown on a light one in a dark notebook
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("png", facecolor="none")
