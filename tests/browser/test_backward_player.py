"""BackwardPlayer in JupyterLab, in a real browser: it shows what Python computed, frame by frame.

A test undoes its changes: those below it continue from there.
"""

import re

import numpy as np
import pytest

pytest.importorskip("anywidget")

from flashlib.widgets import BackwardPlayer
from tests.browser.playing import (
    active_cell,
    assert_announces,
    assert_drawing_fits_into_a_frame,
    assert_nothing_jumps,
    assert_whole_steps_are_one_frame_each,
    data,
    open_anew,
    press,
    seek,
    timeline,
    unfold,
    wait_for,
)
from tests.browser.shown import backward_player as shown

pytestmark = pytest.mark.browser

ARRAYS = "np.random.default_rng(1).normal(size=(4, 10, 4))"
CELLS = [
    "import numpy as np\nfrom flashlib.widgets import BackwardPlayer\nBackwardPlayer(N=7, d=3, B_r=4, B_c=2)",
    f"Q, K, V, dO = {ARRAYS}\nBackwardPlayer(Q, K[:7], V[:7], dO, B_r=4, B_c=3, causal=True, wrt='q')",
    "BackwardPlayer(N=64, d=16, B_r=8, B_c=8, causal=True, opens_at=10)",
    "BackwardPlayer(np.ones((4, 2)), np.ones((4, 2)), np.ones((4, 2)), np.ones((3, 2)))",
]
FIRST = {"N": 7, "d": 3, "B_r": 4, "B_c": 2}


def second():
    """The second player of the page: its first three rows see no key."""
    Q, K, V, dO = np.random.default_rng(1).normal(size=(4, 10, 4))
    return BackwardPlayer(Q, K[:7], V[:7], dO, B_r=4, B_c=3, causal=True, wrt="q")


@pytest.fixture(scope="module")
def lab(open_lab):
    with open_lab("backward_player.ipynb", cells=CELLS) as lab:
        assert lab.run_all() == []
        lab.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
        yield lab


@pytest.fixture(params=[0, 1], ids=["kv", "q, causal, N_q > N_k"])
def player(lab, request):
    return at_start(lab, request.param)


@pytest.fixture
def first(lab):
    return at_start(lab, 0)


@pytest.fixture
def recording(player):
    """Python's steps, sums and errors for the player on the page."""
    return BackwardPlayer(**FIRST) if data(player, "tr") == "2" else second()


def at_start(lab, n):
    """The n-th player of the page, at its first frame."""
    player = lab.page.locator(".flash-backward").nth(n)
    player.scroll_into_view_if_needed()
    seek(player, 0)
    return player


def shown_error(player, name):
    return shown.error_value(player.locator(f'output[data-name="error-{name}"]').inner_text())


def test_every_frame_shows_what_python_computed(player, recording):
    shown.check(player, recording)


@pytest.mark.parametrize("n", [0, 1])
def test_it_opens_with_its_boxes_filled(lab, n):
    """At the first tile that is added to a nonempty sum: then every box holds numbers, including the sums."""
    player = at_start(lab, n)
    open_anew(player)
    assert data(player, "part") == "add"
    outer = "cols" if n == 0 else "rows"
    steps = (BackwardPlayer(**FIRST) if n == 0 else second())._recording.steps
    blocks = [getattr(step, outer).start for step in steps]
    assert int(data(player, "step")) == next(k for k in range(1, len(blocks)) if blocks[k] == blocks[k - 1])
    assert player.locator(".flash-chip .flash-cleared").count() == 0


def test_a_row_is_chosen_by_pointer_and_by_key(lab, first):
    seek(first, 4)
    first.locator('.flash-matrix[data-name="dS_ij"] .flash-cell').nth(4).click()
    assert data(first, "row") == "2"
    assert first.locator(".flash-sentence").inner_text().startswith("Row 2")
    assert first.locator(".flash-mark").all_inner_texts() == ["2 ▸", "2 ▸"]
    first.focus()
    lab.page.keyboard.press("ArrowUp")
    assert data(first, "row") == "1"


def test_keyboard(lab, first):
    page = lab.page
    first.focus()  # makes its cell the active one
    before = active_cell(lab)
    keys = [
        ("ArrowRight", "frame", "1"),
        ("ArrowLeft", "frame", "0"),
        ("PageDown", "step", "1"),
        ("PageUp", "step", "0"),
        ("End", "step", data(first, "tiles")),
        ("Home", "frame", "0"),
    ]
    press(first, keys)
    page.keyboard.press("Space")
    wait_for(first, "Number(data.frame) >= 1")
    page.keyboard.press("Space")
    assert active_cell(lab) == before


def test_whole_steps_are_one_frame_each(first):
    assert_whole_steps_are_one_frame_each(first)


def test_a_click_on_a_tile_goes_there(first):
    field = first.locator(".flash-grid-field")
    box = field.bounding_box()
    first.page.mouse.click(box["x"] + 5, box["y"] + box["height"] - 5)
    assert data(first, "step") == "1"  # the column block stays


