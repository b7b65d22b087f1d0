"""The first page: a loop with a mistake that plays, the route, what was measured, the electives.

The loop is four cells, of which a visitor sees one. They run here, when the site is made, with the line that is
wrong and with the right one, and again in the browser of a visitor who asks for it.
"""

import base64
import functools
import html
import re
from typing import NamedTuple

import nbformat.v4
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from flashlib.chapters import CHAPTERS, FROM_ZERO, KNOWN, PARTS
from flashlib.language.phrases import and_list
from tools import minutes, results
from tools.markdown import number
from web import states
from web.live import cells

GIVEN = """
from functools import wraps

import numpy as np

from flashlib import checks, recorded_head
from flashlib.tiled import blocks
from flashlib.types import Step
from flashlib.widgets import FlashPlayer

Q, K, V, words = recorded_head.load()
"""
ABOVE = """def attention(Q_i, blocks, m, l, O_acc, scale):
    for K_j, V_j in blocks:
        S_ij = Q_i @ K_j.T * scale
        m_old = m
        m = np.maximum(m_old, S_ij.max(axis=1))
        alpha = np.exp(m_old - m)
        P_ij = np.exp(S_ij - m[:, None])
        l = alpha * l + P_ij.sum(axis=1)
"""
WRONG = "O_acc = O_acc + P_ij @ V_j"
MENDED = "O_acc = alpha[:, None] * O_acc + P_ij @ V_j"
BELOW = """        yield m, l, O_acc
    return O_acc / l[:, None]
"""
INDENT = " " * 8  # of the line between them
PLAY = """
def steps(Q, K, V, scale):
    pairs = [(K[cols], V[cols]) for cols in blocks(6, 2)]
    empty = np.full(6, -np.inf), np.zeros(6), np.zeros((6, 64))
    for j, state in enumerate(attention(Q, pairs, *empty, scale or 1 / 8)):
        yield Step(0, j, *(X.copy() for X in state))  # a line may change its arrays in place


FlashPlayer.from_steps(wraps(attention)(steps), Q, K, V, B_r=6, B_c=2, words=words, panels="less")
"""
CHECK = """
def my_block_step(Q_i, K_j, V_j, m, l, O_acc, scale):
    return next(attention(Q_i, [(K_j, V_j)], m.copy(), l.copy(), O_acc.copy(), scale))


checks.block_step(my_block_step)
"""
PLAYED = "play"  # the cell that shows the player
WRITTEN = {  # in each chapter of the route
    "start_here": "nothing yet: watch one head of a language model at work on six words",
    "softmax": "a softmax that does not overflow",
    "attention": "causal attention by the textbook formula, with its large matrix",
    "online_softmax": "a softmax of scores that come one by one, and the merge of two parts of a row",
    "one_pass": "the update of a block of rows: the loop above, all of it",
    "tiling": "FlashAttention-2 in NumPy, tile by tile",
    "triton_first_steps": "your first kernels in Triton, up to a causal softmax",
    "triton_flash": "a causal FlashAttention kernel",
}
MEASURED = {"Forward": "h200_hopper", "Backward": "h200_hopper_backward"}
IN_FULL = "roles", "hopper_backward", "claims"  # chapters, with the sizes at which others are faster
LONG = 16384  # tokens: the rows of a record that are reported
ROUTE = next(iter(PARTS))


class Played(NamedTuple):
    """What the cells show with one line.

    player: its state, for a page; verdict: what the check says, as HTML; sentence: its diagnosis; found: the first
    wrong number; picture: of the player, as PNG; words: what the picture shows.
    """

    player: dict
    verdict: str
    sentence: str
    found: str
    picture: bytes
    words: str


class Entry(NamedTuple):
    """A chapter in a list. about: HTML; time: in words, "" for a page without a number."""

    chapter: tuple
    about: str
    time: str


def sources(line):
    """Return the sources of the cells, by id, with a line in the loop."""
    loop = f"{ABOVE}{INDENT}{line}\n{BELOW}"
    return {id: text.strip() for id, text in (("given", GIVEN), ("loop", loop), (PLAYED, PLAY), ("check", CHECK))}


@functools.cache
def played(line):
    """Run the cells with a line in the loop; return what they show."""
    space = {"__name__": "landing"}
    *_, player, verdict = [states.run(source, space, "/") for source in sources(line).values()]
    of_check = verdict._repr_mimebundle_()["text/html"]
    picture = player.figure()
    return Played(states.for_page(player), of_check, verdict.sentence, picture.words, picture.png(), repr(player))


def cells_of_page():
    """Return what Python on the page must know about the cells, as for those of a chapter."""
    return cells.of_chapter([nbformat.v4.new_code_cell(text, id=id) for id, text in sources(WRONG).items()])


