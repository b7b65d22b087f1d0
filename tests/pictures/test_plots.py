"""A plot of a notebook can be read on a phone 390 px wide, and its SVG is the same text each time."""

import re

import pytest

pytest.importorskip("IPython")

import matplotlib.pyplot as plt

from flashlib.pictures import inks, plots

TEXT_WIDTH = 358  # px, of a page of the site on a phone 390 px wide
LEAST = 11  # px


@pytest.fixture(autouse=True)
def style():
    with plt.rc_context():
        inks.use()
        yield
    plt.close("all")


def panels(words="TFLOP/s on one GPU, of the forward pass and of the backward pass, with and without a mask"):
    """A plot far wider than a phone: three panels, a long title, a legend of six curves side by side."""
    figure, axes = plt.subplots(1, 3, figsize=(9, 3), sharey=True)
    for ax in axes:
        for k in range(6):
            ax.plot([0, 1], [0, k], label=f"a kernel, {k} stages")
    figure.suptitle(words)
    axes[0].set_ylabel("TFLOP/s", fontsize=6)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8)
    return figure


def crowded():
    """A drawing with words at places in it, which would overlap if it were narrow."""
    figure, ax = plt.subplots(figsize=(8, 2))
    for k in range(12):
        ax.text(k / 12, 0.5, "number", fontsize=7)
    return figure


def shown(svg):
    """Return the width of an SVG, in px, and its smallest letters on a phone, where a far wider one scrolls."""
    root = re.match(r"<svg [^>]*>", svg)[0]
    width = 4 / 3 * float(re.search(r' width="([\d.]+)pt"', root)[1])
    drawn = float(re.search(r'viewBox="0 0 ([\d.]+) ', root)[1])
    letters = min(float(size) for size in re.findall(r"font(?:-size)?:([\d.]+)px", svg))
    return width, letters / drawn * (width if width > 400 else min(width, TEXT_WIDTH))


@pytest.mark.parametrize(("plot", "scrolls"), [(panels, False), (crowded, True)])
def test_letters_on_a_phone_are_large_enough(plot, scrolls):
    width, letters = shown(plots.bundle(plot())[plots.PHONE])
    assert letters >= LEAST
    assert (width > 400) == scrolls


def test_the_wide_form_is_as_its_code_says():
    width, letters = shown(plots.bundle(panels())["image/svg+xml"])
    assert 840 < width < 900 and letters == pytest.approx(6 * 4 / 3, rel=0.1)


def test_every_word_is_in_both_forms():
    got = plots.bundle(panels())
    for name in ("image/svg+xml", plots.PHONE):
        words = re.sub(r"<[^>]*>", " ", got[name])
        assert words.count("stages") == 6, name
        assert words.split("TFLOP/s on")[1].split()[:3] == ["one", "GPU,", "of"], name


def test_an_svg_is_small_and_the_same_each_time():
    assert plots.bundle(panels()) == plots.bundle(panels())
    svg = plots.bundle(panels())["image/svg+xml"]
    assert len(svg) < 30_000 and not re.search(r"\d\.\d{3}|<metadata|matplotlib\.org", svg)
