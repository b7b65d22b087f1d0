"""One step of the backward pass as a static picture."""

import numpy as np
from matplotlib.patches import Rectangle

from flashlib.figures import ACCENT, DIM, LINE, SCALE, TEXT, TINT, Picture, short, tile_order
from flashlib.widgets.backward.frames import GRADIENTS, in_words

WIDTH, HEIGHT = 1040, 400  # pixels
SMALL = {"size": 8, "color": TEXT}
MATRICES = (("S_ij", 0, 0), ("P_ij", 0, 1), ("dP_ij", 1, 0), ("dS_ij", 1, 1))
MAX_NUMBERS = 8, 6  # rows and columns of a matrix whose numbers are written into it


def draw(recording, found, frames, at=None):
    """Return a Picture of step `at` of a Recording and its Errors; raises IndexError for a step that is not there.

    frames: sizes and setting. at: default: two thirds through.
    """
    T = len(recording.steps)
    at = 2 * T // 3 if at is None else at
    if not 0 <= at < max(T, 1):
        raise IndexError(f"at is {at}; there are {T} steps, so accepted are 0 .. {T - 1}")
    picture = Picture(WIDTH / 100, HEIGHT / 100)
    order = _axes(picture, 40, 74, 250, 240)
    tile_order(recording.steps, frames["N_q"], frames["N_k"], ax=order)
    _title(picture, 40, "Tiles of S in their order")
    _curve(_axes(picture, 778, 82, 236, 214), recording, found, at)
    _title(picture, 752, "Error, against exact gradients")
    words = "There is nothing to sum."
    if T:
        step = recording.steps[at]
        box = (
            (step.cols.start, step.rows.start),
            step.cols.stop - step.cols.start,
            step.rows.stop - step.rows.start,
        )
        order.add_patch(Rectangle(*box, facecolor="none", edgecolor=ACCENT, linewidth=2, clip_on=False))
        _title(picture, 340, f"Step {at + 1} of {T}: tile ({step.i}, {step.j})")
        for name, row, col in MATRICES:
            _matrix(_axes(picture, 340 + 200 * col, 82 + 122 * row, 160, 88), name, recording, step)
        words = _sentence(found, frames, step, at)
    picture.add_artist(Rectangle((0.013, 0.03), 0.974, 0.11, facecolor=TINT, transform=picture.transFigure))
    picture.text(0.027, 0.085, words, size=9.5, color=TEXT, va="center")
    return picture


def _axes(picture, left, top, width, height):
    """Return axes at a place in pixels from the top left, without a frame."""
    ax = picture.add_axes((left / WIDTH, 1 - (top + height) / HEIGHT, width / WIDTH, height / HEIGHT))
    ax.tick_params(length=0, labelsize=8, labelcolor=DIM)
    ax.spines[:].set_visible(False)
    return ax


def _title(picture, left, text):
    picture.text(left / WIDTH, 1 - 34 / HEIGHT, text, size=10.5, color=TEXT)


def _matrix(ax, name, recording, step):
    """Draw a matrix of the step, with its numbers if they are few."""
    X = getattr(step, name)
    sizes = [np.abs(np.nan_to_num(getattr(s, name), nan=0, posinf=0, neginf=0)) for s in recording.steps]
    peak = max(float(size.max(initial=0)) for size in sizes) or 1.0
    ax.imshow(np.where(np.isneginf(X), -2 * peak, X), cmap=SCALE, vmin=-peak, vmax=peak, aspect="auto")
    if all(n <= most for n, most in zip(X.shape, MAX_NUMBERS, strict=True)):
        for (r, c), x in np.ndenumerate(X):
            ax.text(c, r, _two_decimals(x), ha="center", va="center", size=7.5, color=TEXT)
    ax.set(xticks=[], yticks=[])
    for edge in (-0.5, len(X) - 0.5):
        ax.axhline(edge, color=LINE, linewidth=0.8, clip_on=False)
    base, index = name.split("_")
    formula = {"S": "", "P": "$= \\exp(S_{ij} - lse_i)$", "dP": "$= dO_i V_j^T$"}
    formula["dS"] = "$= P_{ij} \\circ (dP_{ij} - delta_i)$"
    ax.set_title(f"${base}_{{{index}}}$ {formula[base]}", size=8.5, color=TEXT, loc="left", pad=4)


def _two_decimals(x):
    return f"{np.round(x, 2) + 0.0:.2f}".replace("-", "−") if abs(x) < 99.5 else short(x)  # + 0.0: no −0.00


def _curve(ax, recording, found, at):
    """Draw the errors: of the whole, and of each block from its first step to its last."""
    T = len(recording.steps)
    ax.plot(range(T + 1), found.whole, color=DIM, linewidth=1.2, linestyle="--", label="all")
    label = "the block that is summed"
    ends = sorted({write.after + 1 for write in recording.writes} | {T})
    for start, end in zip([0, *ends], ends, strict=False):
        errors = [*found.before[start : start + 1], *found.after[start:end]]
        ax.plot(range(start, start + len(errors)), errors, color=ACCENT, linewidth=1.6, label=label)
        label = None  # once is enough
    ax.axvline(min(at + 1, T), color=TEXT, linewidth=0.8)
    ax.set_ylim(bottom=0)
    ax.set_xlim(0, max(T, 1))
    ax.spines[["left", "bottom"]].set(visible=True, color=LINE)
    ax.set_xlabel("tiles added", **SMALL, labelpad=2)
    ax.legend(frameon=False, fontsize=8, ncols=2, loc="lower left", bbox_to_anchor=(-0.04, 0.98), borderpad=0)


def _sentence(found, frames, step, at):
    index = step.j if frames["wrt"] == "kv" else step.i
    names = " and ".join(f"{name}_{index}" for name in sorted(GRADIENTS[frames["wrt"]]))
    block, whole = (in_words(x, frames["dtype"]) for x in (found.after[at], found.whole[at + 1]))
    return f"The tile is added to {names}. Largest error of the block: {block}; of all: {whole}."
