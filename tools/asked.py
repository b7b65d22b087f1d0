"""What the cards of a chapter ask: the question's own sentences, from the text of its notebook.

The notebook is where a question stands. A card shows it too, since it may be read alone. `flashlib` has no
notebooks, so `python -m tools.tables` writes what they ask beside the questions, into a file `asked.txt` of each
chapter. Formulas become what a card can set: names such as B_r, powers such as 2^20, `code`.
"""

import re
from pathlib import Path

from flashlib.chapters import CHAPTERS
from flashlib.checks.engine import folders
from tools import notebooks

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
HEAD = "# Written by python -m tools.tables, from the notebook: what its cards ask.\n"
MARK = "**Predict.**"
CARD = re.compile(r'^checks\.predict\("(\w+)"\)$')
MOST = 360  # characters: up to so many, a card has a paragraph from its beginning, which says of what is asked
LEAST = 100  # characters: a question of less is understood with the sentences before it only
ALONE = 30  # characters: one of less needs even a part of that
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
    """Return the text of the file of a chapter: a line for each card, its name and what it asks."""
    lines = [f"{name}: {text}\n" for name, text in of_chapter(nb).items()]
    return "".join([HEAD, *lines]) if lines else ""


def write() -> None:
    """Write the files of all chapters."""
    for chapter in CHAPTERS:
        if text := written(notebooks.read(NOTEBOOKS / f"{chapter.slug}.ipynb")):
            (folders.FOLDER / chapter.name / folders.ASKED).write_text(text, encoding="utf-8")


def of_chapter(nb) -> dict[str, str]:
    """Return what each card of a notebook asks: {name of the question: text}."""
    return {name: question(text) for name, text in texts(nb).items()}


def texts(nb) -> dict[str, str]:
    """Return the Markdown above each card of a notebook: {name of the question: text}."""
    found, text, before = {}, "", ""
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            text = before = f"{before}\n\n{cell.source}"  # of cells that nothing stands between
        elif card := CARD.match(cell.source):
            found[card[1]], before = text, ""
        else:
            before = ""
    return found


def asking(text: str) -> str:
    """Return the paragraph that asks, of the Markdown above a card."""
    return BLANK.split(text.rpartition(MARK)[2].strip())[0]


def question(text: str) -> str:
    """Return the sentences that ask, with those before them that say of what: a card may be read alone."""
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
    bare = asking[0] == 0 and not items  # no sentence before it says of what
    return f"{_before(above, asks)} {asks}".strip() if bare or len(asks) < ALONE else asks


def _before(text, asks):
    """Return the last paragraph of prose; its last sentence if a card has no room for more.

    That sentence only for the shortest question, or where it says what to take. "" if a formula, a list or a
    heading stands there, or what goes on after one. What asks, or begins with "It", is not understood alone.
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
    """Return Markdown with formulas as a card sets it."""
    text = FORMULA.sub(lambda found: formula(found[1]), " ".join(text.split()))
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\*{1,2}([^*]+)\*{1,2}", r"\1", text)


def formula(tex: str) -> str:
    """Return a formula in a line, as a card sets it."""
    tex = FRACTION.sub(r"\1 / \2", tex)
    tex = ROOT.sub(r"√\1", tex)
    tex = WRAPPED.sub(lambda found: found[1] or found[2], tex)
    tex = SPACES.sub(" ", tex)
    for sign, text in SIGNS.items():
        tex = re.sub(rf"\\{sign}(?![a-z])", text, tex)
    tex = POWER.sub(lambda found: f"^{found[1]}" if PLAIN.fullmatch(found[1]) else f"^({found[1]})", tex)
    tex = re.sub(r"_\{([^{}]*)\}", r"_\1", tex)
    return " ".join(tex.replace("-", "−").split())
