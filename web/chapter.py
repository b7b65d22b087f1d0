"""A chapter as a page: prose, code, outputs, widgets, cards and exercises, in the order of its notebook."""

import ast
import html
import re
from typing import NamedTuple

from nbconvert.filters import strip_ansi
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from flashlib.language.phrases import and_list
from flashlib.pictures.formats import PHONE
from tools import chapter_heads
from tools.notebooks import tags
from web import code_lines, prose
from web.live import cells
from web.plots import of_plot

TERM = re.compile(r'<tr id="(term-[^"]*)">\s*<td[^>]*>(.*?)</td>\s*<td[^>]*>(.*?)</td>\s*</tr>', re.DOTALL)
NEXT_TOPIC = re.compile(r"^(?:#|\*\*Predict\.)", re.MULTILINE)
# A paragraph that says something: it does not lead to what follows, or to another topic.
PARAGRAPH = re.compile(r"(?!#|\*\*Predict\.)(?:(?!\n\n).)*[^:\n](?=\n\n|\Z)", re.DOTALL)
VERDICT = "application/vnd.flashlib.verdict+json"
LAB_ONLY = "lab-only"  # the tag of a cell that a page leaves out
UNNAMED = "A picture that the code above draws"


class Section(NamedTuple):
    """A section of a chapter: its id, the HTML of its heading, its cards and its exercises."""

    anchor: str
    title: str
    cards: list
    exercises: list


class Page(NamedTuple):
    """A chapter's page. widgets: {id of a cell: what it shows}; sections: the Section of each heading.
    For the search: words: [(id, heading, words)] of each section; terms: [(id, term, meaning)] of a glossary."""

    body: str
    sections: list
    words: list
    terms: list
    widgets: dict
    cards: list
    exercises: list


