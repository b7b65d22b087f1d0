"""A plot on a page has a description for those who cannot see it: the texts that its code writes on it."""

import re

import nbformat
import pytest

pytest.importorskip("latex2mathml")
pytest.importorskip("nbconvert")

from flashlib.chapters import NOTEBOOKS
from tests.required import ROOT
from web.chapter import PHONE, PHONE_WIDTH, UNNAMED, described
from web.plots import of_plot


def plots():
    """Yield (chapter, cell, output) for each plot stored in a notebook; widgets describe themselves."""
    for chapter in NOTEBOOKS:
        for cell in nbformat.read(ROOT / "notebooks" / f"{chapter.slug}.ipynb", as_version=4).cells:
            for data in (output.get("data", {}) for output in cell.get("outputs", [])):
                if "image/png" in data and data["text/plain"].startswith("<Figure"):
                    yield chapter.slug, cell, data


def test_nearly_every_plot_of_the_course_has_a_description():
    """All but at most one, which a function of a different cell draws."""
    said = [described(cell, data) for _, cell, data in plots()]
    assert len(said) > 30 and all(any(letter.isalpha() for letter in words) for words in said)
    assert said.count(UNNAMED) <= 1
    assert len(set(said)) > len(said) - 2


def test_letters_of_stored_plots_can_be_read_on_a_phone():
    """At the width of a page on a phone, or larger where the plot scrolls."""
    forms = [(chapter, data[PHONE]) for chapter, _, data in plots() if PHONE in data]
    assert forms
    for chapter, svg in forms:
        drawn, sides = [re.search(rf'<svg [^>]*?{name}="([^"]*)"', svg)[1] for name in ("viewBox", "width")]
        width = 4 / 3 * float(sides.removesuffix("pt"))
        letters = [float(size) for size in re.findall(r'<text style="font(?:-size)?:([\d.]+)px', svg)]
        scale = min(width, 358 if width <= PHONE_WIDTH else width) / float(drawn.split()[2])
        assert min(letters) * scale >= 11, chapter


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('ax.set_title("Bytes")\nax.set_xlabel("N")\nax.set_ylabel("MB")', "Plot: Bytes; MB over N"),
        ('ax.set(title="Time", ylabel="ms")\nax.plot(x, label=f"d = {d}")', "Plot: Time; ms; d = …"),
        ('%matplotlib inline\nax.set_xlabel(r"$\\mathrm{e}^{x}$ (count)")', "Plot: e^x (count)"),
        ('ax.text(0, 1, "here")\nax.text(x, y, f"{x}")', "Plot: here"),
        ('def draw(P):\n    """Draw the weights P."""\n    plt.imshow(P)', "Plot: Draw the weights P."),
        ('ax.set_title("a" if x else "b")', "Plot: a"),
        ("plt.imshow(P)\nax.set_title(name)", ""),
    ],
)
def test_the_texts_in_the_code_of_a_plot_are_found(source, words):
    assert of_plot(source) == words
