"""The font of the formulas has what the pages need, and little more."""

import pytest

pytest.importorskip("latex2mathml")
pytest.importorskip("nbconvert")
pytest.importorskip("brotli")
pytest.importorskip("fontTools")

from fontTools.ttLib import TTFont

from flashlib.chapters import named
from tests.required import ROOT
from web import font
from web.formulas import formula


@pytest.fixture(scope="module")
def cut():
    with TTFont(font.FONT) as found:
        yield found


@pytest.mark.parametrize("amount", ["few", "all"])
def test_it_has_every_character_of_the_formulas_and_is_small(amount, cut, monkeypatch):
    if amount == "few":
        paths = [ROOT / "notebooks" / f"{named(name).slug}.ipynb" for name in ("online_softmax", "attention")]
        monkeypatch.setattr(font.notebooks, "chapters", lambda folder: paths)  # noqa: ARG005
        assert font.used() > set("∑√")
    lacking = font.points(font.used() | set(font.PLAIN) | set(font.ITALIC)) - set(cut.getBestCmap())
    assert not {chr(point) for point in lacking}, "cut it again: see web/font.py"
    assert font.FONT.stat().st_size <= 100_000


def test_the_first_font_has_what_lines_at_the_head_of_a_chapter_need(cut):
    with TTFont(font.FIRST) as first:
        assert font.at_heads() <= set(first.getBestCmap()), "cut it again: see web/font.py"
        for name in set(first.getGlyphOrder()) & set(cut.getGlyphOrder()):
            assert first["hmtx"][name] == cut["hmtx"][name], "as wide as in the other"
    assert {ord(one) for one in "𝑚𝑙"} <= font.at_heads() and font.FIRST.stat().st_size <= 12_000


@pytest.mark.parametrize("tex, sign", [(r"\sqrt d", "√"), (r"\sqrt[3]{d}", "√"), (r"\hat d", "^"), ("a < b", "<")])
def test_a_formula_needs_the_characters_that_are_drawn(tex, sign):
    """A root has no text, unlike other signs."""
    assert sign in font.characters(formula(tex))


@pytest.mark.parametrize("letter, italic", ["x𝑥", "hℎ", "α𝛼", "ϕ𝜙", "Θ𝛩", "∂𝜕"])
def test_a_single_letter_is_in_italics(letter, italic):
    assert ord(italic) in font.points(letter)


def variants(font, coverage, construction):
    """Return how many sizes each glyph has, and whether it can also be made from pieces."""
    found = font["MATH"].table.MathVariants
    glyphs, made = getattr(found, coverage).glyphs, getattr(found, construction)
    names = {name: chr(point) for point, name in font.getBestCmap().items()}
    pairs = zip(map(names.get, glyphs), made, strict=True)
    return {name: (one.VariantCount, one.GlyphAssembly is not None) for name, one in pairs}


def test_roots_and_parentheses_grow_with_their_content(cut):
    upright = variants(cut, "VertGlyphCoverage", "VertGlyphConstruction")
    for sign in "√()[]{}|⌈⌉⌊⌋":
        sizes, is_assembled = upright.get(sign, (0, False))
        assert sizes >= 4 and is_assembled, sign
    flat = variants(cut, "HorizGlyphCoverage", "HorizGlyphConstruction")
    assert flat["\u0302"][0] >= 4 and flat["\u0303"][0] >= 4, "hats and tildes"
