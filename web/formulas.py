"""Formulas: LaTeX to MathML, with the spaces that LaTeX leaves."""

import html
import re
from functools import cache
from xml.etree import ElementTree

from latex2mathml import commands
from latex2mathml.converter import Converter

BREAKS = set("=≈≤≥<>⇒+−·,")  # signs after which a line may break
SHORTEST = 8  # characters of a part
THIN = "0.167em"
NAME = re.compile(r"[A-Za-z]+(?:[\u2006\u2009][a-z]+)*")  # of a function: log, lse, lim sup
OPENING = set("([{⌊⌈⟨")
CLOSING = set(")]}⌋⌉⟩!%′…⋯")  # and signs that end a term as they do
SIGNS = set("+−±")  # between two terms, or before one
ROWS = {"math", "mrow", "mstyle", "mpadded", "msqrt", "mtd"}
SCRIPTS = {"msub", "msup", "msubsup", "munder", "mover", "munderover"}
# Pairs of kinds with a thin space between them. A value is a function that the author named, such as lse.
NAMED = ("function", "value")
APART = {(name, kind) for name in NAMED for kind in (*NAMED, "ordinary", "bar")}
APART |= {(kind, name) for name in NAMED for kind in ("ordinary", "close")}
FUNCTIONS = {name.removeprefix("\\") for name in (*commands.FUNCTIONS, *commands.LIMIT)}


@cache  # most occur again and again
def formula(tex, display="inline"):
    """Return the MathML of a formula. A long formula in a line of text is split where the line may break."""
    root = Converter(display=display).convert_to_element(tex)
    del root.attrib["xmlns"]
    for element in root.iter():
        element.text = element.text and html.unescape(element.text)
        _correct(element)
    for row in [element for element in root.iter() if element.tag in ROWS]:
        _space(row)
    parts = pieces(root) if display == "inline" else [root]
    return "<wbr>".join(ElementTree.tostring(part, encoding="unicode") for part in parts)


def _correct(element):
    """Correct what the converter takes for operators, since a browser adds space around those."""
    if element.tag != "mo" or not element.text:
        return
    if element.text == "|":
        element.attrib |= {"lspace": "0", "rspace": "0"}
    elif element.text == "∞" or NAME.fullmatch(element.text) and element.text != "mod":
        element.tag = "mi"
        element.attrib.clear()
        if len(element.text) == 1 and element.text.isalpha():
            element.set("mathvariant", "normal")  # a browser would set it in italics


def _space(row):
    """Add space around the functions of a row, and remove it between a sign and its only term."""
    children, before, term, bars = [], "", "", 0  # term: what comes before, without spaces
    for child in row:
        leaf, last = _edge(child, 0), _edge(child, -1)
        kind, ends = _kind(leaf), _kind(last)
        bars += kind == "bar" and leaf is last
        if kind == "bar" and leaf is last and bars % 2 == 0:
            kind = "close"
        if ends == "bar":
            ends = "open" if leaf is last and bars % 2 else "close"
        is_prefix = kind == "sign" and term not in ("ordinary", "close", "value")
        if is_prefix:
            leaf.set("form", "prefix")
        if (before, kind) in APART or before == "function" and is_prefix:
            children.append(ElementTree.Element("mspace", width=THIN))
        children.append(child)
        before, term = ends, term if ends == "space" else ends
    row[:] = children


def _edge(element, side):
    """Return the leaf at an edge of an element, the first (0) or the last (-1); scripts do not count."""
    while element is not None and element.tag in ROWS | SCRIPTS - {"msqrt", "math"}:
        children = list(element)
        element = (children[0] if element.tag in SCRIPTS else children[side]) if children else None
    return element


def _kind(leaf):
    """Return the kind of a leaf, which decides the space next to it."""
    text = "" if leaf is None else leaf.text or ""
    if leaf is None or leaf.tag not in ("mspace", "mtext", "mi", "mo") or text == "∞":
        return "ordinary"
    if leaf.tag in ("mspace", "mtext"):
        return "ordinary" if text.strip() else "space"
    if leaf.tag == "mi" and len(text) > 1 and NAME.fullmatch(text):
        return "function" if text in FUNCTIONS else "value"
    if leaf.tag == "mo" and leaf.get("fence") and "form" in leaf.attrib:
        return "open" if leaf.get("form") == "prefix" else "close"
    named = dict.fromkeys("|‖", "bar") | dict.fromkeys(OPENING, "open") | dict.fromkeys(CLOSING, "close")
    named |= dict.fromkeys(SIGNS, "sign")
    return named.get(text, "operator" if leaf.tag == "mo" else "ordinary")


def pieces(root):
    """Return the formula in parts, each with a sign at its end after which a line may break."""
    (row,) = root
    parts, length = [[]], 0
    for child in row:
        parts[-1].append(child)
        length += len("".join(child.itertext()))
        breaks = child.tag == "mo" and child.text in BREAKS and child.get("form") != "prefix"
        if breaks and length >= SHORTEST:
            child.set("form", "infix")  # with the space around it that it has inside a formula
            parts.append([])
            length = 0
    if length < SHORTEST and len(parts) > 1:
        parts[-2:] = [parts[-2] + parts[-1]]
    return [_maths(root, part) for part in parts]


def _maths(root, children):
    whole = ElementTree.Element("math", root.attrib)
    row = ElementTree.SubElement(whole, "mrow")
    row.extend(children)
    return whole
