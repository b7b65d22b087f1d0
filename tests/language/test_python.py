"""A module with its texts translated does what it did."""

import re

import pytest

from flashlib.language import python

SOURCE = '''
"""A docstring is for those who read code."""
from __future__ import annotations

import re
from enum import StrEnum


class Outcome(StrEnum):
    """What it is known by stays."""

    OPEN = "not solved yet"


KEYS = {"both passes": 1}


def said(n, unit, x=0.5):
    """A docstring too."""
    near = "a row" if n == 1 else f"some {'rows of it'}"
    if unit == "a row" or re.search("a row", near):
        return KEYS["both passes"]
    return f"{n} of {x:.2f} are {near}, {unit!r} {{so}}"
'''
TEXTS = {
    "A docstring is for those who read code.": "NO",
    "not solved yet": "NO",
    "both passes": "beide Durchgänge",
    "a row": "eine Zeile",
    "some {0}": "einige {0}",
    "rows of it": "Zeilen davon",
    "{0} of {1} are {2}, {3} {{so}}": "{{so}} {3}: {2} sind {0} aus {1}",
}


def module(texts):
    space = {"__name__": "a_module"}
    exec(compile(python.translated(SOURCE, texts), "<module>", "exec"), space)
    return space


def test_values_come_in_the_order_of_the_language():
    space = module(TEXTS)
    assert space["said"](3, "Stück") == "{so} 'Stück': einige Zeilen davon sind 3 aus 0.50"
    assert space["said"](1, "Stück") == "{so} 'Stück': eine Zeile sind 1 aus 0.50"
    assert space["__doc__"].startswith("A docstring") and space["Outcome"].OPEN == "not solved yet"


def test_equal_texts_stay_equal_and_compared_strings_are_unchanged():
    assert module(TEXTS)["said"](3, "a row") == 1


def test_nothing_is_changed_without_texts():
    assert module({})["said"](3, "pieces") == "3 of 0.50 are some rows of it, 'pieces' {so}"


def test_each_string_is_found_with_its_template():
    import ast

    found = {template for template, _ in python.found(ast.parse(SOURCE))}
    assert {*TEXTS} - found == {"A docstring is for those who read code.", "not solved yet"}
    assert not any(re.search("docstring", one) for one in found)


def test_a_missing_value_is_refused():
    with pytest.raises(ValueError, match="there are 1, from .0. on"):
        python.translated('f"row {n}"', {"row {0}": "Zeile {1}"})
