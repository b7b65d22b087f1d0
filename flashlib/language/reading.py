"""Which strings in the code are texts, and how a text with values is written and read.

A text has two words next to each other, or a word next to a value. Code, patterns and names in style sheets are
not texts.
"""

import re
import string

WORD = r"(?:[A-Za-z]?[a-z]+(?:['’-][a-z]+)*|[A-Z])"
BESIDE = re.compile(rf"(?<![\w.`/<-]){WORD}[,:;.?!]? {WORD}(?![\w(=/>\[-])")
VALUE = r"\{\d+\}"
WITH_A_VALUE = re.compile(
    rf"(?<![\w.`/<-]){WORD}[,:;]? (?:[≤≥] )?\(?{VALUE}|{VALUE}[,:;.]?[)%”]? {WORD}(?![\w(=/>\[-])|"
    rf"(?:^| ){WORD}{VALUE}(?= |$)|{VALUE} {WORD}{VALUE}"  # "Page{0} {1}": the first is an s, or nothing
)
NAMED = re.compile(r"\b[A-Za-z]+_[a-z]+[,;]? [a-z]{3,}(?![\w(=_])")  # a word next to a name, "Q_i stays"
AT_AN_END = re.compile(rf"^[,;·]? {WORD}\W*$|^{WORD}[,:;]? $")  # to be joined to others: " and ", "Hint: "
FRAME = re.compile(r"(?:[^A-Za-z]|(?<![A-Za-z])[a-z](?![A-Za-z]))*")
TWO_LETTERS = re.compile(r"[A-Za-z][a-z]")
CODE = re.compile(  # from pages: selectors, styles, paths, patterns
    r"^[ML]\{0\}|flash-|var\(|color-mix\(|gradient\(|repeat\(|^\.\.?/|^--|^data-|^aria-|\b(?:px|rgb|calc)\b|://|"
    r"[\w-]+\[[\w-]+=|^[\w-]+:[\w-]|\\[bdsw(]"
)
STATEMENT = re.compile(  # from Python, and lists of names
    r"^\s*(?:def|return|yield|import|class|assert|raise|lambda|from [\w.]+ import)\s|"
    r"^\s*(?:for|if|while|with)\b.*:$|"
    r"^\W*@|^[A-Z]\w*(?:\s+[A-Z]\w*)+$|\n {4,}\S|->|"
    r"^(?:; |\n)\w+(?:, \w+)* = |"  # further statements
    r"^[\w.\[\]]+(?:, ?[\w.\[\]]+)* [-+*/]?= (?!.*, [a-z]{3,}$)[^;]*$"
)


def is_text(template: str) -> bool:
    """Return whether a string, with {0} for a value, reads as words."""
    found = any(pattern.search(template) for pattern in (BESIDE, WITH_A_VALUE, NAMED, AT_AN_END))
    return found and not CODE.search(template) and not STATEMENT.search(template)


def is_frame(template: str) -> bool:
    """Return whether a string only joins values, which may be words: "{0} {1}s"."""
    return "{0}" in template and " " in template and bool(FRAME.fullmatch(template)) and not CODE.search(template)


def is_word(text: str) -> bool:
    """Return whether a string may be a word, or a word with a few signs, which is looked up when shown."""
    return bool(TWO_LETTERS.search(text)) and not is_text(text) and not CODE.search(text) and "_" not in text


def template(parts: list[str]) -> str:
    """Return the template for the parts between values: "row {0} of {1}"; braces in the text are doubled."""
    if len(parts) == 1:
        return parts[0]
    doubled = [part.replace("{", "{{").replace("}", "}}") for part in parts]
    return "".join(f"{part}{{{n}}}" for n, part in enumerate(doubled[:-1])) + doubled[-1]


def pieces(text: str, count: int) -> list[str | int]:
    """Return the pieces of a translated template, texts and indices of values; raise ValueError for others."""
    if not count:
        return [text]
    found: list[str | int] = []
    for words, name, _, _ in string.Formatter().parse(text):
        found += [words] if words else []
        if name is not None:
            if not name.isdigit() or int(name) >= count:
                raise ValueError(f"{text!r} has the value {{{name}}}; there are {count}, from {{0}} on")
            found.append(int(name))
    return found
