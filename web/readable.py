"""A formula as a line of text, for places that cannot show formulas, such as the results of a search."""

import re
from xml.etree import ElementTree

ACCENTS = {"~": "\u0303", "^": "\u0302", "¯": "\u0304", "→": "\u20d7"}  # belongs to the letter before it
BRACES = {"⏟", "⏞"}
SPACED = {*"=≈≠≤≥<>≪≫⇒→+−±·×∈∘∣", "mod"}  # with a space on either side
SCRIPTS = {"msub", "msup", "msubsup", "munder", "mover", "munderover"}
LETTER = re.compile(r"[^\W_][\u0300-\u036f\u20d7]*|[.′*%]")
WHOLE = re.compile(rf"({LETTER.pattern})*")  # needs no parentheses as a script
TERM = re.compile(rf"({LETTER.pattern}|_)*")  # nor as part of a fraction


def line(maths):
    """Return the MathML of a formula as text: e^(m_old − m), (a + b)/√2."""
    text = re.sub(r"\s+", " ", _text(ElementTree.fromstring(maths))).strip()
    return text.replace(", )", ",)")


def _text(element):
    parts = [_text(child) for child in element]
    match element.tag:
        case "mi" | "mn" | "mtext":
            return element.text or ""
        case "mo":
            return _operator(element)
        case "mspace":
            return "" if element.get("width", "").startswith("-") else " "
        case "mfrac":
            return f"{_held(parts[0], TERM)}/{_held(parts[1], TERM)}"
        case "msqrt":
            return f"√{_held(_row(element, parts))}"
        case "mroot":
            return f"{_held(parts[0])}^(1/{_held(parts[1])})"
        case "mtable":
            return "; ".join(parts)
        case "mtr":
            return " ".join(parts)
    return _scripts(element.tag, *parts) if element.tag in SCRIPTS else _row(element, parts)


def _row(element, parts):
    """Return the text of a row, with a space where a script would run into the letter after it."""
    scripted = [False, *(child.tag in SCRIPTS for child in element)]
    runs = (before and LETTER.match(part) for before, part in zip(scripted, parts, strict=False))
    return "".join(" " * bool(space) + part for space, part in zip(runs, parts, strict=True))


def _operator(element):
    sign = element.text or ""
    if sign in SPACED and element.get("form") != "prefix":
        return f" {sign} "
    return sign + " " * (sign in (",", ";"))


def _scripts(tag, base, *scripts):
    """Return a letter with its scripts and accents: m_old, x^2, P̃_ij, ∑_j."""
    over = {"msup": 0, "mover": 0}.get(tag, 1)  # which one is above
    found = base
    for place, script in enumerate(scripts):
        script = script.strip()
        if script in ACCENTS and len(base) == 1:
            found += ACCENTS[script]
        elif script and script not in BRACES and script not in ACCENTS:
            found += script if script in ("′", "″") else f"{'^' if place == over else '_'}{_held(script)}"
    return found


def _held(text, whole=WHOLE):
    """Return a text, in parentheses if it needs them to be read as one unit."""
    text = text.strip()
    return text if whole.fullmatch(text) else f"({text})"
