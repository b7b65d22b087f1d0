"""OnlineSoftmaxLab in JupyterLab, in a real browser: by keyboard and pointer; the numbers on the page."""

import math
import re

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

from flashlib import softmax
from flashlib.widgets.online_softmax_lab.scan import read, scan, write
from tests.browser.lab import wait_until_heard
from tests.browser.playing import active_cell, open_anew
from tests.browser.shown.online_softmax_lab import (
    bars,
    check,
    data,
    heights,
    seek,
    sentence,
    shown,
    values,
    without,
)

pytestmark = pytest.mark.browser

ROW = [1, 0.5, -math.inf, 2.07, 1.5, 3.25]
CELLS = [
    "import numpy as np\nfrom flashlib.widgets import OnlineSoftmaxLab",
    f"lab = OnlineSoftmaxLab([{write(ROW).replace('inf', 'np.inf')}])\nlab",
    "OnlineSoftmaxLab([1, np.nan])",
]


@pytest.fixture(scope="module")
def opened(open_lab):
    with open_lab("online_lab.ipynb", cells=CELLS) as lab:
        assert lab.run_all() == []
        yield lab


@pytest.fixture
def widget(opened):
    """The widget as it was made, at its start."""
    widget = opened.page.locator(".flash-online").first
    widget.scroll_into_view_if_needed()
    type_row(widget, write(ROW))
    without(widget).uncheck()
    wait_for(widget, "data.n === '6' && data.rescale === 'true'")
    press(widget, "Home")
    return widget


def wait_for(widget, condition):
    widget.page.wait_for_function(
        f"widget => {{ const data = widget.dataset; return {condition}; }}", arg=widget.element_handle()
    )


def press(widget, key):
    widget.evaluate("widget => widget.focus()")
    widget.page.keyboard.press(key)


def field(widget):
    return widget.locator(".flash-online-typed")


def type_row(widget, text):
    field(widget).fill(text)
    field(widget).press("Enter")


def test_every_position_shows_the_numbers_of_the_scan(widget):
    check(widget)


def test_it_opens_at_the_first_rescale(widget):
    open_anew(widget)
    m = scan(np.array(ROW))["m"]
    j = next(j for j in range(1, len(m)) if m[j] > m[j - 1] > -np.inf)
    assert (data(widget, "phase"), data(widget, "position")) == ("rescale", str(2 * j))
    assert heights(widget, 3).any()  # something has shrunk


def test_bars_shrink_by_alpha_when_the_maximum_grows(widget):
    known = scan(np.array(ROW))
    j = 3  # from 1 to 2.07
    seek(widget, 2 * j - 1)
    before = heights(widget, 1)
    assert np.allclose(before, known["terms"][j - 1], atol=1e-3)
    seek(widget, 2 * j)
    now, ghosts = heights(widget, 1), heights(widget, 3)
    assert np.allclose(now, known["alpha"][j] * before, atol=1e-3)
    assert np.allclose(ghosts, before, atol=1e-3)
    assert sentence(widget).startswith(
        "The maximum grew from 1 to 2.070, so everything summed so far is multiplied by"
    )
    assert f"alpha = exp(1 − 2.070) = {math.exp(1 - 2.07):.4f}: " in sentence(widget)
    without(widget).check()
    assert np.allclose(heights(widget, 1) + heights(widget, 2), before, atol=1e-3)
    assert "should be multiplied" in sentence(widget)


def test_scores_are_above_or_below_the_zero_line(widget):
    row = [-2.33, 1.0, -1.165, 2.0]
    type_row(widget, write(row))
    wait_for(widget, "data.n === '4'")
    drawn = bars(widget)
    unit = drawn[1][1]  # px, of 1
    for x, (low, high, negative) in zip(row, drawn, strict=True):
        assert np.allclose((low, high), (min(0, x) * unit, max(0, x) * unit), atol=1.5)
        assert negative == (x < 0)
    assert widget.locator("[data-name=scores] .flash-online-axis").inner_text().split() == ["0", "2.00", "−2.33"]
    type_row(widget, "1000, 1001, 1002")  # zero is far: it is left out, and the page says so
    wait_for(widget, "data.n === '3'")
    assert "the bars do not begin at 0" in widget.locator(".flash-online-charts").inner_text()
    assert np.diff([high for _, high, _ in bars(widget)]).min() > 20


