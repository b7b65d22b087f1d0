"""FlashPlayer for a first look, in a real browser: less panels, words for rows, and what a button switches."""

import re

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("axe_playwright_python")

from tests.browser.contrast import too_low
from tests.browser.lab import THEMES, opened_file, resized
from tests.browser.playing import (
    assert_nothing_jumps,
    at_start,
    data,
    every_frame,
    four_digits,
    numbers,
    open_anew,
    received,
    seek,
    steps_of,
    timeline,
    two_decimals,
)
from tests.browser.probes import AXE, MISPLACED, VIOLATIONS
from tests.browser.saved import save
from tests.browser.shown import flash_player as look

pytestmark = pytest.mark.browser

SENTENCE, RANDOM = range(2)  # the players of the page
CELLS = [
    "from flashlib.widgets import FlashPlayer\nFlashPlayer.from_sentence(panels='less')",
    "FlashPlayer(N=7, d=3, B_r=4, B_c=2, panels='less')",
]
WORDS = ["The", "cat", "slept", "because", "it", "was"]
MOST = 4  # panels
IN_TILE = (
    """[...player.querySelectorAll(".flash-tile-now .flash-cell:not(.flash-empty)")].map((e) => e.innerText)"""
)
OUTPUT = """[...player.querySelectorAll(".flash-output .flash-cell")].map((e) => e.innerText)"""


@pytest.fixture(scope="module")
def lab(open_lab):
    with open_lab("player_less.ipynb", cells=CELLS) as lab:
        lab.page.add_script_tag(content=AXE.read_text(encoding="utf-8"))
        assert lab.run_all() == []
        yield lab


@pytest.fixture(params=[SENTENCE, RANDOM], ids=["words", "numbers"])
def player(lab, request):
    return at_start(lab, request.param)


@pytest.fixture
def sentence(lab):
    return at_start(lab, SENTENCE)


def panels(player):
    """The panels that are seen, without the row of buttons."""
    return player.locator(".flash-panel:not(.flash-header)").filter(visible=True)


def press(player, label):
    player.get_by_role("button", name=label, exact=True).click()


def test_it_opens_at_the_beginning_with_four_panels_and_no_bytes(player):
    open_anew(player)
    assert (data(player, "step"), data(player, "part")) == ("0", "load")
    assert panels(player).count() == MOST
    assert not re.search(r"\d B\b", player.inner_text())
    assert player.locator(".flash-headline").inner_text().startswith("FlashAttention computes")
    assert not player.get_by_text("rows final").is_visible()  # before any is


def test_every_frame_shows_what_python_computed(player):
    frames, sent = received(player)
    steps = steps_of(frames, sent)
    seen = every_frame(player, tile=IN_TILE, **{name: look.LOOK[name] for name in ("m", "alpha", "l", "lines")})
    for (k, part), now in zip(timeline(player), seen, strict=False):
        step, done = steps[k], lambda name, part=part: look.done(part, name)
        X = (step.P_ij if done("weights") else step.S_ij) if done("scores") and part != "store" else np.empty(0)
        assert numbers(now["tile"]) == [two_decimals(x) for x in X.ravel()]
        rescaled = step.alpha * step.l_old if done("rescale") else step.l_old
        expected = {
            "m": step.m if done("maximum") else step.m_old,
            "alpha": step.alpha if done("rescale") else [None] * len(step.m),
            "l": step.l if done("add") else rescaled,
        }
        for name, values in expected.items():
            assert numbers(now[name]) == [x if x is None else four_digits(x) for x in values], (k, part, name)
        assert now["lines"]


def test_masked_scores_of_the_tile_are_hatched_as_scores_and_as_weights(sentence):
    frames, sent = received(sentence)
    steps = steps_of(frames, sent)
    seen = every_frame(sentence, cut=IN_TILE.replace("e.innerText", 'e.matches(".flash-cut")'))
    for (k, part), now in zip(timeline(sentence), seen, strict=False):
        if now["cut"]:
            assert now["cut"] == [bool(s == -np.inf) for s in steps[k].S_ij.ravel()], (k, part)
    assert any(any(now["cut"]) for now in seen)


def test_O_fills_as_rows_are_stored(lab):
    player = at_start(lab, RANDOM)
    frames, sent = received(player)
    O = np.full((7, 3), np.nan)
    rows = {after: (start, stop, offset) for after, start, stop, offset in frames["writes"]}
    cells = every_frame(player, cells=OUTPUT)
    for (k, part), now in zip([*timeline(player), [len(frames["steps"]), "end"]], cells, strict=True):
        if part == "store":
            start, stop, offset = rows[k]
            O[start:stop] = sent[offset:][: (stop - start) * 3].reshape(-1, 3)
        assert numbers(now["cells"]) == [None if np.isnan(x) else two_decimals(x) for x in O.ravel()], (k, part)
    assert not np.isnan(O).any()


def test_rows_and_columns_are_called_by_their_words(sentence):
    seek(sentence, 1)
    texts = lambda selector: sentence.locator(selector).all_inner_texts()  # noqa: E731
    assert texts(".flash-label-i") == texts(".flash-label-j") == WORDS
    assert texts(".flash-output .flash-row-words:not(.flash-row-looks) > *") == WORDS
    assert texts(".flash-rows tr:not(.flash-unused) label") == WORDS[:3]
    assert "Row 0 (The): the largest score in this tile" in sentence.locator(".flash-sentence").inner_text()
    sentence.locator(".flash-rows tbody tr").nth(2).click()
    press(sentence, "show all")
    strips = sentence.locator(".flash-memory .flash-row-words")
    assert [strip.locator("span").all_inner_texts() for strip in strips.all()] == [WORDS] * 4
    assert sentence.locator(".flash-row-name").inner_text() == "Row 2 (slept)"
    press(sentence, "show less")


