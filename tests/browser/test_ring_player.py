"""RingPlayer in JupyterLab, in a real browser: its settings, keyboard and pointer, and where ranks go wrong."""

import pytest

pytest.importorskip("anywidget")

from flashlib.ring import Compute, Receive, Send, Wait
from flashlib.widgets import RingPlayer
from tests.browser.lab import THEMES, resized, wait_until_heard
from tests.browser.labs import text, wait_for
from tests.browser.probes import MISPLACED
from tests.browser.shown.ring_player import check_shown

pytestmark = pytest.mark.browser

PLAYER = ".flash-ring-player"
PROGRAM = """from flashlib.ring import Compute, Receive, Send, Wait
def everyone_sends_first(me):
    new, n = me.partial(me.r, *me.own.arrays)
    yield Compute(me.r, n, me.merged(me.nothing(), new))
    yield Send(me.next, me.own)
    yield Wait()
    yield Receive(me.previous, me.buffer("kv"))
    yield Wait()
"""
LARGE = dict(ranks=8, N=61, layout="striped", mask="window", token=1, tile=1)
CELLS = [
    "from flashlib.widgets import RingPlayer\nRingPlayer()",
    f"RingPlayer(**{LARGE!r})",
    f"{PROGRAM}RingPlayer(3, 24, program=everyone_sends_first)",
]


def everyone_sends_first(me):
    new, n = me.partial(me.r, *me.own.arrays)
    yield Compute(me.r, n, me.merged(me.nothing(), new))
    yield Send(me.next, me.own)
    yield Wait()
    yield Receive(me.previous, me.buffer("kv"))
    yield Wait()


@pytest.fixture(scope="module")
def page_of_players(open_lab):
    with open_lab("ring_player.ipynb", cells=CELLS) as lab:
        assert lab.run_all() == []
        yield lab.page


def nth(page, k):
    player = page.locator(PLAYER).nth(k)
    player.scroll_into_view_if_needed()
    return player


@pytest.fixture
def player(page_of_players):
    """The first player, in its original setting and at its first time."""
    player = nth(page_of_players, 0)
    r = RingPlayer().result
    player.evaluate("(player, setting) => player.flashWidget.ask(setting)", r["setting"])
    wait_for(player, r["setting"])
    player.evaluate(
        "(player, at) => { player.flashWidget.transport.seek(at); player.flashWidget.choose(63); }", r["opens"]
    )
    return player


def position(player):
    return int(player.get_attribute("data-position"))


def test_it_opens_in_the_middle_and_shows_what_python_computed(player):
    assert position(player) == RingPlayer().result["opens"]
    assert player.locator(".flash-ring-flying").count() == 4
    check_shown(player)


# How far below its top the lanes end, and how much each fill differs from its background, of 765.
FILLS = """root => {
    const { top } = root.getBoundingClientRect();
    const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgb = (colour) => {
        context.fillStyle = colour;
        context.fillRect(0, 0, 1, 1);
        return context.getImageData(0, 0, 1, 1).data;
    };
    const far = (bar) => {
        const [a, b] = [getComputedStyle(bar).fill, getComputedStyle(bar.closest(".flash-panel")).backgroundColor];
        const [one, other] = [rgb(a), rgb(b)];
        return [0, 1, 2].reduce((sum, k) => sum + Math.abs(one[k] - other[k]), 0);
    };
    const bars = [...root.querySelectorAll(".flash-ring-compute")];
    return [root.querySelector(".flash-ring-lanes").getBoundingClientRect().bottom - top, bars.map(far)];
}"""


def test_on_a_laptop_the_lanes_are_on_one_screen_with_the_sliders(player):
    with resized(player, 930):
        bottom, _ = player.evaluate(FILLS)
    assert bottom < 670  # px: of 768


@pytest.mark.parametrize("theme", THEMES)
def test_every_hop_is_visible(page_of_players, player, theme):
    player.evaluate("(root, dark) => root.classList.toggle('flash-dark', dark)", theme == THEMES[1])
    _, far = player.evaluate(FILLS)
    player.evaluate("root => root.classList.remove('flash-dark')")
    assert len(far) == 16 and min(far) > 45


def test_alpha_of_the_first_hop_is_explained(player):
    said = text(player, ".flash-ring-state .flash-note >> nth=0")
    assert said == "alpha = exp(m before − m): what the sums so far, l and Oacc, are multiplied by; 0 at first."
    assert player.locator(".flash-ring-merges tbody tr").first.locator("td").nth(2).inner_text() == "0"


def test_eight_ranks_under_a_window(page_of_players):
    check_shown(nth(page_of_players, 1))


