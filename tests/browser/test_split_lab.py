"""SplitLab in JupyterLab, in a real browser: by keyboard and pointer; its numbers and pictures."""

import pytest

pytest.importorskip("anywidget")

from flashlib.widgets import SplitLab
from tests.browser.lab import resized, wait_until_heard
from tests.browser.labs import text, wait_for
from tests.browser.shown.split_lab import check_node, check_shown

pytestmark = pytest.mark.browser

LAB = ".flash-split-lab"
RECORD = [(1, 90.5), (4, 30), (64, 21.0)]
LARGE = dict(N_k=65_536, parts=101, order="tree", B=2, record=RECORD)
CELLS = [
    "from flashlib.widgets import SplitLab\nlab = SplitLab()\nlab",
    f"SplitLab(**{LARGE!r})",
]


@pytest.fixture(scope="module")
def page_of_labs(open_lab):
    with open_lab("split_lab.ipynb", cells=CELLS) as lab:
        assert lab.run_all() == []
        yield lab.page


@pytest.fixture
def lab(page_of_labs):
    """The first lab, in its original setting, at part 0."""
    lab = page_of_labs.locator(LAB).first
    lab.scroll_into_view_if_needed()
    setting = SplitLab().result["setting"]
    lab.evaluate("(lab, setting) => { lab.flashWidget.ask(setting); lab.flashWidget.choose(0); }", setting)
    wait_for(lab, setting)
    return lab


@pytest.fixture
def large(page_of_labs):
    lab = page_of_labs.locator(LAB).nth(1)
    lab.scroll_into_view_if_needed()
    return lab


def test_it_shows_what_python_computed(lab):
    check_shown(lab)
    check_node(lab, 0)


def test_many_parts_as_a_tree_with_a_record(large):
    check_shown(large, **LARGE)
    assert text(large, ".flash-split-time header .flash-note") == "and as measured"
    assert "measured" in text(large, ".flash-split-time .flash-legend")
    large.evaluate("lab => lab.flashWidget.ask({ d: 64 })")
    check_shown(large, **LARGE | {"d": 64, "record": None})
    assert text(large, ".flash-split-time header .flash-note") == "measured for a different call"
    large.evaluate("lab => lab.flashWidget.ask({ d: 128 })")
    check_shown(large, **LARGE)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("N_k", "ArrowRight", 10_000),
        ("N_k", "Home", 100),
        ("parts", "End", 128),
        ("parts", "Home", 1),
        ("B", "End", 64),
        ("H_k", "ArrowLeft", 4),
        ("group", "End", 64),
        ("d", "Home", 16),
    ],
)
def test_sliders_by_keyboard(lab, name, key, value):
    slider = lab.locator(f"input[data-name={name}]")
    slider.focus()
    slider.press(key)
    check_shown(lab, **{name: value})
    assert slider.get_attribute("aria-valuetext") == str(value)
    assert slider.evaluate("slider => slider === document.activeElement")


def test_order_and_gpu_by_keyboard(lab):
    lab.locator("input[value=row]").focus()
    lab.page.keyboard.press("ArrowRight")
    check_shown(lab, order="tree")
    lab.locator("input[value=H200]").focus()
    lab.page.keyboard.press("ArrowRight")
    check_shown(lab, order="tree", gpu="RTX 4090")


def test_as_many_parts_as_decode_chooses(lab):
    lab.get_by_role("button", name="as decode chooses").click()
    check_shown(lab, parts=SplitLab().result["times"]["default"])


@pytest.mark.parametrize("order", ["row", "tree"])
def test_parts_and_merges_by_keyboard_and_buttons(lab, order):
    lab.evaluate("(lab, order) => lab.flashWidget.ask({ order })", order)
    wait_for(lab, {"order": order})
    lab.focus()
    for key, node in (("Home", 0), ("ArrowLeft", 0), ("ArrowRight", 1), ("End", 14), ("ArrowRight", 14)):
        lab.page.keyboard.press(key)
        check_node(lab, node, order=order)
    for node in (13, 12, 11, 10, 9, 8, 7):
        lab.get_by_role("button", name="previous State").click()
        check_node(lab, node, order=order)
    lab.get_by_role("button", name="next State").click()
    check_node(lab, 8, order=order)
    lab.page.wait_for_function(
        """lab => lab.querySelector('[aria-live=polite]').textContent.startsWith("a: part 0, b: part 1.")""",
        arg=lab.element_handle(),
    )


def test_parts_and_merges_by_pointer(lab):
    away = lab.locator(".flash-split-gpu h3")
    lab.locator(".flash-split-box").nth(5).hover()
    check_node(lab, 5)
    away.hover()
    check_node(lab, 0)  # the chosen one
    lab.locator(".flash-split-box").nth(3).click()
    away.hover()
    check_node(lab, 3)
    lab.locator(".flash-split-dot").nth(2).click()
    away.hover()
    check_node(lab, 10)


def test_the_keys_of_a_node_are_marked(lab):
    spans = SplitLab().result["nodes"]["spans"]
    for node in (2, 11):
        lab.evaluate("(lab, node) => lab.flashWidget.choose(node)", node)
        mark = lab.locator(".flash-split-mark").bounding_box()
        first, last = (
            lab.locator(".flash-split-box").nth(k).bounding_box() for k in (spans[node][0], spans[node][1] - 1)
        )
        assert mark["x"] == pytest.approx(first["x"], abs=4)
        assert mark["x"] + mark["width"] == pytest.approx(last["x"] + last["width"], abs=4)


def test_waves_by_buttons(lab):
    steps = lab.locator(".flash-split-gpu .flash-split-stepper")
    assert steps.is_hidden(), "there is one wave"
    lab.evaluate("lab => lab.flashWidget.ask({ B: 64 })")
    check_shown(lab, B=64)
    chip = SplitLab(B=64).result["chip"]
    panel = lab.locator(".flash-split-gpu")
    for wave in range(1, chip["waves"] + 1):
        assert f"wave {wave} of {chip['waves']}" in steps.inner_text()
        running = chip["places"] if wave < chip["waves"] else chip["last"]
        assert panel.get_attribute("data-running") == str(running)
        lab.get_by_role("button", name="next wave").dispatch_event("click")  # at the last wave it does nothing
    assert f"wave {chip['waves']} of {chip['waves']}" in steps.inner_text()
    lab.get_by_role("button", name="previous wave").click()
    assert f"wave {chip['waves'] - 1} of" in steps.inner_text()


def test_a_refused_value_is_reverted(lab):
    lab.evaluate("lab => lab.flashWidget.ask({ parts: 300 })")
    lab.get_by_text("parts is 300; pass a whole number from 1 to 256. It stays 8.").wait_for()
    check_shown(lab)
    assert lab.locator("input[data-name=parts]").get_attribute("aria-valuetext") == "8"
    lab.evaluate("lab => lab.flashWidget.ask({ parts: 4 })")
    check_shown(lab, parts=4)
    wait_until_heard(lab)


@pytest.mark.parametrize("width", [480, 760])
def test_pictures_follow_the_width(lab, width):
    with resized(lab, width):
        lab.page.wait_for_function(
            """lab => [...lab.querySelectorAll("svg")].every((svg) =>
                Math.abs(svg.viewBox.baseVal.width - svg.clientWidth) <= 1)""",
            arg=lab.element_handle(),
        )
        check_shown(lab)
        right = lab.bounding_box()["x"] + width
        for name in ("box", "dot"):
            box = lab.locator(f".flash-split-{name}").last.bounding_box()
            assert box["x"] + box["width"] <= right