class Writer:
    """Writes the page of one chapter, from top to bottom."""

    def __init__(self, shown, pictures, repository, told=None):
        """told: if Python runs on the page, {id of a cell: what the page knows about it}, see `web.live.cells`."""
        self.shown, self.pictures, self.repository = shown, pictures, repository
        self.told = told
        self.parts, self.sections, self.words, self.terms = [], [], [["", "", ""]], []
        self.cards, self.exercises = [], []
        self.exercise = ""  # whose cells these are
        self.asked = []  # the cards whose answers the outputs below give away
        self.answered = False  # whether an output below them, other than a widget, was written already

    def write(self, of_page):
        """Return the Page of some cells."""
        for cell in of_page:
            if not cell.source.strip() or LAB_ONLY in tags(cell):
                continue
            self._leave(cell)
            self._text(cell) if cell.cell_type == "markdown" else self._code(cell)
        self._leave(None)
        body, searched = "\n".join(self.parts), (self.words, self.terms)
        return Page(body, self.sections, *searched, self.shown, self.cards, self.exercises)

    def _leave(self, cell):
        """Before a cell that is not part of it, end an open exercise."""
        if self.exercise and not self._is_of_exercise(cell):
            self.parts.append(DONE.format(name=self.exercise) + "</section>")
            self.exercise = ""

    def _is_of_exercise(self, cell):
        if cell is None or cell.cell_type == "markdown":
            return False
        return f"stub:{self.exercise}" in tags(cell) or cell.source.startswith(f"checks.{self.exercise}(")

    def _text(self, cell):
        exercise = next((tag.partition(":")[2] for tag in tags(cell) if tag.startswith("exercise:")), "")
        if exercise:
            self.exercise = exercise
            self.parts.append(f'<section class="exercise" data-exercise="{exercise}">')
        text = chapter_heads.TITLE.sub("", cell.source)
        if self.answered and "no-answer" not in tags(cell) and (answer := PARAGRAPH.match(text)):
            self.parts.append(self._covered(self._markup(answer[0]), "Its explanation"))
            text = text[answer.end() :]
        if self.answered or NEXT_TOPIC.search(text):
            self.asked, self.answered = [], False
        self.parts.append(self._markup(text))
        if exercise:
            self._asks(exercises=exercise)

    def _asks(self, **names):
        """Note a card or an exercise, for the chapter and for its section."""
        for kind, name in names.items():
            for place in (self, *self.sections[-1:]):
                getattr(place, kind).append(name)

    def _covered(self, markup, label):
        """Return HTML that opens when the cards that it answers are answered."""
        return COVER.format(" ".join(self.asked), label, markup)

    def _markup(self, text):
        """Return the HTML of a text; note its sections, and its words for the search."""
        markup, headings = prose.to_html(text, self.repository)
        self.sections += [Section(anchor, title, [], []) for level, anchor, title in headings if level == 2]
        self._index(markup)
        return markup

    def _index(self, markup):
        """Store the words of a text for the search, by heading and by the term that they explain."""
        for anchor, *row in TERM.findall(markup):
            self.terms.append([anchor, *map(prose.words, row)])
        markup = TERM.sub("", markup)
        pieces = re.split(r'<h[23] id="([^"]*)">(.*?)<a class="anchor".*?</h[23]>', markup, flags=re.DOTALL)
        self.words[-1][2] += " " + prose.words(pieces[0])
        for anchor, heading, text in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
            self.words.append([anchor, prose.words(heading), prose.words(text)])

    def _code(self, cell):
        if asked := cells.CARD.fullmatch(cell.source):
            self._asks(cards=asked[1])
            self.asked.append(asked[1])
            self.parts.append(self._place(cell, "card"))
            return
        code = code_html(cell.source)
        runs = (
            self.told is not None
            and not self.told[cell.id]["missing"]
            and not cell.source.endswith(cells.PROGRESS_CALL)
        )
        imports = not self.sections and is_imports(cell.source)  # at the head of a chapter
        title = cell.source.partition("\n")[0].lstrip("# ") if "folded" in tags(cell) else "Imports" * imports
        if title:
            code = f"<details class='folded'><summary>{html.escape(title)}</summary>{code}</details>"
        outputs = "" if self.exercise else self._outputs(cell)
        if outputs and self.asked and "no-answer" not in tags(cell):
            outputs = self._covered(outputs, "Opens when you answer the question above")
            self.answered |= cell.id not in self.shown  # outputs after the text below a widget often answer too
        if self.told and (not self.exercise or cells.exercise_of(cell)):  # of an exercise, its stub says it
            outputs += self._lacking(bool(outputs), **self.told[cell.id])
        kind = " imports" * imports
        if self.exercise:
            kind = " stub" if f"stub:{self.exercise}" in tags(cell) else " check"
        name = f' id="cell-{cell.id}" data-cell="{cell.id}"' if runs else ""
        self.parts.append(f'<div class="cell{kind}"{name}>{code}<div class="outputs">{outputs}</div></div>')

    def _lacking(self, has_outputs, missing, lacks, **others):  # noqa: ARG002
        """Return a note on what a cell lacks on a page, "" if nothing."""
        words = f"{missing}{STORED if has_outputs else ''}" if missing else ""
        if missing and self.exercise:
            words = missing.replace("This cell", "This exercise") + SOLVE
        if lacks:
            words = WITHOUT.format(and_list([f"<code>{name}</code>" for name in lacks]))
        return f'<p class="note">{words}</p>' if words else ""

    def _outputs(self, cell):
        if cell.id in self.shown:
            return self._place(cell, "widget")
        if cell.source.endswith(cells.PROGRESS_CALL):
            return PROGRESS  # nobody's progress is stored
        found = [self._output(cell, output) for output in cell.outputs]
        note = NEEDS_PYTHON if "interact(" in cell.source and not self.told else ""
        return "".join(found) + note

    def _place(self, cell, kind):
        """Return the place of a widget, with a picture or words in it until the widget plays, or if it cannot."""
        data = next((output.data for output in cell.outputs if "data" in output), {})
        still = self._output(cell, {"data": data}) if "image/png" in data else ""
        still = still or f"<p>{html.escape(''.join(data.get('text/plain', '')))}</p>"
        place = f'<div class="{kind}" data-place="{cell.id}"><div class="still">{still}</div></div>'
        return place + NEEDS_COMPILER * (kind == "widget" and self.shown[cell.id]["class"] == "CompilerLab")

    def _output(self, cell, output):
        data = output.get("data", {})
        if PHONE in data:
            return self._of_figure(cell, data)
        if "image/png" in data:
            name, width, height = self.pictures.add(data["image/png"])
            picture = _picture(name, width, height, html.escape(described(cell, data)))
            return picture if cell.id in self.shown else _plot(picture, width)
        if VERDICT in data:
            return ""
        if "text/html" in data:
            return f'<div class="made">{"".join(data["text/html"])}</div>'
        text = output.get("text") or data.get("text/plain") or "\n".join(output.get("traceback", []))
        text = html.escape(strip_ansi("".join(text)).rstrip("\n"))
        return f'<pre class="output" tabindex="0" aria-label="output">{text}</pre>' if text else ""

    def _of_figure(self, cell, data):
        """Return a plot, with another form for phones."""
        words = html.escape(described(cell, data))
        wide = _picture(*self.pictures.add_svg("".join(data["image/svg+xml"])), words)
        name, width, height = self.pictures.add_svg("".join(data[PHONE]))
        source = f'<source media="{ON_PHONES}" srcset="static/pictures/{name}" width="{width}" height="{height}">'
        return _plot(f"<picture>{source}{wide}</picture>", width)


