"""Whether a guess is right, and what there is to say of it: as prediction_card/grade.js does in a page."""

import math
import re
from typing import Any

from flashlib.checks.engine.guess import Unclear, read, trim

EXACT = 1e-9  # relative: a unit that was converted
NEAR = 0.1
FACTORS = [8, 100, *(base**k for base in (1000, 1024) for k in range(1, 5))]  # between units


def grade(card: dict, given: dict[str, str], shows: bool = False) -> dict[str, str]:
    """Return the outcome, "right", "wrong" or "open", of what is typed, {part: text}, and what there is to say.

    card: `fields`, `reason` and `hint`, see `PredictionCard`. shows: whether the right answer is shown too.
    """
    fields = card["fields"]
    answered = [field for field in fields if trim(given.get(field["part"], ""))]
    if not answered:
        return {"outcome": "open", "sentence": ""}
    slips, values, said = [], [], []
    for field in answered:
        text = trim(given[field["part"]])
        try:
            value, read_as = read(text, field)
        except Unclear as unclear:
            slips.append(_labelled(fields, field, f"“{short(text)}” {unclear}"))
            continue
        values.append((field, short(text), value))
        if read_as:
            said.append(f"“{short(text)}” is read as {read_as}")
    if slips:
        return {"outcome": "open", "sentence": f"{'; '.join(slips)}."}
    wrong = [(field, problem) for field, *of in values if (problem := _problem(field, of, shows))]
    problem = "; ".join(_labelled(fields, *pair) for pair in wrong)
    left = ", ".join(field["label"] for field in fields if field not in answered)
    told = {"read": f"{'; '.join(said)}."} if said else {}
    if problem:
        told |= {"reason": card["reason"]} if shows and not left else {"hint": card["hint"]}
    if left:
        return {"outcome": "open", "sentence": f"{problem or 'right so far'}; left: {left}."} | told
    return {
        "outcome": "wrong" if problem else "right",
        "sentence": f"{problem}." if problem else card["reason"],
    } | told


def short(text: str) -> str:
    """Return a text, cut if it is long."""
    return text if len(text) <= 40 else f"{text[:39]}…"


def equal(given: Any, right: Any, tolerance: float) -> bool:
    """Return whether two values are equal; numbers to the relative tolerance."""
    if isinstance(right, tuple):
        return all(equal(x, y, tolerance) for x, y in zip(given, right, strict=True))
    if type(right) is not float:
        return given == right
    if math.isnan(right):
        return math.isnan(given)
    return abs(given - right) <= max(tolerance, EXACT) * abs(right) if math.isfinite(right) else given == right


def _labelled(fields, field, problem):
    return f"{field['label']}: {problem}" if len(fields) > 1 else problem


def _problem(field, of, shows):
    """Return what is wrong with one part, or "". of: its text and value."""
    text, value = of
    right, tolerance = read(field["right"], field)[0], field["tolerance"]
    if equal(value, right, tolerance):
        return ""
    known = (why for typed, why in field["wrong"] if equal(value, read(typed, field)[0], tolerance))
    why = next(known, None) or (_nearly(value, right, field) if field["kind"] == "number" else "")
    why = "" if not shows and tells(field, why) else why
    return f"not {text}{', but ' + field['shown'] if shows else ''}{why and f' ({why})'}"


def tells(field: dict, sentence: str) -> bool:
    """Return whether a sentence holds the right answer."""
    return bool(re.search(rf"(?<![\w.^-]){re.escape(field['shown'])}(?![\w^]|\.\d)", sentence, re.A))


def _nearly(given, right, field):
    """Return what to say of a number that is near the right one, or right in another unit, or ""."""
    if not (math.isfinite(given) and math.isfinite(right) and given and right):
        return ""
    if field["tolerance"] and abs(given / right - 1) <= NEAR:
        return f"near: less than 10 % too {'large' if given > right else 'small'}"
    factors = [*FACTORS, *(1 / factor for factor in FACTORS)] if field["unit"] else []
    if any(equal(given, right * factor, field["tolerance"]) for factor in factors):
        return f"right but for the unit: the answer is in {field['unit']}"
    return ""
