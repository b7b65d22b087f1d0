"""OverflowLab in JupyterLab, in a real browser."""

import math

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

from flashlib.widgets.overflow_lab.overflow_lab import OverflowLab
from tests.browser.lab import wait_until_heard
from tests.browser.playing import active_cell
from tests.browser.shown.overflow_lab import assert_shown, cells, value

pytestmark = pytest.mark.browser

CELLS = [
    "from flashlib.widgets import OverflowLab",
    "OverflowLab()",
    "OverflowLab(x=15)",
    "refusing = OverflowLab(x=9)\nrefusing",
]


@pytest.fixture(scope="module")
def notebook(open_lab):
    with open_lab("overflow_lab.ipynb", cells=CELLS) as lab:
        assert lab.run_all() == []
        yield lab


@pytest.fixture
def lab(notebook):
    """The first widget of the notebook, as it was made."""
    lab = notebook.page.locator(".flash-overflow").first
    lab.scroll_into_view_if_needed()
    choose(lab, "fp16")
    shows(lab, dtype="float16")  # the slider of x has its range now
    move(lab, ".flash-slider input", 0)
    move(lab, ".flash-overflow-range", 11)
    shows(lab, x=11, dtype="float16", copies=1)
    return lab


def choose(lab, dtype):
    lab.get_by_text(dtype, exact=True).first.click()


def move(lab, selector, value):
    """Move a slider like a pointer."""
    lab.locator(selector).evaluate(
        "(input, value) => { input.value = value; input.dispatchEvent(new Event('input', { bubbles: true })); }",
        value,
    )


def shows(lab, **wanted):
    """Wait until the widget shows this x, dtype and number of copies."""
    lab.page.wait_for_function(
        "([lab, wanted]) => Object.entries(wanted).every(([name, x]) => lab.dataset[name] === String(x))",
        arg=[lab.element_handle(), wanted],
    )


def jump(lab, name):
    lab.locator(f".flash-overflow-jump[data-name={name}]").click()


@pytest.mark.parametrize(
    "dtype, name, x, k",
    [
        ("fp16", "float16", -17, 0),
        ("fp16", "float16", 12, 3),
        ("bf16", "bfloat16", 90.5, 0),
        ("fp64", "float64", 710, 1),
    ],
)
def test_numbers_are_those_of_python(lab, dtype, name, x, k):
    if dtype == "bf16":
        pytest.importorskip("torch")
    choose(lab, dtype)
    shows(lab, dtype=name)
    move(lab, ".flash-slider input", k)
    move(lab, ".flash-overflow-range", x)
    shows(lab, dtype=name, copies=2**k, x=value(lab.locator(".flash-overflow-range").input_value()))
    x = float(lab.get_attribute("data-x"))
    assert_shown(lab, dict(x=x, dtype=name, copies=2**k))


def test_single_steps_by_keyboard_reach_the_exact_threshold(lab):
    lab.focus()
    for k in range(1, 12):
        lab.press("ArrowRight")
        shows(lab, x=11 + k / 128)
    assert cells(lab, "e")[0][2] != "inf"
    lab.press("ArrowRight")
    shows(lab, x=11.09375)
    assert cells(lab, "e")[0][2] == "inf" and cells(lab, "e")[1] == ["", "", "overflow"]
    assert cells(lab, "naive")[0] == ["0", "0", "NaN"]
    lab.press("ArrowLeft")
    shows(lab, x=11.0859375)
    assert cells(lab, "e")[0][2] != "inf"


@pytest.mark.parametrize(
    "dtype, name, threshold",
    [
        ("fp16", "float16", 11.0859375),
        ("fp32", "float32", float(np.float32(88.7228317))),
        ("fp64", "float64", 709.782712893384),
    ],
)
def test_buttons_go_to_the_threshold_and_one_number_on(lab, dtype, name, threshold):
    choose(lab, dtype)
    shows(lab, dtype=name)
    jump(lab, "terms")
    shows(lab, x=threshold)
    assert cells(lab, "naive")[0] == ["0"] * 3  # the sum is already inf
    lab.locator(".flash-overflow-next").click()
    page_x = float(np.nextafter(np.dtype(name).type(threshold), np.dtype(name).type(math.inf)))
    shows(lab, x=page_x)
    assert cells(lab, "naive")[0] == ["0", "0", "NaN"]
    lab.locator(".flash-overflow-previous").click()
    shows(lab, x=threshold)
    jump(lab, "positive")
    shows(lab, x=OverflowLab(threshold, name).result["thresholds"]["positive"][0])
    lab.locator(".flash-overflow-previous").click()
    lab.locator(".flash-overflow-words").get_by_text("0/0 is NaN").wait_for()
    assert cells(lab, "l") == (["0"], ["underflow"])


