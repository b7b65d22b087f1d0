"""ComparePlayers in JupyterLab, in a real browser."""

import pytest

pytest.importorskip("anywidget")

from tests.browser.shown.compare_players import check, side

pytestmark = pytest.mark.browser


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


def test_only_fa1_holds_m_and_l_in_hbm(compare):
    strips = lambda order: side(compare, order).locator(".flash-strip .flash-matrix").count()  # noqa: E731
    assert (strips("fa1"), strips("fa2")) == (6, 4)


def test_bars_have_one_scale(compare):
    """The same bytes are as long on both sides: standard attention's bar is."""
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
