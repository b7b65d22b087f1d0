"""FlashPlayer in JupyterLab, in a real browser: it shows what Python computed, frame by frame.

A test undoes its changes: those below it continue from there.
"""

import numpy as np
import pytest

pytest.importorskip("anywidget")

from flashlib.widgets.flash_player.frames import PACKED
from tests.browser.lab import resized
from tests.browser.playing import (
    active_cell,
    assert_announces,
    assert_drawing_fits_into_a_frame,
    assert_nothing_jumps,
    assert_whole_steps_are_one_frame_each,
    at_start,
    data,
    numbers,
    open_anew,
    press,
    received,
    seek,
    steps_of,
    timeline,
    unfold,
    value,
    wait_for,
)
from tests.browser.shown import flash_player as look

pytestmark = pytest.mark.browser

# A learner's loop with a bug: l is never rescaled.
BUG = """
import numpy as np
from flashlib.types import Step

def my_steps(Q, K, V, B_r, B_c):
    for i in range(-(-len(Q) // B_r)):
        Q_i = Q[i * B_r : (i + 1) * B_r]
        m, l, O_acc = np.full(len(Q_i), -np.inf), np.zeros(len(Q_i)), np.zeros_like(Q_i)
        for j in range(-(-len(K) // B_c)):
            K_j, V_j = K[j * B_c : (j + 1) * B_c], V[j * B_c : (j + 1) * B_c]
            S_ij = Q_i @ K_j.T / np.sqrt(Q.shape[1])
            m_old, m = m, np.maximum(m, S_ij.max(axis=1))
            alpha = np.exp(m_old - m)
            P_ij = np.exp(S_ij - m[:, None])
            l = l + P_ij.sum(axis=1)
            O_acc = alpha[:, None] * O_acc + P_ij @ V_j
            yield Step(i, j, m, l, O_acc)

FlashPlayer.from_steps(my_steps)
"""

CELLS = [
    "from flashlib.widgets import FlashPlayer\nFlashPlayer(N=7, d=3, B_r=4, B_c=2)",
    "import numpy as np\nQ = np.random.default_rng(1).normal(size=(10, 4))\n"
    "FlashPlayer(Q, Q[:7], Q[:7], B_r=4, B_c=3, causal=True, order='fa1')",
    BUG,
    "FlashPlayer(np.ones((4, 2)), np.ones((4, 3)), np.ones((4, 3)))",
]


@pytest.fixture(scope="module")
def lab(open_lab):
    with open_lab("player.ipynb", cells=CELLS) as lab:
        assert lab.run_all() == []
        yield lab


@pytest.fixture(params=[0, 1], ids=["fa2", "fa1, causal, N_q > N_k"])
def player(lab, request):
    return at_start(lab, request.param)


@pytest.fixture
def first(lab):
    return at_start(lab, 0)


def shown(player, name):
    """The numbers in a column of the state table; None where it is blank."""
    return numbers(player.locator(look.COLUMN.format(name)).all_inner_texts())


def test_the_buffer_is_tiled_steps_bit_for_bit(player):
    frames, sent = received(player)
    steps = steps_of(frames, sent)
    assert len(steps) == len(frames["steps"]) == int(data(player, "tiles"))
    for position, (step, packed) in enumerate(zip(steps, frames["steps"], strict=True)):
        for name, offset in zip(PACKED, packed[8:], strict=False):
            X = getattr(step, name).astype("<f8").ravel()
            assert np.array_equal(sent[offset : offset + X.size].view("u8"), X.view("u8")), (position, name)


def test_every_frame_shows_what_python_computed(player):
    look.check(player)


def test_the_meters_show_what_standard_attention_moves(player):
    frames, _ = received(player)
    standard = f"{sum(frames['standard']):,} B".replace(",", "\u202f")
    assert standard in player.locator(".flash-meters").inner_text()


