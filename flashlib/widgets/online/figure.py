"""The static picture of OnlineSoftmaxLab."""

import numpy as np

from flashlib.figures import ACCENT, DIM, LINE, MASKED, SCALE, TEXT, Picture, number, short

TITLE = {"loc": "left", "size": 9.5, "color": TEXT}


def draw(known, at, rescale) -> Picture:
    """Draw what `scan` found after the score `at`: the scores and m, the terms of l, and l over the scan."""
    picture, j = Picture(9.6, 2.8), np.arange(1, len(known["x"]) + 1)
    axes = picture.subplots(1, 3, gridspec_kw={"width_ratios": [1, 1, 0.8]})
    _draw_scores(axes[0], j, known, at)
    _draw_terms(axes[1], j, known, at, rescale)
    _draw_sums(axes[2], j, known, at, rescale)
    for ax in axes:
        ax.set_xlabel("score", size=8, color=DIM)
        ax.tick_params(labelsize=8, labelcolor=DIM, color=LINE)
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[:].set_color(LINE)
        ax.set_xlim(0.4, len(j) + 0.6)
        ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        ax.legend(
            fontsize=7.5,
            frameon=False,
            columnspacing=1.4,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.21),
            ncols=4,
        )
    picture.subplots_adjust(left=0.055, right=0.99, top=0.9, bottom=0.27, wspace=0.16)
    return picture


def _draw_scores(ax, j, known, at):
    x, m, seen = known["x"], known["m"], j <= at + 1
    finite = x[x > -np.inf]
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    size = max(abs(low), abs(high)) or 1  # divided by it, differences stay finite
    span = high / size - low / size

    def place(values):  # no bar starts at 0: softmax sees differences alone
        if not span:
            return np.where(values > -np.inf, 0.5, np.nan)
        return np.where(values > -np.inf, 0.15 + 0.85 * (values / size - low / size) / span, np.nan)

    for which, height, label, style in (
        (seen & (x > -np.inf), place(x), "seen", {"color": SCALE(1.0)}),
        (~seen & (x > -np.inf), place(x), "to come", {"color": "none", "edgecolor": DIM, "linestyle": ":"}),
        (x == -np.inf, 1 + 0 * j, "−∞", {"color": MASKED, "edgecolor": "white", "hatch": "////", "linewidth": 0}),
    ):
        if which.any():
            ax.bar(j[which], height[which], label=label, **style)
    edges, tops = np.append(j[seen], at + 2) - 0.5, place(np.append(m[seen], m[at]))
    ax.step(edges, tops, where="post", color=ACCENT, label="m")
    ax.set_title(f"Score {at + 1} of {len(x)}: m = {number(m[at])}", **TITLE)
    ax.set_yticks(*([place(low), place(high)], [short(low), short(high)]) if span else [[]])
    ax.set_ylim(0, 1.1)


def _draw_terms(ax, j, known, at, rescale):
    term, style = known["terms"][at], {"edgecolor": DIM, "linewidth": 0.8}
    ax.bar(j, term, color=SCALE(1.0), label="in l now")
    if rescale:
        before = known["terms"][at - 1] if at else 0 * term
        ax.bar(j, before, color="none", linestyle="--", label="before the rescale", **style)
        ax.set_title(f"Terms of l: alpha = {number(known['alpha'][at])}", **TITLE)
    else:
        excess = np.where(j <= at + 1, known["p"] - term, 0)
        style |= {"color": SCALE(0.0), "hatch": "////", "label": "too much"}
        ax.bar(j, np.where(excess > 0, excess, np.nan), bottom=term, **style)
        ax.set_title("Terms of l, never rescaled", **TITLE)
    ax.set_ylim(0, 1.1)


def _draw_sums(ax, j, known, at, rescale):
    l, l_wrong = known["l"], known["l_wrong"]
    ax.plot(j, l, color=ACCENT, label="l")
    ax.plot(j, l_wrong, color=TEXT, linestyle="--", linewidth=1, label="without the rescale")
    ax.plot(j[at], (l if rescale else l_wrong)[at], "o", color=TEXT, markersize=5)
    ax.set_title(f"l = {number(l[at])}, without: {number(l_wrong[at])}", **TITLE)
    ax.set_ylim(0, 1.1 * l_wrong[-1] or 1)
