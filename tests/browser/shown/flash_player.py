"""What FlashPlayer shows: at every frame the numbers of its part, the row as bars, memory and the tiles of S."""

import math

import numpy as np

from flashlib.pictures.steps import grown
from flashlib.widgets.flash_player.frames import record
from tests.browser.playing import (
    AT_WORK,
    MOVED,
    assert_line_at_work_is_lit,
    assert_meters_count,
    every_frame,
    four_digits,
    numbers,
    received,
    steps_of,
    timeline,
    two_decimals,
)
from tests.browser.shown.drawn import marked

COLUMN = '.flash-rows tbody tr:not(.flash-unused) [data-name="{}"] > span:first-child'
PARTS = ["load", "scores", "maximum", "rescale", "weights", "add", "store"]
# The bars of the chosen row: the left end and width of each, as shares of its track.
BARS = """[...player.querySelectorAll('.flash-row .flash-track[data-name]')].map((track) =>
    [track.dataset.name, [...track.children].map(({ style }) => [style.left, style.width].map(parseFloat))])"""
COLUMNS = """[...player.querySelectorAll('.flash-row .flash-columns > b')].map((pair) =>
    [...pair.children].map(({ style, dataset }) => parseFloat(style.height) * Number(dataset.sign)))"""
HELD = """Object.entries(player.flashWidget.views.made.memory.held).map(
    ([name, X]) => [name, [...X].map((x) => String(x))])"""
OUTLINED = """Object.entries(player.flashWidget.views.made.memory.strips).flatMap(([name, { here }]) =>
    here.hidden ? [] : [[name, parseFloat(here.style.top), parseFloat(here.style.height)]])"""
LOOK = {
    "data": "{ ...player.dataset }",
    **{name: f"texts('{COLUMN.format(name)}')" for name in ("m_old", "m", "alpha", "l")},
    **{name: f"cells('{name}')" for name in ("S_ij", "P_ij")},
    **{"bars": BARS, "columns": COLUMNS, "held": HELD, "outlined": OUTLINED},
    **{"beside": "texts('.flash-beside > p')[0]", "sentence": "texts('.flash-sentence')[0]"},
    **AT_WORK,
    **MOVED,
}


def check(player):
    frames, sent = received(player)
    steps, shown, ends = steps_of(frames, sent), every_frame(player, **LOOK), timeline(player)
    seen = list(zip([*ends, [len(steps), "end"]], shown, strict=True))
    check_numbers(steps, seen)
    check_bars(steps, seen)
    check_memory(frames, sent, steps, seen)
    check_words(steps, seen)
    check_tiles(player, frames)
    check_marks(player, steps, ends)
    assert_line_at_work_is_lit(player, shown)
    assert_meters_count(player, frames, shown)


def done(part, name):
    return PARTS.index(part) >= PARTS.index(name)


def check_numbers(steps, seen):
    """seen: for each frame its step and its part, and what LOOK found there."""
    for frame, ((k, part), page) in enumerate(seen[:-1]):
        step = steps[k]
        rescaled = step.alpha * step.l_old if done(part, "rescale") else step.l_old
        expected = {
            "m_old": step.m_old,
            "m": step.m if done(part, "maximum") else step.m_old,
            "alpha": step.alpha if done(part, "rescale") else [None] * len(step.m),
            "l": step.l if done(part, "add") else rescaled,
        }
        for name, X in expected.items():
            four = [x if x is None else four_digits(x) for x in X]
            assert numbers(page[name]) == four, (frame, part, name)
        for name, since in (("S_ij", "scores"), ("P_ij", "weights")):
            X = getattr(step, name).ravel() if done(part, since) and part != "store" else []
            assert numbers(page[name]) == [two_decimals(x) for x in X], (frame, part, name)
        assert (page["data"]["part"], page["data"]["step"]) == (part, str(k))


def check_bars(steps, seen):
    """The bars of a row are as long as its m, alpha, l and O_acc, before the step and now, each in one unit."""
    ratios = {"l": [], "m": [], "O_acc": []}
    for (k, part), now in seen[:-1]:
        step, row = steps[k], int(now["data"]["row"])
        r = row - step.rows.start
        bars = {name: np.array(found) / 100 for name, found in now["bars"]}
        alpha = step.alpha[r] if done(part, "rescale") else 0
        assert np.allclose(bars["alpha"], [[0, alpha]], atol=1e-4)
        kept = step.l_old[r] * (alpha if done(part, "rescale") else 1)
        added = step.l[r] - kept if done(part, "add") else 0
        sizes = zip(bars["l"][:, 1], (step.l_old[r], kept, added), strict=True)
        ratios["l"] += [(row, *pair) for pair in sizes]
        assert np.allclose(bars["l"][:, 0], [0, 0, bars["l"][1, 1] if done(part, "add") else bars["l"][2, 0]])
        m_now = (step.m if done(part, "maximum") else step.m_old)[r]
        for (left, width), m in zip(bars["m"], (step.m_old[r], m_now), strict=True):
            if np.isfinite(m):
                assert np.isclose(left + (width if m < 0 else 0), 0.5, atol=1e-4)
                ratios["m"].append((0, width, abs(m)))
        rescaled = step.O_acc_old[r] * (alpha if done(part, "rescale") else 1)
        O_acc = step.O_acc[r] if done(part, "add") else rescaled
        for (before, after), old, x in zip(now["columns"], step.O_acc_old[r], O_acc, strict=False):
            ratios["O_acc"] += [(row, before, old), (row, after, x)]
    for name, found in ratios.items():
        check_unit(found, name)


