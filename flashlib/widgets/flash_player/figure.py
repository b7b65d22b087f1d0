"""One step of FlashAttention as a static picture."""

from collections.abc import Iterable, Sequence

import numpy as np

from flashlib.pictures.canvas import Picture, corners
from flashlib.pictures.inks import HIGHLIGHT, INK, ON_FILL, WRONG
from flashlib.pictures.number_text import number, short
from flashlib.pictures.steps import grown, tiles_of
from flashlib.pictures.tile_order import labelled
from flashlib.softmax import State
from flashlib.types import Step

MAX_ROWS = 6  # of the state, in one picture
MAX_ROWS_TRUE = 4  # with the true values below them
COLUMNS = {"row": 512, "m_old": 543, "m": 614, "alpha": 698, "l": 758, "O_acc": 832}  # of the state, in pixels
LONG = {"row": 3, "m_old": 8, "m": 10, "alpha": 7, "told": 124}  # longer texts are written smaller
SEVERAL = {"row": "rows", "column": "columns"}
SIZE = 20  # of the largest l, in pixels


def draw(
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    steps: Iterable[Step],
    at: int,
    *,
    O: np.ndarray | None = None,
    row: int | None = None,
    true: Sequence[State] | None = None,
    changed: bool = False,
    words: Sequence[str] | None = None,
    less: bool = False,
) -> Picture:
    """Return a picture of one step as FlashPlayer shows it: Q, K, V, O, the tiles of S, and the rows' state.

    Q: (N_q, d); K, V: (N_k, d). steps: all of them; at: the index of the one to draw, or len(steps) for the end.
    O: (N_q, d) as memory held it then, NaN where nothing was written yet. row: the row in the sentence, within the
    block of that step; default: the one whose maximum grew most. true: the correct State of each step of a
    learner's; where a step's numbers differ, the correct ones are drawn below, and the sentence is about the first
    such row.
    changed: whether a mask changes scores with a function f. words: one for each row of K; the last N_q also name
    the rows of Q. less: draw only S, the state and O.
    Raises IndexError if there is no such step, or no such row in it.
    """
    steps = list(steps)
    if not 0 <= at <= len(steps):
        raise IndexError(f"at is {at}; there are {len(steps)} steps, so accepted are 0 .. {len(steps)}")
    step = steps[at] if at < len(steps) else None
    truth = true[at] if true is not None and step is not None else None
    if step is not None:
        if row is None:
            wrong = [r for r in range(len(step.m)) if _apart(step, truth, r)]
            row = step.rows.start + (wrong[0] if wrong else int(np.argmax(_growth(step))))
        elif not step.rows.start <= row < step.rows.stop:
            raise IndexError(f"row is {row}; step {at} has {_span('row', step.rows)}")
    queries = None if words is None else words[len(K) - len(Q) :]
    told = "Finished: every tile of S was computed and dropped, none was stored."
    if step is not None:
        told = _wrong_words(step, truth, row, _row_in_text(row, queries), at) or _sentence(
            step, row, _row_name(row, queries)
        )
    picture = Picture(930, 352, told)
    if less:
        _draw_output(picture, Q, O, queries)
    else:
        _draw_memory(picture, Q, K, V, O, step)
    _draw_grid(picture, Q, K, steps, at, changed, words)
    _draw_chip(picture, Q, K, V, steps, step, row, truth, queries, less)
    picture.text(12, 334, told, 13 if len(told) < LONG["told"] else 12)
    return picture


def _row_name(row, words):
    return f"Row {row}" if words is None else f"Row {row} ({words[row]})"


def _row_in_text(row, words):
    return f"row {row}" if words is None else f"row {row} ({words[row]})"


