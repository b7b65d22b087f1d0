"""A picture measured in pixels, drawn in a few milliseconds; it replaces a widget where nothing can play."""

import io
import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image, ImageChops, ImageDraw, ImageFont

from flashlib.pictures.inks import INK, NEGATIVE, ON_FILL, POSITIVE, SOFT, ZERO

FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
FACES = {  # fonts for words and for the symbols between them
    "": ("DejaVuSans", "DejaVuSans-Oblique"),
    "bold": ("DejaVuSans-Bold", "DejaVuSans-BoldOblique"),
    "italic": ("DejaVuSans-Oblique", "DejaVuSans-Oblique"),
    "code": ("DejaVuSansMono", ""),
}
SYMBOL = re.compile(r"\b(?:(d?[A-Za-z]|lse|delta)_([A-Za-z0-9]+)|([mlxdNQKVSPO])\b)")  # O_acc, S_ij, lse_i, m
FINE = 4  # slanted lines are drawn this many times larger, then reduced
HATCH = 6  # pixels from line to line
SPREAD = [round(255 * (alpha / 255) ** 0.45) for alpha in range(256)]  # or the 256 colours would lack a faint INK


Points = Sequence[tuple[float, float]]


class Picture:
    """A transparent picture of width x height pixels, counted from the top left corner.

    It is drawn with the inks and fills of `inks`. A notebook shows it as a PNG, or `words` where it cannot.
    """

    def __init__(self, width, height, words="Picture"):
        self.words = words
        self.written = []  # (x, y, text)
        self._image = Image.new("RGBA", (round(width), round(height)), _rgba(INK, 0))
        self._draw = ImageDraw.Draw(self._image)

    def __repr__(self):
        return self.words

    @property
    def texts(self) -> list[str]:
        """All text that was written."""
        return [text for _, _, text in self.written]

    def png(self) -> bytes:
        """Return the picture as a PNG of 256 colours, which is small and has the same bytes every time."""
        spread = self._image.copy()
        spread.putalpha(spread.getchannel("A").point(SPREAD))
        few = spread.quantize(256, Image.Quantize.FASTOCTREE)
        colours = np.array(few.getpalette("RGBA")).reshape(-1, 4)
        colours[:, 3] = np.interp(colours[:, 3], SPREAD, range(256)).round()
        few.putpalette(colours.astype(np.uint8).tobytes(), "RGBA")
        file = io.BytesIO()
        few.save(file, format="png")
        return file.getvalue()

    _repr_png_ = png

    def text(
        self, x: float, y: float, text: str, size: float = 12, ink: str = INK, align: str = "l", face: str = ""
    ) -> None:
        """Write a line of text with its middle at height y, and its left end, middle or right end ("lmr") at x.

        face: "", "bold", "italic" or "code". Symbols such as m and O_acc are typeset as in a
        formula, except in code.
        """
        self.written.append((x, y, text))
        x -= {"l": 0, "m": 0.5, "r": 1}[align] * length(text, size, face)
        for piece, font, lower in _typeset(text, size, face):
            self._draw.text((round(x), round(y + lower)), piece, _rgba(ink), font, anchor="lm")
            x += font.getlength(piece)

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str | None = None,
        edge: str | None = None,
        thick: int = 1,
        dotted: bool = False,
    ) -> None:
        """Draw a rectangle with a fill, an edge, or both; a thick edge grows to both sides."""
        left, top, right, bottom = round(x), round(y), round(x + width) - 1, round(y + height) - 1
        if right < left or bottom < top:
            return
        if fill:
            self._draw.rectangle((left, top, right, bottom), _rgba(fill))
        if edge and dotted:
            points = [(x, y) for x in range(left, right + 1, 3) for y in (top, bottom)]
            points += [(x, y) for y in range(top, bottom + 1, 3) for x in (left, right)]
            self._draw.point(points, _rgba(edge))
        elif edge:
            out = thick // 2
            self._draw.rectangle((left - out, top - out, right + out, bottom + out), None, _rgba(edge), thick)

    def shade(self, x: float, y: float, width: float, height: float, share: float = SOFT) -> None:
        """Fill a rectangle with a share of INK: darker than a light page, lighter than a dark one."""
        self._draw.rectangle((x, y, round(x + width) - 1, round(y + height) - 1), _rgba(INK, share))

    def dots(self, x: float, y: float, width: float, height: float) -> None:
        """Cover a rectangle with dots."""
        xs, ys = np.arange(x + 3, x + width - 1, 5), np.arange(y + 3, y + height - 1, 5)
        self._draw.point([(round(x), round(y)) for x in xs for y in ys], _rgba(INK))

    def hatch(self, points: Points) -> None:
        """Hatch a polygon: its inside is masked."""
        left, top, right, bottom = _around(points, 0)
        if right > left and bottom > top:
            mask = Image.new("L", (right - left, bottom - top))
            ImageDraw.Draw(mask).polygon([(x - left, y - top) for x, y in points], 255)
            lines = np.tile(_hatching(), (mask.height // HATCH + 2, mask.width // HATCH + 2))
            lines = lines[top % HATCH :, left % HATCH :]  # so that neighbours form one hatching
            lines = Image.fromarray(lines[: mask.height, : mask.width])
            self._image.paste(_rgba(INK), (left, top), ImageChops.multiply(mask, lines))

    def line(
        self, points: Points, ink: str = INK, thick: float = 1.0, dash: tuple[float, float] | None = None
    ) -> None:
        """Draw a line through points; dash: how many pixels are drawn, and how many are skipped."""
        parts = _dashes(np.asarray(points, float), *dash) if dash else [points]

        def draw(pen, place):
            for part in parts:
                pen.line(place(part), 255, round(FINE * thick), joint="curve")

        self._smooth(points, ink, thick, draw)

    def polygon(self, points: Points, ink: str = INK, fill: str | None = None) -> None:
        """Draw a closed shape: its edge in the ink, its inside in the fill or, by default, in the ink."""
        self._smooth(points, fill or ink, 1, lambda pen, place: pen.polygon(place(points), 255))
        self.line([*points, points[0]], ink, 1.4)

    def _smooth(self, points, ink, thick, draw):
        """Draw with a pen on a fine grid around the points, and copy it into the picture with smooth edges."""
        left, top, right, bottom = _around(points, thick + 1)
        mask = Image.new("L", (FINE * (right - left), FINE * (bottom - top)))
        draw(ImageDraw.Draw(mask), lambda part: [(FINE * (x - left), FINE * (y - top)) for x, y in part])
        self._image.paste(_rgba(ink), (left, top), mask.reduce(FINE))

    def matrix(
        self,
        x: float,
        y: float,
        X: np.ndarray,
        width: float,
        height: float,
        peak: float,
        write: Callable[[float], str] | None = None,
    ) -> None:
        """Draw the numbers of X in cells of width x height pixels; `peak` gets the strongest colour.

        write: returns the text of a number; without it no number is written, and -inf is hatched. NaN is left out.
        """
        if not X.size:
            return
        xs = np.round(x + width * np.arange(X.shape[1] + 1)).astype(int)
        ys = np.round(y + height * np.arange(X.shape[0] + 1)).astype(int)
        gap = int(min(width, height) >= 6)
        fills = np.repeat(np.repeat(scale(X, peak), np.diff(ys), axis=0), np.diff(xs), axis=1)
        fills[ys[1:] - ys[0] - 1, :, 3] *= 1 - gap
        fills[:, xs[1:] - xs[0] - 1, 3] *= 1 - gap
        image = Image.fromarray(fills)
        self._image.paste(image, (int(xs[0]), int(ys[0])), image)
        if write:
            for (r, c), value in np.ndenumerate(X):
                ink = ON_FILL if np.isfinite(value) else INK
                self.text((xs[c] + xs[c + 1] - gap) / 2, (ys[r] + ys[r + 1] - gap) / 2, write(value), 9, ink, "m")
        else:
            for r, c in np.argwhere(np.isneginf(X)).tolist():
                self.hatch(corners(xs[c], ys[r], xs[c + 1] - xs[c] - gap, ys[r + 1] - ys[r] - gap))
            self.box(x - 1, y - 1, xs[-1] - x + 2, ys[-1] - y + 2, edge=INK, dotted=True)


def length(text: str, size: float = 12, face: str = "") -> float:
    """Return how many pixels wide `Picture.text` writes a line of text."""
    return sum(font.getlength(piece) for piece, font, _ in _typeset(text, size, face))


def scale(X: np.ndarray, peak: float = 1.0) -> np.ndarray:
    """Return the fills (..., 4) of numbers: orange at -peak, white at 0, blue at peak, none if not finite."""
    t = np.clip(np.where(np.isfinite(X), X, 0) / (peak or 1), -1, 1)[..., None]
    ends = np.where(t < 0, _rgba(NEGATIVE), _rgba(POSITIVE))
    fills = np.round(np.abs(t) * ends + (1 - np.abs(t)) * _rgba(ZERO)).astype(np.uint8)
    fills[~np.isfinite(X)] = _rgba(INK, 0)
    return fills


def corners(x: float, y: float, width: float, height: float) -> list[tuple[float, float]]:
    """Return the corners of a rectangle."""
    return [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]


def _around(points, margin):
    """Return (left, top, right, bottom) of whole pixels around points."""
    xs, ys = zip(*points, strict=True)
    lows, highs = (min(xs) - margin, min(ys) - margin), (max(xs) + margin, max(ys) + margin)
    return *map(math.floor, lows), *map(math.ceil, highs)


def _dashes(points, drawn, left_out):
    """Yield the parts of a line through points that are drawn."""
    along = np.append(0, np.cumsum(np.hypot(*np.diff(points, axis=0).T)))
    for start in np.arange(0, along[-1], drawn + left_out):
        end = min(start + drawn, along[-1])
        at = np.concatenate(([start], along[(along > start) & (along < end)], [end]))
        yield np.column_stack([np.interp(at, along, points[:, k]) for k in (0, 1)])


def _typeset(text, size, face):
    """Yield the pieces of a text: (text, font, pixels by which it is lowered)."""
    words, symbols = FACES[face]
    if not symbols:
        yield text, _font(words, size), 0
        return
    end = 0
    for found in SYMBOL.finditer(text):
        if found.start() > end:
            yield text[end : found.start()], _font(words, size), 0
        name, index, letter = found.groups()
        yield name or letter, _font(symbols, size), 0
        if index:
            yield index, _font(symbols, round(0.75 * size)), 0.3 * size
        end = found.end()
    if text[end:]:
        yield text[end:], _font(words, size), 0


@cache
def _font(name, size):
    return ImageFont.truetype(FONTS / f"{name}.ttf", size, layout_engine=ImageFont.Layout.BASIC)


@cache
def _hatching():
    """Return a mask (HATCH, HATCH) that repeats as slanted lines."""
    down, right = np.mgrid[: FINE * HATCH, : FINE * HATCH]
    drawn = np.where((right + down) % (FINE * HATCH) < 1.5 * FINE, 255, 0).astype(np.uint8)
    return np.asarray(Image.fromarray(drawn).reduce(FINE))


@cache
def _rgba(colour, alpha=1.0):
    return *(int(colour[k : k + 2], 16) for k in (1, 3, 5)), round(255 * alpha)
