"""TilingLab in JupyterLab, in a real browser: by keyboard and pointer; its numbers."""

import pytest

pytest.importorskip("anywidget")

from flashlib.widgets import TilingLab
from tests.browser.lab import wait_until_heard
from tests.browser.shown.tiling_lab import NAMES, check_shown, texts, wait_for

pytestmark = pytest.mark.browser

LAB = ".flash-tiling-lab"
CELLS = [
    "from flashlib.widgets import TilingLab\nlab = TilingLab()\nlab",
    "TilingLab(N=1000, d=128, B_r=48, B_c=16, capacity=48, causal=True, order='fa1')",
    "TilingLab(N=0)",
    "TilingLab(N=64, B_r=16, B_c=16, causal=True, panels='less')",
]


@pytest.fixture(scope="module")
def page_of_labs(open_lab):
    with open_lab("tiling_lab.ipynb", cells=CELLS) as lab:
        assert lab.run_all() == []
        yield lab.page


@pytest.fixture
def lab(page_of_labs):
    """The first lab, in its original setting."""
    lab = page_of_labs.locator(LAB).first
    lab.scroll_into_view_if_needed()
    setting = {name: TilingLab().result[name] for name in NAMES}
    lab.evaluate("(lab, setting) => lab.flashWidget.ask(setting)", setting)
    wait_for(lab, setting)
    return lab


@pytest.fixture
def ragged(page_of_labs):
    return page_of_labs.locator(LAB).nth(1)


def test_it_shows_what_python_computed(lab):
    check_shown(lab)


def test_ragged_sizes(ragged):
    ragged.scroll_into_view_if_needed()
    check_shown(ragged, N=1000, d=128, B_r=48, B_c=16, capacity=48, causal=True, order="fa1")
    assert "aria-activedescendant" not in ragged.locator("table").evaluate("table => table.getAttributeNames()")
    now, cell = (
        ragged.locator(name).bounding_box() for name in (".flash-tiling-now >> nth=0", '[data-cell="32,16"]')
    )
    assert cell["x"] == pytest.approx(now["x"], abs=3)
    assert cell["y"] + 5 < now["y"] < cell["y"] + cell["height"] - 5  # 48 is between 32 and 64


@pytest.mark.parametrize(
    ("name", "key", "setting"),
    [
        ("N", "ArrowRight", dict(N=8192)),
        ("d", "End", dict(d=256)),
        ("B_r", "ArrowLeft", dict(B_r=32)),
        ("B_c", "Home", dict(B_c=4)),
        ("capacity", "ArrowLeft", dict(capacity=64)),
    ],
)
def test_sliders_by_keyboard(lab, name, key, setting):
    slider = lab.locator(f"input[data-name={name}]")
    slider.focus()
    slider.press(key)
    check_shown(lab, **setting)
    unit = " KB" if name == "capacity" else ""
    assert slider.get_attribute("aria-valuetext") == f"{setting[name]}{unit}"
    assert slider.evaluate("slider => slider === document.activeElement")


def test_keys_pressed_fast_all_count(lab):
    slider = lab.locator("input[data-name=B_r]")
    slider.focus()
    for _ in range(4):
        slider.press("ArrowRight")
    check_shown(lab, B_r=1024)


def test_dtype_causal_and_order(lab):
    lab.get_by_text("fp32", exact=True).click()
    check_shown(lab, dtype="float32")
    lab.get_by_label("causal", exact=True).check()
    check_shown(lab, dtype="float32", causal=True)
    lab.locator(".flash-tiling-map").get_by_text("FA1", exact=True).click()
    check_shown(lab, dtype="float32", causal=True, order="fa1")


def test_the_map_by_pointer(lab):
    lab.locator('[data-cell="16,512"]').click()
    check_shown(lab, B_r=16, B_c=512)
    selected = lab.locator("td[aria-selected=true]")
    assert selected.evaluate_all("cells => cells.map((cell) => cell.dataset.cell)") == ["16,512"]
    now, cell = (lab.locator(name).bounding_box() for name in ("rect.flash-tiling-now", '[data-cell="16,512"]'))
    for side in ("x", "y", "width", "height"):
        assert now[side] == pytest.approx(cell[side], abs=3)


