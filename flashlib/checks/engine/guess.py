"""What a learner typed, as a value: a number, a list, a set, a word; or how to write it.

The page does the same in flashlib/widgets/prediction_card/read.js; tests/checks/engine/guesses.json holds both.

A comma parts thousands where it stands before three digits, 1,000, and not after a 0; else it is a decimal comma,
0,5. Where the answer is no whole number, 1,386 can be both, and is asked back. A space or an apostrophe parts
thousands, and joins nothing else. In a list a comma parts items.
"""

import math
import re
import unicodedata
from typing import Any

LONGEST = 200  # characters
WHITE = r"(?:[^\S\x1c-\x1f\x85]|\ufeff)"  # what JavaScript calls white space
BOOLS = dict.fromkeys(("true", "t", "yes", "y", "ja"), True) | dict.fromkeys(
    ("false", "f", "no", "n", "nein"), False
)
HIGH = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
SIGNS = str.maketrans(
    {**dict.fromkeys("‐‑‒–—−", "-"), **dict.fromkeys("⁄∕÷", "/"), **dict.fromkeys("×·⋅∙", "*"), "’": "'"}
)
ABOUT = re.compile(r"(?:(?:about|approximately|approx\.?|roughly|around|circa|ca\.?)(?![a-z])|[~≈≃=]) *", re.I)
NAMED = re.compile(r"([+-]?) ?(?:math\.|np\.|numpy\.)?(?:(inf|infinity|∞)|nan)", re.I)
CODED = re.compile(r"[+-]?0[xbo][0-9a-f_]+", re.I)
NUMBER = r"[+-]? ?[0-9.,](?:[0-9.,_' ]*[0-9.,])?(?:e[+-]?[0-9]+)?"
PRODUCT = re.compile(rf"({NUMBER}(?: ?(?:\*\*|[*^/x]) ?{NUMBER})*) ?(.*)", re.I)
# It needs no word on how it was read; 1.000 does, which some write for a thousand.
PLAIN = re.compile(r"(?!-?[1-9][0-9]{0,2}\.[0-9]{2}0$)-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?|-?inf|nan")
EITHER = re.compile("(?<![0-9.,])[1-9][0-9]{0,2},[0-9]{3}(?![0-9.,]| [0-9])")  # thousands, or a decimal comma
HOW = "write one such as 0.5, 1e-3, 2^10 or 1/1024"
NONE = f"is not a number: {HOW}"
COMMA = "has a comma that is unclear: write 1000 for a thousand and 0.5 for a half"


class Unclear(Exception):
    """A guess that is not understood, and how to write it."""


def read(text: str, field: dict) -> tuple[Any, str]:
    """Return the value of a text, and how it was read if that needs saying; raise Unclear if it is not understood.

    field: what is asked for, see `PredictionCard`.
    """
    if len(text) > LONGEST:
        raise Unclear(f"is longer than {LONGEST} characters: write the answer alone")
    value, said = READ[field["kind"]](tidy(text), field)
    plain = (
        PLAIN.fullmatch(text)
        or said == text
        or field["kind"] != "number"
        and _bare_words(said) == _bare_words(text)
    )
    return value, "" if plain else said


def trim(text: str) -> str:
    """Return a text without white space around it."""
    return re.sub(f"^{WHITE}+|{WHITE}+$", "", text)


def _bare_words(text):
    return re.sub(r"[\s()\[\]{}\"']", "", text).lower()