def test_a_click_on_a_tile_goes_there(first):
    frames, _ = received(first)
    field = first.locator(".flash-grid-field")
    box = field.bounding_box()
    first.page.mouse.click(box["x"] + box["width"] - 5, box["y"] + box["height"] - 5)
    assert data(first, "step") == str(len(frames["steps"]) - 1)


def test_it_plays_and_stops(first):
    button = first.locator(".flash-play")
    button.click()
    wait_for(first, "Number(data.frame) >= 2")
    button.click()
    assert button.get_attribute("data-playing") == "false"
    assert not first.evaluate("player => player.flashWidget.transport.playing")


def test_whole_steps_are_one_frame_each(first):
    assert_whole_steps_are_one_frame_each(first)


def test_drawing_a_frame_fits_into_a_frame(first):
    assert_drawing_fits_into_a_frame(first)


def test_keyboard(lab, first):
    page = lab.page
    first.focus()  # makes its cell the active one
    first.evaluate("player => { player.flashWidget.picked = null; }")
    before = active_cell(lab)
    keys = [
        ("ArrowRight", "frame", "1"),
        ("ArrowRight", "frame", "2"),
        ("ArrowLeft", "frame", "1"),
        ("PageDown", "step", "1"),
        ("PageDown", "step", "2"),
        ("PageUp", "step", "1"),
        ("Home", "frame", "0"),
        ("ArrowDown", "row", "1"),
        ("ArrowDown", "row", "2"),
        ("ArrowUp", "row", "1"),
        ("End", "step", data(first, "tiles")),
        ("Home", "frame", "0"),
    ]
    press(first, keys)
    page.keyboard.press("Space")
    wait_for(first, "Number(data.frame) >= 1")
    page.keyboard.press("Space")
    assert active_cell(lab) == before
    assert page.evaluate("() => document.activeElement.matches('.flash-player')")


def test_sliders_and_switches_retile(lab, first):
    page = lab.page
    unfold(first)
    change = lambda name, key: (first.locator(f'input[data-name="{name}"]').focus(), page.keyboard.press(key))  # noqa: E731
    change("B_c", "ArrowRight")
    wait_for(first, "data.tc === '3'")
    first.get_by_text("causal", exact=True).click()
    wait_for(first, "Number(data.tiles) < 6")
    first.get_by_text("FA1", exact=True).click()
    page.wait_for_function("player => player.flashWidget.frames.order === 'fa1'", arg=first.element_handle())
    assert first.locator('.flash-strip .flash-matrix[data-name="m"]').count() == 1
    frames, sent = received(first)
    assert [(s.i, s.j) for s in steps_of(frames, sent)] == [tuple(s[:2]) for s in frames["steps"]]
    change("N", "ArrowLeft")
    page.wait_for_function("player => player.flashWidget.frames.N_q === 6", arg=first.element_handle())
    change("d", "ArrowRight")
    page.wait_for_function("player => player.flashWidget.frames.d === 4", arg=first.element_handle())
    _, before = received(first)
    first.get_by_text("new numbers").click()
    page.wait_for_function("player => player.flashWidget.frames.setting.seed === 1", arg=first.element_handle())
    _, after = received(first)
    assert not np.array_equal(before, after)
    first.get_by_text("FA2", exact=True).click()
    first.get_by_text("causal", exact=True).click()
    for name, key in (("B_c", "ArrowLeft"), ("N", "ArrowRight"), ("d", "ArrowLeft")):
        change(name, key)
    page.wait_for_function(
        "player => JSON.stringify(player.flashWidget.frames.setting) === "
        '\'{"B_r":4,"B_c":2,"causal":false,"order":"fa2","N":7,"d":3,"seed":1}\'',
        arg=first.element_handle(),
    )


