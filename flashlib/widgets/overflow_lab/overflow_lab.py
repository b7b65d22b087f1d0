"""OverflowLab: where exp and its sum leave the range of a floating-point format, and softmax then."""

from math import isfinite, isnan, log, log2
from numbers import Real

import numpy as np
import traitlets

from flashlib.pictures.canvas import Picture
from flashlib.widgets.lab import Lab
from flashlib.widgets.overflow_lab import figure
from flashlib.widgets.overflow_lab.row_softmax import (
    COLUMNS,
    NAMES,
    WEIGHTS,
    compute,
    error,
    format_of,
    is_right,
    marks,
    thresholds,
    x_range,
)
from flashlib.widgets.overflow_lab.words import explain
from flashlib.widgets.settings import one_of, whole
from flashlib.widgets.widget import script, style

MAX_OFFSETS = 16  # bars
MAX_OFFSET = 1000  # up to there the numbers of fp16 and bf16 are close enough together
MAX_SCORES = 65_536  # in the row


class OverflowLab(Lab):
    """Show naive and safe softmax of the scores x + offsets in a dtype, and what overflows and underflows.

    x: a number, rounded to the dtype. dtype: float16, bfloat16 (which needs torch), float32 or float64, as a name
    or as NumPy's or torch's own. offsets: 1 to 16 numbers. copies: how often the row is repeated, since in a long
    row the sum overflows before any term does. Setting `x`, `dtype` or `copies` later, from Python or on the page,
    computes everything again; x is clamped to the range of a new dtype.
    """

    _esm = script("overflow_lab/overflow_lab.js")
    _css = style("overflow_lab/overflow_lab.css")

    x = traitlets.Float().tag(sync=True)  # as requested; `result` has the dtype's nearest number
    dtype = traitlets.Unicode().tag(sync=True)
    copies = traitlets.Int(1).tag(sync=True)
    result = traitlets.Dict().tag(sync=True)

    def __init__(self, x=11.0, dtype="float16", offsets=(-2, -1, 0), copies=1):
        dtype = getattr(dtype, "__name__", str(dtype)).removeprefix("torch.")  # np.float16, torch.bfloat16
        super().__init__({"x": x, "dtype": dtype, "copies": copies}, offsets=offsets)

    def _take(self, offsets):
        self._offsets = _checked_offsets(offsets)
        self._most_copies = MAX_SCORES // len(self._offsets)

    def _checked(self, name, value):
        if name == "dtype":
            format_of(one_of(name, value, NAMES))  # torch may not be installed
        if name == "copies":
            most, n = self._most_copies, len(self._offsets)
            accepted = (
                f"pass a whole number from 1 to {most}: the row may have {MAX_SCORES} scores, and has {n} offsets"
            )
            return whole(name, value, 1, most, accepted)
        return value

    def _computed(self, setting):
        x, dtype, copies = setting.values()
        low, high = x_range(format_of(dtype), self._offsets)
        if dtype != self._setting.get("dtype", dtype):
            x = min(max(x, low), high)
        accepted = f"pass a number from {low} to {high} for {dtype}"
        if isinstance(x, bool | np.bool_) or not isinstance(x, Real):
            raise TypeError(f"x is {x!r}; {accepted}")
        if not low <= x <= high:
            raise ValueError(f"x is {x}; {accepted}: further out nothing else happens")
        return self._shown(float(x), dtype, copies)

    def _shown(self, x, dtype, copies):
        """Return what the page shows: numbers as float64 in a buffer, since JSON has no inf and no NaN."""
        f = format_of(dtype)
        setting = {"x": x, "dtype": dtype, "copies": copies}  # x differs whenever another one was requested
        x = f.nearest(x)
        row = compute(f, x, self._offsets, copies)
        totals = [sum(getattr(row, name)) * copies for name in WEIGHTS]
        numbers = [getattr(row, name) for name in COLUMNS]
        numbers.append([row.m, row.l, row.l_safe, *totals, row.log_l, row.log_l - row.m])
        low, high = x_range(f, self._offsets)
        neighbours = [f.neighbour(x, towards) for towards in (-np.inf, np.inf)]
        return {
            **{"setting": setting, "asked": setting},  # Python's name, and the page's
            "name": NAMES[dtype],
            "x": [x, f.text(x)],
            "neighbours": [[y, f.text(y)] for y in neighbours],
            "range": [low, high],
            "step": 2.0 ** round(log2((high - low) / 512)),
            "shift": max(self._offsets),
            "most_copies": self._most_copies,
            "n": len(self._offsets),
            "buffer": np.concatenate(numbers).astype("<f8").tobytes(),
            "scores": [f.text(x_j) for x_j in row.x],
            "marks": marks(f, row),
            "thresholds": {name: [y, f.text(y)] for name, y in thresholds(f, self._offsets, copies).items()},
            "limits": {name: [log(y), y] for name in ("smallest", "normal", "largest") if (y := getattr(f, name))},
            "verdicts": {name: _verdict(f, row, name) for name in WEIGHTS},
            "words": explain(f, row),
        }

    def figure(self) -> Picture:
        """Return a Picture of the exponentials on an axis over the dtype's range, and of the numbers."""
        return figure.draw(self.result)

    def _sizes(self):
        setting = self._setting
        verdicts = ", ".join(f"{name} {verdict}" for name, verdict in self.result["verdicts"].items())
        x = self.result["x"][1].replace("−", "-")
        return f"x={x}, dtype={setting['dtype']!r}, {self.result['n'] * setting['copies']} scores: {verdicts}"


def _verdict(f, row, name):
    weights = getattr(row, name)
    if count := sum(map(isnan, weights)):
        return f"has {count * row.copies} NaN"
    if not any(weights):
        return "is all 0"
    wrong = error(weights, row.exact)
    return "is right" if is_right(f, wrong) else f"is wrong by {100 * wrong:.2g}%"


def _checked_offsets(offsets):
    """Return the offsets as a tuple of floats; raise TypeError or ValueError if they are not accepted."""
    accepted = f"accepted are 1 to {MAX_OFFSETS} numbers from -{MAX_OFFSET} to {MAX_OFFSET}, e.g. (-2, -1, 0)"
    try:
        values = tuple(float(offset) for offset in offsets)
    except (TypeError, ValueError):
        raise TypeError(f"offsets is {offsets!r}; {accepted}") from None
    if not 1 <= len(values) <= MAX_OFFSETS:
        raise ValueError(f"offsets has {len(values)} numbers; {accepted}; a longer row: pass copies")
    if not all(isfinite(value) and abs(value) <= MAX_OFFSET for value in values):
        raise ValueError(f"offsets is {offsets!r}; {accepted}")
    return values
