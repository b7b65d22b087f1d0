"""Cut Latin Modern Math down to the characters of the course: `python -m web.font latinmodern-math.otf`.

The font comes from the GUST foundry, in Debian in the package fonts-lmodern; its licence lets us cut it and pass
it on. The result is static/maths.woff2, so that nobody needs the whole font to build the site.
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
MATHS = re.compile(r"<math.*?</math>", re.DOTALL)
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
    found = set()
    for path in notebooks.chapters(ROOT / "notebooks"):
        for cell in notebooks.read(path).cells:
            if cell.cell_type == "markdown":
                for maths in MATHS.findall(prose.to_html(cell.source)[0]):
                    found |= characters(maths)
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


def main():
    options = subset.Options(flavor="woff2", layout_features=["ssty", "dtls", "kern"], hinting=False)
    options.name_IDs = ["*"]  # who made it, and its licence
    font = subset.load_font(sys.argv[1], options)
    cut = subset.Subsetter(options)
    wanted = points(used() | set(PLAIN) | set(ITALIC))
    if lacking := wanted - set(font.getBestCmap()):
        signs = " ".join(map(chr, sorted(lacking)))
        sys.exit(f"{sys.argv[1]} has no {signs}: write these formulas differently")
    cut.populate(unicodes=wanted)
    cut.subset(font)
    subset.save_font(font, str(FONT), options)
    print(f"{FONT.name}: {FONT.stat().st_size} bytes, {len(font.getGlyphOrder())} glyphs")


if __name__ == "__main__":
    main()
