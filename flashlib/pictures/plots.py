"""A plot as it is stored in a notebook: a PNG for any viewer, and SVG for the site, wide and for a phone."""

import base64
import io
import math
import re
import textwrap
import warnings

from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.text import Text

from flashlib.pictures.formats import PHONE

WIDTH = 3.7  # inches, of a plot for a phone: 355 px, as wide as the text of a page 390 px wide
LETTERS = 8.5  # points, at least, in such a plot: more than 11 px
TITLE = 10  # points
SHRINKS = 0.62  # how much narrower than it is a panel may become, before there are fewer side by side
LOW = 1.8  # inches, of a panel for a phone
UNSEEN = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>", re.S)
NUMBER = re.compile(r"\d+\.\d{3,}")


def bundle(figure: Figure) -> dict[str, str]:
    """Return a plot as a MIME bundle: a PNG, the same as SVG, and an SVG for a phone.

    The last is laid out again: panels below each other, letters of at least 11 px. If texts would overlap then, it
    is the wide one, drawn so large that its letters can be read. The figure is changed.
    """
    words, file = repr(figure), io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight", facecolor="none")
    wide = svg(figure)
    letters = min((text.get_fontsize() for text in _texts(figure)), default=LETTERS)
    crossings = _crossings(figure)
    with warnings.catch_warnings(action="ignore"):  # if there is no room for its axes, texts overlap
        _make_narrow(figure)
        phone = svg(figure) if _crossings(figure) <= crossings else _enlarged(wide, LETTERS / letters)
    png = base64.b64encode(file.getvalue()).decode()
    return {"text/plain": words, "image/png": png, "image/svg+xml": wide, PHONE: phone}


def svg(figure: Figure) -> str:
    """Return a plot as SVG, the same text each time: letters as letters, two decimals, nothing about its maker."""
    file = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(file, format="svg", bbox_inches="tight", pad_inches=0.04, facecolor="none", metadata=nothing)
    text = UNSEEN.sub("", file.getvalue())
    named = {*re.findall(r"#([\w.-]+)", text)}
    text = re.sub(r"<[^>]*>", lambda tag: _shorter(tag[0], named), text)
    text = re.sub(r">\s+<", "><", text).strip()
    return re.sub(r"<g>(<[^/>]*/>)</g>", r"\1", text)


def _shorter(tag, named):
    """Return a tag with numbers of two decimals, and without a name by which nothing calls it."""
    tag = NUMBER.sub(_two_decimals, re.sub(r"([:;]) ", r"\1", " ".join(tag.split())))
    return re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in named else "", tag)


def _two_decimals(number):
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _enlarged(text, times):
    """Return an SVG that is shown this many times larger, if it is more than once."""
    size = re.compile(r' (width|height)="([\d.]+)pt"')
    return size.sub(lambda side: f' {side[1]}="{float(side[2]) * max(times, 1):.2f}pt"', text, count=2)


def _make_narrow(figure):
    """Make a figure as narrow as a phone."""
    width, height = figure.get_size_inches()
    panels = [ax for ax in figure.axes if ax.get_subplotspec() is not None]
    if width <= WIDTH or not panels:
        return
    rows, columns = panels[0].get_subplotspec().get_gridspec().get_geometry()
    side_by_side = max(1, min(columns, int(WIDTH / (SHRINKS * width / columns))))
    below = math.ceil(len(panels) / side_by_side)
    if side_by_side < columns:
        _arrange(figure, panels, columns, GridSpec(below, side_by_side, figure=figure))
    for text in figure.findobj(Text):
        text.set_fontsize(LETTERS if text.get_fontsize() < 11 else TITLE)
    figure.set_size_inches(WIDTH, below * max(height / rows, LOW))
    for _ in range(4):
        figure.draw_without_rendering()  # its layout depends on its texts, and these on its layout
        if _fit_words(figure, panels):
            continue
        too_wide = figure.get_tightbbox().width - WIDTH
        if too_wide <= 0.05:
            break
        figure.set_figwidth(max(figure.get_figwidth() - too_wide, 0.75 * WIDTH))


def _arrange(figure, panels, columns, grid):
    """Put panels into a grid with fewer columns; the first of a row says what its y axis is."""
    for k, ax in enumerate(panels):
        leader = panels[k - k % columns]
        if k % grid.ncols == 0:
            ax.tick_params(labelleft=True)
            if not ax.get_ylabel() and ax.get_shared_y_axes().joined(ax, leader):
                ax.set_ylabel(leader.get_ylabel())
        ax.set_subplotspec(grid[divmod(k, grid.ncols)])


def _fit_words(figure, panels):
    """Break titles that are too wide, and put less of such a legend side by side; return whether there was any."""
    room = WIDTH * figure.dpi
    changed = False
    for ax in panels:
        share = 1.08 * room * ax.get_position().width
        changed |= _break(ax.title, share) | _break(ax.xaxis.label, share)
    if figure.get_suptitle():
        changed |= _break(figure._suptitle, room)
    for legend in [*figure.legends, *(ax.get_legend() for ax in panels if ax.get_legend())]:
        wide = legend.get_window_extent().width
        if wide > room and legend._ncols > 1:
            _set_columns(legend, max(1, min(legend._ncols - 1, int(legend._ncols * room / wide))))
            changed = True
    return changed


def _set_columns(legend, columns):
    """Draw a legend again with so many columns; `Legend.set_ncols` would only note them."""
    words, title = [text.get_text() for text in legend.get_texts()], legend.get_title().get_text()
    legend.prop.set_size(LETTERS)
    legend.set_ncols(columns)
    legend._init_legend_box(legend.legend_handles, words)
    legend._set_loc(legend._loc_real)
    legend.set_title(title, prop={"size": LETTERS})


def _break(text, room):
    """Break a text, but no formula, into lines of at most so many pixels, about; return whether it changed."""
    before = text.get_text()
    if (wide := text.get_window_extent().width) <= room:
        return False
    words = re.sub(r"\$.*?\$", lambda formula: formula[0].replace(" ", "\0"), before)
    longest = max(map(len, words.split("\n")))
    text.set_text(textwrap.fill(words, max(8, int(longest * room / wide))).replace("\0", " "))
    return text.get_text() != before


def _texts(figure):
    """Return the texts of a figure that are seen."""
    unseen = set()
    for axis in [axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)]:
        ticks = {*axis.majorTicks, *axis.minorTicks} - {*axis._update_ticks()}  # beyond the ends of the axis
        unseen |= {label for tick in ticks for label in (tick.label1, tick.label2)}
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    return [text for text in texts if text not in unseen]


def _crossings(figure):
    """Return how many pairs of texts overlap."""
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in _texts(figure)]
    shared = lambda a, b: min(min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0))  # noqa: E731
    return sum(shared(a, b) > 2 for k, a in enumerate(boxes) for b in boxes[:k])
