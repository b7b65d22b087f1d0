"""EightBitsLab in JupyterLab, in a real browser: by keyboard and pointer; its numbers and pictures."""

import pytest

pytest.importorskip("anywidget")

from flashlib.widgets import EightBitsLab
from tests.browser import sizes
from tests.browser.contrast import too_low
from tests.browser.lab import THEMES, resized, wait_until_heard
from tests.browser.labs import text, wait_for
from tests.browser.shown.eight_bits_lab import check_maps, check_place, check_shown, view

pytestmark = pytest.mark.browser

LAB = ".flash-eight-bits-lab"
CHOSEN = "int8, two levels, P and V in e5m2, O in e4m3"
RECORD = [(CHOSEN, 700.0), ("e4m3, 13 bits", 900.5), ("cuDNN", 994)]
LARGE = dict(N=4096, outliers=1, mean="positive", qk="int8", scales="row", pv="e5m2", rotate=True, o="e4m3")
CELLS = [
    "from flashlib.widgets import EightBitsLab\nlab = EightBitsLab()\nlab",
    f"EightBitsLab(**{LARGE!r}, record={RECORD!r})",
]


@pytest.fixture(scope="module")
def page_of_labs(open_lab):
    with open_lab("eight_bits_lab.ipynb", cells=CELLS) as lab:
        assert lab.run_all() == []
        yield lab


@pytest.fixture
def lab(page_of_labs):
    """The first lab, in its original setting, at the place where it opens."""
    lab = page_of_labs.page.locator(LAB).first
    lab.scroll_into_view_if_needed()
    r = EightBitsLab().result
    lab.evaluate("(lab, setting) => lab.flashWidget.ask(setting)", r["setting"])
    wait_for(lab, r["setting"])
    lab.evaluate("(lab, opens) => lab.flashWidget.choose(opens)", r["opens"])
    return lab


@pytest.fixture
def large(page_of_labs):
    lab = page_of_labs.page.locator(LAB).nth(1)
    lab.scroll_into_view_if_needed()
    return lab


def test_it_opens_on_the_outliers(lab):
    check_shown(lab)
    r = EightBitsLab().result
    check_place(lab, *r["opens"].values())
    view(lab, "causes")
    assert "Most comes from Q and K" in text(lab, ".flash-eight-causes > p:first-of-type")


def test_whole_numbers_with_a_record(large):
    check_shown(large, **LARGE)
    view(large, "causes")
    rows = large.locator(".flash-eight-speeds .flash-eight-row")
    assert rows.count() == 3 and large.locator("[data-chosen=true]").count() == 0
    large.evaluate("lab => lab.flashWidget.ask({ sums: 'two levels' })")
    check_shown(large, **LARGE | {"sums": "two levels"})
    view(large, "causes")
    assert large.locator("[data-chosen=true]").inner_text().startswith(f"{CHOSEN}, as chosen")
    widths = rows.locator(".flash-eight-bar > i").evaluate_all("all => all.map((e) => e.offsetWidth)")
    assert [width / widths[2] for width in widths] == pytest.approx([s / 994 for _, s in RECORD], abs=0.01)
    large.evaluate("lab => lab.flashWidget.ask({ sums: '13 bits' })")
    check_shown(large, **LARGE)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [("N", "Home", 256), ("outliers", "End", 100), ("outliers", "ArrowLeft", 5), ("sharpness", "ArrowRight", 2)],
)
def test_sliders_by_keyboard(lab, name, key, value):
    slider = lab.locator(f"input[data-name={name}]")
    slider.focus()
    slider.press(key)
    wait_for(lab, {name: value})
    assert slider.get_attribute("aria-valuetext") == (str(value) if name == "N" else f"{value} ×")
    assert slider.evaluate("slider => slider === document.activeElement")
    check_shown(lab, **{name: value})


@pytest.mark.parametrize(
    ("group", "value", "setting"),
    [
        ("means", "positive", {"mean": "positive"}),
        ("format of Q and K", "int8", {"qk": "int8"}),
        ("format of P and V", "fp16", {"pv": "fp16"}),
        ("format of O", "e4m3", {"o": "e4m3"}),
        ("who shares a scale", "block", {"scales": "block"}),
        ("what P is multiplied by before it is rounded", "448", {"p_times": 448}),
        ("how products are added", "exact", {"sums": "exact"}),
    ],
)
def test_choices(lab, group, value, setting):
    lab.get_by_role("group", name=group, exact=True).locator(f"input[value='{value}']").check(force=True)
    check_shown(lab, **setting)


@pytest.mark.parametrize("name", ["rotate", "k_minus_mean", "v_minus_mean", "power_of_two", "l_rounded"])
def test_switches(lab, name):
    lab.locator(f"[data-name={name}] input").press(" ")
    check_shown(lab, **{name: True})


@pytest.mark.parametrize("name", EightBitsLab().result["presets"])
def test_presets(lab, name):
    lab.locator(f"button[data-preset='{name}']").click()
    check_shown(lab, **EightBitsLab().result["presets"][name])


