"""Whether a prediction is right, and what to say about it; prediction_card/grade.js does the same in a page."""

import math
import re
from typing import Any

from flashlib.checks.engine.answer_types import written
from flashlib.language.texts import say

EXACT = 1e-9  # relative: rounding in the last digits
NEAR = 0.1
FACTORS = [8, 100, *(base**k for base in (1000, 1024) for k in range(1, 5))]  # between units


def grade(card: dict, answers: dict[str, Any], shows: bool = False) -> dict[str, str]:
    """Return the outcome of answers, {part: value}, "right", "wrong" or "open", and the texts to show with it.

    card: `fields`, `reason` and `hint`, see `PredictionCard`. shows: whether to show the right answer too.
    """
    fields = card["fields"]
    answered = [field for field in fields if field["part"] in answers]
    if not answered:
        return {"outcome": "open", "sentence": ""}
    problems = [(field, _problem(field, answers[field["part"]], shows)) for field in answered]
    problem = " ".join(labelled(fields, field, problem) for field, problem in problems if problem)
    left = ", ".join(field["label"] for field in fields if field not in answered)
    more = {}
    if problem:
        more = {"reason": card["reason"]} if shows and not left else {"hint": card["hint"]}
    if left:
        sentence = " ".join([problem, f"Left: {left}."]) if problem else f"right so far; left: {left}."
        return {"outcome": "open", "sentence": sentence} | more
    return {"outcome": "wrong" if problem else "right", "sentence": problem or card["reason"]} | more


def labelled(fields: list[dict], field: dict, sentence: str) -> str:
    """Return a sentence about a field, with its label if there are several fields."""
    return f"{field['label']}: {sentence}" if len(fields) > 1 else sentence


def quoted(field: dict, text: str) -> str:
    """Return an answer as it is written in a sentence: a choice, which may be words, in quotation marks."""
    return f"“{say(text)}”" if field["kind"] == "choice" else text


def equal(given: Any, right: Any, tolerance: float) -> bool:
    """Return whether two values are equal; numbers to the relative tolerance."""
    if isinstance(right, list):
        return len(given) == len(right) and all(map(equal, given, right, [tolerance] * len(right)))
    if isinstance(right, bool | str):
        return given == right
    return math.isfinite(given) and abs(given - right) <= max(tolerance, EXACT) * abs(right)


def _problem(field, value, shows):
    """Return a sentence about the value of one part if it is wrong, else ""."""
    right, tolerance = field["right"], field["tolerance"]
    if equal(value, right, tolerance):
        return ""
    known = (why for wrong, why in field["wrong"] if equal(value, wrong, tolerance))
    why = next(known, None) or (_nearly(value, right, field) if field["kind"] == "number" else "")
    why = "" if not shows and gives_away(field, why) else why
    text, right = quoted(field, written(value) or "set()"), quoted(field, field["shown"])
    if shows:
        return f"not {text}, but {right} ({why})." if why else f"not {text}, but {right}."
    return f"not {text} ({why})." if why else f"not {text}."


def gives_away(field: dict, sentence: str) -> bool:
    """Return whether a sentence gives away the right answer."""
    return bool(re.search(rf"(?<![\w.^-]){re.escape(field['shown'])}(?![\w^]|\.\d)", sentence, re.A))


def _nearly(given, right, field):
    """Return what to say about a number that is near the right one, or right in a different unit, or ""."""
    if not (math.isfinite(given) and given and right):
        return ""
    if field["tolerance"] and abs(given / right - 1) <= NEAR:
        return "near: less than 10 % too large" if given > right else "near: less than 10 % too small"
    factors = [*FACTORS, *(1 / factor for factor in FACTORS)] if field["unit"] else []
    if any(equal(given, right * factor, field["tolerance"]) for factor in factors):
        return f"right but for the unit: the answer is in {field['unit']}"
    return ""
