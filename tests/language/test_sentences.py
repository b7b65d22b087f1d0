"""Each sentence of a card, a verdict or a widget is one text: no code joins pieces, in Python or in a page."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("cloudpickle")

from flashlib.language import python, texts
from flashlib.widgets import modules
from flashlib.widgets.widget import FOLDER
from tests.language import marked
from tests.required import node

ENGINE = "flashlib.checks.engine"
PAGE = """
console.log(JSON.stringify(%s.map(([card, texts, shows]) => {
  const { answers, slips } = readAll(card.fields, texts);
  return [...slips.map(({ sentence }) => sentence), grade(card, answers, shows).sentence].filter(Boolean);
})));
"""


@pytest.fixture
def wrapped(monkeypatch):
    """Load modules anew, by name, with marks around each text and around each of its values."""
    monkeypatch.setattr(texts, "texts", marked.Wrapped)

    def load(name):
        path = Path(importlib.import_module(name).__file__)
        module = ModuleType(name)
        module.__file__ = str(path)
        monkeypatch.setitem(sys.modules, name, module)
        package, _, last = name.rpartition(".")
        monkeypatch.setattr(sys.modules[package], last, module)
        exec(
            compile(python.translated(path.read_text(encoding="utf-8"), texts.texts()), path, "exec"), vars(module)
        )
        return module

    return load


@pytest.fixture
def cards(wrapped, monkeypatch):
    """The prediction module and the questions of guesses.py, marked."""
    for name in ("answer_types", "grade"):
        wrapped(f"{ENGINE}.{name}")
    prediction = wrapped(f"{ENGINE}.prediction")
    guesses = wrapped("tests.checks.engine.guesses")
    monkeypatch.setattr(prediction, "questions", lambda: guesses.QUESTIONS)
    return prediction, guesses


SAID = [  # a question, an answer, as a text and as a value, and what is said of it: alone, and with the right one
    ("count", "7", 7, "⟦not ⟨7⟩.⟧", "⟦not ⟨7⟩, but ⟨1000⟩.⟧"),
    ("count", "20", 20, "⟦not ⟨20⟩ (⟨⟦those are twenty⟧⟩).⟧", "⟦not ⟨20⟩, but ⟨1000⟩ (⟨⟦those are twenty⟧⟩).⟧"),
    ("half", "0.48", 0.48, "⟦not ⟨0.48⟩ (⟨⟦near: less than 10 % too small⟧⟩).⟧", None),
    ("GB", "8.6", 8.6, "⟦not ⟨8.6⟩ (⟨⟦right but for the unit: the answer is in ⟨GB⟩⟧⟩).⟧", None),
    ("choice", "0", "0", "⟦not ⟨“0”⟩.⟧", "⟦not ⟨“0”⟩, but ⟨“⟦nan⟧”⟩.⟧"),
]


def test_a_call_and_the_page_say_of_a_wrong_answer_the_same_text(cards):
    prediction, guesses = cards
    asked, expected = [], []
    for name, text, value, alone, shown in SAID:
        assert prediction.predict(name, value).sentence == alone
        for shows, sentence in ((False, alone), (True, shown)):
            if sentence:
                assert prediction.predict(name, value, show=shows).sentence == sentence
                asked.append([guesses.card(guesses.QUESTIONS[name]), {"": text}, shows])
                expected.append([sentence])
    slips = [("count", "1,000"), ("count", "1 000"), ("GB", "1 GB"), ("shape", "5"), ("choice", "none of these")]
    asked += [[guesses.card(guesses.QUESTIONS[name]), {"": text}, False] for name, text in slips]
    words = json.dumps({"nan": marked.wrap("nan")})
    script = modules.join(FOLDER / "prediction_card/typed_text.js").replace("WORDS = {}", f"WORDS = {words}", 1)
    done = subprocess.run(
        [node(), "-"], input=script + PAGE % json.dumps(asked), capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    page = json.loads(done.stdout)
    assert page[: len(expected)] == expected
    for (sentence,) in page[len(expected) :]:
        assert marked.beside(sentence) == [sentence]


@pytest.mark.parametrize(
    "odd", [("GB", "1 GB"), ("count", (1, 2)), ("shape", 5), ("set", 5), ("bool", 0), ("kount", 0)]
)
def test_an_invalid_answer_gets_one_text(cards, odd):
    prediction, _ = cards
    sentence = prediction.predict(*odd).sentence
    assert marked.beside(sentence) == [sentence]


def test_a_verdict_has_a_text_behind_each_label(cards):
    prediction, _ = cards
    first, *details = repr(prediction.predict("count", 7)).splitlines()
    assert first == "⟦wrong⟧: ⟦not ⟨7⟩.⟧"
    assert len(details) == 2
    for line in details:
        label, colon, text = marked.beside(line.strip())
        assert (label in ("⟦hint⟧", "⟦answer⟧"), colon.strip()) == (True, ":") and text.startswith("⟦")


def test_a_widget_says_one_text_after_another(wrapped):
    wrapped("flashlib.language.phrases")
    words = wrapped("flashlib.widgets.pages_lab.words")
    assert words.put_off("A", True) == "⟦There are not enough pages for ⟨A⟩ alone, so it is turned away.⟧"
    mask = wrapped("flashlib.widgets.mask_lab.words")
    found = {"tiles": {"computed": 1, "all": 4, "hidden": 3}, "scores": {"computed": 16, "seen": 8}}
    assert marked.beside(mask.summary(found)) == [
        "⟦1 of ⟨4⟩ tiles is computed; ⟨⟦the other ⟨3⟩ are hidden and skipped⟧⟩.⟧",
        "⟦Of the ⟨16⟩ scores computed ⟨8⟩ are seen, ⟨50⟩%.⟧",
    ]
