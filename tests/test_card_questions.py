"""A card asks what the notebook asks above it: the file next to the questions is made from the notebook."""

import itertools

import pytest

pytest.importorskip("nbformat")

from flashlib.chapters import NOTEBOOKS  # noqa: E402
from flashlib.checks.engine import folders, prediction  # noqa: E402
from tools import card_questions as cards
from tools import notebooks  # noqa: E402


@pytest.mark.parametrize("chapter", NOTEBOOKS, ids=lambda chapter: chapter.name)
def test_cards_ask_the_questions_of_the_notebook(chapter):
    made = cards.written(notebooks.read(cards.STORED / f"{chapter.slug}.ipynb"))
    path = folders.FOLDER / chapter.name / folders.CARD_QUESTIONS
    assert (path.read_text(encoding="utf-8") if path.exists() else "") == made, "run: python -m tools.tables"


@pytest.mark.parametrize("chapter", NOTEBOOKS, ids=lambda chapter: chapter.name)
def test_a_card_shows_its_question_from_the_beginning(chapter):
    """A paragraph that is too long for a card would lose its beginning, which gives the context."""
    texts = cards.texts(notebooks.read(cards.STORED / f"{chapter.slug}.ipynb"))
    for name, text in texts.items():
        begins = cards.END.split(cards.plain(cards.asking(text)))[0]
        assert begins in cards.question(text), f"{name}: shorten its paragraph to {cards.MOST} characters"


@pytest.mark.parametrize("chapter", NOTEBOOKS, ids=lambda chapter: chapter.name)
def test_the_question_is_in_the_cell_just_above_its_card(chapter):
    """There the card hides its own copy: prediction_card.css finds the bold word that begins a paragraph."""
    cells = notebooks.read(cards.STORED / f"{chapter.slug}.ipynb").cells
    for above, cell in itertools.pairwise(cells):
        if found := cards.CARD.match(cell.source):
            begins = [block for block in cards.BLANK.split(above.source) if block.startswith(cards.MARK)]
            assert above.cell_type == "markdown" and begins, f"{found[1]}: its question is not just above"


def test_what_follows_an_answer_is_said_once_in_the_first_chapter():
    said = "You are told at once whether you are right, and why. If you are wrong, you get a hint first."
    stored = [notebooks.read(cards.STORED / f"{chapter.slug}.ipynb") for chapter in NOTEBOOKS]
    found = [" ".join(" ".join(cell.source for cell in nb.cells).split()).count(said) for nb in stored]
    assert found == [1] + [0] * (len(NOTEBOOKS) - 1)


def test_every_question_is_asked_in_plain_words():
    found = prediction.card_texts()
    assert sorted(found) == sorted(prediction.questions())
    for name, text in found.items():
        assert not set(text) & set("$\\{}*"), f"{name}: a formula that a card cannot set: {text}"
        assert "?" in text and 20 < len(text) < 500, f"{name}: {text}"


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"3.4 \cdot 10^{38}", "3.4 · 10^38"),
        (r"e^{s - m}", "e^(s − m)"),
        (r"\tilde P_{ij}", "P_ij"),
        (r"Q K^\top", "Q K^T"),
        (r"1 / \sqrt{64}", "1 / √64"),
        (r"\tfrac{a}{2}", "a / 2"),
        (r"(\log 16,\ \log 4)", "(log 16, log 4)"),
        (r"B_r \times d \le 2^{p+1}", "B_r × d ≤ 2^(p+1)"),
        (r"\alpha = \mathrm{lse}", "alpha = lse"),
    ],
)
def test_a_formula_becomes_a_line(tex, text):
    assert cards.formula(tex) == text


def test_a_short_question_includes_its_context_and_a_long_one_does_not():
    short = "Once.\n\n**Predict.** A row has $n$ scores, all of them\nequal. What is $l$? Answer with a number."
    assert cards.question(short) == "A row has n scores, all of them equal. What is l?"
    above = "A row.\n\nA score comes. It is 4.\n\n**Predict.** What is $m$?"
    assert cards.question(above) == "A score comes. It is 4. What is m?"
    assert cards.question(above.replace("A score", "A score of many " * 30)) == "It is 4. What is m?"
    assert cards.question(above.replace("A score", "where a score")) == "What is m?", "it goes on after a formula"
    assert cards.question(above.replace("A score comes", "So it comes")) == "It is 4. What is m?"
    assert cards.question("## A row\n\n**Predict.** What is $m$?") == "What is m?"
    long = (
        f"**Predict.** First a fact. {'And a question that is long ' * 12}enough by itself? Then an instruction."
    )
    assert cards.question(long).startswith("And a question") and cards.question(long).endswith("itself?")
    taken = (
        f"{'It is long. ' * 40}Take $n = 3$ ranks.\n\n**Predict.** How many copies are there in all, and how long?"
    )
    assert cards.question(taken) == "Take n = 3 ranks. How many copies are there in all, and how long?"
    assert cards.question(taken.replace("Take", "Let")).startswith("How many copies")
    fits = long.replace("And a question that is long " * 8, "")
    assert cards.question(fits).startswith("First a fact. And a question"), "its paragraph fits"
    items = (
        "**Predict.** Make guesses.\n\n- `one`: the **first**. Is it so?\n- `two`: the\n  second.\n\nLater text."
    )
    assert cards.question(items) == "Make guesses. `one`: the first. Is it so? `two`: the second."