def stepped(widget, position, speed="2", frame=0.5):
    """Step on from a position; return the progress of the page's elements in this part of the motion."""
    widget.get_by_label("steps per second").select_option(speed)
    seek(widget, position)
    return widget.evaluate(
        """(widget, frame) => {
            widget.flashWidget.transport.step(1);
            const running = widget.getAnimations({ subtree: true });
            for (const animation of running) {
                animation.pause();
                animation.currentTime = frame * animation.effect.getTiming().duration;
            }
            const size = (element, side) => element.getBoundingClientRect()[side];
            const bars = [...widget.querySelectorAll("[data-name=terms] .flash-online-bar")];
            const look = {
                terms: bars.map((bar) => size(bar, "height") / (0.92 * bar.parentElement.clientHeight)),
                l: [...widget.querySelectorAll(".flash-online-track > span:not(.flash-online-ghost)")]
                    .reduce((sum, part) => sum + size(part, "width"), 0),
                times: running.map((animation) => animation.effect.getTiming().duration),
            };
            for (const animation of running) animation.finish();
            return look;
        }""",
        frame,
    )


def test_terms_and_l_shrink_by_alpha_visibly(widget):
    known, j = scan(np.array(ROW)), 3  # from 1 to 2.07
    start, middle, end = (stepped(widget, 2 * j - 1, frame=frame) for frame in (0, 0.5, 1))
    alpha = known["alpha"][j]
    before = known["terms"][j - 1, :j]
    for look, times in ((start, 1), (middle, (1 + alpha) / 2), (end, alpha)):
        assert np.allclose(look["terms"][:j], times * before, atol=0.01)
    assert np.isclose(end["l"] / start["l"], alpha, atol=0.01)
    assert end["l"] < middle["l"] < start["l"]
    factor = f"× {alpha:.4f}"
    assert [widget.locator(f".flash-online-{name}").inner_text() for name in ("factor", "tag")] == [factor] * 2
    assert shown(widget, "alpha") == alpha
    assert middle["times"] and set(middle["times"]) == {300}
    assert shown(widget, "shown") == known["kept"][j]


def test_motion_is_short_or_absent(widget):
    assert set(stepped(widget, 5, "0.5")["times"]) == {350}
    assert set(stepped(widget, 5, "5")["times"]) == {120}
    assert stepped(widget, 5, "10")["times"] == []
    widget.get_by_label("steps per second").select_option("2")
    seek(widget, 5)
    seek(widget, 6)
    assert widget.evaluate("widget => widget.getAnimations({ subtree: true }).length") == 0
    widget.page.emulate_media(reduced_motion="reduce")
    try:
        assert stepped(widget, 5)["times"] == []
    finally:
        widget.page.emulate_media(reduced_motion="no-preference")


def test_rescales_are_marked_under_the_scrub_bar(widget):
    assert widget.locator(".flash-marks path").get_attribute("d") == "M6 0V1M10 0V1"  # scores 4 and 6


def test_the_error_grows_with_the_switch_on_only(widget):
    type_row(widget, "0, 1, 2, 3, 4, 5, 6, 7")
    wait_for(widget, "data.n === '8'")
    known = scan(np.arange(8.0))
    for on in (True, False):
        without(widget).set_checked(on)
        errors = []
        for j in range(8):
            seek(widget, 2 * j + 1)
            errors.append(shown(widget, "error"))
        points = widget.locator(".flash-online-curve path").get_attribute("d")
        up = [100 - float(y) for _, y in re.findall(r"L(\S+) ([\d.]+)", points)]
        assert errors == list(known["error_wrong" if on else "error"])
        assert np.allclose(up, 92 * np.array(errors) / known["error_wrong"].max(), atol=1e-9)
        assert (np.diff(up) > 1).all() == on
        assert widget.locator(".flash-online-curve").is_visible() == on  # otherwise it is flat