def _draw_memory(picture, Q, K, V, O, step):
    picture.shade(0, 0, 214, 316)
    picture.text(12, 18, "HBM", 13, face="bold")
    picture.text(202, 18, "S and P: never here", 11, align="r")
    cell = min(11, 200 / max(len(Q), len(K), 1))
    width = min(max(cell, 3), 40 / Q.shape[1])
    for k, (name, X) in enumerate((("Q", Q), ("K", K), ("V", V), ("O", O))):
        if X is None:
            continue
        x, y = 14 + 49 * k, 74
        picture.text(x, 54, name, 13, face="italic")
        picture.matrix(x, y, X, width, cell, _peak(X))
        if step is not None and name != "O":
            rows = step.rows if name == "Q" else step.cols
            size = X.shape[1] * width, (rows.stop - rows.start) * cell
            picture.box(x, y + rows.start * cell, *size, edge=INK, thick=3)
    if O is not None:
        picture.text(12, 300, f"O: {int((~np.isnan(O[:, 0])).sum())} of {len(O)} rows written", 11)


def _draw_output(picture, Q, O, words):
    picture.shade(0, 0, 214, 316)
    picture.text(12, 18, "O", 13, face="italic")
    picture.text(202, 18, "the result, in HBM", 11, align="r")
    if O is None:
        return
    (rows, d), x, y = O.shape, 66, 66
    width, height = min(30, 136 / d), min(27, 214 / max(rows, 1))
    write = (lambda x: "" if np.isnan(x) else short(x)) if width > 20 and height > 15 else None
    picture.matrix(x, y, O, width, height, _peak(O), write)
    picture.box(x, y, d * width, rows * height, edge=INK, dotted=True)
    for k in range(rows if height > 8 else 0):
        picture.text(x - 4, y + (k + 0.5) * height, words[k] if words else str(k), 9, align="r")
    picture.text(12, 300, f"{int((~np.isnan(O[:, 0])).sum())} of {len(O)} rows written", 11)


def _draw_grid(picture, Q, K, steps, at, changed, words):
    picture.shade(222, 0, 274, 316)
    tiles, ticks_i, ticks_j = tiles_of(steps, len(Q), len(K))
    T_r, T_c = len(ticks_i), len(ticks_j)
    title, size = ("S = f(Q Kᵀ · scale)", 11) if changed else ("S = Q Kᵀ · scale", 13)
    picture.text(234, 18, title, size, face="italic")
    tiles_shown = f"{T_r} × {T_c} tiles"
    if at < len(steps):
        tiles_shown = f"tile ({steps[at].i}, {steps[at].j}) of {tiles_shown}"
    picture.text(484, 18, tiles_shown, 11, align="r")
    left, top = 264 if words is None else 284, 66
    width, height = min(27, (482 - left) / max(len(K), 1)), min(27, 214 / max(len(Q), 1))
    for rows, cols, k in tiles:
        place = left + cols.start * width, top + rows.start * height
        size = (cols.stop - cols.start) * width, (rows.stop - rows.start) * height
        _draw_tile(picture, (*place, *size), "skipped" if k is None else "dropped" if k < at else "to come")
    if at < len(steps):
        s = steps[at]
        x, y = left + s.cols.start * width, top + s.rows.start * height
        rows, cols = s.S_ij.shape
        write = short if min(width - 6, height) > 15 else None
        picture.matrix(x, y, s.S_ij, width, height, _peak(*(t.S_ij for t in steps)), write)
        _draw_tile(picture, (x, y, cols * width, rows * height), "now")
    if words is None:
        for j, middle in labelled(ticks_j, 9):
            picture.text(left + middle * width, top - 9, f"j={j}", 10, align="m")
        for i, middle in labelled(ticks_i, 14):
            picture.text(left - 5, top + middle * height, f"i={i}", 10, align="r")
    else:
        _draw_words(picture, words, words[len(K) - len(Q) :], (left, top), (width, height))
    kinds = ["dropped", "now", "to come", *["skipped"] * (len(steps) < T_r * T_c)]
    for x, kind in zip((234, 308, 360, 426), kinds, strict=False):
        _draw_tile(picture, (x, 296, 11, 9), kind)
        picture.text(x + 16, 300, kind, 10)


