"""Linked words of FlashPlayer, in a browser: a name highlights its cell, term and line, a score its product."""

import numpy as np
import pytest

pytest.importorskip("anywidget")

from tests.browser.playing import at_start, data, received, seek, timeline, value

pytestmark = pytest.mark.browser

CELLS = [
    "from flashlib.widgets import FlashPlayer\nFlashPlayer(N=7, d=3, B_r=4, B_c=2)",
    "from flashlib import masks\nFlashPlayer(N=9, d=8, B_r=4, B_c=2, mask=masks.causal() & masks.softcap(2.0))",
]
LIT = """player => [...player.querySelectorAll(".flash-linked")].map((e) => {
    const place = e.closest(".flash-sentence, .flash-equation, code, td, th, .flash-tiles, .flash-bars");
    return [e.dataset.symbol ?? e.dataset.name, place.className || place.localName];
})"""


@pytest.fixture(scope="module")
def lab(open_lab):
    with open_lab("player_links.ipynb", cells=CELLS) as lab:
        assert lab.run_all() == []
        yield lab


@pytest.fixture
def player(lab):
    """The first player, at a rescale, with nothing pointed at."""
    player = at_start(lab, 0)
    player.evaluate("player => player.flashWidget.transport.seek(player.flashWidget.frames.marked()[0])")
    lab.page.mouse.move(0, 0)
    return player


def word(player, name, place=".flash-sentence"):
    return player.locator(f'{place} [data-symbol="{name}"]').first


@pytest.mark.parametrize("name", ["m", "alpha", "l", "O_acc"])
def test_a_word_highlights_its_cell_its_term_and_its_line(player, name):
    word(player, name).hover()
    lit = player.evaluate(LIT)
    assert {symbol for symbol, _ in lit} == {name}
    assert {"flash-sentence", "th", "flash-equation"} <= {place for _, place in lit}
    cell = ".flash-matrix" if name == "O_acc" else f'td[data-name="{name}"]'
    assert player.locator(f".flash-rows tr {cell}.flash-linked").count() == 1
    assert player.locator(f".flash-rows tr[aria-current] {cell}.flash-linked").count() == 1
    line = player.locator(".flash-lines tr").filter(visible=True)
    assert line.count() == 1 and line.locator("code .flash-linked, .flash-equation .flash-linked").count() > 0
    player.page.mouse.move(0, 0)
    assert player.evaluate(LIT) == []


def test_a_cell_highlights_the_word_and_its_line_even_if_it_is_not_current(player):
    assert player.locator(".flash-lines tr").filter(visible=True).get_attribute("data-part") == "rescale"
    player.locator('.flash-tiles .flash-matrix[data-name="S_ij"]').hover()
    shown = player.locator(".flash-lines tr").filter(visible=True)
    assert shown.get_attribute("data-part") == "scores" and shown.locator("code .flash-linked").count() == 1
    player.page.mouse.move(0, 0)
    assert player.locator(".flash-lines tr").filter(visible=True).get_attribute("data-part") == "rescale"
    player.locator('tr[aria-current] td[data-name="alpha"]').hover()
    assert "flash-linked" in word(player, "alpha").get_attribute("class")


def test_a_focused_word_is_highlighted_and_keys_continue_from_there(player):
    word(player, "alpha").focus()
    assert ["alpha", "flash-sentence"] in player.evaluate(LIT)
    before = int(data(player, "frame"))
    player.page.keyboard.press("ArrowRight")
    assert int(data(player, "frame")) == before + 1
    assert player.evaluate("player => player.contains(document.activeElement)")


# The top and height of each outline of a row, in px of its tile, and the rows that it covers.
OUTLINED = """player => [...player.querySelectorAll(".flash-row-mark")].map((mark) => {
    const { dataset } = mark.parentElement;
    const { matrix } = player.flashWidget.views.made.chip.views.made.tiles.tiles[dataset.name];
    return [dataset.name, ...["top", "height"].map((side) => parseFloat(mark.style[side]) / matrix.height)];
})"""


@pytest.mark.parametrize("n", [0, 1])
def test_a_score_highlights_its_rows_and_its_product_is_written_out(lab, n):
    player = at_start(lab, n)
    frames, sent = received(player)
    d = frames["d"]
    Q, K = (
        sent[frames["inputs"][x] :][: frames[size] * d].reshape(-1, d) for x, size in (("Q", "N_q"), ("K", "N_k"))
    )
    k = 2
    seek(player, next(f for f, now in enumerate(timeline(player)) if now == [k, "scores"]))
    sentence = player.locator(".flash-sentence").inner_text()
    rows, cols = slice(*frames["steps"][k][2:4]), slice(*frames["steps"][k][4:6])
    for r, c in ((0, 1), (2, 0)):
        tile = player.locator('.flash-tiles .flash-matrix[data-name="S_ij"]')
        box = tile.bounding_box()
        n_r, n_c = frames["B_r"], frames["B_c"]
        player.page.mouse.move(
            box["x"] + (c + 0.5) / n_c * box["width"], box["y"] + (r + 0.5) / n_r * box["height"]
        )
        i, j = rows.start + r, cols.start + c
        assert player.evaluate(OUTLINED) == [["Q_i", r, 1], ["K_j", c, 1]]
        text = player.locator(".flash-sentence").inner_text()
        assert text.startswith(f"Row {i} of Q times row {j} of K: ")
        score = Q[i] @ K[j] * frames["scale"]
        found = text.rpartition(" = ")[2]
        assert np.isclose(value(found.split(". ")[0].rstrip(".")), score, rtol=1e-3)
        assert ("mask" in found) == (n == 1)
    player.page.mouse.move(0, 0)
    assert player.locator(".flash-sentence").inner_text() == sentence
    assert player.evaluate(OUTLINED) == []
