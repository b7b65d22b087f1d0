"""OnlineSoftmaxLab: the scan of online softmax, score by score, with and without the rescale."""

import numpy as np
import traitlets

from flashlib.pictures.canvas import Picture
from flashlib.pictures.number_text import number
from flashlib.pictures.steps import telling_step
from flashlib.widgets.lab import Lab
from flashlib.widgets.online_softmax_lab.figure import draw
from flashlib.widgets.online_softmax_lab.scan import ROWS, check_row, examples, read, scan, write
from flashlib.widgets.widget import script, style


class OnlineSoftmaxLab(Lab):
    """Scan a row of scores x, (N,), fp64: m and l after each score, and what l would be without the rescale.

    x: 1 to 64 numbers, finite or -inf; can be set later, or typed on the page. rescale: whether l is multiplied by
    alpha = exp(m_old - m) when the maximum grows; both scans are always computed, and this selects the one shown.
    Setting an x that cannot be shown raises TypeError or ValueError.
    """

    _esm = script("online_softmax_lab/online_softmax_lab.js")
    _css = style("online_softmax_lab/online_softmax_lab.css")

    rescale = traitlets.Bool(True).tag(sync=True)
    typed = traitlets.Unicode().tag(sync=True)  # x as text: the only input
    examples = traitlets.Dict({name: write(x) for name, x in examples().items()}).tag(sync=True)
    frames = traitlets.Dict().tag(sync=True)
    _shows, _texts = "frames", ("typed",)

    def __init__(self, x=(1, 0.5, 2, 1.5, -np.inf, 3, 2.5, 3.5), rescale=True):
        super().__init__({"typed": x}, rescale=rescale)

    def _take(self, rescale):
        if not isinstance(rescale, bool | np.bool_):
            raise TypeError(f"rescale is {rescale!r:.30}; pass True or False")
        self.rescale = bool(rescale)

    def _checked(self, name, value):
        """Return the text of a row, which is given as numbers at first."""
        if not self._setting:
            return write(check_row(value))
        read(value)
        return value

    def _computed(self, setting):
        self._scan = scan(read(setting["typed"]))
        numbers = np.concatenate([*(self._scan[name] for name in ROWS), self._scan["terms"].ravel()])
        x = self._scan["x"]
        return {
            **{"setting": setting, "N": len(x), "typed": setting["typed"], "text": write(x), "rows": list(ROWS)},
            **{name: float(self._scan[name].sum()) for name in ("weight", "weight_wrong")},
            "buffer": numbers.astype("<f8").tobytes(),
        }

    @property
    def x(self) -> np.ndarray:
        return self._scan["x"].copy()

    @x.setter
    def x(self, x: object) -> None:
        self.typed = write(check_row(x))

    def figure(self, at: int | None = None) -> Picture:
        """Return a picture of the scan after the score `at`, 0 .. N - 1; default: one where m grew."""
        at = telling_step(self._scan["steps"]) if at is None else at
        return draw(self._scan, at, self.rescale)

    def _sizes(self):
        l, weight = ("l", "weight") if self.rescale else ("l_wrong", "weight_wrong")
        end = f"m = {number(self._scan['m'][-1])}, l = {number(self._scan[l][-1])}"
        total = f"{self.frames[weight]:.4f}"
        return f"N={self.frames['N']}, rescale={self.rescale}: {end}, the weights add up to {total}"
