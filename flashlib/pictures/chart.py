"""The axes of a small chart in a `Picture`."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flashlib.pictures.inks import INK


class Chart:
    """Axes in `place`, (x, y, width, height) in pixels, for numbers in xlim, (first, last), and in ylim."""

    def __init__(self, picture, place, xlim, ylim):
        self.picture, self.place, self.xlim, self.ylim = picture, place, xlim, ylim

    def at(self, x: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return the pixel coordinates of numbers."""
        left, top, width, height = self.place
        across, up = (
            (np.asarray(values, float) - first) / ((last - first) or 1)
            for values, (first, last) in ((x, self.xlim), (y, self.ylim))
        )
        return left + width * across, top + height * (1 - up)

    def line(self, x: ArrayLike, y: ArrayLike, ink: str = INK, **style: Any) -> None:
        """Draw a line through points; style: keywords of `Picture.line`."""
        self.picture.line([*zip(*self.at(x, y), strict=True)], ink, **style)

    def bar(self, x: float, bottom: float, top: float, wide: float = 0.8) -> tuple[float, float, float, float]:
        """Return the rectangle of a bar, (x, y, width, height) in pixels."""
        (left, right), (low, high) = self.at([x - wide / 2, x + wide / 2], [bottom, top])
        return left, min(low, high), right - left, abs(low - high)

    def axes(self, title: str, xticks: dict[float, str], yticks: dict[float, str], name: str) -> None:
        """Draw the axes; the ticks are {number: text}, and `name` is the name of the x axis."""
        left, top, width, height = self.place
        self.picture.text(left, top - 22, title, face="bold")
        self.picture.line([(left, top), (left, top + height), (left + width, top + height)])
        for y, text in yticks.items():
            self.picture.text(left - 6, self.at(0, y)[1], text, 10, align="r")
        for x, text in xticks.items():
            self.picture.text(self.at(x, 0)[0], top + height + 12, text, 10, align="m")
        self.picture.text(left + width / 2, top + height + 28, name, 11, align="m")