def test_the_map_by_keyboard(lab):
    table = lab.locator("table[role=grid]")
    table.focus()
    table.press("ArrowDown")
    table.press("ArrowDown")
    table.press("ArrowLeft")
    check_shown(lab, B_r=256, B_c=32)
    assert lab.locator(f"#{table.get_attribute('aria-activedescendant')}").get_attribute("data-cell") == "256,32"
    for _ in range(4):
        table.press("ArrowDown")  # beyond the edge
    check_shown(lab, B_r=1024, B_c=32)
    assert table.evaluate("table => table === document.activeElement")


def test_tiles_that_do_not_fit_are_struck_out_and_the_break_even_line(lab):
    """At 99 KB the tiles of 256 rows do not fit; FA2 draws level between B_r = 16 and 32."""
    check_shown(lab)
    unfit = [
        cell.split(",")
        for cell in lab.locator("td[data-fits=false]").evaluate_all("c => c.map(x => x.dataset.cell)")
    ]
    assert all([B_r, str(B_c)] in unfit for B_r in ("256", "512", "1024") for B_c in (4, 1024))
    line = "cell => getComputedStyle(cell).textDecorationLine"
    assert [lab.locator(f'[data-cell="{cell}"]').evaluate(line) for cell in ("256,4", "128,64")] == [
        "line-through",
        "none",
    ]
    line, above, below = (
        lab.locator(name).bounding_box()
        for name in ("path.flash-tiling-even", '[data-cell="16,4"]', '[data-cell="32,1024"]')
    )
    assert line["y"] + line["height"] / 2 == pytest.approx(below["y"], abs=2)
    assert above["y"] + above["height"] == pytest.approx(below["y"], abs=1)
    assert line["width"] == pytest.approx(below["x"] + below["width"] - above["x"], abs=12)  # with its ends


def test_too_many_tiles_to_draw_are_grouped_with_a_note(lab):
    lab.evaluate("lab => lab.flashWidget.ask({ N: 65536, B_r: 4, B_c: 256, causal: true })")
    check_shown(lab, N=65_536, B_r=4, B_c=256, causal=True)
    assert "a square stands for 256 × 4" in lab.locator(".flash-tiling-cut").inner_text()
    label = lab.locator(".flash-tiling-cutting > svg").get_attribute("aria-label")
    assert label == "S as 16384 by 256 tiles, 2105344 of 4194304 computed, one tile and SRAM to scale"


def test_screen_readers_get_the_result(lab):
    lab.locator('[data-cell="8,8"]').click()
    spoken = " ".join(TilingLab(B_r=8, B_c=8).result["words"])
    lab.page.wait_for_function(
        "([lab, words]) => lab.querySelector('[aria-live=polite]').textContent === words",
        arg=[lab.element_handle(), spoken],
    )


def test_a_refusal_is_reported_and_the_result_stays(lab):
    lab.evaluate("lab => lab.flashWidget.ask({ B_r: 3 })")
    message = lab.get_by_text("B_r is 3; pass a whole number from 4 to 1024, e.g. B_r=16. It stays 64.")
    message.wait_for()
    check_shown(lab)
    assert lab.evaluate("lab => lab.flashWidget.model.get('B_r')") == 64
    lab.locator('[data-cell="32,32"]').click()
    check_shown(lab, B_r=32, B_c=32)
    wait_until_heard(lab)
    assert message.count() == 0


def test_a_first_look_shows_tiles_alone(page_of_labs):
    lab = page_of_labs.locator(f"{LAB}.flash-less")
    lab.scroll_into_view_if_needed()
    panels = lab.locator(".flash-panel").evaluate_all(
        "panels => panels.filter((one) => one.checkVisibility()).length"
    )
    assert panels == 3  # settings, sentences, S
    assert lab.locator("input").evaluate_all("all => all.map((one) => one.dataset.name ?? one.type)") == [
        *("B_r", "B_c", "checkbox")
    ]
    assert not {"SRAM", "MB"} & set(lab.inner_text().split())
    slider = lab.locator("input[data-name=B_r]")
    slider.focus()
    slider.press("End")
    wait_for(lab, {"B_r": 64})
    result = TilingLab(N=64, B_r=64, B_c=16, causal=True, panels="less").result
    assert texts(lab, ".flash-words p") == result["words"]
    assert texts(lab, "[data-count=skipped]") == ["0"]


def test_a_bad_argument_is_reported(page_of_labs):
    problem = page_of_labs.locator(f"{LAB} .flash-problem")
    assert problem.all_inner_texts() == ["N is 0; pass a whole number from 1 to 65536, e.g. N=512."]
