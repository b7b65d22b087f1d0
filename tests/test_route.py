"""The route keeps its portions: minutes, sentences, pictures."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("nbformat")

from flashlib.chapters import CHAPTERS, FROM_ZERO, KNOWN

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.checks.each_case import each_case  # noqa: E402
from tools import minutes, notebooks  # noqa: E402

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
LONGEST = {FROM_ZERO: 11, KNOWN: 8.5}  # hours
LONGEST_CHAPTER, LONGEST_SOFTMAX = 140, 80  # minutes
LONGEST_SENTENCE = 35  # words
WITHOUT = "torch", "triton", "transformers"  # what a first cell runs without
FIRST_CELLS = """
import json, sys
sys.modules |= dict.fromkeys({without!r})  # None: an import of it fails
import matplotlib; matplotlib.use("agg")
for slug, source in json.load(sys.stdin).items():
    try:
        exec(source, dict())
    except ImportError as error:
        print(slug, error)
"""
NOT_PROSE = re.compile(r"(?s:```.*?```|\$\$.*?\$\$)|^(?:[|#]|\*\d+ minutes).*$|<[^>]+>", re.MULTILINE)
APART = re.compile(
    r"\n\s*\n\s*(?:(?:[-*]|\d+\.) )?|\n\s*(?:[-*]|\d+\.) |(?<=[.!?])[)*\"]*\s+"
)  # paragraphs, items, sentences


def read(chapter):
    return notebooks.read(FOLDER / f"{chapter.slug}.ipynb")


def sentences(text):
    """Return the sentences of a Markdown text, as lists of words."""
    text = re.sub(r"\]\([^)]*\)", "]", NOT_PROSE.sub("\n\n", text))
    text = re.sub(r"\$[^$]*\$|`[^`]*`", "X", text)
    return [words for words in map(str.split, APART.split(text)) if words]


@pytest.mark.parametrize("route", LONGEST, ids=lambda route: route.name)
def test_a_route_is_no_longer_than_it_may_be(route):
    takes = {c.number: minutes.of(read(c)).core for c in CHAPTERS if c.number in route.numbers}
    assert sum(takes.values()) <= 60 * LONGEST[route], takes
    assert max(takes.values()) <= LONGEST_CHAPTER and takes.get("01", 0) <= LONGEST_SOFTMAX, takes


@each_case(CHAPTERS, lambda c: c.slug)
def test_no_sentence_is_long(c):
    texts = [cell.source for cell in read(c).cells if cell.cell_type == "markdown"]
    found = [words for text in texts for words in sentences(text)]
    assert len(found) > 50
    assert [" ".join(words) for words in found if len(words) > LONGEST_SENTENCE] == []


def test_sentences_are_found():
    text = "# A b\n\nOne two. *Three?* Four\nfive:\n\n$$x$$\n\n- six $a b$;\n- [seven](eight nine).\n\n| a | b |"
    joined = [" ".join(words) for words in sentences(text)]
    assert joined == ["One two.", "*Three?", "Four five:", "six X;", "[seven]."]


def first_cells():
    """Return the first code cell of each chapter, by its slug."""
    return {c.slug: next(cell for cell in read(c).cells if cell.cell_type == "code") for c in CHAPTERS}


@each_case(CHAPTERS, lambda c: c.slug)
def test_the_first_cell_is_folded(c):
    assert "folded" in notebooks.tags(first_cells()[c.slug])


@pytest.mark.process
def test_first_cells_need_numpy_alone():
    """Who lacks torch or Triton, or reads on a page, comes as far as the first picture."""
    sources = {slug: cell.source for slug, cell in first_cells().items()}
    command = [sys.executable, "-c", FIRST_CELLS.format(without=WITHOUT)]
    ran = subprocess.run(command, input=json.dumps(sources), capture_output=True, text=True, cwd=FOLDER)
    assert (ran.stdout, ran.returncode) == ("", 0), ran.stderr


def test_no_picture_is_shown_in_two_chapters():
    """One that both recall is in the first of them, and linked from the other."""
    shown = Counter()
    for c in CHAPTERS:
        code = "\n".join(cell.source for cell in read(c).cells if cell.cell_type == "code")
        shown.update(set(re.findall(r"\bdraw_memories\(", code)))
        shown.update({output.data["image/png"] for cell in read(c).cells for output in drawn(cell)})
    assert [picture[:60] for picture, n in shown.items() if n > 1] == []


def drawn(cell):
    return [output for output in cell.get("outputs", ()) if "image/png" in output.get("data", {})]
