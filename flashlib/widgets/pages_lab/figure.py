"""PagesLab as a static picture, drawn from a frame of its `result`."""

import textwrap

from flashlib.language.phrases import counted
from flashlib.pictures.canvas import Picture
from flashlib.pictures.inks import HIGHLIGHT, INK, ON_FILL, WRITTEN, WRONG

ACROSS, WIDE, HIGH = 8, 66, 44  # pages in a line, and the size of a page with its gap, in pixels
FILLED = "#a9a9a9"
LEFT, RIGHT, TOP = 16, 572, 100
STATES = {"f": "free", "k": "kept"}


def instructive_frame(frames: list[dict]) -> int:
    """Return the index of an instructive frame: an error, a copy, no page left, or the most pages shared."""
    for shown in (lambda f: f["kind"] == "fault", lambda f: f["copied"], lambda f: f["kind"] == "out"):
        if found := [k for k, frame in enumerate(frames) if shown(frame)]:
            return found[0]
    return max(range(len(frames)), key=lambda k: (frames[k]["state"].count("s"), frames[k]["counts"]["used"], k))


def draw(result: dict, at: int | None = None) -> Picture:
    """Return a Picture of a frame."""
    frames, setting = result["frames"], result["setting"]
    at = instructive_frame(frames) if at is None else at
    frame, lines = frames[at], -(-setting["n_pages"] // ACROSS)
    tables = [name for name in result["names"] if name in frame["tables"]]
    height = max(TOP + 22 + HIGH * lines, TOP + 22 + 26 * len(tables)) + 62
    picture = Picture(930, height, f"{frame['call'] or setting['scenario']}: {frame['words']}")
    for panel in (0, 0, 930, 74), (0, 82, 548, height - 82), (556, 82, 374, height - 82):
        picture.shade(*panel)
    title = f"{setting['scenario']}, step {at} of {len(frames) - 1}" + f": {frame['call']}" * bool(frame["call"])
    picture.text(LEFT, 18, title, 13, face="bold")
    ink = WRONG if frame["kind"] == "fault" else INK
    for k, line in enumerate(textwrap.wrap(("✕ " if ink == WRONG else "") + frame["words"], 130)[:2]):
        picture.text(LEFT, 40 + 18 * k, line, 12, ink)
    picture.text(
        LEFT, TOP, f"{setting['n_pages']} pages of {counted(setting['page'], 'row', 'rows')}", 12, face="bold"
    )
    for page in range(setting["n_pages"]):
        place = LEFT + WIDE * (page % ACROSS), TOP + 14 + HIGH * (page // ACROSS)
        _draw_page(picture, frame, page, setting["page"], *place)
    picture.text(RIGHT, TOP, "Block tables", 12, face="bold")
    for k, name in enumerate(tables):
        _draw_table(picture, name, frame, TOP + 26 + 26 * k)
    _draw_counts(picture, frame["counts"], height - 40)
    return picture


def _draw_page(picture, frame, page, rows, x, y):
    """Draw a page: its number, its owners, and its rows, those with a token filled."""
    wide, high, state = WIDE - 6, HIGH - 6, frame["state"][page]
    wrong = page in frame["wrong"]
    picture.box(x, y, wide, high, edge=WRONG if wrong else INK, thick=3 if wrong else 1, dotted=state in STATES)
    if state == "s":
        picture.box(x + 2, y + 2, wide - 4, high - 4, edge=INK)
    picture.text(x + 5, y + 11, str(page), 10, face="bold")
    owner = STATES.get(state, frame["owners"].split(",")[page])
    picture.text(x + wide - 5, y + 11, f"✕ {owner}" if wrong else owner, 10, align="r")
    written = {row for one, first, last in frame["written"] for row in range(first, last) if one == page}
    across = min(rows, 8)
    size = (wide - 10) / across
    for row in range(rows):
        at = x + 5 + size * (row % across), y + 20 + 7 * (row // across), size - 1, 13 if rows <= 8 else 6
        fill = WRITTEN if row in written else FILLED if row < frame["filled"][page] else None
        picture.box(*at, fill=fill, edge=INK)


def _draw_table(picture, name, frame, y):
    """Draw the block table of a sequence, with as many pages as there is room for."""
    pages, length = frame["tables"][name], frame["lengths"][name]
    picture.text(RIGHT, y, name, 12, face="bold")
    for k, page in enumerate(pages[:9]):
        picture.box(
            RIGHT + 18 + 25 * k, y - 9, 23, 18, fill=HIGHLIGHT if page in frame["taken"] else None, edge=INK
        )
        ink = ON_FILL if page in frame["taken"] else INK
        picture.text(RIGHT + 29 + 25 * k, y, "…" if k == 8 and len(pages) > 9 else str(page), 11, ink, "m")
    picture.text(914, y, counted(length, "token", "tokens"), 12, align="r")


def _draw_counts(picture, counts, y):
    pages = f"Pages: {counts['used']} used, {counts['kept']} kept, {counts['free']} free."
    picture.text(LEFT, y, f"{pages} Of {counts['rows']} rows {counts['waste']} hold no token.", 12)
    reserved = f"{counts['reserved_waste']} of {counts['reserved']} rows would hold no token"
    picture.text(LEFT, y + 20, f"Reserved contiguously: {reserved}.", 12)
