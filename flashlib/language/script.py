"""The texts of a JavaScript script: strings, and templates with values, that read as words."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from flashlib.language import reading

SPACE = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)+", re.S)
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|' r"'(?:[^'\\\n]|\\.)*'")
PATTERN = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/\w*")
NAME = re.compile(r"[\w$]+")
PLAIN = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*", re.S)
ESCAPED = re.compile(r"\\(?:u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.S)
SIGNS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}
BEFORE_A_PATTERN = set("(,=:[!&|?{};+-*%<>~^\n")
KEYWORDS = {"return", "typeof", "case", "in", "of", "delete", "void", "throw", "else", "do", "await", "yield"}
# Functions that take names in the page, not texts.
TAKES_NAMES = re.compile(
    r"(?:matches|closest|querySelector(?:All)?|matchMedia|setProperty|startsWith|endsWith|split)\($"
)


class Text(NamedTuple):
    """A string. start, end: its position; template: as in `reading.template`; values: the code of its values."""

    start: int
    end: int
    template: str
    values: list[str]


def found(source: str) -> Iterator[Text]:
    """Yield each string of a script, in order, without those inside values."""
    at, before = 0, "\n"  # the last significant sign, or the last name
    while at < len(source):
        if space := SPACE.match(source, at):
            at = space.end()
        elif string := STRING.match(source, at):
            if not TAKES_NAMES.search(source, max(0, at - 30), at):
                yield Text(at, string.end(), _plain(string[0][1:-1]), [])
            at, before = string.end(), '"'
        elif source[at] == "`":
            text = _template(source, at)
            yield text
            at, before = text.end, "`"
        elif name := NAME.match(source, at):
            at, before = name.end(), name[0]
        elif (before in BEFORE_A_PATTERN or before in KEYWORDS) and (pattern := PATTERN.match(source, at)):
            at, before = pattern.end(), "/"
        else:
            at, before = at + 1, source[at]


def _template(source, start):
    """Return the Text of the template that begins there."""
    at, parts, values = start + 1, [], []
    while True:
        plain = PLAIN.match(source, at)
        parts.append(_plain(plain[0]))
        at = plain.end()
        if source[at] == "`":
            return Text(start, at + 1, reading.template(parts), values)
        end = _end_of_value(source, at + 2)
        values.append(source[at + 2 : end])
        at = end + 1


def _end_of_value(source, at):
    """Return the position of the brace that ends a value of a template."""
    depth = 1
    while True:
        if string := STRING.match(source, at):
            at = string.end()
        elif source[at] == "`":
            at = _template(source, at).end
        else:
            depth += {"{": 1, "}": -1}.get(source[at], 0)
            if not depth:
                return at
            at += 1


def _plain(written):
    """Return the meaning of the text between quotes."""

    def sign(escape):
        code = escape[1] or escape[2] or escape[3]
        return chr(int(code, 16)) if code else SIGNS.get(escape[4], escape[4])

    return ESCAPED.sub(sign, written)


def translated(source: str, texts: Mapping[str, str]) -> str:
    """Return a script with its texts translated; raise ValueError for a translation that does not fit."""
    if not texts:  # English: reading all scripts would take half of the time to import the widgets
        return source
    parts, at = [], 0
    for text in found(source):
        values = [translated(value, texts) for value in text.values]
        if text.template in texts and reading.is_text(text.template):
            written = _written(texts[text.template], values)
        elif texts and reading.is_frame(text.template):
            written = _written(text.template, values)
        elif values == text.values:
            continue
        else:
            written = _with(source[text.start : text.end], text.values, values)
        parts += [source[at : text.start], written]
        at = text.end
    return "".join([*parts, source[at:]])


def _written(text, values):
    """Return a translated text as JavaScript. A value may be a word, which is looked up when it is filled in."""
    if not values:
        return json.dumps(text, ensure_ascii=False)
    pieces = reading.pieces(text, len(values))
    return f"`{''.join(_value(values[one]) if isinstance(one, int) else _quoted(one) for one in pieces)}`"


def _value(code):
    return f"${{say({code})}}"


def _quoted(text):
    return re.sub(r"([`\\]|\$\{)", r"\\\1", text)


def _with(template, old, new):
    """Return a template with different values, in their order."""
    at, parts = 0, []
    for before, after in zip(old, new, strict=True):
        place = template.index(f"${{{before}}}", at)
        parts += [template[at:place], f"${{{after}}}"]
        at = place + len(before) + 3
    return "".join([*parts, template[at:]])