def check_unit(found, name):
    """Lengths are proportional to numbers: [(the name of a unit, length, number)]."""
    for key in {key for key, *_ in found}:
        lengths, x = np.array([pair for of, *pair in found if of == key]).T
        if np.abs(x).max():
            unit = lengths[np.abs(x).argmax()] / x[np.abs(x).argmax()]
            assert unit > 0 and np.allclose(lengths, unit * x, atol=0.002 * np.abs(lengths).max()), (name, key)


def check_memory(frames, sent, steps, seen):
    """The contents of memory, and which rows are outlined."""
    N_q, N_k, d = (frames[name] for name in ("N_q", "N_k", "d"))
    Q, K, V = (
        sent[frames["inputs"][name] :][: N * d].reshape(N, d).astype(frames["dtype"])
        for name, N in zip("QKV", (N_q, N_k, N_k), strict=True)
    )
    setting = {name: frames[name] for name in ("B_r", "B_c", "causal", "order", "scale")}
    recording = record(Q, K, V, **setting)
    for (k, part), now in seen:
        stored = part in ("store", "end")
        held = {name: np.array([float(x.replace("Infinity", "inf")) for x in X]) for name, X in now["held"]}
        O = recording.O_at(k + 1 if stored else k)
        assert np.array_equal(held["O"], O.ravel(), equal_nan=True)
        blocks = finished(frames, steps, k if stored else k - 1)
        final = sum(min(frames["B_r"], N_q - i * frames["B_r"]) for i in blocks)
        assert now["beside"].startswith(f"O: {final} of {N_q} rows final")
        expected = {}
        if part != "end":
            ranges = (steps[k].rows, N_q), (steps[k].cols, N_k)
            rows, cols = ((100 * of.start / N, 100 * (of.stop - of.start) / N) for of, N in ranges)
            if part != "store":
                expected = {"Q": rows, "K": cols, "V": cols}
            if part == "store" or (part == "load" and frames["order"] == "fa1"):
                expected |= dict.fromkeys(held, rows)
        outlined = {name: tuple(place) for name, *place in now["outlined"]}
        assert outlined.keys() == expected.keys(), (k, part)
        for name, place in outlined.items():
            assert np.allclose(place, expected[name], atol=1e-3), (k, part, name)


def finished(frames, steps, last):
    """The row blocks whose last tile is computed after step `last`."""
    return {i for i in range(frames["T_r"]) if all(k <= last for k, step in enumerate(steps) if step.i == i)}


def check_tiles(player, frames):
    """Queries the picture at the middle of each tile: which of its paths cover this point."""
    computed = [(i, j) for i, j, *_ in frames["steps"]]
    everything = {(i, j) for i in range(frames["T_r"]) for j in range(frames["T_c"])}
    for k in (0, 1, len(computed) // 2, len(computed) - 1, len(computed)):
        player.evaluate("(player, k) => player.flashWidget.seekStep(k)", k)
        covers = player.evaluate(
            """player => {
                const { frames, views: { made: { grid } } } = player.flashWidget;
                const [done, skipped] = ["done", "skipped"].map((name) => player.querySelector(`.flash-${name}`));
                const found = [];
                for (let i = 0; i < frames.T_r; i++) for (let j = 0; j < frames.T_c; j++) {
                    const middle = (k, B, N) => (k * B + Math.min((k + 1) * B, N)) / 2;
                    const x = middle(j, frames.B_c, frames.N_k) * grid.width;
                    const y = middle(i, frames.B_r, frames.N_q) * grid.height;
                    const inside = (path) => path.isPointInFill(new DOMPoint(x, y));
                    found.push([i, j, inside(done), inside(skipped)]);
                }
                return found;
            }"""
        )
        assert {(i, j) for i, j, done, _ in covers if done} == set(computed[:k])
        assert {(i, j) for i, j, _, skipped in covers if skipped} == everything - set(computed)


def check_marks(player, steps, ends):
    """Below the scrub bar there is a mark at each frame that rescales a row whose maximum grew."""
    grew = [frame for frame, (k, part) in enumerate(ends) if part == "rescale" and grown(steps[k]).any()]
    assert marked(player) == grew


def check_words(steps, seen):
    """The chosen row is described in words: whether its maximum grew, and the consequences."""
    for (k, part), now in seen[:-1]:
        step, r, text = steps[k], int(now["data"]["row"]) - steps[k].rows.start, now["sentence"]
        assert "undefined" not in text and "object" not in text
        if part != "rescale":
            continue
        if step.m[r] > step.m_old[r] > -math.inf:
            assert "m grew from" in text and "are multiplied by alpha" in text
        elif step.m[r] == -math.inf:
            assert "has seen no key" in text
        elif step.m_old[r] > -math.inf:
            assert "nothing is rescaled" in text or "sees no key of this tile" in text
        else:
            assert "nothing to rescale" in text
    assert "none was stored" in seen[-1][1]["sentence"]
