"""ServeLab as a static picture, drawn from its `result`: both runs up to their end."""

from flashlib.pictures.canvas import Picture
from flashlib.pictures.inks import INK, READ, WRITTEN
from flashlib.widgets.serve_lab import account

LABEL, WIDE, HIGH = 112, 800, 17  # pixels: of the names, of all steps, of a lane
EMPTY, USED = "#c9c9c9", "#a9a9a9"
STRIP = 22
SMALL = 9  # of the numbers in the lanes


def draw(result: dict) -> Picture:
    """Return a Picture of a result."""
    lanes, runs = HIGH * len(result["requests"]), result["runs"]
    each = 46 + lanes + 2 * (STRIP + 6) + 26
    totals = 26 + 18 * len(result["totals"]) + 24
    picture = Picture(930, 2 * each + 8 + totals, " ".join(run["words"] for run in runs))
    for k, run in enumerate(runs):
        picture.shade(0, k * (each + 4), 930, each)
        _draw_run(picture, result, run, k * (each + 4))
    top = 2 * each + 8
    picture.shade(0, top, 930, totals)
    _draw_totals(picture, result, top)
    return picture


def _draw_run(picture, result, run, top):
    """Draw the lanes of a run, and below them the slots taken and the pages used."""
    wide, setting = WIDE / result["steps"], result["setting"]
    title = f"{run['name'].capitalize()} batching, “{setting['scenario']}”: {run['steps']} steps"
    picture.text(12, top + 16, title, 13, face="bold")
    picture.text(12, top + 35, "prompt + answer", 11)
    for k, request in enumerate(result["requests"]):
        y = top + 44 + HIGH * k
        picture.text(12, y + HIGH / 2, f"{k}: {request['prompt']} + {request['answer']}", 11)
        _draw_lane(picture, run, k, y, wide)
    y = top + 50 + HIGH * len(result["requests"])
    parts = ("decode", WRITTEN), ("reading", READ)
    _draw_strip(picture, run, y, wide, f"{setting['batch']} slots", setting["batch"], parts)
    _draw_strip(
        picture, run, y + STRIP + 6, wide, f"{setting['n_pages']} pages", setting["n_pages"], (("used", USED),)
    )
    y += 2 * STRIP + 20
    picture.text(12, y, "step", 11)
    for step in range(0, result["steps"], 5):
        picture.text(LABEL + wide * (step + 0.5), y, str(step), 10, align="m")


def _draw_lane(picture, run, k, y, wide):
    """Draw what a request does, step by step."""
    for step, letter in enumerate(run["lanes"][k]):
        x = LABEL + wide * step
        if letter == account.WAITS:
            for dot in range(3):
                picture.box(x + wide * (dot + 0.3) / 3, y + HIGH / 2, 2, 2, fill=INK)
        elif letter == account.HELD:
            picture.box(x, y + HIGH / 2, wide, 2, fill=INK)
        elif letter == account.DECODES:
            picture.box(x + 1, y + 4, wide - 1, HIGH - 8, fill=WRITTEN)
        elif letter == account.EMPTY:
            picture.box(x, y + 5, wide, HIGH - 10, fill=EMPTY)
        elif letter == account.PREEMPTED:
            picture.text(x + wide / 2, y + HIGH / 2, "×", 14, align="m", face="bold")
    for step, n, wrote in run["parts"][k]:
        x, again = LABEL + wide * step, run["lanes"][k][step] == account.AGAIN
        picture.box(x + 1, y + 1, wide - 2, HIGH - 2, edge=READ, dotted=again)
        if wrote:
            picture.box(x + 1, y + HIGH - 4, wide - 2, 3, fill=WRITTEN)
        if wide >= 7 * len(str(n)) + 4:
            picture.text(x + wide / 2, y + HIGH / 2 - 1, str(n), SMALL, align="m")
    picture.box(LABEL + wide * (run["last"][k] + 1) - 1, y, 2, HIGH, fill=INK)


def _draw_strip(picture, run, y, wide, label, all_, parts):
    """Draw a bar for each step, in a frame whose height stands for the whole capacity."""
    picture.text(12, y + STRIP / 2, label, 11)
    picture.box(LABEL, y, wide * run["steps"], STRIP, edge=INK, dotted=True)
    for step, frame in enumerate(run["frames"][: run["steps"]]):
        bottom = y + STRIP
        for name, ink in parts:
            high = STRIP * frame[name] / all_
            bottom -= high
            picture.box(LABEL + wide * step + 1, bottom, wide - 1, high, fill=ink)


def _draw_totals(picture, result, top):
    for k, run in enumerate(result["runs"]):
        picture.text(400 + 100 * k, top + 16, run["name"], 12, align="r", face="bold")
    for row, texts in enumerate(result["totals"]):
        y = top + 36 + 18 * row
        picture.text(12, y, texts[0], 12)
        for k, text in enumerate(texts[1:]):
            picture.text(400 + 100 * k, y, text, 12, align="r")
    picture.text(12, top + 36 + 18 * len(result["totals"]), result["equal"], 12)
    x = 540
    legend = [(WRITTEN, "a token is written"), (READ, "this many tokens of a prompt are read")]
    legend += [(EMPTY, "finished, its slot stays empty")]
    for row, (ink, words) in enumerate(legend):
        y = top + 36 + 18 * row
        picture.box(x, y - 6, 14, 12, **({"edge": ink} if ink == READ else {"fill": ink}))
        picture.text(x + 22, y, words, 12)
    marks = [("···", "waits"), ("―", "has a slot, not a turn"), ("×", "is preempted"), ("|", "its last token")]
    for row, (mark, words) in enumerate(marks, 3):
        picture.text(x + 7, top + 36 + 18 * row, mark, 12, align="m", face="bold")
        picture.text(x + 22, top + 36 + 18 * row, words, 12)
