"""The chapters with a player, in JupyterLab, in a real browser."""

import base64
import math

import numpy as np
import pytest

pytest.importorskip("anywidget")

from flashlib import tiled
from flashlib.widgets.frames import PACKED

pytestmark = pytest.mark.browser

PLAYER = ".flash-player"

# Everything on the page that has text in it, with the colours it is really drawn in.
CONTRASTS = """player => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (colour) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const over = (top, below) => [0, 1, 2].map((c) => top[c] * top[3] + below[c] * (1 - top[3]));
    const background = (element) => {
        const layers = [];
        for (let e = element; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor));
        return layers.reduceRight((below, layer) => over(layer, below), [255, 255, 255]);
    };
    const luminance = (rgb) => {
        const [r, g, b] = rgb.map((x) => ((x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const found = [];
    for (const element of player.querySelectorAll("*")) {
        const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        if (!own || element.tagName === "OPTION") continue;
        if (!element.checkVisibility({ checkVisibilityCSS: true })) continue;
        const back = background(element);
        const front = over(rgba(getComputedStyle(element).color), back);
        const [a, b] = [luminance(front), luminance(back)].sort((x, y) => y - x);
        found.push([(a + 0.05) / (b + 0.05), element.className, element.textContent, back.map(Math.round).join()]);
    }
    return found;
}"""


@pytest.fixture(scope="module")
def chapter_05(open_lab):
    with open_lab("05_one_pass.ipynb") as lab:
        lab.errors = lab.run_all()
        yield lab


@pytest.fixture
def player(chapter_05):
    """The player of the chapter, at its first step and in the setting it was made with."""
    player = chapter_05.page.locator(PLAYER).first
    player.scroll_into_view_if_needed()
    seek(player, 0)
    return player


def data(player, name):
    return player.get_attribute(f"data-{name}")


def seek(player, position):
    player.evaluate("(player, position) => player.flashWidget.transport.seek(position)", position)


def wait_for(player, condition):
    """Wait until a condition on the player's dataset, `data`, holds."""
    player.page.wait_for_function(
        f"player => {{ const data = player.dataset; return {condition}; }}", arg=player.element_handle()
    )


def received(player):
    """What the page holds: the frames without their buffer, and the numbers in it."""
    frames, text = player.evaluate(
        """player => {
            const { model, frames } = player.flashWidget;
            let text = "";
            for (const byte of new Uint8Array(frames.numbers.buffer)) text += String.fromCharCode(byte);
            return [{ ...model.get("frames"), buffer: null }, btoa(text)];
        }"""
    )
    return frames, np.frombuffer(base64.b64decode(text), "<f8")


def steps_of(frames, sent):
    """The steps of tiled.steps for the inputs and the setting that the page holds."""
    sizes = {"Q": frames["N_q"], "K": frames["N_k"], "V": frames["N_k"]}
    inputs = []
    for name, N in sizes.items():
        X = sent[frames["inputs"][name] :][: N * frames["d"]]
        inputs.append(X.reshape(N, frames["d"]).astype(frames["dtype"]))
    setting = {name: frames[name] for name in ("B_r", "B_c", "causal", "order", "scale")}
    return list(tiled.steps(*inputs, **setting))


def value(text):
    """The number that a text shows."""
    return float(text.removesuffix(" ↑").replace("−", "-").replace("∞", "inf"))


def four_digits(x):
    return float(f"{x:.3e}")


def two_decimals(x):
    """What is left of a number in a cell of a tile."""
    if abs(x) in (0, math.inf) or 0.005 <= abs(x) < 9.995:
        return float(f"{x:.2f}")
    return float(f"{x:.0e}" if abs(x) < 0.005 else f"{x:.1f}" if abs(x) < 99.95 else f"{x:.0f}")


def active_cell(lab):
    return lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.activeCellIndex")


def test_lab_opens_on_the_first_chapter(open_lab):
    with open_lab("00_start_here.ipynb") as lab:
        lab.page.locator(".jp-Notebook h1").first.wait_for()


def test_chapter_06_runs(open_lab):
    with open_lab("06_tiling.ipynb") as lab:
        assert lab.run_all() == []
        player = lab.page.locator(PLAYER).first
        player.scroll_into_view_if_needed()
        wait_for(player, "data.step === '0'")
        assert_tiles_drawn(player)