def tidy(text: str) -> str:
    """Return a text with the signs of a keyboard, single spaces and no quotes around it."""
    text = re.sub("[⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda high: "^" + high[0].translate(HIGH), text)
    text = re.sub("([0-9]) ?(?=[¼-¾⅐-⅞])", r"\1 + ", text)  # 1½ is not 11/2
    text = unicodedata.normalize("NFKC", text).translate(SIGNS)
    text = "".join(c for c in text if unicodedata.category(c) != "Cf")  # not seen
    text = re.sub(f"{WHITE}+", " ", text).strip(" ")
    while quoted := re.fullmatch("[\"'`“”„‘«»] ?(.*?) ?[\"'`“”‘«»]", text):
        text = quoted[1]
    return text


def shown(x: float) -> str:
    """Return a number in few characters, the same as the page."""
    if not math.isfinite(x):
        return "nan" if math.isnan(x) else "inf" if x > 0 else "-inf"
    if x == math.trunc(x) and abs(x) < 1e15:
        return str(int(x))
    if 1e-4 <= abs(x) < 1e12:
        return f"{x:.12g}"
    digits, power = f"{x:.5e}".split("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(power)}"


def number(text: str) -> tuple[float, str]:
    """Return a number, or a product, quotient or power of numbers, and what stands behind it."""
    if named := NAMED.fullmatch(text):
        return float(named[1] + "inf") if named[2] else math.nan, ""
    if CODED.fullmatch(text):
        raise Unclear("is not a decimal number: write its decimal digits")
    found = PRODUCT.fullmatch(text)
    if not found:
        raise Unclear(NONE)
    if re.match("[-+*/^(=.,0-9]", found[2]) and found[2] != "*":
        raise Unclear(f"is not computed here: {HOW}")
    first, *others = re.split(r" ?(\*\*|[*^/xX]) ?", found[1])
    factors, operators = [[_plain(first)]], []
    for sign, typed in zip(others[::2], others[1::2], strict=True):
        if sign in ("^", "**"):
            factors[-1].append(_plain(typed))
        else:
            factors.append([_plain(typed)])
            operators.append(sign)
    value = _power(factors[0])
    for sign, factor in zip(operators, factors[1:], strict=True):
        by = _power(factor)
        if sign == "/" and by == 0:
            raise Unclear("divides by 0: write inf if you mean that")
        value = value / by if sign == "/" else value * by
    if not math.isfinite(value):
        raise Unclear("is too large to be read: write inf if you mean that")
    return value, found[2]


def _plain(text):
    """Return a number as it is typed, with any sign of thousands."""
    text = re.sub("(?<=[0-9])_(?=[0-9])", "", text.replace("- ", "-").replace("+ ", "+"))
    sign, body, power = re.fullmatch("([+-]?)([^e]*)(?:e(.*))?", text.lower()).groups()
    if re.fullmatch(r"[1-9][0-9]{0,2}(?:( [0-9]{3})+|('[0-9]{3})+)([.,][0-9]+)?", body):
        body = re.sub("[ ']", "", body).replace(",", ".")
    elif re.fullmatch(r"[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?", body):
        body = body.replace(",", "")
    elif re.fullmatch(r"[1-9][0-9]{0,2}(\.[0-9]{3})+,[0-9]+|[1-9][0-9]{0,2}(\.[0-9]{3}){2,}", body):
        body = body.replace(".", "").replace(",", ".")
    elif re.fullmatch("[0-9]*,[0-9]+", body):
        body = body.replace(",", ".")
    if not re.fullmatch(r"[0-9]+\.?[0-9]*|\.[0-9]+", body):
        if "," in body:
            raise Unclear(COMMA)
        raise Unclear("has a space between digits: write one number without spaces" if " " in body else NONE)
    return float(f"{sign}{body}e{power or 0}")


def _power(factor):
    """Return a number or the power of two; the sign stands before the power."""
    base, *exponents = factor
    if len(exponents) > 1:
        raise Unclear(f"has a power of a power: {HOW}")
    try:
        return math.copysign(abs(base) ** exponents[0], base) if exponents else base
    except ZeroDivisionError:
        raise Unclear("divides by 0: write inf if you mean that") from None
    except OverflowError:
        return math.inf


def _number(text, field):
    for _ in range(3):  # as in "about = 5"
        text = ABOUT.sub("", text, count=1) if ABOUT.match(text) else text
    if re.search(r"[0-9] ?[,;] [+-]?[0-9]|[0-9] ?;", text) or re.fullmatch(r"[(\[{].*[)\]}]", text):
        inside = re.sub(r"[()\[\]{}]", "", text).strip(" ,")
        if re.search("[,;]", inside) or not inside:
            raise Unclear("is not one number: write one number")
        text = inside
    if (found := EITHER.search(text)) and not float(field["right"]).is_integer():
        plain, decimal = (found[0].replace(",", sign) for sign in ("", "."))
        raise Unclear(f"has a comma that is unclear: write {plain} or {decimal}")
    value, unit = number(text)
    if not unit:
        return value, shown(value)
    units, lower = field["units"], unit.lower()
    factor = units.get(unit) or units.get(lower)
    if factor is None:
        asked = f"the answer is in {field['unit']}" if field["unit"] else "the answer has no unit"
        raise Unclear(f"has “{unit}” behind the number, and {asked}: write the number alone")
    return value * factor, f"{shown(value * factor)} {field['unit']}".strip()


def _items(text):
    """Return the numbers of a list without brackets."""
    text = re.sub(r" (?:and|und|&) ", ", ", text, flags=re.I)
    apart = "[;]" if ";" in text else "," if "," in text else " "
    items = [item.strip(" ") for item in re.split(f" ?{apart} ?", re.sub(r" ?[,;] ?$", "", text))]
    numbers = []
    for item in items:
        if re.search("[0-9] +[0-9]|^[+-]?0[0-9]", item):
            raise Unclear(
                "has a space or zeros before digits: write 1000 for a thousand, and a comma between numbers"
            )
        if not item:
            raise Unclear("has nothing before or behind a comma: write numbers with commas between them")
        value, unit = number(item)
        if unit:
            raise Unclear(f"has “{unit}” behind a number: write the numbers alone, with commas between them")
        if math.isnan(value):
            raise Unclear(NONE)
        numbers.append(value)
    return tuple(numbers)


def _tuple(text, field):
    length, example = field["length"], ", ".join(map(str, range(1, field["length"] + 1)))
    if "{" in text:
        raise Unclear(f"is a set, which has no order, and not {length} numbers: write {length}, such as {example}")
    text = re.sub(r"^[(\[](.*)[)\]]$", r"\1", text).strip(" ")
    by = re.fullmatch(r"([0-9]+) ?(?:[*xX]|by) ?([0-9]+)", text)
    numbers = tuple(map(float, by.groups())) if by else _items(text)
    if len(numbers) != length:
        raise Unclear(f"is not {length} numbers: write {length}, such as {example}")
    return numbers, ", ".join(map(shown, numbers))


def _set(text, field):
    length = field["length"]
    text = re.sub(r"^(?:frozen)?set\((.*)\)$", r"\1", text).strip(" ")
    if text in ("", "{}", "[]", "∅"):
        return frozenset(), "{}"
    groups = re.findall(r"[(\[]([^()\[\]{}]*)[)\]]", text) if length else []
    if groups and re.sub(r"[()\[\]{},; ]|and|und|&", "", re.sub(r"[(\[][^()\[\]{}]*[)\]]", "", text)):
        raise Unclear("is not a set of pairs: write (1, 0), (2, 0)")
    items = [_items(group) for group in groups or [_bare(text)]]
    if not length:
        items = [(x,) for item in items for x in item]
    elif any(len(item) != length for item in items):
        raise Unclear("is not a set of pairs: write (1, 0), (2, 0)")
    value = frozenset(items)
    said = [", ".join(map(shown, item)) for item in sorted(value)]
    return value, ", ".join(f"({item})" for item in said) if length else ", ".join(said)


def _bare(text):
    """Return a text without the brackets around it."""
    while inside := re.fullmatch(r"[(\[{](.*)[)\]}] ?,?", text):
        text = inside[1].strip(" ")
    if re.search(r"[()\[\]{}]", text):
        raise Unclear("has brackets inside: write numbers with commas between them, such as 1, 2")
    return text


def _bool(text, field):
    if text.lower() not in BOOLS:
        raise Unclear("is neither True nor False: write True or False")
    return BOOLS[text.lower()], str(BOOLS[text.lower()])


def _choice(text, field):
    for choice in field["choices"]:
        if tidy(choice).lower() == text.lower() or _same_number(choice, text):
            return choice, choice
    raise Unclear(f"is none of {', '.join(field['choices'])}: write one of them")


def _same_number(choice, text):
    try:
        (a, of), (b, behind) = number(tidy(choice)), number(text)
    except Unclear:
        return False
    return not of and not behind and (a == b or math.isnan(a) and math.isnan(b))


READ = {"number": _number, "tuple": _tuple, "set": _set, "bool": _bool, "choice": _choice}
