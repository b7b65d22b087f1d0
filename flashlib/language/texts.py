"""The file of the chosen language."""

import functools
import json
import os
from collections.abc import Mapping
from pathlib import Path

from flashlib.language import reading

VARIABLE = "FLASHLIB_LANGUAGE"
FOLDER = Path(__file__).parent


def chosen() -> str:
    """Return the language, such as "de", or the path of a file; "" for English."""
    name = os.environ.get(VARIABLE, "")
    return "" if name == "en" else name


def path(name: str) -> Path:
    """Return the file of a language; raise a ValueError that lists the languages if there is none."""
    found = Path(name) if name.endswith(".json") else FOLDER / f"{name}.json"
    if not found.is_file():
        here = ", ".join(["en", *sorted(one.stem for one in FOLDER.glob("*.json"))])
        raise ValueError(f"{VARIABLE} is {name!r}, and {found} is not there; there are {here}, or pass a path")
    return found


@functools.cache
def texts() -> Mapping[str, str]:
    """Return {English: translated} for the chosen language, without untranslated entries."""
    if not chosen():
        return {}
    found = json.loads(path(chosen()).read_text(encoding="utf-8"))
    return {english: text for english, text in found.items() if text}


def words() -> dict[str, str]:
    """Return the entries that are translated when shown: all but texts, which are translated as code is loaded."""
    return {english: text for english, text in texts().items() if not reading.is_text(english)}


def say(text: str) -> str:
    """Return a text without values to fill in, in the chosen language."""
    return texts().get(text, text)


def say_value(value: object) -> object:
    """Return a value of a sentence, looked up if it is a word."""
    return say(value) if isinstance(value, str) else value
