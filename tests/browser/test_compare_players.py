"""ComparePlayers in JupyterLab, in a real browser."""

import pytest

pytest.importorskip("anywidget")

from tests.browser.lab import resized
from tests.browser.playing import open_anew
from tests.browser.shown.compare_players import check, side

pytestmark = pytest.mark.browser

HEIGHTS = """root => Array.from({ length: root.flashWidget.transport.last + 1 }, (_, k) => {
    root.flashWidget.transport.seek(k);
    return Math.round(root.getBoundingClientRect().height);
})"""
PARTS = ("h3 >> nth=0", ".flash-part-memory .flash-panel", ".flash-part-grid .flash-panel", ".flash-meters")


@pytest.fixture(scope="module")
def lab(open_lab):
    cells = ["from flashlib.widgets import ComparePlayers\nComparePlayers(N=7, d=3, B_r=4, B_c=2)"]
    with open_lab("compare.ipynb", cells=cells) as lab:
        assert lab.run_all() == []
        yield lab


@pytest.fixture
def compare(lab):
    compare = lab.page.locator(".flash-compare")
    compare.scroll_into_view_if_needed()
    compare.evaluate("root => root.flashWidget.transport.seek(0)")
    return compare


def test_it_shows_what_python_computed(compare):
    check(compare)


def test_both_move_together_each_in_its_order(compare):
    compare.focus()
    for _ in range(3):
        compare.page.keyboard.press("ArrowRight")
    assert compare.get_attribute("data-step") == "3"
    for order, tile in (("fa1", "(1, 1)"), ("fa2", "(0, 3)")):
        assert f"tile {tile} of" in side(compare, order).locator(".flash-grid header").inner_text()
        assert side(compare, order).locator(".flash-tile-now .flash-matrix:not(.flash-cleared)").count() == 1


def test_it_opens_where_fa1_returns_to_a_row_block(compare):
    open_anew(compare)
    steps = [step[:2] for step in compare.evaluate("root => root.flashWidget.model.get('frames').fa1.steps")]
    rows = [i for i, _ in steps]
    assert int(compare.get_attribute("data-step")) == next(k for k in range(len(rows)) if rows[k] in rows[:k])


def test_the_chart_has_the_bytes_of_every_step(compare):
    """For both orders, in one unit with standard attention, each step below its place on the scrub bar."""
    sent = compare.evaluate("root => root.flashWidget.model.get('frames')")
    chart = compare.locator(".flash-bytes-curves")
    width, height = map(float, chart.get_attribute("viewBox").split()[2:])
    path = lambda name: chart.locator(f'[data-name="{name}"]').get_attribute("d")  # noqa: E731
    standard = height - float(path("standard").removeprefix("M0 ").partition("H")[0])
    unit = standard / sum(sent["fa1"]["standard"])
    for order in ("fa1", "fa2"):
        moved = compare.evaluate(
            """(root, order) => {
                const { frames } = root.flashWidget.sides.find((side) => side.order === order);
                return Array.from({ length: frames.last + 1 }, (_, k) => frames.sum(frames.moved(frames.at(k))));
            }""",
            order,
        )
        points = [tuple(map(float, point.split())) for point in path(order)[1:].split("L")]
        assert [x for x, _ in points] == list(range(len(moved))) and width == len(moved) - 1
        assert [height - y for _, y in points] == pytest.approx([unit * x for x in moved])
        assert sum(sent[order]["all"]) == moved[-1]
    top = max(sum(sent[order][name]) for order in ("fa1", "fa2") for name in ("all", "standard"))
    assert height / unit == pytest.approx(top), "the chart ends at the most"
    notes = [note.replace("\u202f", "") for note in compare.locator(".flash-bytes .flash-note").all_inner_texts()]
    assert notes == [f"bytes moved, up to {top} B", "0 B, step 0", f"step {len(moved) - 1}"]
    scrub, box = compare.locator(".flash-scrub").bounding_box(), chart.bounding_box()
    assert (box["x"], box["width"]) == pytest.approx((scrub["x"] + 8, scrub["width"] - 16), abs=1)


@pytest.mark.parametrize("width", [930, 1167])
def test_the_sides_line_up(compare, width):
    compare.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    with resized(compare, width):
        boxes = {o: [side(compare, o).locator(p).bounding_box() for p in PARTS] for o in ("fa1", "fa2")}
    for one, other in zip(boxes["fa1"], boxes["fa2"], strict=True):
        along, across = ("x", "width") if width == 930 else ("y", "height")
        assert one[along] == pytest.approx(other[along], abs=1) and one[across] == pytest.approx(
            other[across], abs=1
        )


@pytest.mark.parametrize("width", [316, 930])
def test_nothing_jumps_as_it_plays(compare, width):
    compare.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    with resized(compare, width):
        heights = compare.evaluate(HEIGHTS)
    assert len(set(heights)) == 1


def test_only_fa1_holds_m_and_l_in_hbm(compare):
    strips = lambda order: side(compare, order).locator(".flash-strip .flash-matrix").count()  # noqa: E731
    assert (strips("fa1"), strips("fa2")) == (6, 4)


def test_bars_have_one_scale(compare):
    """Equal bytes are equally long on both sides, as standard attention's bar shows."""
    widths = [
        side(compare, o)
        .locator(".flash-meter")
        .nth(1)
        .evaluate("bar => [...bar.children].map((part) => part.style.width).join()")
        for o in ("fa1", "fa2")
    ]
    assert widths[0] == widths[1] != ""
    bars = [
        side(compare, order).locator(".flash-meter").nth(1).bounding_box()["width"] for order in ("fa1", "fa2")
    ]
    assert bars[0] == pytest.approx(bars[1], abs=1)


def test_sliders_retile_both(compare):
    compare.locator('input[data-name="B_c"]').focus()
    compare.page.keyboard.press("ArrowRight")
    compare.page.wait_for_function("root => root.dataset.tiles === '6'", arg=compare.element_handle())
    compare.page.keyboard.press("ArrowLeft")
    compare.page.wait_for_function("root => root.dataset.tiles === '8'", arg=compare.element_handle())
