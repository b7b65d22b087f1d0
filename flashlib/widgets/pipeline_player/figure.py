"""PipelinePlayer as a static picture, drawn from its `result`: all programs up to their end."""

from flashlib.pictures.canvas import Picture
from flashlib.pictures.inks import INK, NEGATIVE, ON_FILL, POSITIVE, READ, WRITTEN, WRONG

LABEL, WIDE, HIGH, HEAD, LEGEND = 112, 800, 15, 44, 18  # pixels: names, axis, a row, above and below
FILLS = POSITIVE, NEGATIVE, "#c3a6dc", "#9fd0bf", "#d5c46f"  # of roles, in their order; as in marks.js
TEXT = {"copy", "store", "product", "exp", "fma", "hold"}  # kinds that show their names, if these fit
MARKS = {  # of kinds, in a legend
    "wait": "waits",
    "copy": "copy",
    "store": "store",
    "write": "writes",
    "fill": "a tile comes",
    "hold": "is there",
    "read": "is read",
    "fault": "it goes wrong",
}
FILLED = "product", "exp", "fma"  # in the role's colour
DIGIT = 6.2  # pixels of a letter


def draw(result: dict) -> Picture:
    """Return a Picture of a result."""
    several = len(result["programs"]) > 1
    shown = [
        [row for row in one["rows"] if not several or row["group"] in ("units", "roles")]
        for one in result["programs"]
    ]
    heights = [
        HEAD + 16 * len(one["fault"]) + HIGH * len(rows) + 22
        for one, rows in zip(result["programs"], shown, strict=True)
    ]
    summary = " ".join(f"{one['name']}: {one['words']}" for one in result["programs"])
    picture = Picture(
        930, sum(heights) + 4 * len(heights) + LEGEND, f"A pipeline, what its units and roles do. {summary}"
    )
    top = 0
    for one, rows, high in zip(result["programs"], shown, heights, strict=True):
        picture.shade(0, top, 930, high)
        _draw_program(picture, result, one, rows, top)
        top += high + 4
    _draw_legend(picture, result, {kind for rows in shown for row in rows for kind, *_ in row["spans"]}, top)
    return picture


def _draw_program(picture, result, one, rows, top):
    picture.text(12, top + 14, one["name"], 13, face="bold")
    picture.text(12, top + 32, one["words"], 12)
    y = top + HEAD
    for said in one["fault"]:
        picture.text(12, y + 6, said[:150], 11, WRONG)
        y += 16
    scale = WIDE / (result["end"] or 1)
    for row in rows:
        picture.text(12, y + HIGH / 2, row["name"][:17], 10)
        for span in row["spans"]:
            _draw_span(picture, *span, y, scale)
        for time, number in row["ticks"]:
            x = LABEL + scale * time
            picture.box(x - 1, y + 2, 2, HIGH - 4, fill=INK)
            picture.text(x + 4, y + HIGH / 2, str(number), 8)
        y += HIGH
    if rows:
        picture.text(12, y + 9, result["axis"], 10)
        digits = 0 if result["end"] >= 8 else 2
        for k in range(5):
            picture.text(LABEL + WIDE * k / 4, y + 9, f"{result['end'] * k / 4:.{digits}f}", 10, align="lmmmr"[k])


def _draw_span(picture, kind, name, start, end, role, y, scale, left=LABEL):
    x, wide, ink = left + scale * start, max(1.5, scale * (end - start)), FILLS[role % len(FILLS)]
    if kind == "wait":
        picture.line([(x, y + HIGH - 3.5), (x + wide, y + HIGH - 3.5)], INK, 1, dash=(1, 2))
    elif kind in ("copy", "fill"):
        picture.box(x, y + 2, wide, HIGH - 4, edge=READ, dotted=kind == "fill")
    elif kind in ("store", "write"):
        picture.box(x, y + 2, wide, HIGH - 4, edge=WRITTEN)
    elif kind == "read":
        picture.box(x, y + HIGH - 4, wide, 3, fill=INK)
    elif kind == "hold":
        picture.shade(x, y + 2, wide, HIGH - 4, 0.2)
    elif kind == "fault":
        picture.text(x + wide / 2, y + HIGH / 2, "×", 15, WRONG, "m", "bold")
    elif kind == "act":
        picture.box(x + 1, y + 5, wide - 2, HIGH - 10, fill=INK)
    else:
        inset = 4 if kind == "fma" else 1
        picture.box(x, y + inset, wide, HIGH - 2 * inset, fill=ink)
        if role % 2:
            picture.box(x, y + HIGH - 3, wide, 2, fill=INK)  # a mark in addition to the colour
    filled = kind in FILLED
    if kind in TEXT and wide >= DIGIT * len(name) + 4:
        picture.text(x + wide / 2, y + HIGH / 2, name, 9, ON_FILL if filled else INK, "m")


def _colours(result) -> dict[int, dict]:
    """Return the names of the roles, of all programs, that have each colour."""
    names = {}
    for one in result["programs"]:
        for kind, _, _, _, role in (span for row in one["rows"] for span in row["spans"]):
            if kind in FILLED:
                names.setdefault(role, {})[one["roles"][role]] = True
    return names


def _draw_legend(picture, result, kinds, top):
    """Draw the legend: which role each fill belongs to, and the meaning of the marks that are drawn."""
    x = 12
    marks = [("product", ", ".join(names), role) for role, names in sorted(_colours(result).items())]
    marks += [(kind, text, 0) for kind, text in MARKS.items() if kind in kinds]
    for kind, text, role in marks:
        _draw_span(picture, kind, "", x, x + 18, role, top + 1, 1, left=0)
        picture.text(x + 23, top + 9, text[:24], 10)
        x += 36 + DIGIT * len(text[:24])
