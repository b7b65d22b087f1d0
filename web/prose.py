"""Prose: Markdown to HTML."""

import html
import re

from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from web import code_lines, colab, readable
from web.formulas import formula

TAG = re.compile(r"<[^>]+>")
FORMULA = re.compile(r"<th([^>]*)>((?:<math(?:(?!</?th\b).)*</math>|<wbr>)+)</th>", re.DOTALL)  # and nothing else
EMPTY = re.compile(r"<th([^>]*)></th>")
TERMS = re.compile(r"<thead>\s*<tr>(?:\s*<td[^>]*></td>){2}\s*</tr>\s*</thead>")  # of a glossary
TERM = re.compile(r"<tr>(\s*<td[^>]*>)(.*?)(</td>\s*<td)", re.DOTALL)
UNSEEN = re.compile(r'<span class="unseen">.*?</span>')
REGION = 'tabindex="0" role="group"'  # may be wider than a phone, and scrolls sideways
SPACE = re.compile(r"\s+")
MATHS = re.compile(r"<math.*?</math>", re.DOTALL)


def to_html(text, repository=""):
    """Return the HTML of a Markdown text of a notebook, and its headings, [(level, id, HTML)]."""
    renderer = Prose(repository)
    return MarkdownWithMath(renderer=renderer).render(text), renderer.headings


def plain(markup):
    """Return the words of HTML, without tags and formulas."""
    return SPACE.sub(" ", html.unescape(TAG.sub("", MATHS.sub(" ", markup)))).strip()


def words(markup):
    """Return the words of HTML, with each formula as a line of text."""
    markup = UNSEEN.sub("", markup).replace("</math><wbr>", "</math> ")
    markup = MATHS.sub(lambda found: html.escape(readable.line(found[0])), markup)
    return SPACE.sub(" ", html.unescape(TAG.sub("", markup))).strip()


def address(markup):
    """Return the id of a place, made from its words."""
    return re.sub(r"[^\w.-]+", "-", markup).strip("-")


def _term(found):
    """Return the beginning of a row that explains a term, with an id."""
    return f'<tr id="term-{address(words(found[2]))}">{found[1]}{found[2]}{found[3]}'


def _named(found):
    """Return a heading that is a formula, with its letters as a label: not every screen reader knows MathML."""
    letters = html.escape(html.unescape(TAG.sub("", found[2])))
    return f'<th{found[1]}><span class="unseen">{letters}</span><span aria-hidden="true">{found[2]}</span></th>'


class Prose(IPythonRenderer):
    """Markdown as in JupyterLab, whose links lead from page to page and to the repository."""

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
        markup = super().block_code(code, info)
        if info:
            return code_lines.wrapping(markup)
        return markup.replace("<pre>", f'<pre {REGION} aria-label="text">', 1)  # perhaps a drawing

    def heading(self, text, level, **attrs):
        anchor = address(plain(text))
        self.headings.append((level, anchor, text))
        link = f'<a class="anchor" href="#{anchor}" aria-label="Link to this section">#</a>' if level > 1 else ""
        return f'<h{level} id="{anchor}">{text}{link}</h{level}>\n'

    def link(self, text, url, title=None):
        if url.startswith("../"):  # a file of the repository
            if not self.repository:
                return text
            url = f"{self.repository}/blob/main/{url.removeprefix('../')}"
        link = super().link(text, re.sub(r"^(\w+)\.ipynb", r"\1.html", url), title)
        return link.replace("<a ", '<a class="door" ', 1) if url.startswith(colab.BROWSER) else link

    def table(self, text):
        text = EMPTY.sub(r"<td\1></td>", text)  # above nothing, so not a heading
        text = FORMULA.sub(_named, text)
        if head := TERMS.match(text):
            text = head[0] + TERM.sub(_term, text[head.end() :])
        return f'<div class="table" {REGION} aria-label="table"><table>{text}</table></div>\n'
