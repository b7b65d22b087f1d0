"""The recorded settings of a player: the page gets what Python computes."""

import base64
import json
import zlib

import numpy as np
import pytest

pytest.importorskip("anywidget")

from flashlib import masks
from flashlib.widgets import ComparePlayers, FlashPlayer, MergeTree
from web import recorded


def unpacked(record):
    """Return {setting: (frames, bytes of their numbers)}, read as the page reads them."""
    parts = json.loads(record.text.partition(" = ")[2].removesuffix(";\n"))
    words, numbers, places = (zlib.decompress(base64.b64decode(parts[k])) for k in ("words", "numbers", "places"))
    different, at = np.frombuffer(numbers, "<f8"), np.frombuffer(places, "<u2")
    found, start = {}, 0
    for key, frames, count in json.loads(words):
        found[key] = frames, different[at[start : start + count]].tobytes()
        start += count
    assert start == len(at)
    return found


def test_each_setting_has_the_frames_that_python_computes():
    rng = np.random.default_rng(1)
    Q, K, V = rng.normal(size=(3, 2)), rng.normal(size=(5, 2)), rng.normal(size=(5, 2))
    found = unpacked(recorded.of(FlashPlayer(Q, K, V, B_r=2, B_c=3, capacity=999)))
    assert len(found) == 3 * 5 * 2 * 2
    for key, (frames, numbers) in found.items():
        B_r, B_c, causal, order = json.loads(key)
        player = FlashPlayer(Q, K, V, B_r=B_r, B_c=B_c, causal=causal, order=order, capacity=999)
        assert numbers == player.frames["buffer"], key
        assert frames == json.loads(json.dumps(recorded.alone(player.frames))), key


def test_players_with_the_same_numbers_share_a_record_and_others_do_not():
    one, same, other = (
        recorded.of(FlashPlayer(N=3, d=2, B_r=2, B_c=2, **changed)).name
        for changed in ({}, {"causal": True}, {"seed": 1})
    )
    assert one == same != other


@pytest.mark.parametrize(
    "widget",
    [
        lambda: FlashPlayer(N=9),  # 9 x 9 x 4 settings
        lambda: FlashPlayer(N=6, mask=masks.window(2, 0)),
        lambda: FlashPlayer(B_r=0),
        lambda: ComparePlayers(),
        lambda: MergeTree(),
    ],
)
def test_nothing_is_recorded_for_a_player_with_too_many_settings(widget):
    assert recorded.of(widget()) is None
