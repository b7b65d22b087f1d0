"""Cut Latin Modern Math down to the characters of the course: `python -m web.font latinmodern-math.otf`.

The font comes from the GUST foundry, in Debian in the package fonts-lmodern; its licence lets us cut it and pass
it on. The result is static/maths.woff2, so that nobody needs the whole font to build the site.

A second cut, maths-first.woff2, is so small that it comes in a script before a chapter is painted. It has what
lines of text at the head of a chapter need, so these do not break anew when the other arrives.
"""

import html
import re
import sys
from pathlib import Path

from fontTools import subset

from tools import notebooks
from web import prose

ROOT = Path(__file__).resolve().parents[1]
FONT = ROOT / "web" / "static" / "maths.woff2"
FIRST = ROOT / "web" / "maths-first.woff2"
HEAD = 3  # cells of text
MATHS = re.compile(r"<math.*?</math>", re.DOTALL)
INLINE = re.compile(r'<math display="inline".*?</math>', re.DOTALL)
TOKEN = re.compile(r"<(m[ino])\b[^>]*>([^<]*)<")
# A browser sets a single letter in italics, which have separate code points: Latin, Greek.
CAPITALS = [chr(0x391 + k) for k in range(25)]
CAPITALS[17] = "ϴ"  # Unicode has no capital of the final sigma, and its italics have this letter there
GREEK = [*CAPITALS, "∇", *(chr(0x3B1 + k) for k in range(25)), *"∂ϵϑϰϕϱϖ"]
ITALIC = {chr(65 + k): 0x1D434 + k for k in range(26)} | {chr(97 + k): 0x1D44E + k for k in range(26)}
ITALIC |= {"h": 0x210E, "ı": 0x1D6A4, "ȷ": 0x1D6A5} | {letter: 0x1D6E2 + k for k, letter in enumerate(GREEK)}
PLAIN = "()[]{}|‖,.;:=+−<>≤≥√0123456789"  # what any formula may need, even if none uses it today
ASCII = {"-": "−", "*": "∗", "'": "′", "~": "˜˜̃", "^": "ˆ̂"}  # what a browser sets in their place
DRAWN = {"msqrt": "√", "mroot": "√"}  # what a browser draws for an element: no text has it


def used():
    """Return the characters of the formulas of all chapters."""
    return {
        one for text in texts() for maths in MATHS.findall(prose.to_html(text)[0]) for one in characters(maths)
    }


def texts(count=None):
    """Yield the texts of all chapters, or the first ones of each."""
    for path in notebooks.chapters(ROOT / "notebooks"):
        yield from [cell.source for cell in notebooks.read(path).cells if cell.cell_type == "markdown"][:count]


def at_heads():
    """Return the code points in lines of text at the heads of chapters, without what a browser draws."""
    found = set(map(ord, "()"))
    for text in texts(HEAD):
        for maths in INLINE.findall(prose.to_html(text)[0]):
            for tag, inside in TOKEN.findall(maths):
                letters = html.unescape(inside)
                found |= (
                    points(letters) - {ord(letters)} if tag == "mi" and letters in ITALIC else {*map(ord, letters)}
                )
    return found


def characters(maths):
    """Return the characters that a browser needs for a formula, including those that no text contains."""
    found = set(html.unescape(re.sub(r"<[^>]+>", "", maths)))
    found |= {DRAWN[tag] for tag in re.findall(r"<(\w+)", maths) if tag in DRAWN}
    return found - {" ", "\n"}


def points(characters):
    """Return the code points that a font needs for these characters in formulas."""
    found = {ord(one) for one in characters}
    for one in characters:
        found |= {ord(other) for other in ASCII.get(one, "")}
        found |= {ITALIC[one]} if one in ITALIC else set()
    return found


def cut(source, path, wanted, features):
    """Write a font with only the wanted code points."""
    options = subset.Options(flavor="woff2", layout_features=features, hinting=False)
    options.name_IDs = ["*"]  # who made it, and its licence
    font = subset.load_font(source, options)
    if lacking := wanted - set(font.getBestCmap()):
        signs = " ".join(map(chr, sorted(lacking)))
        sys.exit(f"{source} has no {signs}: write these formulas differently")
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=wanted)
    subsetter.subset(font)
    subset.save_font(font, str(path), options)
    print(f"{path.name}: {path.stat().st_size} bytes, {len(font.getGlyphOrder())} glyphs")


def main():
    cut(sys.argv[1], FONT, points(used() | set(PLAIN) | set(ITALIC)), ["ssty", "dtls", "kern"])
    cut(sys.argv[1], FIRST, at_heads(), [])


if __name__ == "__main__":
    main()
