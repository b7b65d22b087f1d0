"""OverflowLab: where exp and its sum leave a floating-point format, and what softmax makes of it."""

from math import isfinite, isnan, log, log2
from numbers import Real

import numpy as np
import traitlets

from flashlib.inputs import check_counts
from flashlib.widgets.overflow_lab import figure
from flashlib.widgets.overflow_lab.numbers import (
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
from flashlib.widgets.widget import Widget, script, style

MAX_OFFSETS = 16  # bars
MAX_OFFSET = 1000  # fp16 and bf16 still have numbers close enough there
MAX_SCORES = 65_536  # in the row


class OverflowLab(Widget):
    """Show the naive and the safe softmax of the scores x + offsets in a dtype, and what overflows and underflows.

    x: a number, taken as the dtype's nearest one. dtype: float16, bfloat16 (which needs torch), float32 or
    float64, as a name or as NumPy's or torch's own. offsets: 1 to 16 numbers. copies: how often the row is
    repeated, since a long row overflows in its sum before any term does. Setting `x`, `dtype` or `copies` later,
    from Python or on the page, computes anew; an x out of the range of a new dtype is moved to its end.
    """

    _esm = script("overflow_lab/overflow_lab.js")
    _css = style("overflow_lab/overflow_lab.css")

    x = traitlets.Float().tag(sync=True)  # as asked for; `result` has the dtype's nearest
    dtype = traitlets.Unicode().tag(sync=True)
    copies = traitlets.Int(1).tag(sync=True)
    result = traitlets.Dict().tag(sync=True)

    def __init__(self, x=11.0, dtype="float16", offsets=(-2, -1, 0), copies=1):
        dtype = getattr(dtype, "__name__", str(dtype)).removeprefix("torch.")  # np.float16, torch.bfloat16
        try:
            self._offsets = _checked_offsets(offsets)
            self._check(x, dtype, copies)
        except (TypeError, ValueError) as problem:
            super().__init__(problem=f"{problem}.")
            return
        asked = {"x": float(x), "dtype": dtype, "copies": int(copies)}
        super().__init__(**asked, result=self._computed(**asked))
        self.observe(self._compute, names=list(asked))

    def _check(self, x, dtype, copies):
        """Raise TypeError or ValueError, in a sentence, for what cannot be computed."""
        low, high = x_range(format_of(dtype), self._offsets)
        accepted = f"accepted for {dtype} are numbers from {low} to {high}"
        if isinstance(x, bool | np.bool_) or not isinstance(x, Real):
            raise TypeError(f"x is {x!r}; {accepted}")
        if not low <= x <= high:
            raise ValueError(f"x is {x}; {accepted}: further out nothing else happens")
        check_counts(at_least=1, copies=copies)
        if copies > self._most_copies:
            raise ValueError(
                f"copies is {copies}; accepted are whole numbers from 1 to {self._most_copies}, since the row may "
                f"have {MAX_SCORES} scores and has {len(self._offsets)} offsets"
            )

    @property
    def _most_copies(self):
        return MAX_SCORES // len(self._offsets)

    def _compute(self, change):
        """Compute anew, or put back and refuse what was asked for."""
        try:
            low, high = x_range(format_of(self.dtype), self._offsets)
            if change.name == "dtype" and not low <= self.x <= high:
                self.x = min(max(self.x, low), high)  # computes, with the new dtype
                return
            self._check(self.x, self.dtype, self.copies)
        except (TypeError, ValueError) as problem:
            self.refused = ""  # said again if it was said before
            setattr(self, change.name, self.result["asked"][change.name])
            self.refused = f"{problem}."
            return
        self.refused = ""
        self.result = self._computed(self.x, self.dtype, self.copies)

    def _computed(self, x, dtype, copies):
        """Return what the page shows: numbers as float64 in a buffer, since JSON has no inf and no NaN."""
        f = format_of(dtype)
        asked = {"x": x, "dtype": dtype, "copies": copies}  # differs whenever something was asked for
        x = f.nearest(x)
        row = compute(f, x, self._offsets, copies)
        totals = [sum(getattr(row, name)) * copies for name in WEIGHTS]
        numbers = [getattr(row, name) for name in COLUMNS]
        numbers.append([row.m, row.l, row.l_safe, *totals, row.log_l, row.log_l - row.m])
        low, high = x_range(f, self._offsets)
        neighbours = [f.neighbour(x, towards) for towards in (-np.inf, np.inf)]
        return {
            "asked": asked,
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

    def figure(self):
        """Return a Picture of the exponentials on the axis of the dtype's range, and of the numbers."""
        return figure.draw(self.result)

    def _sizes(self):
        asked = self.result["asked"]
        verdicts = ", ".join(f"{name} {verdict}" for name, verdict in self.result["verdicts"].items())
        x = self.result["x"][1].replace("−", "-")
        return f"x={x}, dtype={asked['dtype']!r}, {self.result['n'] * asked['copies']} scores: {verdicts}"


def _verdict(f, row, name):
    weights = getattr(row, name)
    if count := sum(map(isnan, weights)):
        return f"has {count * row.copies} NaN"
    if not any(weights):
        return "is all 0"
    wrong = error(weights, row.exact)
    return "is right" if is_right(f, wrong) else f"is wrong by {100 * wrong:.2g}%"


def _checked_offsets(offsets):
    """Return the offsets as a tuple of floats; raise TypeError or ValueError for others than those accepted."""
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
