"""Predict, then run: questions whose answer is a value, graded at once with the reason."""

import difflib
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cache, partial
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from flashlib.checks.engine import folders, progress_file
from flashlib.checks.engine.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from flashlib.widgets.prediction_card.prediction_card import PredictionCard


@dataclass(frozen=True)
class Question:
    """A question of a chapter, whose text stands in the notebook.

    answer: returns the right value, computed: a number, bool, text (one of `choices`), tuple or set; or a dict of
    these for a question of several parts, which are answered by keyword. labels: {part: what a card calls it},
    where that is not its name. reason: why, said with every answer. wrong: {a wrong value, or (part, value): what
    it overlooks}. tolerance: relative, for numbers.
    """

    name: str
    answer: Callable[[], Any]
    reason: str
    choices: tuple[str, ...] = ()
    labels: dict = field(default_factory=dict)
    wrong: dict = field(default_factory=dict)
    tolerance: float = 0.0


@cache
def questions() -> dict[str, Question]:
    """Return all questions by name, {name: Question}, in the order of the chapters."""
    return {q.name: q for module in folders.modules("questions.py") for q in module.QUESTIONS}


def predict(name: str, *answer: object, **parts: object) -> "PredictionCard | Verdict":
    """Return a card that asks for a prediction and says at once whether it is right: `predict("tiles")`.

    With an answer, `predict("tiles", 10)` or by part `predict("overflow", fp16=12)`, return the Verdict on it. An
    answer of `...` is not given yet. Never raises.
    """
    if name not in questions():
        near = difflib.get_close_matches(str(name), questions(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return Verdict(str(name), Outcome.NOT_CHECKED, f"there is no question {name!r}{hint}")
    question = questions()[name]
    if not answer and not parts:
        return _card(question)
    expected = _expected(question)
    given = {part: _plain(x, question.choices) for part, x in {**_only(answer), **parts}.items() if x is not ...}
    if unknown := sorted(given.keys() - expected.keys()):
        accepted = ", ".join(f"{part}=..." if part else "..." for part in expected)
        what = f"there is no part {unknown[0]!r}" if unknown[0] else "it has several parts"
        return Verdict(name, Outcome.NOT_CHECKED, f"{what}: checks.predict({name!r}, {accepted})")
    if not given:
        return Verdict(name, Outcome.NOT_ANSWERED, "put what you expect in place of the dots, then run this cell")
    if slips := [
        _named(part, kind) for part, x in given.items() if (kind := _wrong_kind(question, x, expected[part]))
    ]:
        return Verdict(
            name, Outcome.NOT_ANSWERED, "; ".join(slips)
        )  # no answer yet, so it does not cost the reason
    graded = [_named(part, _grade(question, part, x, expected[part])) for part, x in given.items()]
    problem = "; ".join(filter(None, graded))
    if left := [part for part in expected if part not in given]:
        return Verdict(name, Outcome.NOT_ANSWERED, f"{problem or 'right so far'}; left: {', '.join(left)}")
    if problem:
        return Verdict(name, Outcome.WRONG, f"{problem}.", (("why", question.reason),))
    return Verdict(name, Outcome.RIGHT, question.reason)


def _only(answer):
    """Return the answer that was given without the name of a part, under the name ""."""
    return {"": answer[0] if len(answer) == 1 else answer} if answer else {}


def _expected(question):
    """Return the right answer of each part; of a question of one part, its name is ""."""
    right = question.answer()
    return right if isinstance(right, dict) else {"": right}


def _card(question):
    from flashlib.widgets.prediction_card.prediction_card import PredictionCard  # here: checks do without widgets

    fields = [_field(question, part, right) for part, right in _expected(question).items()]
    keep = partial(progress_file.keep_prediction, question.name)
    given = progress_file.predicted().get(question.name)
    return PredictionCard(question.name, fields, question.reason, given, keep)


def _field(question, part, right):
    """Return what a card is told of one part, see PredictionCard."""
    wrong = ((_plain(value, question.choices), why) for value, why in _overlooked(question, part))
    return {
        "part": part,
        "label": question.labels.get(part, part.replace("_", " ")),
        "kind": _kind(right),
        "right": _typed(right),
        "shown": f"{right:.4g}" if isinstance(right, float) else _typed(right),
        "wrong": [[_typed(value), why] for value, why in wrong if not _wrong_kind(question, value, right)],
        "choices": list(question.choices),
        "length": len(right) if isinstance(right, tuple) else 0,
        "tolerance": question.tolerance,
    }


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


def _typed(x):
    """Return a value as a learner would type it."""
    if isinstance(x, set | frozenset):
        return ", ".join(f"({_typed(item)})" if isinstance(item, tuple) else _typed(item) for item in sorted(x))
    return ", ".join(map(_typed, x)) if isinstance(x, tuple | list) else str(x)


def _plain(x, choices):
    """Return x as a plain value; a number as the choice that it is written as, such as nan or 0."""
    x = x.item() if isinstance(x, np.generic) else x
    return written if choices and _is_number(x) and (written := f"{x:g}") in choices else x


def _named(part, problem):
    return f"{part}: {problem}" if part and problem else problem


def _grade(question, part, given, right):
    """Return what is wrong with one answer, or "" if it is right."""
    if _equal(given, right, question.tolerance):
        return ""
    shown = f"{right:.4g}" if isinstance(right, float) else repr(right)
    for value, why in _overlooked(question, part):
        if _equal(given, value, question.tolerance):
            return f"not {given!r}, but {shown} ({why})"
    near = _near(given, right) if question.tolerance and _is_number(right) and _is_number(given) else ""
    return f"not {given!r}, but {shown}{near}"


def _near(given, right):
    """Return what to say of a number that is nearly right, or right in another unit, or ""."""
    if not (math.isfinite(given) and math.isfinite(right) and right and given):
        return ""
    ratio = given / right
    if abs(ratio - 1) <= 0.1:
        return f" (near: {abs(ratio - 1):.1%} {'too much' if abs(ratio) > 1 else 'too little'})"
    for unit in (1e3, 1024):
        power = math.log(abs(ratio), unit)
        if ratio > 0 and round(power) and abs(ratio / unit ** round(power) - 1) <= 0.1:
            times = f"{float(f'{ratio:.3g}'):g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
            return f" (right but for the unit: that is {times} times as much)"
    return ""


def _wrong_kind(question, given, right):
    """Return what kind of answer is asked for if `given` is of another, or ""."""
    if isinstance(right, bool):
        return "" if isinstance(given, bool) else f"{given!r} is neither True nor False"
    if isinstance(right, str):
        fits = isinstance(given, str) and given in question.choices
        return "" if fits else f"{given!r} is none of {', '.join(map(repr, question.choices))}"
    if isinstance(right, tuple):
        fits = isinstance(given, tuple | list) and len(given) == len(right) and all(map(_is_number, given))
        return "" if fits else f"{given!r} is not a tuple of {len(right)} numbers, such as {(1,) * len(right)}"
    if isinstance(right, set | frozenset):
        fits = isinstance(given, set | frozenset | tuple | list) and all(isinstance(x, Hashable) for x in given)
        return "" if fits else f"{given!r} is not a set, such as {{1, 2}}"
    return "" if _is_number(given) else f"{given!r} is not a number"


def _is_number(x):
    return isinstance(x, Real) and not isinstance(x, bool)


def _equal(given, right, tolerance):
    """Return whether two values of any kinds are equal; numbers to the relative tolerance."""
    if _is_number(right) and _is_number(given):
        if math.isnan(right):
            return math.isnan(given)
        return abs(given - right) <= tolerance * abs(right) if math.isfinite(right) else given == right
    if isinstance(right, tuple) and isinstance(given, tuple | list):
        return len(given) == len(right) and all(map(partial(_equal, tolerance=tolerance), given, right))
    if isinstance(right, set | frozenset) and isinstance(given, set | frozenset | tuple | list):
        return set(given) == right
    return type(given) is type(right) and given == right