def _draw_words(picture, keys, queries, corner, cell):
    """Draw the words of the columns above S, in two lines by turns, and those of the rows beside it."""
    (left, top), (width, height) = corner, cell
    for k, word in enumerate(keys):
        picture.text(left + (k + 0.5) * width, top - (9 if k % 2 else 21), word, 9, align="m")
    for k, word in enumerate(queries):
        picture.text(left - 4, top + (k + 0.5) * height, word, 9, align="r")


def _draw_tile(picture, place, kind):
    if kind == "dropped":
        picture.shade(*place, 0.2)
    if kind == "skipped":
        picture.hatch(corners(*place))
    picture.box(*place, edge=INK, dotted=kind == "to come", thick=3 if kind == "now" else 1)


def _draw_chip(picture, Q, K, V, steps, step, row, truth, words, less):
    picture.shade(504, 0, 426, 316)
    picture.text(516, 18, "State of each row, on the chip" if less else "SRAM", 13, face="bold")
    if step is None:
        picture.text(918, 18, "empty: no tile of S or P is left", 11, align="r")
        return
    picture.text(918, 18, f"{_span('row', step.rows)}, {_span('column', step.cols)}", 11, align="r")
    tiles = (
        ("Q_i", 516, 62, 104, Q[step.rows], _peak(Q)),
        ("K_j", 630, 62, 42, K[step.cols], _peak(K)),
        ("V_j", 630, 130, 42, V[step.cols], _peak(V)),
        ("S_ij", 744, 62, 104, step.S_ij, _peak(*(s.S_ij for s in steps))),
        ("P_ij", 836, 62, 104, step.P_ij, 1),
    )
    for name, x, y, room, X, peak in () if less else tiles:
        picture.text(x, y - 11, name)
        width, height = min(26, (84 if name[0] in "SP" else 104) / X.shape[1]), min(15, room / X.shape[0])
        picture.matrix(x, y, X, width, height, peak, short if width > 20 and height > 10 else None)
    _draw_state(picture, steps, step, row, truth, min(23, 92 / Q.shape[1]), words, 54 if less else 184)


def _draw_state(picture, steps, step, row, truth, cell, words, top):
    """Draw the rows' state, and the true state if it is known; cell: the width of a number of O_acc."""
    left_out = () if words is None else ("row", "m_old")  # a word takes their room
    for name, x in COLUMNS.items():
        if name not in left_out:
            picture.text(x, top, name, face="italic" if name in "ml" else "")
    wrong = any(_apart(step, truth, r) for r in range(len(step.m)))
    most = MAX_ROWS_TRUE if wrong else MAX_ROWS
    first = max(0, row - step.rows.start - most + 1)
    shown = range(first, min(first + most, len(step.m)))
    new, height = grown(step) | (np.isneginf(step.m_old) & ~np.isneginf(step.m)), 18
    O_acc_peak, l_peak = _peak(*(s.O_acc for s in steps)), _peak(*(s.l for s in steps))
    write = short if cell > 18 else None
    y = top + 12
    for r in shown:
        selected, apart = step.rows.start + r == row, _apart(step, truth, r)
        ink, middle = ON_FILL if selected else INK, y + height / 2
        if selected:
            picture.box(508, y, 418, height + (12 if apart else 0), fill=HIGHLIGHT)
        grew = "bold" if new[r] else ""
        for name, text, face in (
            ("row", words[step.rows.start + r] if words else str(step.rows.start + r), ""),
            ("m_old", "" if left_out else number(step.m_old[r]), ""),
            ("m", number(step.m[r]) + (" ↑" if new[r] else ""), grew),
            ("alpha", number(step.alpha[r]), grew),
        ):
            picture.text(COLUMNS[name], middle, text, 9 if len(text) > LONG[name] else 11, ink, face=face)
        picture.box(COLUMNS["l"], middle - 4, SIZE * step.l[r] / (l_peak or 1), 8, fill=ink)
        picture.text(COLUMNS["l"] + SIZE + 5, middle, number(step.l[r]), 11, ink)
        picture.matrix(COLUMNS["O_acc"], y + 1, step.O_acc[r : r + 1], cell, height - 2, O_acc_peak, write)
        y += height
        if apart:
            _draw_truth(picture, truth, r, apart, y, ON_FILL if selected else WRONG, (cell, 13, O_acc_peak, write))
            y += 12
    if wrong:
        picture.text(918, top - 14, "≠ it should be", 10, align="r")
    if len(step.m) > most:
        picture.text(918, top, f"{len(shown)} of {len(step.m)} rows", 10, align="r")


