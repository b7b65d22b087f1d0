"""The questions on the cards of a chapter, taken from the text of its notebook.

A question is written in the notebook. Its card repeats it, since the card may be read alone. `flashlib` has no
notebooks, so `python -m tools.tables` writes these sentences into a file `card_questions.txt` in the folder of
each chapter. Formulas become text that a card can show: names such as B_r, powers such as 2^20, `code`.
"""

import re
from pathlib import Path

from flashlib.chapters import NOTEBOOKS
from flashlib.checks.engine import folders
from tools import notebooks

STORED = Path(__file__).resolve().parents[1] / "notebooks"
HEAD = "# Written by python -m tools.tables, from the notebook: what its cards ask.\n"
MARK = "**Predict.**"
CARD = re.compile(r'^checks\.predict\("(\w+)"\)$')
MOST = 360  # characters: a paragraph of at most so many is shown whole, since its beginning gives the context
LEAST = 100  # characters: a shorter question needs the sentences before it to be understood
ALONE = 30  # characters: a still shorter one needs the paragraph before it
BLANK = re.compile(r"\n\s*\n")
END = re.compile(r"(?<=[.?!])\s+(?=[A-Z`$\"(*])")
FORMULA = re.compile(r"\$([^$]+)\$")
SPACES = re.compile(r"\\[ ,;]")
SIGNS = {
    "cdot": "·", "times": "×", "infty": "∞", "dots": "...", "alpha": "alpha", "le": "≤", "ge": "≥", "log": "log",
    "exp": "exp", "top": "T",
}  # fmt: skip
FRACTION = re.compile(r"\\t?frac\{([^{}]*)\}\{([^{}]*)\}")
ROOT = re.compile(r"\\sqrt\{([^{}]*)\}")
POWER = re.compile(r"\^\{([^{}]*)\}")
PLAIN = re.compile(r"-?\w+")
WRAPPED = re.compile(r"\\(?:mathrm|text|tilde|hat|bar|operatorname)\s*(?:\{([^{}]*)\}|(\w))")


def written(nb) -> str:
    """Return the text of a chapter's file: a line for each card, with its name and its question."""
    lines = [f"{name}: {text}\n" for name, text in of_chapter(nb).items()]
    return "".join([HEAD, *lines]) if lines else ""


def write() -> None:
    """Write the files of all chapters."""
    for chapter in NOTEBOOKS:
        if text := written(notebooks.read(STORED / f"{chapter.slug}.ipynb")):
            (folders.FOLDER / chapter.name / folders.CARD_QUESTIONS).write_text(text, encoding="utf-8")


def of_chapter(nb) -> dict[str, str]:
    """Return the question of each card of a notebook: {name of the question: text}."""
    return {name: question(text) for name, text in texts(nb).items()}


def texts(nb) -> dict[str, str]:
    """Return the Markdown above each card of a notebook: {name of the question: text}."""
    found, text, before = {}, "", ""
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            text = before = f"{before}\n\n{cell.source}"  # of adjacent cells
        elif card := CARD.match(cell.source):
            found[card[1]], before = text, ""
        else:
            before = ""
    return found


def asking(text: str) -> str:
    """Return the paragraph with the question, from the Markdown above a card."""
    return BLANK.split(text.rpartition(MARK)[2].strip())[0]


def question(text: str) -> str:
    """Return the question with the sentences before it that give its context, since a card may be read alone."""
    above, _, below = text.rpartition(MARK)
    first, *others = BLANK.split(below.strip())
    items = re.findall(r"^- (.*(?:\n  .*)*)", others[0], re.MULTILINE) if others else []
    sentences = END.split(plain(" ".join([first, *items])))
    asking = [n for n, one in enumerate(sentences) if one.endswith("?")] or [0, len(sentences) - 1]
    begin, end = asking[0], asking[-1] + 1
    if items:
        begin, end = 0, len(sentences)
    if len(" ".join(sentences[:end])) <= MOST:
        begin = 0
    while begin and len(" ".join(sentences[begin:end])) < LEAST:
        begin -= 1
    asks = " ".join(sentences[begin:end])
    bare = asking[0] == 0 and not items  # no sentence before it gives the context
    return f"{_before(above, asks)} {asks}".strip() if bare or len(asks) < ALONE else asks


def _before(text, asks):
    """Return the last paragraph of prose, or its last sentence if a card has no room for more.

    The last sentence alone is used only for the shortest questions, or if it says what to assume. "" if a formula,
    a list or a heading comes last, or a sentence that continues one. A question, or a sentence that begins with
    "It", cannot be understood alone.
    """
    block = BLANK.split(text.strip())[-1]
    if not re.match(r"[A-Z0-9`*$](?!\$)", block):
        return ""
    prose = plain(block)
    last = END.split(prose)[-1]
    last = last if len(asks) < ALONE or last.startswith("Take ") else ""
    alone = not set(prose) & set("\\{}?") and not re.match(r"(It|They|That|So)\b", prose)
    return prose if alone and len(prose) + len(asks) < MOST else last


def plain(text: str) -> str:
    """Return Markdown as the text that a card shows."""
    text = FORMULA.sub(lambda found: formula(found[1]), " ".join(text.split()))
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\*{1,2}([^*]+)\*{1,2}", r"\1", text)


def formula(tex: str) -> str:
    """Return a formula as a line of text."""
    tex = FRACTION.sub(r"\1 / \2", tex)
    tex = ROOT.sub(r"√\1", tex)
    tex = WRAPPED.sub(lambda found: found[1] or found[2], tex)
    tex = SPACES.sub(" ", tex)
    for sign, text in SIGNS.items():
        tex = re.sub(rf"\\{sign}(?![a-z])", text, tex)
    tex = POWER.sub(lambda found: f"^{found[1]}" if PLAIN.fullmatch(found[1]) else f"^({found[1]})", tex)
    tex = re.sub(r"_\{([^{}]*)\}", r"_\1", tex)
    return " ".join(tex.replace("-", "−").split())
