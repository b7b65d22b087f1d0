"""Predict, then run: questions whose answer is a value, graded at once with the reason."""

import difflib
import importlib
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cache, partial
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from flashlib.checks.verdict import Verdict

UNANSWERED = "not answered yet"


@dataclass(frozen=True)
class Question:
    """A question of a chapter, whose text stands in the notebook.

    answer: returns the right value, computed: a number, bool, text (one of `choices`), tuple or set; or a dict of
    these for a question of several parts, which are answered by keyword. reason: why, said with every answer.
    wrong: {a wrong value: what it overlooks}. tolerance: relative, for numbers.
    """

    name: str
    answer: Callable[[], Any]
    reason: str
    choices: tuple[str, ...] = ()
    wrong: dict = field(default_factory=dict)
    tolerance: float = 0.0


@cache
def questions():
    """Return all questions by name, {name: Question}, in the order of the modules in `questions`."""
    package = "flashlib.checks.questions"
    modules = sorted(path.stem for path in (Path(__file__).parent / "questions").glob("[!_]*.py"))
    return {q.name: q for name in modules for q in importlib.import_module(f"{package}.{name}").QUESTIONS}


def predict(name, answer=..., **parts) -> Verdict:
    """Return the Verdict on a prediction: `predict("tiles", 10)`, or by part, `predict("overflow", fp16=12)`.

    An answer of `...`, as it stands in the notebook, is none yet. Never raises.
    """
    if name not in questions():
        near = difflib.get_close_matches(str(name), questions(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return Verdict(str(name), "not checked", f"there is no question {name!r}{hint}")
    question = questions()[name]
    right = question.answer()
    expected = right if isinstance(right, dict) else {"": right}
    given = parts if isinstance(right, dict) else {"": answer, **parts}
    if unknown := given.keys() - expected.keys():
        accepted = ", ".join(f"{part}=..." for part in expected if part) or "..."
        return Verdict(name, "not checked", f"there is no part {min(unknown)!r}: predict({name!r}, {accepted})")
    given = {part: x for part, x in given.items() if x is not ...}
    if not given:
        return Verdict(name, UNANSWERED, "put what you expect in place of the dots, then run this cell")
    graded = [_grade(question, part, x, expected[part]) for part, x in given.items()]
    problems = [problem for problem in graded if problem]
    if problems:
        return Verdict(name, "wrong", "; ".join(problems) + ".", (("why", question.reason),))
    if len(given) < len(expected):
        left = ", ".join(part for part in expected if part not in given)
        return Verdict(name, UNANSWERED, f"right so far; {left} is left")
    return Verdict(name, "right", question.reason)


def _grade(question, part, given, right):
    """Return what is wrong with one answer, or "" if it is right."""
    name = f"{part}: " if part else ""
    given = given.item() if isinstance(given, np.generic) else given
    if problem := _wrong_kind(question, given, right):
        return name + problem
    if _equal(given, right, question.tolerance):
        return ""
    overlooked = [why for value, why in question.wrong.items() if _equal(given, value, question.tolerance)]
    return f"{name}not {given!r}, but {right!r}" + (f" ({overlooked[0]})" if overlooked else "")


def _wrong_kind(question, given, right):
    """Return what kind of answer is asked for if `given` is of another, or ""."""
    if isinstance(right, bool):
        return "" if isinstance(given, bool) else f"{given!r} is neither True nor False"
    if isinstance(right, str):
        fits = isinstance(given, str) and given in question.choices
        return "" if fits else f"{given!r} is none of {', '.join(map(repr, question.choices))}"
    if isinstance(right, tuple):
        fits = isinstance(given, tuple | list) and len(given) == len(right) and all(map(_is_number, given))
        return "" if fits else f"{given!r} is no tuple of {len(right)} numbers, such as {(1,) * len(right)}"
    if isinstance(right, set | frozenset):
        fits = isinstance(given, set | frozenset | tuple | list) and all(isinstance(x, Hashable) for x in given)
        return "" if fits else f"{given!r} is no set, such as {{1, 2}}"
    return "" if _is_number(given) else f"{given!r} is no number"


def _is_number(x):
    return isinstance(x, Real) and not isinstance(x, bool)


def _equal(given, right, tolerance):
    """Return whether two values of any kinds are equal; numbers to the relative tolerance."""
    if _is_number(right) and _is_number(given):
        return abs(given - right) <= tolerance * abs(right) if math.isfinite(right) else given == right
    if isinstance(right, tuple) and isinstance(given, tuple | list):
        return len(given) == len(right) and all(map(partial(_equal, tolerance=tolerance), given, right))
    if isinstance(right, set | frozenset) and isinstance(given, set | frozenset | tuple | list):
        return set(given) == right
    return type(given) is type(right) and given == right
