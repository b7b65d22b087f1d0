"""The first page: its loop, its route and its results."""

import re

import pytest

pytest.importorskip("anywidget")

from flashlib.chapters import CHAPTERS, PARTS
from flashlib.widgets import FlashPlayer
from tools import results
from web import landing


def test_the_loop_parts_from_the_truth_at_the_line_that_the_check_names():
    wrong = landing.played(landing.WRONG)
    assert wrong.player["state"]["frames"]["learner"]["first"] == [1, "O_acc", 3]
    assert landing.WRONG in wrong.player["state"]["frames"]["lines"]["add"]
    assert "Step 2 is wrong: O_acc of row 3 (because) is " in wrong.found and "rescaled" not in wrong.found
    assert "O_acc is not rescaled" in wrong.sentence and wrong.sentence in wrong.verdict
    assert wrong.words.startswith(FlashPlayer.__name__) and wrong.picture.startswith(b"\x89PNG")


def test_the_mended_loop_is_right():
    right = landing.mended()
    assert "Right" in right["verdict"]
    learner = right["player"]["state"]["frames"]["learner"]
    assert learner["first"] is None and learner["O"] is None and not learner["remark"]


def test_each_line_of_the_loop_is_an_element():
    code = landing.coloured(landing.ABOVE)
    lines = [re.sub("<[^>]*>", "", line) for line in re.findall('<div class="loop-line">(.*?)</div>', code)]
    assert lines == landing.ABOVE.splitlines()


def test_the_route_says_what_one_writes_in_each_of_its_chapters():
    route = [one for one in CHAPTERS if one.part == next(iter(PARTS))]
    assert [*landing.WRITTEN] == [one.name for one in route]


def test_results_come_from_the_records(monkeypatch):
    rows = [
        {"causal": True, "N": landing.LONG, "d": d, "tflops": {"hopper": 300.4, "sdpa_cudnn": 200, "fa4": 400}}
        for d in (8, 16)
    ]
    record = {"gpu": "NVIDIA X9", "date": "2031-01-02", "rows": [*rows, {**rows[0], "causal": False, "d": 99}]}
    monkeypatch.setattr(results, "read", lambda name: record)
    forward, backward = landing.measured()
    assert "Forward" in forward and "Backward" in backward
    for line in (forward, backward):
        assert "300 and 300 TFLOP/s at d = 8 and 16, which is 1.50 and 1.50 times cuDNN" in line
        assert "0.75 and 0.75 times FlashAttention-4's (X9, 2031-01-02)" in line
