"""Cut Latin Modern Math to what the formulas of the course use: `python -m web.font latinmodern-math.otf`.

The font comes from the GUST foundry, in Debian in the package fonts-lmodern; its licence lets it be cut and given
on. What is cut is in static/maths.woff2, so that nobody needs the whole font to build the site.
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
# A browser sets a letter alone in italics, which have code points of their own: Latin, Greek.
ITALIC = {**dict.fromkeys("h", 0x210E), **{chr(65 + k): 0x1D434 + k for k in range(26)}}
ITALIC |= {chr(97 + k): 0x1D44E + k for k in range(26) if chr(97 + k) != "h"}
ITALIC |= {chr(0x391 + k): 0x1D6E2 + k for k in range(25)} | {chr(0x3B1 + k): 0x1D6FC + k for k in range(25)}
ITALIC |= {"∂": 0x1D715}
PLAIN = "()[]{}|‖,.;:=+−<>≤≥0123456789"  # what any formula may need, used today or not
ASCII = {"-": "−", "*": "∗", "'": "′", "~": "˜˜̃", "^": "ˆ̂"}  # what a browser sets in their place


def used():
    """Return the characters of the formulas of all chapters."""
    found = set()
    for path in notebooks.chapters(ROOT / "notebooks"):
        for cell in notebooks.read(path).cells:
            if cell.cell_type == "markdown":
                for maths in MATHS.findall(prose.to_html(cell.source)[0]):
                    found |= set(html.unescape(re.sub(r"<[^>]+>", "", maths)))
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
    letters = "".join(chr(k) for k in ITALIC.values()) + "".join(ITALIC)
    cut.populate(unicodes=points(used() | set(PLAIN + letters)))
    cut.subset(font)
    subset.save_font(font, str(FONT), options)
    print(f"{FONT.name}: {FONT.stat().st_size} bytes, {len(font.getGlyphOrder())} glyphs")


if __name__ == "__main__":
    main()
