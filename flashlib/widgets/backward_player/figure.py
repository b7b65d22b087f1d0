"""One step of the backward pass as a static picture."""

import numpy as np

from flashlib.language.phrases import and_list
from flashlib.pictures.canvas import Picture
from flashlib.pictures.chart import Chart
from flashlib.pictures.inks import INK
from flashlib.pictures.number_text import number, short
from flashlib.pictures.tile_order import tile_order
from flashlib.widgets.backward_player.frames import GRADIENTS, BackwardRecording, Errors, in_words

MATRICES = {  # where, and how it is computed
    "S_ij": (330, 78, ""),
    "P_ij": (490, 78, "= exp(S_ij − lse_i)"),
    "dP_ij": (330, 202, "= dO_i V_jᵀ"),
    "dS_ij": (490, 202, "= P_ij ∘ (dP_ij − delta_i)"),
}
SIZE = 142, 88  # pixels, of a matrix
MAX_NUMBERS = 8, 6  # rows and columns up to which a matrix has its numbers written in


def draw(recording: BackwardRecording, found: Errors, frames: dict, at: int | None = None) -> Picture:
    """Return a Picture of step `at` of a recording and its Errors; raises IndexError if there is no such step.

    frames: sizes and setting. at: default: two thirds through.
    """
    T = len(recording.steps)
    at = 2 * T // 3 if at is None else at
    if not 0 <= at < max(T, 1):
        raise IndexError(f"at is {at}; there are {T} steps, so accepted are 0 .. {T - 1}")
    words = _sentence(found, frames, recording.steps[at], at) if T else "There is nothing to sum."
    picture = Picture(930, 356, words)
    for x, width in ((0, 310), (318, 332), (658, 272)):
        picture.shade(x, 0, width, 320)
    picture.text(12, 18, "Tiles of S in their order", 13, face="bold")
    x, y, cell = tile_order(picture, (48, 66, 240, 240), recording.steps, frames["N_q"], frames["N_k"])
    if T:
        step = recording.steps[at]
        corner, size = (step.cols.start, step.rows.start), (len(step.dS_ij[0]), len(step.dS_ij))
        picture.box(x + corner[0] * cell, y + corner[1] * cell, *(n * cell + 1 for n in size), edge=INK, thick=3)
        picture.text(330, 18, f"Step {at + 1} of {T}: tile ({step.i}, {step.j})", 13, face="bold")
        for name in MATRICES:
            _draw_matrix(picture, name, recording, step)
    _draw_errors(picture, recording, found, at)
    picture.text(12, 338, words, 13)
    return picture


def _draw_matrix(picture, name, recording, step):
    """Draw a matrix of the step, with its numbers if there are few."""
    x, y, formula = MATRICES[name]
    X = getattr(step, name)
    sizes = [np.abs(np.nan_to_num(getattr(s, name), nan=0, posinf=0, neginf=0)) for s in recording.steps]
    few = all(n <= most for n, most in zip(X.shape, MAX_NUMBERS, strict=True))
    picture.text(x, y - 16, f"{name} {formula}", 11)
    peak = max(float(size.max(initial=0)) for size in sizes)
    rows, cols = X.shape
    picture.matrix(x, y, X, SIZE[0] / cols, SIZE[1] / rows, peak, _two_decimals if few else None)


def _two_decimals(x):
    return f"{np.round(x, 2) + 0.0:.2f}".replace("-", "−") if abs(x) < 99.5 else short(x)  # + 0.0: no −0.00


def _draw_errors(picture, recording, found, at):
    """Draw the error of all rows, and of each block from its first step to its last."""
    T = len(recording.steps)
    whole = np.asarray(found.whole, float)
    highest = max((x for x in [*whole, *found.before, *found.after] if np.isfinite(x)), default=0.0) or 1.0
    chart = Chart(picture, (712, 100, 200, 164), (0, max(T, 1)), (0, highest))
    chart.axes("", {0: "0", T: str(T)} if T else {}, {0: "0", highest: number(highest)}, "tiles added")
    picture.text(670, 18, "Error, to exact gradients", 13, face="bold")
    _draw_curve(chart, 0, whole, dash=(5, 3))
    ends = sorted({write.after + 1 for write in recording.writes} | {T})
    for start, end in zip([0, *ends], ends, strict=False):
        _draw_curve(chart, start, [*found.before[start : start + 1], *found.after[start:end]], thick=2)
    chart.line([min(at + 1, T)] * 2, [0, highest], thick=1, dash=(1, 2))
    for y, text, style in ((46, "the block that is summed", {"thick": 2}), (66, "all", {"dash": (5, 3)})):
        picture.line([(672, y), (696, y)], **style)
        picture.text(704, y, text, 11)


def _draw_curve(chart, start, errors, **style):
    """Draw the finite errors, beginning with the one after `start` tiles."""
    shown = [(start + k, error) for k, error in enumerate(errors) if np.isfinite(error)]
    if len(shown) > 1:
        chart.line(*zip(*shown, strict=True), **style)


def _sentence(found, frames, step, at):
    index = step.j if frames["wrt"] == "kv" else step.i
    names = and_list(f"{name}_{index}" for name in sorted(GRADIENTS[frames["wrt"]]))
    block, whole = (in_words(x, frames["dtype"]) for x in (found.after[at], found.whole[at + 1]))
    return f"The tile is added to {names}. Largest error of the block: {block}; of all: {whole}."
