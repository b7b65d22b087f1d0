"""Markdown as pages have it: formulas, headings, links, tables."""

import html
import re

import pytest

pytest.importorskip("latex2mathml")
pytest.importorskip("nbconvert")

from web import font, prose

TAG = re.compile(r"<[^>]+>")


def text(maths):
    return html.unescape(TAG.sub("", maths))


@pytest.mark.parametrize(
    "tex, parts",
    [
        ("x", 1),
        ("x_j = q_i", 1),
        (r"l = 0.1353 \cdot 1.3679 + 1.3679 = 0.1851 + 1.3679 = 1.5530", 3),
        (r"\frac{aaaaaaaaaa = bbbbbbbbb}{cccccccccc}", 1),
    ],
)
def test_a_long_formula_may_break_after_a_sign_and_loses_nothing(tex, parts):
    cut = prose.formula(tex)
    assert cut.count("<wbr>") == parts - 1 and cut.count("<math") == parts
    whole = prose.converter.convert(tex)
    assert text(cut) == text(whole)
    for part in cut.split("<wbr>")[:-1]:
        assert text(part)[-1] in prose.BREAKS and len(text(part)) >= prose.SHORTEST


def test_a_formula_on_its_own_lines_is_not_cut():
    markup, _ = prose.to_html("$$\nl = 0.1353 \\cdot 1.3679 + 1.3679 = 0.1851 + 1.3679\n$$")
    assert markup.count("<math") == 1 and 'display="block"' in markup


def test_infinity_has_no_room_around_it():
    assert "<mi>∞</mi>" in prose.formula(r"-\infty")


@pytest.mark.parametrize("repository", ["", "https://github.com/a/b"])
def test_links_lead_to_pages_and_to_the_repository(repository):
    markup, _ = prose.to_html(
        "[a](02_safe.ipynb) [b](03_x.ipynb#Part-2) [c](../docs/ranks.md) [d](#e)", repository
    )
    found = re.findall(r'href="([^"]*)"', markup)
    source = ["https://github.com/a/b/blob/main/docs/ranks.md"] if repository else []
    assert found == ["02_safe.html", "03_x.html#Part-2", *source, "#e"]
    assert " c" in text(markup)


def test_headings_have_an_address_that_html_may_hold():
    markup, headings = prose.to_html("## 2. What *softmax* `adds`, $x_j$?\n\ntext\n\n### More")
    assert [(level, anchor) for level, anchor, _ in headings] == [(2, "2.-What-softmax-adds"), (3, "More")]
    assert 'id="2.-What-softmax-adds"' in markup and 'href="#2.-What-softmax-adds"' in markup


@pytest.mark.parametrize("language", ["", "python", "nothing"])
def test_code_can_be_moved_sideways_by_keyboard(language):
    markup, _ = prose.to_html(f"```{language}\nx = 1 < 2\n```")
    assert markup.count("<pre") == markup.count('<pre tabindex="0"') == 1 and "&lt;" in markup


def test_a_cell_above_nothing_is_no_heading():
    markup, _ = prose.to_html("| | b |\n|---|---|\n| 1 | 2 |")
    assert "<th></th>" not in markup and markup.count("<th>") == 1


def test_a_formula_that_heads_a_column_has_a_name():
    markup, _ = prose.to_html("| $x_j$ | b |\n|---|---|\n| $y$ | 2 |")
    assert re.findall(r"<th>(.*?)</th>", markup)[0].startswith('<span class="unseen">xj</span>')
    assert markup.count("unseen") == 1


def test_a_fold_holds_markdown():
    markup, _ = prose.to_html("<details><summary>Hint</summary>\n\nTake **two** sums, $l$.\n\n</details>")
    assert "<strong>two</strong>" in markup and "<math" in markup and markup.count("</details>") == 1


def test_the_font_has_every_sign_of_the_formulas_and_is_small():
    tt = pytest.importorskip("fontTools.ttLib")
    pytest.importorskip("brotli")
    with tt.TTFont(font.FONT) as cut:
        has = set(cut.getBestCmap())
        assert "MATH" in cut, "what a browser sets fractions and roots with"
    lacking = {chr(point) for point in font.points(font.used()) if point not in has}
    assert not lacking & font.used(), "cut it again: see web/font.py"
    assert font.FONT.stat().st_size <= 100_000
