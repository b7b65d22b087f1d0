"""Pictures show what was drawn, on a transparent background, with the same bytes every time."""

import io

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from PIL import Image

from flashlib.pictures.canvas import HATCH, Picture, corners, scale
from flashlib.pictures.inks import INK, NEGATIVE, POSITIVE, READ, SOFT


def rgba(ink):
    return *(int(ink[k : k + 2], 16) for k in (1, 3, 5)), 255


def pixels(picture):
    """Return what a viewer sees of the PNG: (height, width, 4)."""
    return np.asarray(Image.open(io.BytesIO(picture.png())).convert("RGBA")).astype(int)


def test_a_picture_is_transparent_and_a_panel_nearly_so():
    picture = Picture(60, 40)
    picture.shade(20, 10, 30, 20)
    seen = pixels(picture)
    assert seen.shape == (40, 60, 4)
    assert seen[0, 0, 3] == 0 and seen[15, 30].tolist() == [*rgba(INK)[:3], round(255 * SOFT)]
    assert (seen[..., 3] > 0).sum() == 30 * 20


def test_inks_and_fills_are_exact():
    picture = Picture(40, 40)
    picture.box(5, 5, 10, 10, fill=READ)
    picture.box(20, 5, 10, 10, edge=INK, thick=3)
    seen = pixels(picture)
    assert seen[10, 10].tolist() == [*rgba(READ)]
    assert seen[10, 20].tolist() == seen[10, 19].tolist() == [*rgba(INK)]
    assert seen[10, 25, 3] == 0


@pytest.mark.parametrize("align, first", [("l", 50), ("m", 30), ("r", 10)])
def test_text_is_where_it_was_written(align, first):
    picture = Picture(100, 20)
    picture.text(50, 10, "HHHHH", 12, align=align)
    ((x, y, text),) = picture.written
    assert (x, y, text) == (50, 10, "HHHHH") and picture.texts == ["HHHHH"]
    rows, columns = np.nonzero(pixels(picture)[..., 3] > 128)
    assert abs(columns.min() - first) < 6 and abs((rows.min() + rows.max()) / 2 - 10) < 1.5


def test_the_index_of_a_symbol_is_lowered_and_words_are_not_typeset():
    def lowest(text):
        picture = Picture(100, 30)
        picture.text(5, 12, text, 14)
        return np.nonzero(pixels(picture)[..., 3] > 128)[0].max()

    assert lowest("O_acc") > lowest("Oacc") and lowest("an m, a row") == lowest("an n, a row")


def test_numbers_are_cells_on_a_diverging_scale():
    X = np.array([[-2.0, 0.0, 2.0], [np.nan, 1.0, -9.0]])
    picture = Picture(60, 40)
    picture.matrix(0, 0, X, 20, 20, 2, write=str)
    assert picture.texts == [str(x) for x in X.ravel()]
    middles = scale(X, 2)
    assert middles[0].tolist() == [[*rgba(NEGATIVE)], [255] * 4, [*rgba(POSITIVE)]]
    assert middles[1, 0, 3] == 0 and middles[1, 2].tolist() == [*rgba(NEGATIVE)]
    seen = pixels(picture)
    assert np.abs(seen[1, 1] - rgba(NEGATIVE)).max() <= 2 and seen[25, 1, 3] == 0


def test_minus_infinity_is_hatched_where_it_is_not_written():
    X = np.array([[-np.inf, 0.0]])
    picture = Picture(80, 40)
    picture.matrix(0, 0, X, 40, 25, 1)
    left = pixels(picture)[2:23, 2:36]
    assert not pixels(picture)[27:, ..., 3].any()
    assert {*left[..., 3].ravel()} > {0} and 0.1 < (left[..., 3] > 0).mean() < 0.6
    assert (left == np.roll(left, HATCH, axis=0))[HATCH:].all()  # it repeats


def test_hatching_ends_at_the_edge():
    picture = Picture(60, 60)
    picture.hatch(corners(10, 10, 30, 30))
    alpha = pixels(picture)[..., 3]
    assert alpha[10:40, 10:40].any() and alpha.sum() == alpha[10:41, 10:41].sum()


def test_lines_are_solid_or_dashed():
    whole, dashed = Picture(120, 20), Picture(120, 20)
    whole.line([(10, 10), (110, 10)], thick=2)
    dashed.line([(10, 10), (60, 10), (110, 10)], thick=2, dash=(5, 5))
    drawn = [(pixels(picture)[..., 3] > 128).sum() for picture in (whole, dashed)]
    assert 190 <= drawn[0] <= 230 and 0.4 < drawn[1] / drawn[0] < 0.7


def test_the_same_drawing_is_the_same_bytes_and_says_what_it_shows():
    def draw():
        picture = Picture(50, 50, "three tiles")
        picture.polygon([(5, 5), (40, 8), (20, 40)], READ)
        picture.dots(0, 0, 50, 20)
        return picture

    assert draw().png() == draw()._repr_png_() and repr(draw()) == "three tiles"