def test_a_long_row_overflows_in_its_sum(lab):
    move(lab, ".flash-slider input", 14)
    move(lab, ".flash-overflow-range", 2)
    shows(lab, copies=16384, x=2)
    assert cells(lab, "l") == (["inf"], ["overflow"]) and cells(lab, "e")[1] == ["", "", ""]
    assert cells(lab, "naive") == (["0"] * 3, ["wrong"] * 3)
    assert lab.locator(".flash-overflow-flag-high").all_inner_texts() == ["", "", "", "▲ inf"]


def test_slider_works_by_keyboard_and_stays_in_place(notebook, lab):
    slider = lab.locator(".flash-overflow-range")
    slider.focus()
    slider.press("ArrowRight")
    following = float(np.nextafter(np.float16(11), np.float16(12)))
    shows(lab, x=following)
    assert slider.get_attribute("aria-valuetext") == f"{following} in fp16"
    slider.press("ArrowLeft")
    shows(lab, x=11)
    move(lab, ".flash-overflow-range", 11.0625)
    shows(lab, x=11.0625)
    assert slider.input_value() == "11.0625"
    slider.press("End")
    shows(lab, x=14)
    assert lab.locator(".flash-overflow-next").is_disabled()
    lab.focus()  # makes its cell the active one
    before = active_cell(notebook)
    lab.press("ArrowDown")
    assert active_cell(notebook) == before  # JupyterLab did not take it


def test_bars_end_at_their_numbers(lab):
    """On the axis of the picture, in units of log, to within a pixel."""
    move(lab, ".flash-overflow-range", 5)
    shows(lab, x=5)
    box = lab.locator(".flash-overflow-zones").bounding_box()
    result = OverflowLab(5.0).result
    (low, high), logs = result["range"], [3, 4, 5, 5 + math.log(1 + math.exp(-1) + math.exp(-2))]

    def place(log):
        return box["x"] + box["width"] * (log - low) / (high - low)

    bars = lab.locator(".flash-overflow-track .flash-overflow-bar")
    for k, log in enumerate(logs):
        bar = bars.nth(k).bounding_box()
        assert bar["x"] == pytest.approx(place(0), abs=2)
        assert bar["x"] + bar["width"] == pytest.approx(place(log), abs=2)
    diamonds = lab.locator(".flash-overflow-track .flash-overflow-diamond")
    for k, log in enumerate(logs):
        diamond = diamonds.nth(k).bounding_box()
        assert diamond["x"] + diamond["width"] / 2 == pytest.approx(place(log - 5), abs=2)
    left = lab.locator("i[data-zone=high]").first.bounding_box()["x"]
    assert left == pytest.approx(place(math.log(65504)), abs=2)


def test_nothing_moves_while_x_does(lab):
    places = (
        "lab => [...lab.querySelectorAll('section, table, button, td')].map((e) => [e.offsetLeft, e.offsetTop])"
    )
    before = lab.evaluate(places)
    for x in (-19, -17, 3, 12):
        move(lab, ".flash-overflow-range", x)
        shows(lab, x=x)
        assert lab.evaluate(places) == before, x


def test_changes_are_announced(lab):
    move(lab, ".flash-overflow-range", 12)
    lab.page.wait_for_function(
        "lab => /^x = 12\\. exp\\(12\\) = 162755/.test(lab.querySelector('[aria-live]').textContent)",
        arg=lab.element_handle(),
    )


def test_bad_input_is_reported(notebook):
    problem = notebook.page.locator(".flash-overflow .flash-problem")
    assert problem.inner_text().startswith("x is 15; pass a number from -20 to 14 for float16")


def test_a_refusal_is_reported_and_the_result_stays(notebook):
    lab = notebook.page.locator(".flash-overflow").nth(2)
    lab.scroll_into_view_if_needed()
    lab.evaluate("lab => lab.flashWidget.ask({ dtype: 'int8' })")
    lab.get_by_text("dtype is 'int8'").wait_for()
    shows(lab, x=9, dtype="float16")
    assert lab.locator("input[type=radio]:checked").get_attribute("value") == "float16"
    move(lab, ".flash-overflow-range", 8)
    shows(lab, x=8)
    wait_until_heard(lab)
    assert lab.get_by_text("dtype is 'int8'").count() == 0
