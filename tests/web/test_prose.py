"""Markdown on pages: headings, links, tables."""

import html
import re

import pytest

pytest.importorskip("latex2mathml")
pytest.importorskip("nbconvert")

from web import prose

TAG = re.compile(r"<[^>]+>")


def text(maths):
    return html.unescape(TAG.sub("", maths))


@pytest.mark.parametrize("repository", ["", "https://github.com/a/b"])
def test_links_lead_to_pages_and_to_the_repository(repository):
    markup, _ = prose.to_html(
        "[a](02_safe.ipynb) [b](03_x.ipynb#Part-2) [c](../docs/ranks.md) [d](#e)", repository
    )
    found = re.findall(r'href="([^"]*)"', markup)
    source = ["https://github.com/a/b/blob/main/docs/ranks.md"] if repository else []
    assert found == ["02_safe.html", "03_x.html#Part-2", *source, "#e"]
    assert " c" in text(markup)


def test_a_link_to_colab_is_a_button():
    markup, _ = prose.to_html("[a](https://colab.research.google.com/github/) [b](https://a.b)")
    assert markup.count('class="door"') == markup.count('<a class="door" href="https://colab.') == 1


def test_headings_have_an_id_that_html_allows():
    markup, headings = prose.to_html("## 2. What *softmax* `adds`, $x_j$?\n\ntext\n\n### More")
    assert [(level, anchor) for level, anchor, _ in headings] == [(2, "2.-What-softmax-adds"), (3, "More")]
    assert 'id="2.-What-softmax-adds"' in markup and 'href="#2.-What-softmax-adds"' in markup


@pytest.mark.parametrize("language", ["", "python", "nothing"])
def test_code_wraps_and_a_drawing_can_be_scrolled_sideways_by_keyboard(language):
    markup, _ = prose.to_html(f"```{language}\nx = 1 < 2\n```")
    assert markup.count("<pre") == 1 and "&lt;" in markup
    assert ('<pre tabindex="0"' in markup) == (not language)
    assert ('class="line"' in markup) == bool(language)


def test_a_cell_above_nothing_is_not_a_heading():
    markup, _ = prose.to_html("| | b |\n|---|---|\n| 1 | 2 |")
    assert "<th></th>" not in markup and markup.count("<th>") == 1


def test_a_formula_that_heads_a_column_has_a_name():
    markup, _ = prose.to_html("| $x_j$ | b |\n|---|---|\n| $y$ | 2 |")
    assert re.findall(r"<th>(.*?)</th>", markup)[0].startswith('<span class="unseen">xj</span>')
    assert markup.count("unseen") == 1


def test_folded_text_is_markdown():
    markup, _ = prose.to_html("<details><summary>Hint</summary>\n\nTake **two** sums, $l$.\n\n</details>")
    assert "<strong>two</strong>" in markup and "<math" in markup and markup.count("</details>") == 1


def test_the_terms_of_a_glossary_have_ids():
    markup, _ = prose.to_html("| | |\n|---|---|\n| tile, $B_r$ | rows |\n| KV cache | kept |")
    assert re.findall(r'<tr id="([^"]*)">\s*<td>(.*?)[,<]', markup) == [
        ("term-tile-B_r", "tile"),
        ("term-KV-cache", "KV cache"),
    ]


@pytest.mark.parametrize("head", ["| a | |\n|---|---|", "| | | |\n|---|---|---|"])
def test_other_tables_have_none(head):
    assert "<tr id" not in prose.to_html(f"{head}\n| tile | rows |")[0]
