"""CompilerLab as a static picture, drawn from its `result`."""

from flashlib.pictures.canvas import Picture
from flashlib.pictures.inks import INK, WRONG

WIDTH, TAKES = 930, 290  # widths of the picture and of its left part, in pixels
LEFT = TAKES + 8
ROW = 22
COLUMNS = [WIDTH - 12 - 52 * k for k in (3, 2, 1, 0)]  # where the numbers end


def draw(result: dict, failed: str = "") -> Picture:
    """Return a picture of a CompilerLab's result, or of the reason why it has none."""
    if not result:
        picture = Picture(WIDTH, 40, failed)
        picture.text(12, 20, f"▲ {failed}", 12, WRONG)
        return picture
    words = [result["title"], *(("▲ " if one["bad"] else "") + one["text"] for one in result["verdicts"])]
    top = 20 * len(words) + 12
    height = max(sum(map(_height, result["takes"])) + 36, ROW * len(result["instructions"]) + 62)
    picture = Picture(WIDTH, top + height, ". ".join(words))
    for k, text in enumerate(words):
        picture.text(12, 12 + 20 * k, text, 12, WRONG if text.startswith("▲") else INK, face="" if k else "bold")
    _draw_takes(picture, top, height, result["takes"])
    _draw_instructions(picture, top, height, result["instructions"], result["columns"])
    return picture


def _height(row):
    return 24 if row["share"] is None else 36


def _draw_takes(picture, top, height, takes):
    picture.shade(0, top, TAKES, height)
    picture.text(12, top + 18, "Registers and memory", 13, face="bold")
    y = top + 44
    for row in takes:
        ink = WRONG if row["bad"] else INK
        picture.text(12, y, row["name"], 11)
        picture.text(TAKES - 12, y, ("▲ " if row["bad"] else "") + row["text"], 11, ink, "r")
        if row["share"] is not None:
            _draw_bar(picture, y + 10, row["share"])
        y += _height(row)


def _draw_bar(picture, y, share):
    full = max(share, 1)
    held, limit = ((TAKES - 24) * part / full for part in (share, 1))
    picture.box(12, y, TAKES - 24, 8, edge=INK)
    picture.box(12, y, min(held, limit), 8, fill=INK)
    picture.box(12 + limit, y, held - limit, 8, fill=WRONG)


def _draw_instructions(picture, top, height, instructions, listings):
    columns = COLUMNS if len(listings) == 2 else COLUMNS[1::2]
    picture.shade(LEFT, top, WIDTH - LEFT, height)
    picture.text(LEFT + 12, top + 18, "Instructions of one thread", 13, face="bold")
    for x, head in ((COLUMNS[1], "loop over tiles"), (COLUMNS[3], "whole kernel")):
        picture.text(x, top + 20, head, 10, align="r")
    for x, head in zip(columns, listings * 2, strict=True):
        picture.text(x, top + 38, head, 10, align="r")
    for k, row in enumerate(instructions):
        y = top + 60 + ROW * k
        picture.text(LEFT + 12, y, row["name"], 11, face="bold")
        picture.text(LEFT + 114, y, row["meaning"], 10)
        for x, count in zip(columns, row["counts"], strict=True):
            picture.text(x, y, "–" if count is None else f"{count:,}", 11, align="r")
