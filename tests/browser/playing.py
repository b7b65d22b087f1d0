"""Shared by the tests of the players: moving a player, and reading what it shows."""

import base64
import math
from pathlib import Path

import numpy as np

from flashlib import tiled
from tests.browser.lab import resized


def data(player, name):
    return player.get_attribute(f"data-{name}")


def seek(player, frame):
    player.evaluate("(player, frame) => player.flashWidget.transport.seek(frame)", frame)


def open_anew(player):
    """Let a player load its frames as if for the first time: it does not keep its place."""
    player.evaluate(
        """player => {
            const widget = player.flashWidget;
            widget.at = widget.scan = undefined;
            widget.transport.last = 0;
            widget.load(widget.model.get("frames"));
        }"""
    )


def at_start(lab, n):
    """The n-th FlashPlayer of the page, at its first frame."""
    player = lab.page.locator(".flash-player").nth(n)
    player.scroll_into_view_if_needed()
    seek(player, 0)
    return player


def received(player):
    """The page's frames without their buffer, and the numbers in the buffer."""
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
    """The steps of tiled.steps for the page's inputs and setting."""
    sizes = {"Q": frames["N_q"], "K": frames["N_k"], "V": frames["N_k"]}
    inputs = []
    for name, N in sizes.items():
        X = sent[frames["inputs"][name] :][: N * frames["d"]]
        inputs.append(X.reshape(N, frames["d"]).astype(frames["dtype"]))
    setting = {name: frames[name] for name in ("B_r", "B_c", "causal", "order", "scale")}
    return list(tiled.steps(*inputs, **setting))


def unfold(player, label="settings"):
    """Unfold what a button folds, unless it is unfolded."""
    button = player.get_by_role("button", name=label, exact=True)
    if button.get_attribute("aria-expanded") == "false":
        button.click()


def wait_for(player, condition):
    """Wait until a condition on the player's dataset, `data`, holds."""
    player.page.wait_for_function(
        f"player => {{ const data = player.dataset; return {condition}; }}", arg=player.element_handle()
    )


def value(text):
    """The number that a text shows."""
    return float(text.removesuffix(" ↑").replace("−", "-").replace("∞", "inf"))


def four_digits(x):
    return float(f"{x:.3e}")


def two_decimals(x):
    """A number as it is shown in a cell of a tile."""
    if abs(x) in (0, math.inf) or 0.005 <= abs(x) < 9.995:
        return float(f"{x:.2f}")
    return float(f"{x:.0e}" if abs(x) < 0.005 else f"{x:.1f}" if abs(x) < 99.95 else f"{x:.0f}")


def every_frame(player, **wanted):
    """Return what is wanted of the player at each frame, the last of which is the end, in one round trip.

    wanted: expressions in JavaScript, of `player`, `texts(selector)` and `cells(name)`, the texts of a matrix.
    """
    fields = ", ".join(f"{name}: {expression}" for name, expression in wanted.items())
    return player.evaluate(
        """player => {
            const texts = (selector) => [...player.querySelectorAll(selector)].map((e) => e.innerText);
            const cells = (name) => texts(`.flash-matrix[data-name="${name}"] .flash-cell:not(.flash-empty)`);
            const { frames, transport } = player.flashWidget;
            return Array.from({ length: frames.last + 1 }, (_, frame) => {
                transport.seek(frame);
                return { FIELDS };
            });
        }""".replace("FIELDS", fields)
    )


def numbers(texts):
    """The numbers that texts show; None where one is blank."""
    return [value(text) if text else None for text in texts]


def timeline(player):
    """[step, part] of every frame but the last."""
    return player.evaluate("player => player.flashWidget.frames.timeline")


def active_cell(lab):
    return lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.activeCellIndex")


# The position and height of each part of the player, in whole pixels.
PLACES = """[...player.querySelectorAll(
    ".flash-panel, .flash-part .flash-matrix:not(.flash-grid-field *), .flash-legend, .flash-rows th, button"
)].map((e) => {
    const [box, own] = [e, player].map((x) => x.getBoundingClientRect());
    return [box.x - own.x, box.y - own.y, box.height].map(Math.round).join();
})"""


def press(player, keys):
    """Press each key, (key, name, expected), and compare the player's dataset afterwards."""
    for key, name, expected in keys:
        player.page.keyboard.press(key)
        assert data(player, name) == expected, key


# Arguments of every_frame for the two checks that follow.
AT_WORK = {
    "lit": "[...player.querySelectorAll('.flash-lines tr[aria-current]')].map((row) => row.dataset.part)",
    "lines": "texts('.flash-lines tr[aria-current] code')",
}
MOVED = {"moved": "texts('.flash-moved')[0]"}


def assert_line_at_work_is_lit(player, shown=None):
    """For two steps: the line of the part is highlighted, and is in the source."""
    source = Path(tiled.__file__).read_text(encoding="utf-8")
    for (_, part), now in zip(timeline(player)[:14], shown or every_frame(player, **AT_WORK), strict=False):
        assert now["lit"] == [part]
        assert now["lines"] and all(line in source for line in now["lines"])


def assert_meters_count(player, frames, shown=None):
    """At every frame the meters show the bytes read and written so far, as counted by Python."""
    texts = [now["moved"] for now in shown or every_frame(player, **MOVED)]
    *moved, end = ([int("".join(filter(str.isdigit, part))) for part in text.split(",")] for text in texts)
    before = [0, 0]
    for (k, part), now in zip(timeline(player), moved, strict=True):
        assert now[0] == frames["steps"][k][6] and all(a >= b for a, b in zip(now, before, strict=True))
        if part == "store":
            assert now[1] == frames["steps"][k][7]
        before = now
    assert end == frames["all"]


def assert_whole_steps_are_one_frame_each(player):
    unfold(player)
    player.evaluate("player => player.flashWidget.seekStep(3)")
    player.get_by_text("whole steps", exact=True).click()
    assert len(timeline(player)) == int(data(player, "tiles")) and data(player, "step") == "3"
    player.get_by_text("whole steps", exact=True).click()
    assert len(timeline(player)) > 6 * int(data(player, "tiles")) and data(player, "step") == "3"


def assert_drawing_fits_into_a_frame(player):
    """Each of 20 frames counts with the fastest of three times, since the machine may be busy."""
    times = player.evaluate(
        """player => Array.from({ length: 60 }, (_, k) => {
            player.flashWidget.transport.seek((k % 20) % player.flashWidget.frames.last);
            return player.flashWidget.drawTime;
        })"""
    )
    assert sorted(map(min, times[:20], times[20:40], times[40:]))[10] < 1000 / 60


def assert_nothing_jumps(player, width):
    """At this width of the player, none of its parts moves from frame to frame."""
    with resized(player, width):
        first, *others = (now["places"] for now in every_frame(player, places=PLACES))
    for frame, places in enumerate(others, start=1):
        moved = [pair for pair in zip(first, places, strict=True) if pair[0] != pair[1]]
        assert not moved, (frame, moved)


def assert_announces(player, said):
    player.page.wait_for_function(
        "([player, said]) => player.querySelector('[aria-live=polite]').textContent.startsWith(said)",
        arg=[player.element_handle(), said],
    )