def test_the_button_shows_all_and_less_again_at_the_same_frame(player):
    seek(player, 4)
    less = panels(player).count()
    press(player, "show all")
    assert panels(player).count() > less == MOST and data(player, "frame") == "4"
    assert player.locator(".flash-moved").inner_text() != ""
    assert not player.locator(".flash-headline-now").is_visible()
    press(player, "show less")
    assert panels(player).count() == MOST and data(player, "frame") == "4"


def test_the_trait_switches_it_too(lab):
    player = at_start(lab, RANDOM)
    set_panels = "(player, panels) => void player.flashWidget.model.set('panels', panels)"
    player.evaluate(set_panels, "all")
    assert player.get_by_role("button", name="show less").count() == 1
    player.evaluate(set_panels, "less")
    assert panels(player).count() == MOST


def test_a_change_of_a_block_size_keeps_the_end_and_says_what_became_of_O(lab, sentence):
    frames, _ = received(sentence)
    seek(sentence, len(timeline(sentence)))
    words = lambda: sentence.locator(".flash-sentence").inner_text()  # noqa: E731
    before = words()
    assert "its largest weight is" in before
    sentence.locator('input[data-name="B_c"]').focus()
    lab.page.keyboard.press("End")
    lab.page.wait_for_function("player => player.flashWidget.frames.B_c === 6", arg=sentence.element_handle())
    assert int(data(sentence, "frame")) == len(timeline(sentence))
    assert "With the setting before, O " in words()
    seek(sentence, 0)
    for _ in range(6 - frames["B_c"]):
        sentence.locator('input[data-name="B_c"]').press("ArrowLeft")
    lab.page.wait_for_function("player => player.flashWidget.frames.B_c === 2", arg=sentence.element_handle())
    assert data(sentence, "frame") == "0"


def test_a_score_that_is_pointed_at_is_written_out(sentence):
    seek(sentence, 1)
    box = sentence.locator(".flash-tile-now").bounding_box()
    sentence.page.mouse.move(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
    said = sentence.locator(".flash-sentence").inner_text()
    assert said.startswith("Row 1 of Q (cat) times row 0 of K (The): ") and "(64 products)" in said
    sentence.page.mouse.move(0, 0)


def test_at_the_end_each_word_has_the_one_with_its_largest_weight(sentence):
    frames, sent = received(sentence)
    Q, K = (sent[frames["inputs"][name] :][: 6 * 64].reshape(6, 64) for name in "QK")
    S = np.where(np.tri(6, dtype=bool), Q @ K.T / 8, -np.inf)
    P = np.exp(S - S.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    seek(sentence, len(timeline(sentence)))
    looks = sentence.locator(".flash-row-looks > *").all_inner_texts()
    assert looks == [f"{p.max():.2f} {WORDS[p.argmax()]}" for p in P]
    seek(sentence, 0)
    assert sentence.locator(".flash-row-looks > *").all_inner_texts() == [""] * 6


@pytest.mark.parametrize("width", [326, 700, 930])
def test_nothing_is_cut_off_and_nothing_jumps(lab, sentence, width):
    lab.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    assert_nothing_jumps(sentence, width)
    found = []
    with resized(sentence, width):
        for label in ("show all", "show less"):
            for frame in (1, 5, len(timeline(sentence))):
                seek(sentence, frame)
                found += sentence.evaluate(MISPLACED)
            press(sentence, label)
    assert found == []


@pytest.mark.parametrize("theme", THEMES)
def test_it_can_be_read_and_used(lab, sentence, theme):
    seek(sentence, 5)
    lab.theme(theme)
    assert sentence.evaluate(f"root => ({VIOLATIONS})([root])") == []
    assert too_low(sentence) == []
    lab.theme(THEMES[0])


def test_callouts_are_about_what_is_shown(lab):
    lab.page.evaluate("() => localStorage.removeItem('flashlib.guided')")
    lab.run_again(SENTENCE)
    player, callout = lab.page.locator(".flash-player").nth(SENTENCE), lab.page.locator(".flash-callout")
    about = lambda: (callout.is_visible(), player.locator(".flash-told").filter(visible=True).count())  # noqa: E731
    texts = []
    for name in ("next", "next"):
        texts.append(callout.locator("p").inner_text())
        callout.get_by_role("button", name=name).click()
        assert about() == (True, 1)
    assert "Press play" in texts[0] and "outlined tile" in texts[1] and "alpha" in callout.inner_text()
    for label in ("show all", "show less"):
        press(player, label)
        assert about() == (True, 1) and "3 of 3" in callout.inner_text()
    callout.get_by_role("button", name="got it").click()
    assert callout.count() == 0


def test_the_button_works_on_a_saved_page(browser, tmp_path):
    path = save(CELLS[:1], tmp_path)
    with opened_file(browser, path) as page:
        page.evaluate("() => localStorage.setItem('flashlib.guided', 'yes')")
        page.reload()
        page.wait_for_selector("html[data-ready]", state="attached")
        player = page.locator(".flash-player")
        assert panels(player).count() == MOST and data(player, "step") == "0"
        press(player, "show all")
        assert panels(player).count() > MOST
        assert player.locator('input[data-name="B_c"]').is_disabled()
        press(player, "show less")
        assert panels(player).count() == MOST
