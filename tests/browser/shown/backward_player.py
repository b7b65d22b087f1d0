"""What BackwardPlayer shows: at every frame the numbers of its part, the errors, and the contents of memory."""

import math
import re

import numpy as np

from flashlib.widgets import BackwardPlayer
from flashlib.widgets.backward_player.frames import in_words
from tests.browser.playing import (
    AT_WORK,
    MOVED,
    assert_line_at_work_is_lit,
    assert_meters_count,
    every_frame,
    four_digits,
    numbers,
    timeline,
    two_decimals,
    value,
)

PARTS = ["load", "scores", "weights", "dP", "dS", "add", "store"]
TILES = {"S_ij": "scores", "P_ij": "weights", "dP_ij": "dP", "dS_ij": "dS"}
ERROR = "texts('output[data-name=\"error-{}\"]')[0]".format
MIDDLE = """(() => {
    const of = (name) => player.querySelector(`.flash-chart .flash-${name}`).getBoundingClientRect();
    const [chart, now] = [of("curve"), of("now")];
    return (now.x + now.width / 2 - chart.x) / chart.width;
})()"""
FILLED = """Object.entries(player.flashWidget.views.made.memory.held).map(
    ([name, X]) => [name, [...X].filter((x) => !Number.isNaN(x)).length])"""
OUTLINED = """Object.entries(player.flashWidget.views.made.memory.strips).filter(
    ([, { here }]) => !here.hidden).map(([name]) => name)"""
LOOK = {
    **{"data": "{ ...player.dataset }", "sentence": "texts('.flash-sentence')[0]"},
    **{"block": ERROR("block"), "whole": ERROR("whole"), "middle": MIDDLE},
    **{"filled": FILLED, "outlined": OUTLINED, "beside": "texts('.flash-beside > p')[0]"},
    **AT_WORK,
    **MOVED,
}


def check(player, recording=None):
    """recording: a BackwardPlayer with the inputs and the setting of the one on the page."""
    if recording is None:
        recording = BackwardPlayer(**player.evaluate("player => player.flashWidget.frames.setting"))
    names = recording.frames["gradients"]
    tiles = [*TILES, "lse_i", "delta_i", *(f"{name}_{kind}" for name in names for kind in ("sum", "added"))]
    shown = every_frame(player, **LOOK, **{name: f"cells('{name}')" for name in tiles})
    ends = [*timeline(player), [len(recording.frames["steps"]), "end"]]
    seen = list(zip(ends, shown, strict=True))
    check_numbers(recording, seen)
    check_errors(recording, seen)
    check_curve(player, recording._errors)
    check_memory(recording, seen)
    check_words(recording, seen)
    check_meters(player, recording, shown)
    assert_line_at_work_is_lit(player, shown)


def check_numbers(recording, seen):
    """seen: for each frame its step and its part, and what was found there."""
    steps, sums = recording._recording.steps, recording._recording.sums
    names = recording.frames["gradients"]
    for frame, ((k, part), now) in enumerate(seen[:-1]):
        step = steps[k]
        done = lambda name: PARTS.index(part) >= PARTS.index(name)  # noqa: B023, E731
        expected = {
            name: getattr(step, name) if done(since) and part != "store" else [] for name, since in TILES.items()
        }
        for name, X in (("lse_i", recording._recording.lse), ("delta_i", recording._recording.delta)):
            expected[name] = [] if part == "store" else X[step.rows]
        for name, (old, added, total) in zip(names, sums[k], strict=True):
            expected[f"{name}_sum"] = total if done("add") else old
            expected[f"{name}_added"] = added if part == "add" else []
        for name, X in expected.items():
            assert numbers(now[name]) == [two_decimals(x) for x in np.ravel(X)], (frame, part, name)
        assert (now["data"]["part"], now["data"]["step"]) == (part, str(k))


def check_errors(recording, seen):
    errors, T, dtype = recording._errors, len(recording._recording.steps), recording.frames["dtype"]
    for (k, part), now in seen:
        added = part in ("add", "store")
        if part == "end":
            assert now["block"] == ""
        else:
            assert error_value(now["block"]) == shown_error((errors.after if added else errors.before)[k], dtype)
        assert error_value(now["whole"]) == shown_error(errors.whole[k + added], dtype)
        assert abs(now["middle"] - (k + added) / T) < 0.01


def check_curve(player, errors):
    """The error of all rows over the steps: from 0 at the bottom to the largest drawn error at the top."""
    path = player.locator(".flash-chart .flash-whole").get_attribute("d")
    x, y = np.array([list(map(float, point)) for point in re.findall(r"[ML]([-\d.e]+) ([-\d.e]+)", path)]).T
    known = np.array(errors.whole)
    assert np.allclose(x, 1000 * np.flatnonzero(np.isfinite(known)) / (len(known) - 1))
    peak = max(known.max(), np.max(errors.after))
    assert np.allclose(y, 100 * (1 - known[np.isfinite(known)] / peak), atol=1e-6)


def check_memory(recording, seen):
    frames, d = recording.frames, recording.frames["d"]
    for (k, part), now in seen:
        stored = k if part in ("store", "end") else k - 1
        expected = dict.fromkeys(frames["gradients"], 0)
        for after, start, stop, _, name in frames["writes"]:
            expected[name] += (stop - start) * d * (after <= stored)
        assert dict(now["filled"]) == expected
        rows = next(iter(expected.values())) // d
        assert f": {rows} of " in now["beside"]
        inputs = [] if part in ("store", "end") else ["Q", "dO", "K", "V", "lse", "delta"]
        assert now["outlined"] == [*inputs, *(sorted(frames["gradients"]) if part == "store" else [])]


def check_meters(player, recording, shown=None):
    assert_meters_count(player, recording.frames, shown)
    text = player.locator(".flash-meters").inner_text()
    for name in ("both", "standard"):
        assert f"{sum(recording.frames[name]):,} B".replace(",", "\u202f") in text


def check_words(recording, seen):
    steps, lse = recording._recording.steps, recording._recording.lse
    for (k, part), now in seen[:-1]:
        step, row, text = steps[k], int(now["data"]["row"]), now["sentence"]
        assert not any(word in text for word in ("undefined", "object", "NaN"))
        r = row - step.rows.start
        if part == "dS" and lse[row] > -math.inf and step.S_ij[r].max() > -math.inf:
            c = int(np.argmax(step.P_ij[r]))
            assert text.startswith(f"Row {row}, key {step.cols.start + c}: P · (dP − delta) = ")
            result = value(text.partition(" = ")[2].partition(" = ")[2].split(". ")[0].replace("e−", "e-"))
            assert result == four_digits(step.dS_ij[r, c])
        elif part in ("scores", "weights", "dP", "dS") and lse[row] == -math.inf:
            assert "sees no key: its lse is −∞" in text
    assert "none was stored" in seen[-1][1]["sentence"]


ROUNDING = "0, up to rounding"


def shown_error(error, dtype):
    """An error as the page shows it: to four digits, or that rounding explains it."""
    return ROUNDING if in_words(error, dtype).startswith("below") else four_digits(error)


def error_value(text):
    return text if text == ROUNDING else value(text.replace("e−", "e-"))
