"""Answers as text and as values: the rows of guesses.json, [question, text, value, outcome].

If a text is not understood, the page's error message takes the place of the value.
"""

import json
from pathlib import Path

from flashlib.checks.engine import prediction
from flashlib.checks.engine.prediction import Question

ROWS = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def _question(name, right, **more):
    return Question(name, lambda: right, "because.", f"a hint for {name}.", **more)


QUESTIONS = {
    question.name: question
    for question in (
        _question("count", 1000, wrong={20: "those are twenty"}),
        _question("half", 0.5, tolerance=0.01),
        _question("GB", 1.073741824, tolerance=0.05, unit="GB"),
        _question("KB", 2064, tolerance=0.0005, unit="KB"),
        _question("percent", 50.0, tolerance=0.02, unit="%"),
        _question("below", -18, wrong={18: "it is below 0"}),
        _question("set", {-800, 800}, choices=(-800, 0.5, 800), wrong={frozenset({800}): "and below 0?"}),
        _question("pairs", {(1, 0), (2, 0)}, choices=((0, 0), (0, 1), (1, 0), (2, 0))),
        _question("shape", (5, 7), wrong={(7, 5): "rows come first"}),
        _question("bool", True),
        _question("choice", "nan", choices=("0", "nan", "about half")),
    )
}


def card(question: Question) -> dict:
    """Return the data of a question that a card gets."""
    fields = prediction._fields(question)
    return {"name": question.name, "fields": fields, "reason": question.reason, "hint": question.hint}
