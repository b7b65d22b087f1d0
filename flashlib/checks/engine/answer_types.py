"""The kinds of predictions: what `checks.predict` accepts for each, and the errors for anything else.

In a page an answer is entered in fields and buttons, which flashlib/widgets/prediction_card/typed_text.js reads.
"""

import ast
import numbers
from typing import Any

import numpy as np

KINDS = {bool: "bool", str: "choice", tuple: "tuple", set: "set", frozenset: "set"}  # anything else: "number"


class WrongType(Exception):
    """An answer is not of its field's kind; the text says what was given, what is accepted and how to write it."""


def kind(right: object) -> str:
    """Return the kind of the field for a right answer."""
    return next((name for cls, name in KINDS.items() if isinstance(right, cls)), "number")


def accepted(x: object, field: dict) -> Any:
    """Return an answer in the form that a page uses; raise WrongType if it is not of the field's kind.

    field: see `PredictionCard`. A tuple becomes a list, and a set the list of its choices, in their order.
    """
    return ACCEPTED[field["kind"]](_plain(x), field)


def written(value: Any) -> str:
    """Return an accepted answer as text: as a verdict shows it, and as one would type it in a page."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _plain(x):
    return x.tolist() if isinstance(x, np.ndarray | np.generic) else x


def _given(x):
    """Return an answer of any type as a text, cut if it is long."""
    try:
        text = repr(x)
    except Exception:  # the learner's own class, or more digits than Python prints
        text = f"a value of type {type(x).__name__}"
    return text if len(text) <= 40 else f"{text[:39]}…"


def _is_number(x):
    if not isinstance(x, numbers.Real) or isinstance(x, bool):
        return False
    try:
        float(x)  # the type in a page; a whole number may be too large for it
    except OverflowError:
        return False
    return True


def _number(x, field):
    if _is_number(x):
        return x
    if unit := field["unit"]:
        raise WrongType(
            f"{_given(x)} is not a number: write one such as 12, 0.5 or 1e-3, without quotes; it is in {unit}."
        )
    raise WrongType(f"{_given(x)} is not a number: write one such as 12, 0.5 or 1e-3, without quotes.")


def _tuple(x, field):
    if isinstance(x, tuple | list) and len(x) == field["length"] and all(map(_is_number, x)):
        return list(x)
    example = ", ".join(map(str, range(1, field["length"] + 1)))
    raise WrongType(f"{_given(x)} is not {field['length']} numbers: write them as a tuple, such as ({example}).")


def _set(x, field):
    choices = {text: ast.literal_eval(text) for text in field["choices"]}
    if isinstance(x, set | frozenset | tuple | list):
        items = [tuple(item) if isinstance(item, list) else item for item in x]
        if all(type(item) in (int, float, tuple) and item in choices.values() for item in items):
            return [text for text, choice in choices.items() if choice in items]
    among, example = ", ".join(choices), field["choices"][0]
    raise WrongType(f"{_given(x)} is not a set of some of {among}: write them in braces, such as {{{example}}}.")


def _bool(x, field):
    if isinstance(x, bool):
        return x
    raise WrongType(f"{_given(x)} is neither True nor False: write one of the two, without quotes.")


def _choice(x, field):
    if isinstance(x, str) and x in field["choices"]:
        return x
    choices = ", ".join(map(repr, field["choices"]))
    raise WrongType(f"{_given(x)} is none of {choices}: write one of them, in quotes.")


ACCEPTED = {"number": _number, "tuple": _tuple, "set": _set, "bool": _bool, "choice": _choice}
