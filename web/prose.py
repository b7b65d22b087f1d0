"""Prose: Markdown to HTML, formulas to MathML."""

import html
import re
from functools import cache
from xml.etree import ElementTree

from latex2mathml import converter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

TAG = re.compile(r"<[^>]+>")
FORMULA = re.compile(r"<th([^>]*)>((?:<math(?:(?!</?th\b).)*</math>|<wbr>)+)</th>", re.DOTALL)  # and nothing else
EMPTY = re.compile(r"<th([^>]*)></th>")
REGION = 'tabindex="0" role="group"'  # what may be wider than a phone, and is moved sideways
SPACE = re.compile(r"\s+")
BREAKS = set("=≈≤≥<>⇒+−·,")  # signs after which a line may break
SHORTEST = 8  # characters of a part
HIDDEN = re.compile(r"<math.*?</math>", re.DOTALL)


def to_html(text, repository=""):
    """Return the HTML of a Markdown text of a notebook, and its headings, [(level, id, HTML)]."""
    renderer = Prose(repository)
    return MarkdownWithMath(renderer=renderer).render(text), renderer.headings


def plain(markup):
    """Return the words of HTML, without tags and formulas."""
    return SPACE.sub(" ", html.unescape(TAG.sub("", HIDDEN.sub(" ", markup)))).strip()


def _named(found):
    """Return a heading that is a formula, with its letters for who hears it: not all know MathML."""
    letters = html.escape(html.unescape(TAG.sub("", found[2])))
    return f'<th{found[1]}><span class="unseen">{letters}</span><span aria-hidden="true">{found[2]}</span></th>'


@cache  # most occur again and again
def formula(tex, display="inline"):
    """Return the MathML of a formula. A long one in a line of text is cut where the line may break."""
    maths = converter.convert(tex, display=display).replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "")
    maths = maths.replace("<mo>&#x0221E;</mo>", "<mi>&#x0221E;</mi>")  # no operator with room around it
    return "<wbr>".join(pieces(maths)) if display == "inline" else maths


def pieces(maths):
    """Return the formula in parts, each with a sign at its end after which a line may break."""
    root = ElementTree.fromstring(maths)
    (row,) = root
    parts, length = [[]], 0
    for child in row:
        parts[-1].append(child)
        length += len("".join(child.itertext()))
        if child.tag == "mo" and child.text in BREAKS and length >= SHORTEST:
            child.set("form", "infix")  # with the room around it that it has inside of a formula
            parts.append([])
            length = 0
    if length < SHORTEST and len(parts) > 1:
        parts[-2:] = [parts[-2] + parts[-1]]
    return [_maths(root, part) for part in parts]


def _maths(root, children):
    whole = ElementTree.Element("math", root.attrib)
    row = ElementTree.SubElement(whole, "mrow")
    row.extend(children)
    return ElementTree.tostring(whole, encoding="unicode")


class Prose(IPythonRenderer):
    """Markdown as JupyterLab has it. Links go from page to page, and to the repository."""

    def __init__(self, repository=""):
        super().__init__(escape=False)
        self.repository, self.headings = repository, []

    def block_math(self, body):
        return f'<span class="formula" {REGION} aria-label="formula">{formula(body, "block")}</span>'

    def inline_math(self, body):
        return formula(html.unescape(body))

    def latex_environment(self, name, body):
        return self.block_math(rf"\begin{{{name}}}{body}\end{{{name}}}")

    def block_code(self, code, info=None):
        return super().block_code(code, info).replace("<pre>", f'<pre {REGION} aria-label="code">', 1)

    def heading(self, text, level, **attrs):
        anchor = re.sub(r"[^\w.-]+", "-", plain(text)).strip("-")
        self.headings.append((level, anchor, text))
        link = f'<a class="anchor" href="#{anchor}" aria-label="Link to this section">#</a>' if level > 1 else ""
        return f'<h{level} id="{anchor}">{text}{link}</h{level}>\n'

    def link(self, text, url, title=None):
        if url.startswith("../"):  # a file of the repository
            if not self.repository:
                return text
            url = f"{self.repository}/blob/main/{url.removeprefix('../')}"
        return super().link(text, re.sub(r"^(\w+)\.ipynb", r"\1.html", url), title)

    def table(self, text):
        text = EMPTY.sub(r"<td\1></td>", text)  # above nothing, and so no heading
        text = FORMULA.sub(_named, text)
        return f'<div class="table" {REGION} aria-label="table"><table>{text}</table></div>\n'
