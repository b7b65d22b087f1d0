"""The inks of pictures can be read in light and dark notebooks, and told apart; numbers have four digits."""

import base64
import colorsys
import io
import itertools
import re
from pathlib import Path

import nbformat
import numpy as np
import pytest
from PIL import Image

from flashlib.pictures import inks, number_text
from flashlib.pictures.inks import INK, ON_FILL

ROOT = Path(__file__).resolve().parents[2]
GROUNDS = "#ffffff", "#111111"  # of JupyterLab's cells, light and dark
INKS = INK, inks.READ, inks.WRITTEN, inks.WRONG, *inks.SERIES
FILLS = inks.NEGATIVE, inks.ZERO, inks.POSITIVE, inks.HIGHLIGHT
SEEN_BY = {  # Machado, Oliveira and Fernandes (2009): linear RGB as eyes without red, green or blue cones see it
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def linear(colour):
    """Return a colour's red, green and blue light, from 0 to 1."""
    rgb = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """Return the contrast of two colours as WCAG defines it, from 1 to 21."""
    low, high = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def mixed(ink, ground, share):
    pairs = ((int(ink[k : k + 2], 16), int(ground[k : k + 2], 16)) for k in (1, 3, 5))
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in pairs)


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("ink", INKS)
def test_every_ink_can_be_read_on_a_light_and_on_a_dark_page(ink, ground):
    assert contrast(ink, ground) >= 4
    assert contrast(INK, mixed(INK, ground, inks.SOFT)) >= 4, "on a panel"


def test_every_ink_can_be_read_on_a_dark_page_of_the_site():
    css = (ROOT / "web/static/site.css").read_text(encoding="utf-8")
    light, dark = re.search(r"--back: light-dark\((#\w{6}), (#\w{6})\)", css).groups()
    assert light == GROUNDS[0] and all(contrast(ink, dark) >= 4 for ink in INKS)


@pytest.mark.parametrize("fill", FILLS)
def test_text_on_a_fill_can_be_read(fill):
    assert contrast(ON_FILL, fill) >= 4.5


@pytest.mark.parametrize("eyes", SEEN_BY)
def test_the_first_curves_differ_for_every_eye_and_so_do_read_and_written(eyes):
    light = lambda ink: np.cbrt(np.clip(np.array(SEEN_BY[eyes]) @ linear(ink), 0, 1))  # noqa: E731
    pairs = [*itertools.combinations(list(inks.SERIES)[:3], 2), (inks.READ, inks.WRITTEN)]
    for one, other in pairs:
        assert np.abs(light(one) - light(other)).max() > 0.12, (one, other)


def test_no_two_curves_have_the_same_line_or_the_same_hue():
    assert len({str(line) for line in inks.SERIES.values()}) == len(inks.SERIES) == 5
    hues = [colorsys.rgb_to_hsv(*linear(ink))[0] for ink in inks.SERIES if ink != INK]
    assert min(abs(a - b) for a, b in itertools.combinations(hues, 2)) > 0.1


def test_fills_are_those_of_the_widgets_in_light_mode():
    css = (ROOT / "flashlib/widgets/shared/palette.css").read_text(encoding="utf-8")
    light = dict(re.findall(r"--flash-(\w+): (#\w{6});", css[: css.index("flash-dark")]))
    names = ("negative", "zero", "positive", "highlight")
    assert tuple(light[name] for name in names) == FILLS
    for name, ink in (("read", inks.READ), ("written", inks.WRITTEN), ("wrong", inks.WRONG)):
        hue = lambda colour: colorsys.rgb_to_hsv(*linear(colour))[0]  # noqa: E731
        assert abs((hue(light[name]) - hue(ink) + 0.5) % 1 - 0.5) < 0.04, name


def test_style_gives_plots_these_inks_and_a_transparent_background():
    plt = pytest.importorskip("matplotlib.pyplot")
    with plt.rc_context():
        inks.use()
        fig, ax = plt.subplots(figsize=(2, 2))
        lines = [ax.plot([0, 1], [k, k])[0] for k in range(5)]
        assert [line.get_color() for line in lines] == list(inks.SERIES)
        assert {ax.xaxis.label.get_color(), ax.title.get_color(), ax.spines["left"].get_edgecolor()} <= {
            INK,
            plt.matplotlib.colors.to_rgba(INK),
        }
        file = io.BytesIO()
        fig.savefig(file)
        plt.close(fig)
    assert Image.open(file).getpixel((1, 1))[3] == 0


def pngs():
    """Yield (chapter, cell, PNG) for each picture that a notebook stores."""
    for path in sorted((ROOT / "notebooks").rglob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                if "image/png" in output.get("data", {}):
                    yield path.stem, cell.id, base64.b64decode(output.data["image/png"]), output


def test_stored_pictures_are_transparent():
    found = list(pngs())
    assert len(found) > 60
    for chapter, cell, png, output in found:
        image = Image.open(io.BytesIO(png)).convert("RGBA")
        assert image.getpixel((0, image.height - 1))[3] <= round(255 * inks.SOFT), (chapter, cell)
        assert "needs_background" not in output.metadata, (chapter, cell)


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (-12.0, "−12"),
        (1.95, "1.950"),
        (0.61878339, "0.6188"),
        (-0.0123456, "−0.01235"),
        (123456.0, "1.235e5"),
        (9999.7, "1.000e4"),
        (-2.5e-7, "−2.500e−7"),
        (-np.inf, "−∞"),
        (np.inf, "∞"),
        (np.nan, "NaN"),
    ],
)
def test_number_has_four_digits_and_a_true_minus_sign(x, text):
    assert number_text.number(x) == text