def test_a_deadlock_says_and_shows_who_waits_for_whom(page_of_players):
    player = nth(page_of_players, 2)
    r = RingPlayer(3, 24, program=everyone_sends_first).result
    assert position(player) == len(r["times"]) - 1
    assert player.locator(".flash-ring-circle .flash-ring-waits").count() == len(r["fault"]["waits"]) == 3
    assert "rank 2 waits until rank 0 receives KV of rank 2." in text(player, ".flash-ring-fault")
    check_shown(player, everyone_sends_first)
    player.locator("input[value=own]").focus()
    player.page.keyboard.press("ArrowRight")
    wait_for(player, {"way": "ring"})
    check_shown(player, everyone_sends_first)
    player.evaluate("player => player.flashWidget.ask({ way: 'own' })")
    wait_for(player, {"way": "own"})


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [("ranks", "End", 8), ("ranks", "Home", 2), ("N", "ArrowLeft", 56), ("tile", "End", 4), ("token", "Home", 0)],
)
def test_sliders_by_keyboard(player, name, key, value):
    slider = player.locator(f"input[data-name={name}]")
    slider.focus()
    slider.press(key)
    wait_for(player, {name: value})
    check_shown(player)
    assert slider.get_attribute("aria-valuetext") == str(value)
    assert slider.evaluate("slider => slider === document.activeElement")


@pytest.mark.parametrize(
    ("value", "key", "wanted"),
    [("zigzag", "ArrowLeft", {"cut": "striped"}), ("causal", "ArrowRight", {"mask": "none"}),
     ("ring", "ArrowRight", {"way": "all-gather"})],
)  # fmt: skip
def test_choices_by_keyboard(player, value, key, wanted):
    player.locator(f"input[value={value}]").focus()
    player.page.keyboard.press(key)
    wait_for(player, wanted)
    check_shown(player)


def test_a_layout_is_chosen_by_its_picture(player):
    card = player.locator(".flash-ring-card").first
    card.click()
    wait_for(player, {"cut": "contiguous"})
    check_shown(player)
    assert card.evaluate("card => card === document.activeElement")


def test_steps_events_and_rows_by_keyboard(player):
    r = RingPlayer().result
    moments = [r["times"].index(time) for time, _ in r["moments"]]
    player.focus()
    keyboard = player.page.keyboard
    steps = [("Home", 0), ("ArrowLeft", 0), ("ArrowRight", 1), ("]", moments[1]), ("]", moments[2])]
    steps += [("ArrowRight", moments[2] + 1), ("[", moments[2]), ("End", moments[-1]), ("]", moments[-1])]
    for key, at in steps:
        keyboard.press(key)
        assert position(player) == at, key
    keyboard.press("ArrowUp")
    assert player.get_attribute("data-row") == "62"
    check_shown(player)
    for key, row in (("ArrowDown", "63"), ("ArrowDown", "63")):
        keyboard.press(key)
        assert player.get_attribute("data-row") == row
    player.get_by_role("button", name="to the event before").click()
    assert position(player) == moments[-2]


def test_a_row_and_a_time_by_pointer(player):
    scores, lanes = player.locator(".flash-ring-scores"), player.locator(".flash-ring-lanes")
    box = scores.bounding_box()
    unit = box["width"] / 275
    at = {"x": (18 + 256 * 10.5 / 64) * unit, "y": (18 + 256 * 20.5 / 64) * unit}
    scores.hover(position=at)
    assert text(player, ".flash-ring-matrix > p") == "row 20, rank 2 · key 10, rank 1: hop 1"
    scores.hover(position={"x": at["y"], "y": at["x"]})
    assert text(player, ".flash-ring-matrix > p").endswith("masked")
    scores.click(position=at)
    assert player.get_attribute("data-row") == "20" and text(player, ".flash-ring-state h3") == "Row 20, of rank 2"
    check_shown(player)
    lanes.click(position={"x": 47, "y": 20})
    assert position(player) == 0


def test_what_goes_on_is_described(player):
    player.focus()
    player.page.keyboard.press("End")
    said = "player => player.querySelector('[aria-live=polite]').textContent.startsWith('Now: all ranks merged')"
    player.page.wait_for_function(said, arg=player.element_handle())


def test_a_refused_value_is_reverted(player):
    player.evaluate("player => player.flashWidget.ask({ ranks: 9 })")
    player.get_by_text("ranks is 9; pass a whole number from 2 to 8. It stays 4.").wait_for()
    check_shown(player)
    player.evaluate("player => player.flashWidget.ask({ ranks: 3 })")
    wait_for(player, {"ranks": 3})
    wait_until_heard(player)


# Words of a picture beyond its edge, which hides them.
HIDDEN = """player => [...player.querySelectorAll("svg")].flatMap((svg) => {
    const { left, right, top, bottom } = svg.getBoundingClientRect();
    return [...svg.querySelectorAll("text")].filter((text) => text.textContent).flatMap((text) => {
        const box = text.getBoundingClientRect();
        const wide = box.left >= left - 1 && box.right <= right + 1;
        const inside = wide && box.top >= top - 2 && box.bottom <= bottom + 2;
        return inside ? [] : [text.textContent];
    });
})"""


@pytest.mark.parametrize("width", [316, 390, 700, 930, 1366])
def test_nothing_is_cut_off_at_any_width(page_of_players, width):
    for k in range(len(CELLS)):
        player = nth(page_of_players, k)
        with resized(player, width):
            player.scroll_into_view_if_needed()  # JupyterLab hides cells that are far away
            assert player.evaluate(MISPLACED) == player.evaluate(HIDDEN) == [], k
            check_shown(player, everyone_sends_first if k == 2 else None)