def test_sliders_and_switches_compute_again(lab, first):
    page = lab.page
    unfold(first)
    has = lambda text: page.wait_for_function(  # noqa: E731
        f"player => {{ const f = player.flashWidget.frames; return {text}; }}", arg=first.element_handle()
    )
    change = lambda name, key: (first.locator(f'input[data-name="{name}"]').focus(), page.keyboard.press(key))  # noqa: E731
    change("B_c", "ArrowRight")
    wait_for(first, "data.tc === '3'")
    first.get_by_text("dQ: row blocks stay", exact=True).click()
    has("f.wrt === 'q' && f.gradients.join() === 'dQ'")
    assert first.locator('.flash-strip .flash-matrix[data-name="dQ"]').count() == 1
    assert first.locator('.flash-strip .flash-matrix[data-name="dK"]').count() == 0
    assert "dQ[rows] = dQ_i * scale" in first.locator('.flash-lines tr[data-part="store"]').inner_text()
    first.get_by_text("causal", exact=True).click()
    wait_for(first, "Number(data.tiles) < 6")
    for name, key in (("N", "ArrowLeft"), ("d", "ArrowRight"), ("B_r", "ArrowLeft")):
        change(name, key)
    has("f.N_q === 6 && f.d === 4 && f.B_r === 3")
    first.get_by_text("new numbers").click()
    has("f.setting.seed === 1")
    expected = BackwardPlayer(N=6, d=4, B_r=3, B_c=3, wrt="q", causal=True, seed=1)
    seek(first, len(timeline(first)))
    assert shown_error(first, "whole") == shown.shown_error(expected._errors.whole[-1], "float64")
    first.get_by_text("dK, dV: column blocks stay", exact=True).click()
    first.get_by_text("causal", exact=True).click()
    changes = [("N", "ArrowRight"), ("d", "ArrowLeft"), ("B_r", "ArrowRight"), ("B_c", "ArrowLeft")]
    for name, key in changes:
        change(name, key)
    has("f.N_q === 7 && f.d === 3 && f.B_r === 4 && f.B_c === 2 && !f.causal && f.wrt === 'kv'")
    first.evaluate(
        "player => { const { model } = player.flashWidget; model.set('seed', 0); model.save_changes(); }"
    )
    has("f.setting.seed === 0")


def test_large_tiles_are_drawn_without_numbers_and_it_opens_at_a_step(lab):
    player = lab.page.locator(".flash-backward").nth(2)
    player.scroll_into_view_if_needed()
    load = player.evaluate("player => player.flashWidget.frames.frameOf[11] - 1")
    seek(player, load)
    assert data(player, "step") == "10" and data(player, "part") in ("add", "store")
    S_ij = player.locator('.flash-chip .flash-matrix[data-name="S_ij"]')
    assert S_ij.locator("*").count() == 0 and S_ij.evaluate("e => e.style.background").count("url(") == 1
    heights = [
        player.locator(f'.flash-chip .flash-matrix[data-name="{name}"]').bounding_box()["height"]
        for name in ("S_ij", "lse_i", "P_ij")
    ]
    assert len(set(heights)) == 1  # rows side by side
    assert "Larger tiles are drawn without numbers" in player.locator(".flash-chip").get_attribute("title")


def test_drawing_a_frame_fits_into_a_frame(lab):
    assert_drawing_fits_into_a_frame(at_start(lab, 2))


@pytest.mark.parametrize("width", [390, 460, 700, 1000])
@pytest.mark.parametrize("n", [0, 1])
def test_nothing_jumps_as_it_plays(lab, n, width):
    assert_nothing_jumps(at_start(lab, n), width)


def test_it_says_what_this_pass_computes(lab):
    for n, names in enumerate((["dK", "dV"], ["dQ"])):
        line = at_start(lab, n).locator(".flash-headline").inner_text()
        assert line.startswith("Backward pass: gradients of attention")
        assert [name for name in ("dQ", "dK", "dV") if name in line] == names


def test_only_steps_are_counted(first):
    """Parts of a step are not counted: two counts side by side would be confused."""
    for frame in range(len(timeline(first))):
        seek(first, frame)
        assert re.fullmatch(r"step \d of \d · tile \(\d, \d\)", first.locator(".flash-status").inner_text())
        assert re.fullmatch(r"Now: [a-zA-Z, ]+", first.locator(".flash-title").inner_text())


def test_colours_and_hatches_have_a_visible_key(lab):
    for n in (0, 1):
        player = at_start(lab, n)
        open_anew(player)
        marks = player.locator(".flash-tile-marks span").all_inner_texts()
        assert marks[:3] == ["now", "dropped", "to come"] and ("score masked" in marks) == (n == 1)
        for key in (
            ".flash-chip .flash-scale",
            ".flash-moved [data-state=read]",
            ".flash-moved [data-state=written]",
        ):
            assert player.locator(key).is_visible(), key


def test_the_described_row_is_marked(first):
    for frame, (_, part) in enumerate(timeline(first)):
        seek(first, frame)
        told = first.locator(".flash-sentence").inner_text().startswith("Row ")
        assert (
            first.locator(".flash-mark").first.is_visible() == told == (part in ("scores", "weights", "dP", "dS"))
        )


def test_a_sentence_in_its_place_says_what_cannot_be_played(lab):
    player = lab.page.locator(".flash-backward").nth(3)
    player.scroll_into_view_if_needed()
    assert "dO has shape (3, 2) and Q (4, 2)" in player.locator(".flash-problem").inner_text()
    assert player.locator("button").count() == 0


def test_announces_the_frame(first):
    seek(first, 2)
    assert_announces(first, "step 1 of 8 · tile (0, 0), Now: P, recomputed")