def test_a_bug_plays_as_a_bug(lab):
    player = at_start(lab, 2)
    open_anew(player)
    learner = received(player)[0]["learner"]
    k, name, row = learner["first"]
    assert name == "l"
    assert (data(player, "step"), data(player, "part")) == (str(k), "add")  # it opens on the part that is wrong
    frame = next(n for n, (step, part) in enumerate(timeline(player)) if step == k and part == "add")
    rescale = next(n for n, (step, part) in enumerate(timeline(player)) if step == k and part == "rescale")
    seek(player, rescale)
    l_old = shown(player, "l")
    seek(player, rescale - 1)
    assert shown(player, "l") == l_old  # it is not known yet whether this code rescales
    seek(player, frame - 1)
    assert player.locator(".flash-verdict").inner_text() == ""
    seek(player, frame)
    player.locator(".flash-rows tbody tr").nth(row).click()
    verdict = player.locator(".flash-verdict").inner_text()
    assert verdict.startswith(f"Here it goes wrong: l of row {row} is ")
    given, true = (value(text.rstrip(".")) for text in verdict.partition(" is ")[2].split(", it should be "))
    assert shown(player, "l")[row] == given != true
    ghost = player.locator('.flash-rows tbody tr [data-name="l"] .flash-true').nth(row).inner_text()
    assert value(ghost.removeprefix("≠ ")) == true
    assert player.locator(".flash-errors path").get_attribute("d").count("V") == 2 * len(learner["errors"])
    seek(player, len(timeline(player)))
    verdict = player.locator(".flash-verdict").inner_text()
    assert f"It went wrong at step {k + 1}" in verdict and "O is wrong from row 0 on" in verdict
    code = player.locator('.flash-lines tr[data-part="add"] code').all_inner_texts()
    assert code[0] == "l = l + P_ij.sum(axis=1)"


def test_a_sentence_in_its_place_says_what_cannot_be_played(lab):
    player = lab.page.locator(".flash-player").nth(3)
    assert "the last axis, d, must be equal" in player.locator(".flash-problem").inner_text()
    assert player.locator("button").count() == 0


@pytest.mark.parametrize("width", [310, 700, 930, 1100])
def test_it_fits_into_its_width(lab, first, width):
    lab.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    with resized(first, width):
        assert first.evaluate("player => player.scrollWidth <= player.clientWidth")
        clipped = first.evaluate(
            """player => [...player.querySelectorAll(".flash-panel, .flash-parts, .flash-cell")]
                .filter((element) => element.scrollWidth > element.clientWidth + 1)
                .map((element) => element.outerHTML)"""
        )
        assert clipped == []
        names = ("memory", "chip", "grid", "row")
        memory, chip, grid, row = (first.locator(f".flash-{name}").first.bounding_box() for name in names)
        sums = first.locator('.flash-rows .flash-matrix[data-name="O_acc"]')
        ends = [box["x"] + box["width"] for box in (sums.nth(k).bounding_box() for k in range(sums.count()))]
    assert chip["y"] > memory["y"] and chip["x"] == memory["x"]  # SRAM is below HBM
    assert max(ends) <= chip["x"] + chip["width"]  # O_acc is in view, even on a phone
    assert (grid["x"] > chip["x"] + 200) == (width >= 930)  # S is next to SRAM if it fits
    assert (row["x"] > grid["x"]) == (width >= 700)


@pytest.mark.parametrize("width", [930, 1100])
def test_hbm_is_drawn_larger_than_sram(lab, first, width):
    lab.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    with resized(first, width):
        hbm, sram = (first.locator(f".flash-{name}").bounding_box() for name in ("memory", "chip"))
    assert hbm["width"] * hbm["height"] > sram["width"] * sram["height"] and hbm["width"] > 1.5 * sram["width"]


@pytest.mark.parametrize("width", [390, 460, 930, 1100])
def test_nothing_jumps_as_it_plays(lab, first, width):
    lab.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    assert_nothing_jumps(first, width)


def test_announces_the_frame(first):
    seek(first, 1)
    assert_announces(first, "step 1 of 8 · tile (0, 0), part 2 of 6")