def _picture(name, width, height, words):
    size = f'width="{width}" height="{height}" loading="lazy"'
    return f'<img class="picture" src="static/pictures/{name}" {size} alt="{words}">'


def _plot(picture, width):
    """Return a picture that scrolls on phones if it is too wide for them, so that it can be read."""
    scrolls = ' wide" tabindex="0" role="group" aria-label="picture' if width > PHONE_WIDTH else ""
    return f'<div class="plot{scrolls}">{picture}</div>'


ON_PHONES = "(width < 40rem)"  # as in static/site.css
PHONE_WIDTH = 400  # px: what is a little wider than a phone is shown a little smaller
WITHOUT = "On this page the cell above runs without {}; the cells that use them say why."
STORED = " Its stored output is shown here."
SOLVE = " You can solve it in the notebook."
COVER = '<details class="cover" data-cards="{}"><summary>{}</summary>{}</details>'
DONE = (
    '<p class="done"><label><input type="checkbox" data-solved="{name}"> I have solved it</label> '
    '<a href="about.html#run">How to run and check it</a></p>'
)
PROGRESS = (
    "<p>On these pages, the contents show what you have solved. It is kept "
    '<a href="about.html#progress">in your browser</a> and nowhere else.</p>'
)
NEEDS_PYTHON = '<p class="note">Its sliders need Python: <a href="about.html#run">run the notebook</a>.</p>'


NEEDS_COMPILER = (
    '<p class="note">Its other settings need Triton\'s compiler, which does not run in a page: '
    '<a href="about.html#run">run the notebook</a>.</p>'
)


def is_imports(source):
    """Return whether a cell consists mostly of imports."""
    body = ast.parse(source).body
    lines = {node: node.end_lineno - node.lineno + 1 for node in body}
    imports = sum(lines[node] for node in body if isinstance(node, ast.Import | ast.ImportFrom))
    return imports > 0 and 2 * imports >= sum(lines.values())


def described(cell, data):
    """Return the words that describe a picture: a widget's own, or what its cell says or writes."""
    words = "".join(data.get("text/plain", ""))
    if not words.startswith("<"):
        return words
    first = cell.source.partition("\n")[0]
    return first.lstrip("# ") if first.startswith("#") else of_plot(cell.source) or UNNAMED


def code_html(source):
    """Return the HTML of Python code."""
    markup = highlight(source.rstrip("\n"), PythonLexer(), HtmlFormatter(cssclass="code", wrapcode=True))
    return code_lines.wrapping(markup)
