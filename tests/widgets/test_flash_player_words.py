"""The player for somebody who sees it first: less panels, and words in place of the numbers of rows."""

import re

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

from flashlib import recorded_head
from flashlib.widgets import FlashPlayer

X = np.eye(4)
WORDS = ["a", "b", "c", "d"]


def test_a_sentence_is_the_recorded_head():
    player = FlashPlayer.from_sentence()
    Q, K, V, words = recorded_head.load()
    assert player.frames == FlashPlayer(Q, K, V, words=words, B_r=3, B_c=2, causal=True).frames
    assert player.frames["words"] == words and player.frames["scale"] == 1 / 8
    assert "causal=True, words='The cat slept because it was': 5 steps" in repr(player)
    assert "causal=False" in repr(FlashPlayer.from_sentence(causal=False, B_c=6))


def test_rows_of_Q_are_the_last_of_the_words():
    player = FlashPlayer(X[:2], X, X, words=iter(WORDS), B_r=2)
    assert player.frames["words"] == WORDS
    assert "Row 1 (d)" in player.figure(at=1, row=1).texts[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (dict(Q=X, K=X, V=X, words=WORDS[:3]), "length 3, and K has 4 rows; pass one word for each row of K"),
        (dict(Q=X, K=X[:2], V=X[:2], words=WORDS[:2]), "Q may not have more rows than K"),
        (dict(Q=X, K=X, V=X, words="abcd"), r"the text 'abcd'; pass a list, e.g. words.split\(\)"),
        (dict(Q=X, K=X, V=X, words=[*"abc", 4]), "contains 4, of type int; each word is a str"),
        (dict(words=WORDS), "without Q, K and V; pass these too"),
        (dict(panels="few"), 'panels is \'few\'; accepted are "less" and "all"'),
    ],
    ids=lambda x: x if isinstance(x, str) else None,
)
def test_what_does_not_fit_is_said(arguments, said):
    player = FlashPlayer(**arguments)
    assert re.search(said, player.problem) and repr(player) == f"FlashPlayer({player.problem})"


def test_less_opens_at_step_1_and_all_where_it_tells_most():
    assert (FlashPlayer().panels, FlashPlayer().frames["opens_at"]) == ("all", None)
    player = FlashPlayer(panels="less")
    assert (player.panels, player.frames["opens_at"]) == ("less", 0)
    assert FlashPlayer(panels="less", opens_at=3).frames["opens_at"] == 3
    player.panels = "all"
    player.B_c = 8
    assert player.panels == "all" and player.frames["opens_at"] is None  # the page keeps its place


def test_less_shows_the_same_numbers():
    assert FlashPlayer(panels="less", opens_at=2).frames == FlashPlayer(opens_at=2).frames


def test_the_picture_is_of_the_step_that_it_opens_at():
    told = lambda **arguments: FlashPlayer(**arguments).figure().texts  # noqa: E731
    assert "tile (0, 0) of 2 × 4 tiles" in told(panels="less")
    assert "tile (0, 2) of 2 × 4 tiles" in told(opens_at=2)
    texts = told(panels="less")
    assert {"the result, in HBM", "State of each row, on the chip"} <= set(texts) and "NaN" not in texts
    words = FlashPlayer.from_sentence(panels="less").figure().texts
    assert words.count("slept") == 4  # a row and a column of S, a row of the state, a row of O
