"""MaskLab in JupyterLab, in a real browser: by keyboard and pointer; its numbers and tiles."""

import pytest

pytest.importorskip("anywidget")

from flashlib.widgets import MaskLab
from tests.browser.lab import wait_until_heard
from tests.browser.labs import plain, wait_for
from tests.browser.shown.mask_lab import check_row, check_shown

pytestmark = pytest.mark.browser

LAB = ".flash-mask-lab"
LINE = "(c <= r) & ((r - c < 12) | (c < 4))"
CELLS = [
    "from flashlib.widgets import MaskLab\nlab = MaskLab()\nlab",
    f"MaskLab(line={LINE!r}, also='documents', N_q=37, N_k=50, B_r=5, B_c=7, d=16)",
]


@pytest.fixture(scope="module")
def page_of_labs(open_lab):
    with open_lab("mask_lab.ipynb", cells=CELLS) as lab:
        assert lab.run_all() == []
        yield lab.page


@pytest.fixture
def lab(page_of_labs):
    """The first lab, in its original setting, at row 32."""
    lab = page_of_labs.locator(LAB).first
    lab.scroll_into_view_if_needed()
    setting = MaskLab().result["setting"]
    lab.evaluate("(lab, setting) => { lab.flashWidget.ask(setting); lab.flashWidget.choose(32); }", setting)
    wait_for(lab, setting)
    return lab


@pytest.fixture
def ragged(page_of_labs):
    lab = page_of_labs.locator(LAB).nth(1)
    lab.scroll_into_view_if_needed()
    return lab


def test_it_shows_what_python_computed(lab):
    check_shown(lab)
    check_row(lab, 32)


def test_ragged_sizes_and_an_intersection(ragged):
    setting = dict(line=LINE, also="documents", N_q=37, N_k=50, B_r=5, B_c=7, d=16)
    check_shown(ragged, kind="line", **setting)
    check_row(ragged, 18, MaskLab(**setting).result)
    lengths = ragged.locator(".flash-mask-length").evaluate_all("all => all.map((e) => e.textContent)")
    assert lengths == ["20", "9", "21"]
    assert ragged.get_by_label("lengths of the documents").is_visible()
    assert ragged.locator("input[data-name=left]").is_hidden()


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("N_q", "ArrowRight", 65),
        ("N_k", "ArrowLeft", 63),
        ("B_r", "Home", 1),
        ("B_c", "End", 48),
        ("d", "End", 256),
    ],
)
def test_sliders_by_keyboard(lab, name, key, value):
    slider = lab.locator(f"input[data-name={name}]")
    slider.focus()
    slider.press(key)
    check_shown(lab, **{name: value})
    assert slider.get_attribute("aria-valuetext") == str(value)
    assert slider.evaluate("slider => slider === document.activeElement")


def test_a_window_and_no_bound(lab):
    lab.get_by_text("window", exact=True).first.click()
    check_shown(lab, kind="window")
    slider = lab.locator("input[data-name=left]")
    slider.focus()
    slider.press("ArrowLeft")
    check_shown(lab, kind="window", left=15)
    slider.press("End")
    check_shown(lab, kind="window", left=None)
    assert slider.get_attribute("aria-valuetext") == "none"


def test_kinds_by_keyboard_and_a_second_mask(lab):
    lab.locator("input[value=causal]").focus()
    for kind in ("window", "prefix", "documents"):
        lab.page.keyboard.press("ArrowRight")
        check_shown(lab, kind=kind)
    lab.get_by_label("a second mask").select_option("causal")
    check_shown(lab, kind="documents", also="causal")
    lengths = lab.get_by_label("lengths of the documents")
    lengths.fill("13, 30")
    lengths.press("Enter")
    check_shown(lab, kind="documents", also="causal", lengths="13, 30")