def test_keys(opened, widget):
    position = lambda: int(data(widget, "position"))  # noqa: E731
    for key, expected in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", 12), ("Home", 0)):
        press(widget, key)
        assert position() == expected, key
    cell = active_cell(opened)
    widget.get_by_label("steps per second").select_option("60")
    press(widget, " ")
    wait_for(widget, "data.position === '12'")
    assert data(widget, "phase") == "end"
    assert active_cell(opened) == cell


def test_the_text_field_keeps_its_keys(widget):
    field(widget).fill("1, 2")
    for key in ("Home", "Delete", "ArrowRight", " ", "End", "5"):
        field(widget).press(key)
    assert field(widget).input_value() == ",  25"
    assert data(widget, "position") == "0"
    field(widget).press("Enter")
    wait_for(widget, "data.n === '1'")
    assert field(widget).input_value() == "25"


def test_everything_is_reached_with_tab(widget):
    widget.evaluate("widget => widget.focus()")
    seen = []
    for _ in range(16):
        widget.page.keyboard.press("Tab")
        seen.append(
            widget.page.evaluate(
                """() => {
                    const e = document.activeElement;
                    if (!e.closest(".flash-online")) return null;
                    return e.ariaLabel ?? e.closest("label")?.textContent ?? e.textContent;
                }"""
            )
        )
    names = [name for name in seen if name]
    for name in ("play (space)", "step", "without the rescale", "increasing", "masked"):
        assert name in names
    assert any(name.startswith("x, the scores") for name in names)


def test_a_bad_row_is_reported_and_the_old_one_stays(widget):
    seek(widget, 5)
    type_row(widget, "1, zwei, 3")
    status = widget.get_by_role("status")
    status.get_by_text("“zwei” is not a number").wait_for()
    assert "1 to 64 numbers, finite or -inf" in status.inner_text()
    assert field(widget).get_attribute("aria-invalid") == "true"
    assert field(widget).input_value() == "1, zwei, 3"
    assert (data(widget, "n"), data(widget, "position")) == ("6", "5")
    assert values(widget, "scores") == ROW
    type_row(widget, "4 5")
    wait_for(widget, "data.n === '2'")
    wait_until_heard(widget)
    assert (status.inner_text(), field(widget).input_value()) == ("", "4, 5")
    assert field(widget).get_attribute("aria-invalid") == "false"


def test_buttons_fill_in_rows(widget):
    examples = widget.evaluate("widget => widget.flashWidget.model.get('examples')")
    for name, text in examples.items():
        widget.get_by_role("button", name=name, exact=True).click()
        x = read(text)
        widget.page.wait_for_function(
            "([widget, text]) => widget.flashWidget.model.get('frames').text === text",
            arg=[widget.element_handle(), text],
        )
        wait_for(widget, f"data.n === '{len(x)}'")
        assert field(widget).input_value() == text
        assert values(widget, "scores") == list(x)
        seek(widget, 2 * len(x))
        assert np.array_equal(values(widget, "terms"), softmax.online(x))


def test_masked_rows(widget):
    type_row(widget, "-inf, -inf")
    wait_for(widget, "data.n === '2'")
    for position in range(5):
        seek(widget, position)
        for rescale in (True, False):
            without(widget).set_checked(not rescale)
            assert "NaN" not in widget.inner_text()
    assert sentence(widget) == "All scores are −∞: m = −∞, l = 0, and every weight is 0."
    assert values(widget, "terms") == [0, 0]


def test_python_receives_the_switch_and_can_change_the_row(opened, widget):
    without(widget).check()
    run = """code => {
        const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
        return new Promise((done) => {
            const future = kernel.requestExecute({ code });
            future.onIOPub = ({ content }) => content.text && done(content.text.trim() === "False");
        });
    }"""
    opened.page.wait_for_function(run, arg="print(lab.rescale)")  # its message may come after the code
    opened.page.wait_for_function(run, arg="lab.x = (3, 1, 2)\nprint(lab.rescale)")
    wait_for(widget, "data.n === '3'")
    assert field(widget).input_value() == "3, 1, 2"


def test_a_sentence_says_what_cannot_be_shown(opened):
    problem = opened.page.locator(".flash-online .flash-problem")
    assert problem.inner_text().startswith("number 2 of x is nan; accepted are 1 to 64 numbers")