def test_the_error_before_the_last_change_is_shown(lab):
    view(lab, "causes")
    before = text(lab, "[data-cause=all]")
    view(lab, "scores")  # it is kept even while it is hidden
    lab.evaluate("lab => lab.flashWidget.ask({ rotate: true })")
    check_shown(lab, rotate=True)
    view(lab, "causes")
    assert text(lab, ".flash-eight-all .flash-note") == f"before the last change {before}"
    mark, stack = (lab.locator(f".flash-eight-{name}").bounding_box() for name in ("before", "stack"))
    assert mark["x"] > stack["x"] + 1.5 * stack["width"], "it was more"


def test_queries_keys_and_columns_by_keyboard_and_buttons(lab):
    lab.evaluate("lab => lab.flashWidget.choose({ row: 3, key: 5, column: 7 })")
    view(lab, "causes")  # keys act on the visible view
    lab.focus()
    moves = [("ArrowUp", 2, 5, 7), ("ArrowDown", 3, 5, 7), ("ArrowLeft", 3, 4, 7), ("ArrowRight", 3, 5, 7)]
    moves += [("PageUp", 3, 5, 6), ("PageDown", 3, 5, 7), ("End", 3, 127, 7), ("ArrowRight", 3, 127, 7)]
    moves += [("Home", 3, 0, 7), ("ArrowLeft", 3, 0, 7)]
    for key, *place in moves:
        lab.focus()
        lab.page.keyboard.press(key)
        assert lab.get_attribute("data-view") == ("sums" if key.startswith("Page") else "scores")
        check_place(lab, *place)
        view(lab, "causes")
    names = ("previous query", "next query", "previous key", "next key", "previous column", "next column")
    places = [(2, 0, 7), (3, 0, 7), (3, 0, 7), (3, 1, 7), (3, 1, 6), (3, 1, 7)]
    for name, place in zip(names, places, strict=True):
        view(lab, "sums" if "column" in name else "scores")
        lab.get_by_role("button", name=name).click()
        check_place(lab, *place)
    spoken = "lab => lab.querySelector('[aria-live=polite]').textContent"
    lab.page.wait_for_function(
        f"lab => ({spoken})(lab).startsWith('1024 terms add up to ')", arg=lab.element_handle()
    )


def test_queries_keys_and_columns_by_pointer(lab):
    lab.evaluate("lab => lab.flashWidget.choose({ row: 0, key: 0, column: 0 })")
    away = lab.locator(".flash-headline")

    def at(name, row, column, count):
        view(lab, "sums" if name == "O" else "scores")
        field = lab.locator(f".flash-eight-field[data-name={name}]")
        field.scroll_into_view_if_needed()
        box = field.bounding_box()
        return field, {"x": box["width"] * (column + 0.5) / count, "y": box["height"] * (row + 0.5) / 8}

    field, position = at("S", 4, 77, 128)
    field.hover(position=position)
    assert lab.get_attribute("data-shows") == "4,77,0"
    assert text(lab, ".flash-eight-score h3").endswith("query 4, key 77")
    away.hover()
    check_place(lab, 0, 0, 0)  # the chosen one
    field, position = at("weights", 6, 31, 128)
    field.click(position=position)
    field, position = at("O", 2, 9, 16)
    field.click(position=position)
    away.hover()
    check_place(lab, 2, 31, 9)


def test_maps_have_the_colours_of_the_theme(page_of_labs, lab):
    r = EightBitsLab().result
    for theme in THEMES:
        page_of_labs.theme(theme)
        check_maps(lab, r)
    page_of_labs.theme(THEMES[0])


def test_a_refused_value_is_reverted(lab):
    lab.evaluate("lab => lab.flashWidget.ask({ N: 300 })")
    lab.get_by_text("N is 300; pass 256, 512, 1024, 2048, 4096, 8192 or 16384. It stays 1024.").wait_for()
    check_shown(lab)
    assert lab.locator("input[data-name=N]").get_attribute("aria-valuetext") == "1024"
    lab.evaluate("lab => lab.flashWidget.ask({ N: 256 })")
    check_shown(lab, N=256)
    wait_until_heard(lab)


@pytest.mark.parametrize("width", [390, 480, 760])
def test_pictures_follow_the_width(lab, width):
    with resized(lab, width):
        for name in ("scores", "sums", "grids"):
            view(lab, name)
            lab.page.wait_for_function(
                """lab => [...lab.querySelectorAll("svg")].filter((svg) => svg.checkVisibility()).every((svg) =>
                    Math.abs(svg.viewBox.baseVal.width - svg.clientWidth) <= 1)""",
                arg=lab.element_handle(),
            )
            assert lab.evaluate(sizes.OUT_OF_PLACE) == [] and too_low(lab) == []
        check_shown(lab)


def test_each_view_fits_next_to_the_controls_that_change_it(lab):
    with resized(lab, sizes.LAPTOP):
        for name in ("causes", "scores", "sums", "grids"):
            view(lab, name)
            assert lab.bounding_box()["height"] <= sizes.HIGH, name
