"""Predict, then run: questions whose answer is a value; a wrong guess gets a hint, and on demand the answer."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from flashlib.checks.engine import folders, progress_file, units
from flashlib.checks.engine.grade import grade
from flashlib.checks.engine.guess import Unclear, read
from flashlib.checks.engine.verdict import Outcome, Verdict
from flashlib.language.texts import say

if TYPE_CHECKING:
    from flashlib.widgets.prediction_card.prediction_card import PredictionCard

OUTCOMES = {"right": Outcome.RIGHT, "wrong": Outcome.WRONG, "open": Outcome.NOT_ANSWERED}


@dataclass(frozen=True)
class Question:
    """A question of a chapter, whose text stands in the notebook, and for its card in `asked`.

    answer: returns the right value, computed: a number, bool, text (one of `choices`), tuple or set; or a dict of
    these for a question of several parts, which are answered by keyword. reason: why, said with the answer. hint:
    said of a wrong guess, without the answer. labels: {part: what a card calls it}, where that is not its name.
    wrong: {a wrong value, or (part, value): what it overlooks}. tolerance: relative, for numbers. unit: in which
    they are asked for, one of `units.fitting`, or {part: unit}.
    """

    name: str
    answer: Callable[[], Any]
    reason: str
    hint: str = ""
    choices: tuple[str, ...] = ()
    labels: dict = field(default_factory=dict)
    wrong: dict = field(default_factory=dict)
    tolerance: float = 0.0
    unit: str | dict[str, str] = ""


@cache
def questions() -> dict[str, Question]:
    """Return all questions by name, {name: Question}, in the order of the chapters."""
    return {q.name: q for module in folders.modules("questions.py") for q in module.QUESTIONS}


@cache
def asked() -> dict[str, str]:
    """Return what the notebooks ask above their cards: {name of the question: text}."""
    lines = [
        line for path in folders.files(folders.ASKED) for line in path.read_text(encoding="utf-8").splitlines()
    ]
    pairs = (line.partition(": ") for line in lines if not line.startswith("#"))
    return {name: text for name, _, text in pairs}


def predict(name: str, *answer: object, show: bool = False, **parts: object) -> "PredictionCard | Verdict":
    """Return a card that asks for a prediction and says at once whether it is right: `predict("tiles")`.

    With an answer, `predict("tiles", 10)` or by part `predict("overflow", fp16=12)`, return the Verdict on it. An
    answer is a value or a text, such as "1.07 GB"; one of `...` is not given yet. A wrong one gets a hint;
    `show=True` gives the right answer and its reason. Never raises.
    """
    if name not in questions():
        near = difflib.get_close_matches(str(name), questions(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return Verdict(str(name), Outcome.NOT_CHECKED, f"there is no question {name!r}{hint}")
    question = questions()[name]
    if not answer and not parts and not show:
        return _card(question)
    fields = [{**one, "label": one["part"]} for one in _fields(question)]
    given = {part: _written(x) for part, x in {**_only(answer), **parts}.items() if x is not ...}
    if unknown := sorted(given.keys() - {one["part"] for one in fields}):
        accepted = ", ".join(f"{one['part']}=..." if one["part"] else "..." for one in fields)
        what = f"there is no part {unknown[0]!r}" if unknown[0] else "it has several parts"
        return Verdict(name, Outcome.NOT_CHECKED, f"{what}: checks.predict({name!r}, {accepted})")
    found = grade({"fields": fields, "reason": question.reason, "hint": question.hint}, given, shows=show)
    if not found["sentence"]:
        return _unanswered(question, fields, show)
    return Verdict(name, OUTCOMES[found["outcome"]], found["sentence"], tuple(_details(name, found)))


def _unanswered(question, fields, show):
    if not show:
        sentence = "put what you expect in place of the dots, then run this cell"
        return Verdict(question.name, Outcome.NOT_ANSWERED, sentence)
    right = "; ".join(f"{one['part']}: {one['shown']}" if one["part"] else one["shown"] for one in fields)
    return Verdict(question.name, Outcome.NOT_ANSWERED, f"the answer is {right}", (("why", question.reason),))


def _details(name, found):
    """Yield what a Verdict says below its sentence."""
    if "read" in found:
        yield "note", found["read"]
    if found.get("hint"):
        yield "hint", found["hint"]
    if "hint" in found:
        yield "answer", f"try again, or see it: checks.predict({name!r}, show=True)"
    if "reason" in found:
        yield "why", found["reason"]


def _only(answer):
    """Return the answer that was given without the name of a part, under the name ""."""
    return {"": answer[0] if len(answer) == 1 else answer} if answer else {}


def _expected(question):
    """Return the right answer of each part; of a question of one part, its name is ""."""
    right = _computed(question.answer)
    return right if isinstance(right, dict) else {"": right}


@cache  # a guess may be followed by more, and some answers take a second
def _computed(answer):
    return answer()


def _card(question):
    from flashlib.widgets.prediction_card.prediction_card import PredictionCard  # here: checks do without widgets

    keep = partial(progress_file.keep_prediction, question.name)
    given = progress_file.predicted().get(question.name)
    asks = say(asked().get(question.name, ""))
    return PredictionCard(question.name, asks, _fields(question), question.reason, question.hint, given, keep)


def _fields(question):
    return [_field(question, part, right) for part, right in _expected(question).items()]


def _field(question, part, right):
    """Return what a card is told of one part, see PredictionCard."""
    unit = question.unit.get(part, "") if isinstance(question.unit, dict) else question.unit
    one = {
        "part": part,
        "label": say(question.labels.get(part, part.replace("_", " "))),
        "kind": _kind(right),
        "right": _typed(right),
        "shown": f"{right:.4g}" if isinstance(right, float) else _typed(right),
        "wrong": [],
        "choices": list(question.choices),
        "length": _length(right),
        "tolerance": question.tolerance,
        "unit": unit,
        "units": units.fitting(unit) if _kind(right) == "number" else {},
    }
    wrong = [[_typed(value), why] for value, why in _overlooked(question, part)]
    return {**one, "wrong": [pair for pair in wrong if _is_read(pair[0], one)]}


def _is_read(text, field):
    try:
        return bool(read(text, field))
    except Unclear:
        return False


def _overlooked(question, part):
    """Yield the wrong values of a part, each with what it overlooks."""
    for value, why in question.wrong.items():
        if not (isinstance(value, tuple) and value and isinstance(value[0], str)):
            yield value, why  # of any part
        elif value[0] == part:
            yield value[1], why


def _kind(right):
    kinds = {bool: "bool", str: "choice", tuple: "tuple", set: "set", frozenset: "set"}
    return next((name for kind, name in kinds.items() if isinstance(right, kind)), "number")


def _length(right):
    """Return of how many numbers a tuple is, or each item of a set; 0 if they are numbers."""
    if isinstance(right, set | frozenset):
        return next((len(item) for item in right if isinstance(item, tuple)), 0)
    return len(right) if isinstance(right, tuple) else 0


def _typed(x):
    """Return a right or a wrong value as a learner would type it."""
    if isinstance(x, set | frozenset):
        return (
            ", ".join(f"({_typed(item)})" if isinstance(item, tuple) else _typed(item) for item in sorted(x))
            or "{}"
        )
    return ", ".join(map(_typed, x)) if isinstance(x, tuple | list) else str(x)


def _written(x):
    """Return an answer of any type as a learner would type it."""
    try:
        x = x.tolist() if isinstance(x, np.ndarray | np.generic) else x
        if isinstance(x, set | frozenset):
            return f"{{{', '.join(map(_written, x))}}}"
        if isinstance(x, tuple | list):
            return f"({', '.join(map(_written, x))})"
        return str(x) or "“”"
    except Exception as problem:  # a class of the learner's
        return f"{type(x).__name__}: {type(problem).__name__}"
