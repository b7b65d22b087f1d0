"""An invented language: each text stands between marks, its values outside of them.

python -m tests.language.marked FOLDER       write the file of the language, and a page with every widget in it
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from flashlib.language import reading

NAME = "marked.json"
MARKED = re.compile("⟦[^⟦⟧]*⟧")
NAMES = re.compile(  # what has the same name in every language: of numbers, GPUs, dtypes, code
    r"\w*_\w*|[A-Z][A-Z0-9]+s?|d?[KQV]|exp|log|max|row(?:max|sum)|lse|alpha|delta|acc|old|inf|NaN|None|True|False|"
    r"b?fp?\d+|bfloat\d*|float\d*|int\d*|e4m3|e5m2|fma|wgmma|ldmatrix|mbarrier|sm|gfx\w*|append|free|fork|drop|"
    r"[QO]\d\.\d|turn|stride|descriptors|Pages|State|KeyError|raise|scale|checks\.predict"
)
WORD = re.compile(r"[A-Za-z][\w.]{2,}")
VALUE = re.compile(r"(?<!\{)(\{\d+\})(?!\})")


def mark(text):
    """Return a text with marks around the parts between its values."""
    parts = VALUE.split(text)
    return "".join(part if n % 2 else part and f"⟦{part}⟧" for n, part in enumerate(parts))


def wrap(text):
    """Return a text with marks around all of it, and others around each of its values."""
    return "⟦" + VALUE.sub(r"⟨\1⟩", text) + "⟧"


class Wrapped:
    """In place of {English: translated}: every text and every word, as `wrap` writes it, in the course or not."""

    def __contains__(self, text):
        return "⟦" not in text and (reading.is_text(text) or reading.is_word(text))

    def __getitem__(self, text):
        return wrap(text)

    def get(self, text, default):
        return wrap(text) if text in self else default


def beside(shown):
    """Return the wrapped texts that stand beside each other, and the signs between them."""
    found, depth = [""], 0
    for sign in shown:
        if sign == "⟦":
            found += [] if depth else [""]
            depth += 1
        found[-1] += sign
        if sign == "⟧":
            depth -= 1
            found += [] if depth else [""]
    return [one for one in found if one.strip()]


def write(folder):
    """Write the file of the language; return its path."""
    from tools import language  # in English

    path = Path(folder) / NAME
    texts = {text: mark(text) for text in language.listed(words=True)}
    path.write_text(json.dumps(texts, ensure_ascii=False), encoding="utf-8")
    return path


def run(path, *command):
    """Return what a module prints in the language."""
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)], env=os.environ | {"FLASHLIB_LANGUAGE": str(path)},
        capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def left(text):
    """Return the parts of a text outside marks."""
    while MARKED.search(text):
        text = MARKED.sub(" ", text)
    return text


def escaped(text):
    """Return the words of a text that no mark holds, and that are no names."""
    return [word for word in WORD.findall(left(text)) if not NAMES.fullmatch(word.rstrip("."))]
