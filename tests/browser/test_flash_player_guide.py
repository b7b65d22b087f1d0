"""What FlashPlayer shows a learner first, in a real browser: where it opens, which row it describes, callouts."""

import numpy as np
import pytest

pytest.importorskip("anywidget")

from flashlib.pictures.steps import grown
from tests.browser.lab import resized
from tests.browser.playing import at_start, data, every_frame, open_anew, received, seek, steps_of, timeline

pytestmark = pytest.mark.browser

SMALL, RAGGED = range(2)  # the players of the page, and their cells
CELLS = [
    "from flashlib.widgets import FlashPlayer\nFlashPlayer(N=7, d=3, B_r=4, B_c=2)",
    "FlashPlayer(N=9, d=4, B_r=4, B_c=2, seed=5)",
]


@pytest.fixture(scope="module")
def lab(open_lab):
    with open_lab("player_guide.ipynb", cells=CELLS) as lab:
        assert lab.run_all() == []
        yield lab


@pytest.fixture
def first(lab):
    return at_start(lab, SMALL)


def test_it_opens_at_the_first_rescale_and_marks_all(lab):
    player = lab.page.locator(".flash-player").nth(RAGGED)
    open_anew(player)
    frames, sent = received(player)
    steps = steps_of(frames, sent)
    rescaled = [grown(step).any() for step in steps]
    expected = [n for n, (k, part) in enumerate(timeline(player)) if part == "rescale" and rescaled[k]]
    assert int(data(player, "frame")) == expected[0]
    path = player.locator(".flash-marks path").get_attribute("d")
    assert [int(mark.removesuffix(" 0V1")) for mark in path.split("M")[1:]] == expected


def test_the_first_row_whose_maximum_grew_is_described_until_one_is_picked(lab):
    player = at_start(lab, RAGGED)
    frames, sent = received(player)
    steps = steps_of(frames, sent)
    grew = [np.flatnonzero(grown(step)) for step in steps]
    expected = [step.rows.start + (rows[0] if len(rows) else 0) for step, rows in zip(steps, grew, strict=True)]
    assert any(len(rows) and rows[0] for rows in grew)  # not always the first of its block
    *shown, _ = every_frame(player, row="Number(player.dataset.row)")
    assert [now["row"] for now in shown] == [expected[k] for k, _ in timeline(player)]
    player.locator(".flash-rows tbody tr").nth(2).click()
    *shown, _ = every_frame(player, row="Number(player.dataset.row)")
    last = [step.rows.stop - 1 for step in steps]
    assert [now["row"] for now in shown] == [min(steps[k].rows.start + 2, last[k]) for k, _ in timeline(player)]


def test_a_row_is_picked_by_pointer_and_by_its_radio_button(first):
    seek(first, 3)
    rows = first.locator(".flash-rows tbody tr")
    rows.nth(2).click()
    assert data(first, "row") == "2"
    assert "Row 2" in first.locator(".flash-sentence").inner_text()
    assert first.locator(".flash-row-name").inner_text() == "Row 2"
    assert rows.nth(2).get_by_role("radio").is_checked()
    rows.nth(2).get_by_role("radio").focus()
    first.page.keyboard.press("ArrowUp")
    assert data(first, "row") == "1"


# The target of a callout, and whether it covers any panel but its own.
COVERED = """callout => {
    const root = callout.closest(".flash-widget");
    const own = callout.getBoundingClientRect();
    const both = (a, b, [start, end]) => Math.min(a[end], b[end]) - Math.max(a[start], b[start]);
    const over = (box) => both(box, own, ["left", "right"]) > 1 && both(box, own, ["top", "bottom"]) > 1;
    const parts = root.querySelectorAll(".flash-panel, .flash-controls, .flash-strip, .flash-told");
    const others = [...parts].filter((e) => !e.contains(callout) && !callout.contains(e));
    return others.filter((e) => over(e.getBoundingClientRect())).map((e) => e.className);
}"""


@pytest.mark.parametrize("width", [374, 930])
def test_callouts_guide_the_first_time_and_are_dismissed_for_good(lab, width):
    page = lab.page
    page.evaluate("() => localStorage.removeItem('flashlib.guided')")
    lab.run_again(SMALL)
    callout = page.locator(".flash-callout")
    callout.wait_for()
    texts = []
    with resized(page.locator(".flash-player").nth(SMALL), width):
        for name in ("next", "next", "got it"):
            texts.append(callout.locator("p").inner_text())
            assert callout.evaluate(COVERED) == [] and page.locator(".flash-told").count() == 1
            callout.get_by_role("button", name=name).click()
    assert ["Press play" in texts[0], "Tiles cross" in texts[1], "alpha" in texts[2]] == [True] * 3
    assert callout.count() == page.locator(".flash-told").count() == 0
    lab.run_again(SMALL)
    assert callout.count() == 0


def test_the_first_callout_goes_on_when_the_player_plays(lab):
    page = lab.page
    page.evaluate("() => localStorage.removeItem('flashlib.guided')")
    lab.run_again(SMALL)
    callout = page.locator(".flash-callout")
    assert "Press play" in callout.inner_text()
    player = page.locator(".flash-player").nth(SMALL)
    player.locator(".flash-play").click()
    callout.filter(has_text="2 of 3").wait_for()
    player.locator(".flash-play").click()
    callout.get_by_role("button", name="dismiss").click()