def loop(pictures, record):
    """Return what the template shows of the loop.

    pictures: where its picture goes; record: the address of what `mended` returns.
    """
    wrong = played(WRONG)
    name, width, height = pictures.add(base64.b64encode(wrong.picture))
    texts = {id: text for id, text in sources(WRONG).items() if id != "loop"}
    lines = {"above": ABOVE, "indent": INDENT, "below": BELOW, "wrong": WRONG, "mended": MENDED}
    shown = {"above": ABOVE, "wrong": INDENT + WRONG, "below": BELOW, "mended": MENDED}
    return {
        "place": PLAYED,
        "code": {name: coloured(text) for name, text in shown.items()},
        "found": html.escape(wrong.found),
        "sentence": html.escape(wrong.sentence),
        "still": {"name": name, "width": width, "height": height, "words": wrong.words},
        "about": {"texts": texts, "record": record, **lines},
    }


def mended():
    """Return what a page shows once the line is right."""
    right = played(MENDED)
    return {"player": right.player, "verdict": right.verdict}


def coloured(text):
    """Return the HTML of lines of code, each an element, so that the one at work can be marked."""
    made = highlight(text, PythonLexer(stripnl=False, ensurenl=False), HtmlFormatter(nowrap=True))
    return "".join(f'<div class="loop-line">{line}</div>' for line in made.rstrip("\n").split("\n"))


def route(made):
    """Return the Entries of the route: what one writes in each chapter."""
    return [_entry(one, WRITTEN[one.chapter.name]) for one in made if one.chapter.part == ROUTE]


def electives(made):
    """Return (part, its time in words, its Entries) for each part after the route."""
    found, times = {}, _times(made)
    for one in made:
        if one.chapter.part != ROUTE:
            found.setdefault(one.chapter.part, []).append(one)
    return [
        (part, times.get(part, ""), [_entry(one, one.chapter.idea) for one in of_part])
        for part, of_part in found.items()
    ]


def hours(made):
    """Return how long the route takes from zero, from its later start, and all chapters together, in words.

    None for a site of a few chapters.
    """
    if not {*FROM_ZERO.numbers} <= {one.chapter.number for one in made}:
        return None
    zero, known = ([one for one in made if one.chapter.number in way.numbers] for way in (FROM_ZERO, KNOWN))
    times = {"zero": _together(zero), "known": _together(known), "all": _together(made)}
    return times | {"later": known[0].chapter}


def _times(made):
    """Return how long each part takes, in words; on a site with the route, they add up to the whole."""
    totals = {}
    for one in _counted(made):
        totals[one.chapter.part] = totals.get(one.chapter.part, 0) + minutes.of(one.nb).core
    if hours(made) and min(totals.values()) > 60:
        return dict(zip(totals, minutes.in_parts([*totals.values()]), strict=True))
    return {part: minutes.in_words(total) for part, total in totals.items()}


def _entry(one, about):
    time = f"{minutes.of(one.nb).rounded().core} min" if one.chapter.number else ""
    return Entry(one.chapter, re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(about)), time)


def _together(made):
    """Return how long chapters take together, in words."""
    return minutes.in_words(sum(minutes.of(one.nb).core for one in _counted(made)))


def _counted(made):
    """Return the chapters that the times of routes and parts count: all with a number but the first."""
    return [one for one in made if one.chapter.number and one.chapter != CHAPTERS[0]]


def measured_in(made):
    """Return links to the chapters that have all that was measured, as HTML; "" without them."""
    links = [
        f'<a href="{one.chapter.slug}.html">{html.escape(one.chapter.short_title)}</a>'
        for one in made
        if one.chapter.name in IN_FULL
    ]
    return and_list(links) if links else ""


def measured():
    """Return a line for each pass of the kernels for Hopper, next to those of others, as HTML."""
    return [_measured(title, results.read(name)) for title, name in MEASURED.items()]


def _measured(title, record):
    rows = [row for row in record["rows"] if row["causal"] and row["N"] == LONG]
    speeds, sizes = ([number(row["tflops"]["hopper"]) for row in rows], [str(row["d"]) for row in rows])
    cudnn, fa4 = (
        and_list([number(x, 2) for x in results.over(rows, "hopper", peer)]) for peer in ("sdpa_cudnn", "fa4")
    )
    gpu = record["gpu"].removeprefix("NVIDIA ")
    return (
        f"<b>{title}</b>: {and_list(speeds)} TFLOP/s at d = {and_list(sizes)}, which is {cudnn} times cuDNN's "
        f"speed and {fa4} times FlashAttention-4's ({gpu}, {record['date']})."
    )
