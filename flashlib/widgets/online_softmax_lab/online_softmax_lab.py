"""OnlineSoftmaxLab: the scan of online softmax, score by score, with and without the rescale."""

import numpy as np
import traitlets

from flashlib.pictures.numbers import number
from flashlib.pictures.steps import telling_step
from flashlib.widgets.online_softmax_lab.figure import draw
from flashlib.widgets.online_softmax_lab.numbers import ROWS, check_row, examples, read, scan, write
from flashlib.widgets.widget import Widget, script, style


class OnlineSoftmaxLab(Widget):
    """Scan a row of scores x, (N,), fp64: m and l as each score passes, and what l is without the rescale.

    x: 1 to 64 numbers, finite or -inf; can be set later, or typed on the page. rescale: whether l is multiplied by
    alpha = exp(m_old - m) when the maximum grows; both scans are always computed, this says which one is shown.
    Setting another x raises TypeError or ValueError for one that cannot be shown.
    """

    _esm = script("online_softmax_lab/online_softmax_lab.js")
    _css = style("online_softmax_lab/online_softmax_lab.css")

    rescale = traitlets.Bool(True).tag(sync=True)
    typed = traitlets.Unicode().tag(sync=True)  # x as text: the one way in
    examples = traitlets.Dict({name: write(x) for name, x in examples().items()}).tag(sync=True)
    frames = traitlets.Dict().tag(sync=True)

    def __init__(self, x=(1, 0.5, 2, 1.5, -np.inf, 3, 2.5, 3.5), rescale=True):
        super().__init__()
        try:
            if not isinstance(rescale, bool | np.bool_):
                raise TypeError(f"rescale is {rescale!r:.30}; accepted are True and False")
            self.rescale = bool(rescale)
            self.x = x
        except (TypeError, ValueError) as error:
            self.problem = str(error)

    @property
    def x(self):
        return self._scan["x"].copy()

    @x.setter
    def x(self, x):
        self.typed = write(check_row(x))

    @traitlets.observe("typed")
    def _compute(self, change):
        self.refused = ""  # so that the same sentence a second time is an answer too
        try:
            x = read(self.typed)
        except ValueError as error:
            self.refused = str(error)
            return
        self._scan = scan(x)
        numbers = np.concatenate([*(self._scan[name] for name in ROWS), self._scan["terms"].ravel()])
        self.frames = {
            **{"N": len(x), "typed": self.typed, "text": write(x), "rows": list(ROWS)},
            **{name: float(self._scan[name].sum()) for name in ("weight", "weight_wrong")},
            "buffer": numbers.astype("<f8").tobytes(),
        }

    def figure(self, at=None):
        """Return a picture of the scan after the score `at`, 0 .. N - 1; default: one where m grew."""
        at = telling_step(self._scan["steps"]) if at is None else at
        return draw(self._scan, at, self.rescale)

    def _sizes(self):
        l, weight = ("l", "weight") if self.rescale else ("l_wrong", "weight_wrong")
        end = f"m = {number(self._scan['m'][-1])}, l = {number(self._scan[l][-1])}"
        total = f"{self.frames[weight]:.4f}"
        return f"N={self.frames['N']}, rescale={self.rescale}: {end}, the weights add up to {total}"
