"""TripsPlayer in JupyterLab, in a real browser: what is on its way, at every position, and by keyboard."""

import pytest

pytest.importorskip("anywidget")

from tests.browser.lab import resized, wait_until_heard
from tests.browser.shown.trips_player import check

pytestmark = pytest.mark.browser

HEIGHTS = """root => Array.from({ length: root.flashWidget.transport.last + 1 }, (_, k) => {
    root.flashWidget.transport.seek(k);
    return Math.round(root.getBoundingClientRect().height);
})"""
# Of each thing on its way: how far below its place in HBM it is, as a share of the way to the chip.
WAY = """root => [...root.querySelectorAll(".flash-trips-air > *")].map((e) => {
    const side = e.closest("section");
    const top = (place) => place.getBoundingClientRect().top;
    const [from, to] = ["hbm", "chip"].map((place) =>
        top(side.querySelector(`.flash-trips-${place} [data-name="${e.dataset.name}"]`)));
    return (top(e) - from) / (to - from);
})"""


@pytest.fixture(scope="module")
def lab(open_lab):
    cells = ["from flashlib.widgets import TripsPlayer\nTripsPlayer()", "TripsPlayer(N=21, d=3)"]
    with open_lab("trips.ipynb", cells=cells) as lab:
        assert lab.run_all() == []
        yield lab


@pytest.fixture
def player(lab):
    player = lab.page.locator(".flash-trips").first
    player.scroll_into_view_if_needed()
    player.evaluate("root => root.flashWidget.transport.seek(0)")
    return player


def test_ragged_sizes_are_shown_as_python_has_them(lab):
    player = lab.page.locator(".flash-trips").nth(1)
    player.scroll_into_view_if_needed()
    check(player)


def test_it_opens_with_the_first_trip_under_way(player):
    assert player.get_attribute("data-frame") == "0"
    assert player.locator(".flash-status").inner_text() == "after 384 B"
    first = player.locator(".flash-trips-words").first.inner_text()
    assert first.startswith("Trip 1 of its 6: Q and K go to the chip, 384")
    assert player.evaluate(WAY) == pytest.approx([0.5, 0.5], abs=0.02)  # 384 of 768 bytes


def test_what_is_on_its_way_is_placed_anew_where_there_is_less_room(player):
    with resized(player, 420):
        assert player.evaluate(WAY) == pytest.approx([0.5, 0.5], abs=0.02)


def test_page_down_goes_from_trip_to_trip_of_standard_attention(player):
    player.focus()
    for k in range(2, 8):
        player.page.keyboard.press("PageDown")
        text = player.locator(".flash-trips-words").first.inner_text()
        assert text.startswith(f"Trip {k} of its 6" if k < 7 else "Finished")
    player.page.keyboard.press("PageUp")
    assert player.locator(".flash-trips-words").first.inner_text().startswith("Trip 6 of its 6")


def test_what_arrives_moves_there_and_jumps_for_those_who_ask(player):
    moving = "root => root.getAnimations({ subtree: true }).length"
    step = "root => root.flashWidget.transport.step(1)"
    player.evaluate(step)
    assert player.evaluate(moving) > 2
    player.page.emulate_media(reduced_motion="reduce")
    player.evaluate(step)
    assert player.evaluate(moving) == 0
    player.page.emulate_media(reduced_motion="no-preference")


@pytest.mark.parametrize("width", [316, 930])
def test_nothing_jumps_as_it_plays(player, width):
    player.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    with resized(player, width):
        heights = player.evaluate(HEIGHTS)
    assert len(set(heights)) == 1


def test_a_slider_moves_other_bytes(player):
    player.locator('input[data-name="N"]').focus()
    player.page.keyboard.press("ArrowRight")
    wait_until_heard(player)
    check(player)
    player.page.keyboard.press("ArrowLeft")
    wait_until_heard(player)