def test_a_typed_mask_an_error_and_a_line_to_fill_in(lab):
    lab.get_by_text("write one", exact=True).click()
    field = lab.get_by_label("the mask as a line of Python")
    field.fill("abs(r - c) < 5")
    field.press("Enter")
    check_shown(lab, kind="line", line="abs(r - c) < 5")
    field.fill("c <= r and c < 8")
    field.press("Enter")
    lab.get_by_text("`and` does not work on arrays; write &, with brackets: (c <= r) & (c < 8).").wait_for()
    wait_until_said(lab)
    assert field.input_value() == "c <= r and c < 8"
    assert field.get_attribute("aria-invalid") == "true"
    check_shown(lab, kind="line", line="abs(r - c) < 5")
    slider = lab.locator("input[data-name=B_r]")
    slider.press("ArrowRight")  # other changes are still accepted, and the text stays
    check_shown(lab, kind="line", line="abs(r - c) < 5", B_r=9)
    assert field.input_value() == "c <= r and c < 8"
    lab.get_by_role("button", name="window and sink").click()
    check_shown(lab, kind="line", line=LINE, B_r=9)
    wait_until_heard(lab)
    assert field.input_value() == LINE
    assert field.get_attribute("aria-invalid") == "false"


def wait_until_said(lab):
    """Wait until Python has answered, and the refused field is marked."""
    lab.page.wait_for_function(
        """lab => {
            const { model } = lab.flashWidget;
            return model.get("heard") === model.get("asked") && lab.querySelector("[aria-invalid=true]");
        }""",
        arg=lab.element_handle(),
    )


def test_rows_by_keyboard_and_buttons(lab):
    lab.focus()
    for key, row in (("Home", 0), ("ArrowUp", 0), ("ArrowDown", 1), ("PageDown", 9), ("PageUp", 1), ("End", 63)):
        lab.page.keyboard.press(key)
        check_row(lab, row)
    lab.get_by_role("button", name="previous row").click()
    check_row(lab, 62)
    lab.get_by_role("button", name="next row").click()
    check_row(lab, 63)
    spoken = plain(MaskLab().result["rows"][63])
    lab.page.wait_for_function(
        """([lab, words]) =>
            lab.querySelector('[aria-live=polite]').textContent.replaceAll("\u00a0", " ") === words""",
        arg=[lab.element_handle(), spoken],
    )


def test_rows_by_pointer(lab):
    svg = lab.locator(".flash-mask-scores > svg")
    box = svg.bounding_box()
    scale = box["width"] / 426

    def at(row):
        return {"x": 100 * scale, "y": (38 + 6 * (row + 0.5)) * scale}

    svg.hover(position=at(5))
    check_row(lab, 5)
    lab.locator(".flash-mask-loop h3").hover()
    check_row(lab, 32)  # the chosen row
    svg.click(position=at(40))
    lab.locator(".flash-mask-loop h3").hover()
    check_row(lab, 40)


def test_a_refused_size_is_reverted(lab):
    lab.evaluate("lab => lab.flashWidget.ask({ B_r: 97 })")
    lab.get_by_text("B_r is 97; pass a whole number from 1 to 96. It stays 8.").wait_for()
    check_shown(lab)
    assert lab.locator("input[data-name=B_r]").get_attribute("aria-valuetext") == "8"


def test_a_message_takes_the_place_of_the_hint(lab):
    hint = lab.locator(".flash-mask-hint")
    lab.evaluate("lab => lab.flashWidget.ask({ N_q: 61 })")
    check_shown(lab, N_q=61)
    wait_until_heard(lab)
    assert hint.is_visible() and hint.inner_text().startswith("c <= r")
    lab.evaluate("lab => lab.flashWidget.ask({ N_q: 97 })")
    lab.get_by_text("N_q is 97").wait_for()
    assert not hint.is_visible()
    lab.evaluate("lab => lab.flashWidget.ask({ N_q: 60 })")
    check_shown(lab, N_q=60)
    wait_until_heard(lab)
    assert hint.is_visible()
