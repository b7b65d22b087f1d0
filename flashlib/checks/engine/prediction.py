"""Predict, then run: questions whose answer is a value. A wrong guess gets a hint and, on request, the answer."""

import contextlib
import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from flashlib.checks.engine import answer_types, folders, progress_file
from flashlib.checks.engine.answer_types import WrongType
from flashlib.checks.engine.grade import grade, labelled, quoted
from flashlib.checks.engine.verdict import Outcome, Verdict
from flashlib.language.texts import say

if TYPE_CHECKING:
    from flashlib.widgets.prediction_card.prediction_card import PredictionCard

OUTCOMES = {"right": Outcome.RIGHT, "wrong": Outcome.WRONG, "open": Outcome.NOT_ANSWERED}


@dataclass(frozen=True)
class Question:
    """A question of a chapter. Its text is in the notebook and, for its card, in `card_texts`.

    answer: computes the right value: a number, bool, str (one of `choices`), tuple of numbers or set (of some of
    `choices`); or a dict of these for a question with several parts, which are answered by keyword. Numbers are
    finite: where inf or nan could be an answer, ask for a choice. reason: an explanation, shown with the answer.
    hint: shown after a wrong guess; it does not contain the answer. labels: {part: its label on a card}, where
    that is not its name. wrong: {a wrong value, or (part, value): what it overlooks}. tolerance: relative, for
    numbers. unit: the unit of the numbers, shown next to their field, or {part: unit}.
    """

    name: str
    answer: Callable[[], Any]
    reason: str
    hint: str = ""
    choices: tuple = ()
    labels: dict = field(default_factory=dict)
    wrong: dict = field(default_factory=dict)
    tolerance: float = 0.0
    unit: str | dict[str, str] = ""


@cache
def questions() -> dict[str, Question]:
    """Return all questions by name, {name: Question}, in the order of the chapters."""
    return {q.name: q for module in folders.modules("questions*.py") for q in module.QUESTIONS}


@cache
def card_texts() -> dict[str, str]:
    """Return the text above each card in the notebooks: {name of the question: text}."""
    lines = [
        line
        for path in folders.files(folders.CARD_QUESTIONS)
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    pairs = (line.partition(": ") for line in lines if not line.startswith("#"))
    return {name: text for name, _, text in pairs}


def predict(name: str, *answer: object, show: bool = False, **parts: object) -> "PredictionCard | Verdict":
    """Return a card that asks for a prediction and says at once whether it is right: `predict("tiles")`.

    With an answer, `predict("tiles", 10)` or, for one part, `predict("overflow", fp16=12)`, return the Verdict on
    it. An answer is a number, True or False, one of the choices as a str, a tuple or a set; `...` counts as no
    answer yet. A wrong answer gets a hint; `show=True` shows the right answer and the reason. Never raises.
    """
    if name not in questions():
        near = difflib.get_close_matches(str(name), questions(), n=1)
        unknown = f"there is no question {name!r}"
        if near:
            unknown = f"there is no question {name!r}; did you mean {near[0]!r}?"
        return Verdict(str(name), Outcome.NOT_CHECKED, unknown)
    question = questions()[name]
    if not answer and not parts and not show:
        return _card(question)
    fields = [{**one, "label": one["part"]} for one in _fields(question)]
    given = {part: x for part, x in {**_only(answer), **parts}.items() if x is not ...}
    if unknown := sorted(given.keys() - {one["part"] for one in fields}):
        return Verdict(name, Outcome.NOT_CHECKED, _unknown_part(name, unknown[0], fields))
    answers, problem = _accepted(fields, given)
    if problem:
        return Verdict(name, Outcome.NOT_ANSWERED, problem)
    if not answers:
        return _unanswered(question, fields, show)
    found = grade({"fields": fields, "reason": question.reason, "hint": question.hint}, answers, shows=show)
    return Verdict(name, OUTCOMES[found["outcome"]], found["sentence"], tuple(_details(name, found)))


def _unknown_part(name, part, fields):
    """Return the sentence for an answer to a part that does not exist, or to a question with several parts."""
    accepted = ", ".join(f"{one['part']}=..." if one["part"] else "..." for one in fields)
    call = f"checks.predict({name!r}, {accepted})"
    return f"there is no part {part!r}: {call}" if part else f"it has several parts: {call}"


def _accepted(fields, given):
    """Return the accepted answers, {part: value}, and sentences about those of a wrong type, or ""."""
    answers, problems = {}, []
    for one in fields:
        if one["part"] in given:
            try:
                answers[one["part"]] = answer_types.accepted(given[one["part"]], one)
            except WrongType as problem:
                problems.append(labelled(fields, one, str(problem)))
    return answers, " ".join(problems)


def _unanswered(question, fields, show):
    if not show:
        sentence = "put what you expect in place of the dots, then run this cell"
        return Verdict(question.name, Outcome.NOT_ANSWERED, sentence)
    right = "; ".join(labelled(fields, one, quoted(one, one["shown"])) for one in fields)
    return Verdict(question.name, Outcome.NOT_ANSWERED, f"the answer is {right}", (("why", question.reason),))


def _details(name, found):
    """Yield the details of a Verdict."""
    if found.get("hint"):
        yield "hint", found["hint"]
    if "hint" in found:
        yield "answer", f"try again, or see it: checks.predict({name!r}, show=True)"
    if "reason" in found:
        yield "why", found["reason"]


def _only(answer):
    """Return the answer given without the name of a part, under the name ""."""
    return {"": answer[0] if len(answer) == 1 else answer} if answer else {}


def _expected(question):
    """Return the right answer to each part; a question without parts has one, called ""."""
    right = _computed(question.answer)
    return right if isinstance(right, dict) else {"": right}


@cache  # there may be several guesses, and some answers take a second to compute
def _computed(answer):
    return answer()


def _card(question):
    from flashlib.widgets.prediction_card.prediction_card import PredictionCard  # here: checks do not need widgets

    keep = partial(progress_file.keep_prediction, question.name)
    given = progress_file.predicted().get(question.name)
    asks = say(card_texts().get(question.name, ""))
    return PredictionCard(question.name, asks, _fields(question), question.reason, question.hint, given, keep)


def _fields(question):
    return [_field(question, part, right) for part, right in _expected(question).items()]


def _field(question, part, right):
    """Return the field of a card for one part, see PredictionCard."""
    field = {
        "part": part,
        "label": say(question.labels.get(part, part.replace("_", " "))),
        "kind": answer_types.kind(right),
        "choices": [str(choice) for choice in question.choices],
        "length": len(right) if isinstance(right, tuple) else 1,
        "tolerance": question.tolerance,
        "unit": question.unit.get(part, "") if isinstance(question.unit, dict) else question.unit,
    }
    value = answer_types.accepted(right, field)
    shown = f"{right:.4g}" if isinstance(right, float) else answer_types.written(value)
    return field | {"right": value, "shown": shown, "wrong": list(_wrong(question, field))}


def _wrong(question, field):
    """Yield the wrong values of a field, each with what it overlooks; skip values of a different kind."""
    for value, why in _overlooked(question, field["part"]):
        with contextlib.suppress(WrongType):
            yield [answer_types.accepted(value, field), why]


def _overlooked(question, part):
    """Yield the wrong values of a part, each with what it overlooks."""
    for value, why in question.wrong.items():
        if not (isinstance(value, tuple) and value and isinstance(value[0], str)):
            yield value, why  # for any part
        elif value[0] == part:
            yield value[1], why