def test_chapter_05_runs(chapter_05):
    assert chapter_05.errors == []
    assert chapter_05.page.locator(PLAYER).count() > 0


def test_numbers_on_the_page_are_those_of_tiled_steps(player):
    frames, sent = received(player)
    steps = steps_of(frames, sent)
    assert len(steps) == len(frames["steps"]) == int(data(player, "tiles"))
    for position, (step, packed) in enumerate(zip(steps, frames["steps"], strict=True)):
        offset = packed[-1]
        for name in PACKED:
            X = getattr(step, name).astype("<f8").ravel()
            assert np.array_equal(sent[offset : offset + X.size].view("u8"), X.view("u8")), (position, name)
            offset += X.size
        seek(player, position)
        assert data(player, "step") == str(position)
        rows = player.locator(".flash-rows tbody tr:not(.flash-unused)")
        for name in ("m_old", "m", "alpha", "l"):
            shown = [value(text) for text in rows.locator(f'[data-name="{name}"]').all_inner_texts()]
            assert shown == [four_digits(x) for x in getattr(step, name)], (position, name)
        for name in ("S_ij", "P_ij"):
            cells = player.locator(f'.flash-matrix[data-name="{name}"] .flash-cell:not(.flash-empty)')
            exact = getattr(step, name).ravel()
            assert [value(text) for text in cells.all_inner_texts()] == [two_decimals(x) for x in exact]
            cells.last.hover()
            title = player.locator(f'.flash-matrix[data-name="{name}"]').get_attribute("title")
            assert value(title.partition(": ")[2]) == exact[-1], (position, name)


