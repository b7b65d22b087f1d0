"""What OnlineSoftmaxLab shows: at each position the numbers of the scan, and bars of their heights."""

import numpy as np

from flashlib.widgets.online_softmax_lab.scan import read, scan
from tests.browser.shown.drawn import marked


def seek(widget, position):
    widget.evaluate("(widget, position) => widget.flashWidget.transport.seek(position)", position)


def without(widget):
    return widget.get_by_label("without the rescale")


def data(widget, name):
    return widget.get_attribute(f"data-{name}")


def sentence(widget):
    return widget.locator(".flash-online-sentence").inner_text()


def value(text):
    return float(text.replace("−", "-").replace("∞", "inf"))


def shown(widget, name):
    """The number in an element, which must be its title to four digits."""
    element = widget.locator(f"[data-name={name}]")
    number, full = value(element.inner_text()), value(element.get_attribute("title"))
    assert number == full or number == float(f"{full:.3e}"), name
    return full


def values(widget, chart):
    """The titles of the columns of a chart: the numbers with all digits, None where there is none yet."""
    columns = widget.locator(f"[data-name={chart}] .flash-online-column")
    return titles(columns.evaluate_all("all => all.map((c) => c.title)"))


def heights(widget, part):
    """The heights of a part of the terms, 1 for a term of 1; parts are 1: right, 2: too much, 3: the reference."""
    bars = widget.locator(f"[data-name=terms] .flash-online-area > :nth-child({part})")
    return np.array(bars.evaluate_all("all => all.map((bar) => parseFloat(bar.style.height) / 92)"))


def bars(widget):
    """The scores as drawn: where each bar begins and ends, in px above the zero line, and its direction."""
    return widget.locator("[data-name=scores]").evaluate(
        """chart => {
            const zero = chart.querySelector(".flash-online-zero").getBoundingClientRect().bottom;
            return [...chart.querySelectorAll(".flash-online-bar")].map((bar) => {
                const { top, bottom } = bar.getBoundingClientRect();
                return [zero - bottom, zero - top, bar.classList.contains("flash-online-negative")];
            });
        }"""
    )


# What is shown at every position: texts and titles of numbers, and the titles and heights of the terms.
EVERY = """widget => {
    const { transport } = widget.flashWidget;
    return Array.from({ length: transport.last + 1 }, (_, position) => {
        transport.seek(position);
        const named = [...widget.querySelectorAll("[data-name][title]")];
        return {
            data: { ...widget.dataset },
            numbers: Object.fromEntries(named.map((e) => [e.dataset.name, [e.textContent, e.title]])),
            terms: [...widget.querySelectorAll("[data-name=terms] .flash-online-column")].map((e) => e.title),
            heights: [...widget.querySelectorAll("[data-name=terms] .flash-online-area")].map(
                (area) => parseFloat(area.children[0].style.height) / 92),
            sum: [...widget.querySelectorAll(".flash-online-track > span")].map(
                ({ style }) => parseFloat(style.width) || 0),
            pieces: [...widget.querySelectorAll(".flash-online-bar > i")].map((e) => Number(e.style.flexGrow)),
        };
    });
}"""


def check(widget):
    """At each position, with the rescale and without."""
    row = read(widget.evaluate("widget => widget.flashWidget.model.get('frames').text"))
    known, was = scan(row), without(widget).is_checked()
    for rescale in (True, False):
        without(widget).set_checked(not rescale)
        check_scan(widget, row, known, rescale)
    without(widget).set_checked(was)
    check_scores(widget, row)
    grew = (known["m_old"] > -np.inf) & (known["m"] > known["m_old"])
    assert marked(widget) == (2 * np.flatnonzero(grew)).tolist()


def check_scan(widget, row, known, rescale):
    l, error, weight = ("l", "error", "weight") if rescale else ("l_wrong", "error_wrong", "weight_wrong")
    every, N = widget.evaluate(EVERY), len(row)
    for j in range(N):
        before, after = every[2 * j], every[2 * j + 1]
        l_old = known[l][j - 1] if j else 0
        terms = known["terms"][j] if rescale else known["p"]
        expected = {
            **{name: known[name][j] for name in ("m_old", "m", "alpha")},
            **{"l_old": l_old, "error": known[error][j - 1] if j else 0},
            "shown": known["kept"][j] if rescale else l_old,
            "reference": l_old if rescale else known["kept"][j],
        }
        check_position(before, "rescale", rescale, expected, terms[:j], N)
        expected = {"l": known[l][j], "shown": known[l][j], "error": known[error][j]}
        check_position(after, "add", rescale, expected, terms[: j + 1], N)
        if rescale:
            assert np.allclose(before["heights"][:j], terms[:j], atol=1e-3)
            assert np.allclose(after["heights"][: j + 1], terms[: j + 1], atol=1e-3)
        check_sum(before, after, known, j, rescale)
    assert titles(every[2 * N]["terms"]) == list(known[weight])
    assert f"{known[weight].sum():.4g}"[:5] in sentence(widget)
    assert values(widget, "scores") == list(row)


def check_position(now, phase, rescale, expected, terms, N):
    assert (now["data"]["phase"], now["data"]["rescale"]) == (phase, str(rescale).lower())
    for name, x in expected.items():
        text, full = (value(one) for one in now["numbers"][name])
        assert full == x and text in (full, float(f"{full:.3e}")), name
    assert titles(now["terms"]) == [*terms, *[None] * (N - len(terms))]


def check_sum(before, after, known, j, rescale):
    """l is a bar of everything that was summed, on the scale of the largest l; its pieces are the terms."""
    l, kept, p = known["l"], known["kept"], known["p"]
    largest = max(l) if rescale else known["l_wrong"][-1]
    wrong = [known["l_wrong"][j - 1] if j else 0, known["l_wrong"][j]]
    for now, right, added, shown in ((before, kept[j], 0, wrong[0]), (after, l[j], p[j], wrong[1])):
        added, shown = (added, right) if rescale else (0, shown)
        parts = np.array(now["sum"][:3]) / 100 * largest
        assert np.allclose(parts, [right - added, added, max(0, shown - right)], atol=1e-3 * largest)
    shrinks = rescale and known["m"][j] > known["m_old"][j] > -np.inf
    outline = known["l"][j - 1] if shrinks else 0  # of its old value
    assert np.isclose(before["sum"][3] / 100 * largest, outline, atol=1e-3 * largest)
    last = j - 1 if rescale else j  # of the terms in the bar
    if last >= 0:
        assert np.allclose(after["pieces"], 100 * known["terms"][last] / l[last], atol=1e-3)


def titles(columns):
    """The numbers of columns with all digits, None where there is none yet."""
    return [value(title.split(": ")[1]) if title else None for title in columns]


def check_scores(widget, row):
    """Scores are bars above or below the zero line, in one unit; a masked score has none."""
    finite, drawn = row[np.isfinite(row)], bars(widget)
    unit = max(high - low for low, high, _ in drawn) / np.abs(finite).max()
    for x, (low, high, negative) in zip(finite, drawn, strict=True):
        assert np.allclose((low, high), (min(0, x) * unit, max(0, x) * unit), atol=1.5)
        assert negative == (x < 0)
