"""The lines of code on a page, which wrap on a narrow screen, and the colours of code as it is typed."""

import html
import json
import re
import subprocess
from xml.etree import ElementTree

import pytest

pytest.importorskip("latex2mathml")
pytest.importorskip("nbconvert")

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String

from flashlib.chapters import named
from tests.required import ROOT, node
from tests.web import live_chapters
from web.chapter import code_html

CHAPTERS = "softmax", "tiling", "triton_flash"
LINE = re.compile(r'<span class="line"(?: style="--indent:(\d+)")?>(.*)</span>$', re.MULTILINE)
# The pieces of each of some texts, as an editor colours them.
PIECES = f"""
import {{ pythonPieces }} from {json.dumps((ROOT / "web/page/live/colours.js").as_uri())};
let given = "";
for await (const part of process.stdin) given += part;
console.log(JSON.stringify(JSON.parse(given).map(pythonPieces)));
"""


def text(markup):
    return html.unescape(re.sub(r"<[^>]+>", "", markup))


def sources():
    cells = [cell for name in CHAPTERS for cell in live_chapters.read(named(name)).cells]
    return [cell.source for cell in cells if cell.cell_type == "code"]


def letters(element, kind=""):
    """Yield (letter, class) for each letter of an element."""
    own = element.get("class", "")
    kind = kind if own in ("line", "whole", "code") else own
    yield from ((letter, kind) for letter in element.text or "")
    for child in element:
        yield from letters(child, kind)
        yield from ((letter, kind) for letter in child.tail or "")


def test_lines_keep_their_text_and_colours_and_know_their_indent():
    for source in sources():
        markup = code_html(source)
        plain = highlight(source, PythonLexer(), HtmlFormatter(cssclass="code"))
        found, expected = (
            [pair for pair in letters(ElementTree.fromstring(one.replace("<wbr>", "<wbr/>"))) if pair[0].strip()]
            for one in (markup, plain)
        )
        assert found == expected
        assert text(markup).strip("\n") == source.strip("\n")
        for indent, line in LINE.findall(markup):
            assert int(indent or 0) == len(text(line)) - len(text(line).lstrip(" "))
        assert len(LINE.findall(markup)) == sum(1 for line in source.split("\n") if line)


def test_a_long_piece_breaks_after_a_bracket_and_a_short_one_not_after_a_minus():
    markup = code_html("x = -np.inf + tl.load(Q_ptr[offs_m[:, None] * D])")
    whole = re.search(r'<span class="whole">(.*?)</span></span>', markup)
    assert text(whole[1]) == "-np.inf"
    assert [text(part) for part in markup.split("<wbr>")][:2] == ["x = -np.inf + tl.load(", "Q_ptr["]
    assert "<wbr>" not in code_html("y = f(g[h], 1)")


def kind(token):
    """Return the class that an editor gives to a token of Pygments."""
    if token in Keyword or token is Operator.Word:
        return "k"
    if token in (Name.Function, Name.Function.Magic, Name.Class):
        return "nf"
    if token is Name.Decorator:
        return "nd"
    return next((name for name, one in (("c1", Comment), ("s1", String), ("mi", Number)) if token in one), "")


def test_an_editor_has_the_colours_of_the_page():
    """But for expressions in strings, which it takes for text."""
    texts = [*sources(), 'x = "open\ny = """also\nopen 1', "@a.b\nclass C_1: z = 0x1F @ 1e-3  # if 2"]
    command = [node(), "--input-type=module", "--eval", PIECES]
    ran = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=True)
    for source, pieces in zip(texts, json.loads(ran.stdout), strict=True):
        assert "".join(piece for _, piece in pieces) == source
        found = [one for one, piece in pieces for _ in piece]
        tokens = PythonLexer(stripnl=False, ensurenl=False).get_tokens(source)
        expected = [kind(token) for token, piece in tokens for _ in piece]
        for at, pair in enumerate(zip(found, expected, strict=True)):
            in_string = pair[0] == "s1" or "open" in source
            assert pair[0] == pair[1] or in_string or source[at] == " ", source[at:][:20]