def _draw_truth(picture, truth, r, apart, y, ink, cells):
    """Draw the true values of the columns `apart` below a learner's row; cells: as Picture.matrix takes them."""
    for name, x in (("m", COLUMNS["m"]), ("l", COLUMNS["l"] + SIZE + 5)):
        if name in apart:
            picture.text(x, y + 5, f"≠ {number(getattr(truth, name)[r])}", 10, ink)
    if "O_acc" in apart:
        picture.text(COLUMNS["O_acc"] - 4, y + 5, "≠", 10, ink, "r")
        picture.matrix(COLUMNS["O_acc"], y - 1, truth.O_acc[r : r + 1], *cells)


def _apart(step, truth, r):
    """Return which of m, l and O_acc of row r of the step differ from the truth, in the digits shown."""
    if truth is None:
        return []
    return [
        name
        for name in ("m", "l", "O_acc")
        if any(
            number(x) != number(t)
            for x, t in zip(np.ravel(getattr(step, name)[r]), np.ravel(getattr(truth, name)[r]), strict=True)
        )
    ]


def _wrong_words(step, truth, row, place, at):
    """Return how a learner's row differs from the truth, or "" if it does not; place: the row in words."""
    r = row - step.rows.start
    apart = _apart(step, truth, r)
    if not apart:
        return ""
    given, true = (np.ravel(getattr(state, apart[0])[r]) for state in (step, truth))
    with np.errstate(all="ignore"):
        c = int(np.argmax(np.nan_to_num(np.abs(given - true), nan=np.inf)))
    given, true = number(given[c]), number(true[c])
    if apart[0] == "O_acc":
        return f"Step {at + 1} is wrong: O_acc of {place} is {given} in column {c}, it should be {true}."
    return f"Step {at + 1} is wrong: {apart[0]} of {place} is {given}, it should be {true}."


def _sentence(step, row, name):
    r = row - step.rows.start
    m_old, m, alpha = number(step.m_old[r]), number(step.m[r]), number(step.alpha[r])
    if step.m[r] == -np.inf:
        return f"{name} sees no key yet: m stays −∞, l and O_acc stay 0."
    if step.m_old[r] == -np.inf:
        return f"{name}: the first scores it sees; their maximum is {m}. There is nothing to rescale yet."
    if step.m[r] == step.m_old[r]:
        return f"{name}: the maximum did not grow, it stays {m}; alpha = {alpha}, nothing is rescaled."
    return (
        f"{name}: the maximum grew from {m_old} to {m}, so everything summed so far is multiplied by "
        f"alpha = exp({m_old} − {f'({m})' if step.m[r] < 0 else m}) = {alpha}."
    )


def _growth(step):
    """Return how much the maximum of each row grew, 0 where there was none before."""
    return np.subtract(step.m, step.m_old, where=grown(step), out=np.zeros(len(step.m)))


def _span(name, block):
    """Return "row 4" or "rows 4–7"."""
    last = block.stop - 1
    return f"{name} {last}" if block.start == last else f"{SEVERAL[name]} {block.start}–{last}"


def _peak(*arrays):
    """Return the largest absolute value of a finite number in the arrays, 0 if there is none."""
    return max(
        (float(np.abs(X, where=np.isfinite(X), out=np.zeros(X.shape)).max(initial=0)) for X in arrays), default=0.0
    )
