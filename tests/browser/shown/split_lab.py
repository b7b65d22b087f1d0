"""What SplitLab shows: the numbers of its parts and merges, and pictures of them."""

import re

import numpy as np
import pytest

from flashlib.pictures.number_text import number
from flashlib.widgets import SplitLab
from flashlib.widgets.split_lab import part_states
from tests.browser.labs import plain, text, wait_for


def check_shown(lab, **setting):
    """The page shows what Python computes for this setting."""
    expected = SplitLab(**setting)
    r = expected.result
    wait_for(lab, r["setting"])
    assert text(lab, ".flash-split-parts > p") == plain(f"{r['words'][0]} {r['merges']}")
    assert text(lab, ".flash-split-gpu > p:last-child") == plain(r["words"][1])
    assert text(lab, ".flash-split-time > p") == plain(r["words"][2])
    model = lab.locator(".flash-split-model > p").text_content()  # it may be folded
    assert plain(model) == plain(" ".join(r["model"]))
    assert plain(r["equal"]) in text(lab, ".flash-split-finished")
    O, lse = expected.merged
    for name, value in {"lse": lse, **{f"O_{k}": value for k, value in enumerate(O)}}.items():
        assert (
            text(lab, f"[data-name='merged-{name}']") == text(lab, f"[data-name='whole-{name}']") == number(value)
        )
    for name in ("launches", "keys", "states"):
        shown = text(lab, f"[data-time={name}]").removesuffix(" µs").replace("−", "-")
        assert float(shown) == pytest.approx(r["times"]["now"][name], rel=6e-3)  # three digits
    names = "".join(text(lab, ".flash-split-names").split())
    assert "alphas=exp(ms−m)" in names and ("merged" in names) == (r["n"] > 1)
    assert lab.locator(".flash-split-best").count() == (r["times"]["best"] is not None)
    assert ("alpha" in text(lab, ".flash-headline")) == (r["n"] > 1)
    check_pictures(lab, r)


def check_pictures(lab, r):
    """There is a box for each part, a dot for each merge, a program in each place that is taken."""
    n, chip = r["n"], r["chip"]
    boxes = lab.locator(".flash-split-box")
    assert boxes.count() == n and lab.locator(".flash-split-dot").count() == n - 1
    assert lab.locator(".flash-split-edge").count() == 2 * (n - 1)
    widths = boxes.evaluate_all("all => all.map((box) => Number(box.getAttribute('width')))")
    keys = np.array([end - begin for begin, end in r["ranges"]])
    assert np.allclose((np.array(widths) + 1) / np.sum(np.array(widths) + 1), keys / keys.sum(), atol=1e-3)
    running = chip["places"] if chip["waves"] > 1 else chip["last"]
    programs, frames = (
        lab.locator(f".flash-split-{name}").get_attribute("d").count("M") for name in ("programs", "frames")
    )
    assert (programs, frames) == (running, chip["sms"])
    curve = lab.locator(".flash-split-curve").get_attribute("d")
    assert len(re.findall("[ML]", curve)) == len(r["times"]["curve"])
    record = lab.locator(".flash-split-record").get_attribute("d") or ""
    assert record.count("M") == len(r["record"])


def check_node(lab, node, **setting):
    """This part or merge is shown, with the numbers of its State."""
    expected = SplitLab(**setting)
    nodes, n = part_states.merged(expected.states, expected.order), expected.result["n"]
    assert lab.get_attribute("data-node") == str(node)
    name = f"Part {node}, of {n}" if node < n else f"Merge {node - n + 1}, of {n - 1}"
    assert text(lab, ".flash-split-account h3") == name
    words, state = text(lab, ".flash-split-lines"), nodes.states[node]
    factors = " ".join(lab.locator(".flash-split-factor").all_text_contents()).replace(" and", "")
    alphas = [] if node < n else nodes.alphas[node]
    assert lab.locator(".flash-split-at").count() == len(alphas)
    shown = [float(x.replace("−", "-")) for x in factors.replace("×", "").split()]
    assert shown == pytest.approx(alphas, abs=0.006), "factors of the merge that is shown, and of no other"
    for value in (state.m, state.l, *state.O_acc):
        assert number(value) in words
    if node >= n:
        for child, alpha in zip(nodes.children[node - n], nodes.alphas[node], strict=True):
            assert number(alpha) in words and number(nodes.states[child].l) in words
    else:
        begin, end = expected.result["ranges"][node]
        assert f"Keys {begin} to {end - 1}, " in words
        assert f"= {number(np.exp(state.m - nodes.states[-1].m))}." in words


def check_marked(lab, node, **setting):
    """The mark covers the parts that make up this part or merge."""
    first, end = SplitLab(**setting).result["nodes"]["spans"][node]
    mark = lab.locator(".flash-split-mark").bounding_box()
    first, last = (lab.locator(".flash-split-box").nth(k).bounding_box() for k in (first, end - 1))
    assert mark["x"] == pytest.approx(first["x"], abs=4)
    assert mark["x"] + mark["width"] == pytest.approx(last["x"] + last["width"], abs=4)


def check(lab):
    setting = lab.evaluate("lab => lab.flashWidget.result.setting")
    check_shown(lab, **setting)
    nodes = 2 * SplitLab(**setting).result["n"] - 1
    for node in sorted({0, nodes // 2, nodes - 1}):
        lab.evaluate("(lab, node) => lab.flashWidget.choose(node)", node)
        check_node(lab, node, **setting)
        check_marked(lab, node, **setting)