def test_tiles_change_their_state_as_steps_go_by(player):
    T = int(data(player, "tiles"))
    count = lambda state: player.locator(f'.flash-tile[data-state="{state}"]').count()  # noqa: E731
    for position in (0, T // 2, T - 1, 1, T):
        seek(player, position)
        assert (count("done"), count("now")) == (position, int(position < T))
        assert count("pending") == max(0, T - 1 - position)


def test_player_plays(player):
    player.locator(".flash-play").click()
    wait_for(player, "data.step === '2'")
    player.locator(".flash-play").click()
    stopped = data(player, "step")
    player.page.wait_for_timeout(700)
    assert data(player, "step") == stopped


def test_drawing_a_step_fits_into_a_frame(player):
    times = player.evaluate(
        """player => Array.from({ length: 60 }, (_, k) => {
            player.flashWidget.transport.seek(k % (Number(player.dataset.tiles) + 1));
            return player.flashWidget.drawTime;
        })"""
    )
    assert sorted(times)[30] < 1000 / 60


def test_keyboard(chapter_05, player):
    page = chapter_05.page
    player.focus()  # makes its cell the active one
    before = active_cell(chapter_05)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert data(player, "step") == "2"
    page.keyboard.press("ArrowLeft")
    assert data(player, "step") == "1"
    row = int(data(player, "row"))
    page.keyboard.press("ArrowDown")
    assert int(data(player, "row")) == row + 1
    page.keyboard.press("ArrowUp")
    assert int(data(player, "row")) == row
    page.keyboard.press("End")
    assert data(player, "step") == data(player, "tiles")
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    wait_for(player, "data.step === '1'")
    page.keyboard.press("Space")
    assert active_cell(chapter_05) == before
    assert page.evaluate("() => document.activeElement.matches('.flash-player')")


def test_row_is_told_in_words(player):
    frames, sent = received(player)
    for position, step in enumerate(steps_of(frames, sent)):
        seek(player, position)
        row = int(data(player, "row"))
        r = row - step.rows.start
        text = player.locator(".flash-sentence").inner_text()
        assert text.startswith(f"Row {row}")
        if step.m[r] > step.m_old[r] > -math.inf:
            assert "the maximum grew" in text
        elif step.m_old[r] > -math.inf:
            assert "did not grow" in text or "sees no key of this tile" in text
    seek(player, len(frames["steps"]))
    assert player.locator(".flash-sentence").inner_text().startswith("Finished")


def assert_tiles_drawn(player):
    T_r, T_c = int(data(player, "tr")), int(data(player, "tc"))
    assert player.locator(".flash-tile").count() == T_r * T_c
    assert player.locator('.flash-tile:not([data-state="skipped"])').count() == int(data(player, "tiles"))


def test_sliders_and_switches_retile(chapter_05, player):
    page = chapter_05.page
    frames, _ = received(player)
    original = data(player, "tc")
    player.locator('input[data-name="B_c"]').focus()
    before = active_cell(chapter_05)
    page.keyboard.press("ArrowRight")
    wait_for(player, f"data.tc === '{math.ceil(frames['N_k'] / (frames['B_c'] + 1))}'")
    assert_tiles_drawn(player)
    assert active_cell(chapter_05) == before
    tiles = int(data(player, "tiles"))
    player.get_by_text("causal", exact=True).click()
    wait_for(player, f"Number(data.tiles) < {tiles}")
    assert_tiles_drawn(player)
    player.get_by_text("FA1", exact=True).click()
    player.page.wait_for_function(
        "player => player.flashWidget.frames.order === 'fa1'", arg=player.element_handle()
    )
    frames, sent = received(player)
    assert [(s.i, s.j) for s in steps_of(frames, sent)] == [tuple(s[:2]) for s in frames["steps"]]
    player.get_by_text("FA2", exact=True).click()
    player.get_by_text("causal", exact=True).click()
    player.locator('input[data-name="B_c"]').focus()
    page.keyboard.press("ArrowLeft")
    wait_for(player, f"data.tc === '{original}' && data.tiles === String(data.tr * data.tc)")


@pytest.mark.parametrize("theme", ["JupyterLab Dark", "JupyterLab Light"])
def test_text_is_legible(chapter_05, player, theme):
    chapter_05.theme(theme)
    dark = player.evaluate("player => player.classList.contains('flash-dark')")
    assert dark == theme.endswith("Dark")
    for position in range(int(data(player, "tiles")) + 1):
        seek(player, position)
        found = player.evaluate(CONTRASTS)
        assert len(found) > 50
        assert min(found)[0] > 4.5, min(found)


@pytest.mark.parametrize("width", [700, 1100])
def test_player_fits_into_its_width(chapter_05, player, width):
    page = chapter_05.page
    page.evaluate("""() => window.jupyterapp.shell.collapseLeft()""")
    beside = page.viewport_size["width"] - player.evaluate("player => player.clientWidth")
    page.set_viewport_size({"width": width + beside, "height": 1000})
    wait_until = "([player, width]) => Math.abs(player.clientWidth - width) < 2"
    page.wait_for_function(wait_until, arg=[player.element_handle(), width])
    assert player.evaluate("player => player.scrollWidth <= player.clientWidth")
    clipped = player.evaluate(
        """player => [...player.querySelectorAll(".flash-panel, .flash-parts, .flash-cell")]
            .filter((element) => element.scrollWidth > element.clientWidth + 1)
            .map((element) => element.outerHTML)"""
    )
    assert clipped == []
    panels = player.locator(".flash-places > .flash-panel")
    boxes = [panels.nth(k).bounding_box() for k in range(3)]
    assert boxes[0]["y"] == boxes[1]["y"]  # HBM and S side by side
    assert (boxes[2]["y"] == boxes[0]["y"]) == (width == 1100)  # and SRAM, where there is room
    page.set_viewport_size({"width": 1440, "height": 1000})


def test_every_text_is_text(player):
    assert "object" not in player.inner_text()
    assert "undefined" not in player.inner_text()
    assert player.locator(".flash-label-j").count() > 0
    assert player.locator(".flash-label-i").count() > 0


def test_announces_the_step(player):
    seek(player, 1)
    player.page.wait_for_function(
        "player => player.querySelector('[aria-live]').textContent.startsWith('step 2 of')",
        arg=player.element_handle(),
    )


def test_every_control_has_a_name(player):
    nameless = player.evaluate(
        """player => [...player.querySelectorAll("button, input, select")].filter((control) => {
            const labels = [...control.labels ?? []].map((label) => label.textContent.trim());
            return !control.getAttribute("aria-label") && !labels.some(Boolean);
        }).map((control) => control.outerHTML)"""
    )
    assert nameless == []
