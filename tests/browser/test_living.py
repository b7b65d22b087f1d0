"""Widgets in a notebook in use: run again, saved, closed and reopened; and which keys belong to whom."""

import json

import pytest

pytest.importorskip("anywidget")

from flashlib import widgets
from tests.browser.lab import KERNEL_TIMEOUT
from tests.browser.labs import ASKS_NOTHING, reopened
from tools.measure_widgets import LIMITS

pytestmark = pytest.mark.browser

NAMES = widgets.__all__
FILE = "living.ipynb"
IMPORTS = "import time\nfrom pathlib import Path\nfrom flashlib.widgets import *"
BUSY = """end = time.time() + 60
while not Path("go").exists() and time.time() < end:
    time.sleep(0.05)"""
CELLS = [IMPORTS, *(f"{name}()" for name in NAMES), BUSY]
PLAYER = 1 + NAMES.index("FlashPlayer")  # the index of its cell
LAPTOP = {"width": 1366, "height": 768}
RESTARTED = "Python was restarted: run the cell again"
STATE = "application/vnd.jupyter.widget-state+json"

# Everything in the notebook that a key could change.
NOTEBOOK = """() => {
    const { content: { model, activeCellIndex } } = window.jupyterapp.shell.currentWidget;
    return [activeCellIndex, [...model.cells].map(({ type, executionCount, sharedModel }) => [
        type, executionCount ?? null, sharedModel.getSource(),
    ])];
}"""

# Until the new kernel answers: parts shut down before that may stay.
RESTART = """async () => {
    const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
    await kernel.restart();
    await kernel.requestKernelInfo();
    return true;
}"""


@pytest.fixture(scope="module")
def path(folder):
    return folder / "notebooks" / FILE


@pytest.fixture(scope="module")
def go(path):
    """A file; while it does not exist, the last cell keeps Python busy."""
    go = path.with_name("go")
    go.touch()
    yield go
    go.unlink()


@pytest.fixture(scope="module")
def page(open_lab, go):
    with open_lab(FILE, CELLS) as lab:
        yield lab


@pytest.fixture
def lab(page):
    """The page, with Python running: some tests leave it without."""
    if not page.ran:
        assert page.run_all() == []
    return page


def shown(lab, name):
    """The widget of this class, in view."""
    widget = lab.page.locator(".flash-widget").nth(NAMES.index(name))
    widget.scroll_into_view_if_needed()
    return widget


def count(lab, index):
    """The execution count of a cell."""
    return lab.page.evaluate(NOTEBOOK)[1][index][1]


def states(path):
    """The states of widgets with which a notebook was saved, by the name of their model."""
    found = json.loads(path.read_text(encoding="utf-8"))["metadata"]["widgets"][STATE]["state"]
    return sorted(state["model_name"] for state in found.values())


@pytest.mark.parametrize("keys", ["Shift+Enter", "Control+Enter"])
@pytest.mark.parametrize("control", ["input[type=range]:enabled", "button:enabled"])
def test_enter_with_a_modifier_runs_the_cell(lab, keys, control):
    before, player = count(lab, PLAYER), shown(lab, "FlashPlayer")
    player.evaluate("root => { root.dataset.old = 'yes'; }")
    player.locator(control).first.focus()
    lab.page.keyboard.press(keys)
    lab.page.wait_for_function(f"before => ({NOTEBOOK})()[1][{PLAYER}][1] > before", arg=before)
    cell = lab.page.locator(".jp-Notebook .jp-Cell").nth(PLAYER)
    cell.locator(".flash-widget[data-loads]:not([data-old])").wait_for()


@pytest.mark.parametrize("control", ["input[type=range]:enabled", "button:enabled", None])
def test_plain_keys_stay_in_the_widget(lab, control):
    widget = shown(lab, "FlashPlayer")
    (widget.locator(control).first if control else widget).focus()
    before = lab.page.evaluate(NOTEBOOK)
    for key in ["d", "d", "x", "a", "b", "m", "y", "z", "Escape", "Shift+M"]:
        lab.page.keyboard.press(key)
    assert lab.page.evaluate(NOTEBOOK) == before


def test_a_cell_run_twenty_times_holds_and_saves_one_widget(lab, path):
    """The remaining growth is the browser's: compiled code for functions that run often."""
    lab.save()
    models, size = states(path), path.stat().st_size
    for _ in range(5):
        lab.run_again(PLAYER)
    before = lab.heap()
    for _ in range(20):
        lab.run_again(PLAYER)
    assert lab.heap() - before < 1e6 * LIMITS["growth"]
    lab.save()
    assert states(path) == models
    assert models.count("AnyModel") == len(NAMES)
    assert path.stat().st_size < 1.2 * size


def test_a_busy_python_is_waited_for(lab, go):
    player = shown(lab, "FlashPlayer")
    loads = int(player.get_attribute("data-loads"))
    go.unlink()
    try:
        lab.begin(CELLS.index(BUSY))
        player.locator("[data-name=B_c]").fill("3")
        player.get_by_text("Waiting for Python, which is busy").wait_for()
        assert int(player.get_attribute("data-loads")) == loads
    finally:
        go.touch()
    answered = "([root, loads]) => root.dataset.loads > loads"
    lab.page.wait_for_function(answered, arg=[player.element_handle(), loads])
    player.get_by_text("Waiting for Python").wait_for(state="hidden")  # the answer is drawn, then this disappears


def test_unanswered_requests_are_reverted_and_controls_disabled(lab):
    """On a page whose clock is fast, and which sends nothing."""
    player = shown(lab, "FlashPlayer")
    lab.page.evaluate("() => { window.slow = setInterval; window.setInterval = (f, ms) => slow(f, ms / 50); }")
    player.evaluate("root => { root.flashWidget.model.save_changes = () => {}; }")
    slider = player.locator("[data-name=B_c]")
    before, frame = slider.input_value(), player.get_attribute("data-frame")
    slider.fill("1")
    lab.page.evaluate("() => { window.setInterval = slow; }")
    player.get_by_text(RESTARTED).wait_for()
    assert slider.is_disabled()
    assert (slider.input_value(), player.get_attribute("data-frame")) == (before, frame)
    lab.run_again(PLAYER)  # its slider is on again


def assert_off(lab):
    """All widgets are drawn; controls that need Python are disabled and say what to do."""
    for name in NAMES:
        widget = shown(lab, name)
        if name in ASKS_NOTHING:
            widget.locator(".flash-play").wait_for()
            continue
        widget.get_by_text(RESTARTED).wait_for()
        assert widget.locator(".flash-settings:disabled").count()
        assert not widget.locator(".flash-settings:enabled").count()


def test_after_a_restart_every_widget_says_what_to_do(lab):
    shown(lab, "FlashPlayer").locator("[data-name=B_c]").focus()
    lab.ran = False
    lab.page.wait_for_function(RESTART, timeout=KERNEL_TIMEOUT)  # unlike evaluate, it gives up
    assert_off(lab)
    assert shown(lab, "FlashPlayer").evaluate("root => root === document.activeElement")


def test_a_reopened_notebook_plays_and_is_saved_again(lab, path):
    """JupyterLab itself would not save a widget whose Python is not running."""
    lab.save()
    before = states(path)
    reopened(lab, FILE, len(NAMES))
    assert_off(lab)
    player = shown(lab, "FlashPlayer")
    frame = player.get_attribute("data-frame")
    player.focus()
    lab.page.keyboard.press("ArrowRight")
    assert player.get_attribute("data-frame") != frame
    lab.save()
    assert states(path) == before
