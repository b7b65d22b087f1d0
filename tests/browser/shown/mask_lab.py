"""What MaskLab shows: Python's numbers for its setting, with tiles and rows in their places."""

import re

import pytest

from flashlib.widgets import MaskLab
from tests.browser.labs import plain, text, wait_for


def check_shown(lab, **setting):
    """The page shows what Python computes for this setting."""
    kind = setting.pop("kind", None)
    result = MaskLab(kind, **setting).result
    wait_for(lab, result["setting"])
    words = result["words"]
    assert text(lab, ".flash-mask-code") == result["code"]
    assert text(lab, ".flash-mask-words p") == plain(" ".join([words[0], *words[2:]]))
    assert text(lab, ".flash-mask-loop p") == plain(words[1])
    assert ("by bounds" in text(lab, ".flash-mask-verdict")) == result["bounds"]
    for name in ("whole", "cut", "hidden"):
        assert text(lab, f"[data-count={name}]") == str(result["tiles"][name])
    for row in result["against"]:
        shown = lab.locator(f'.flash-mask-against [data-name="{row["name"]}"]')
        assert row["text"] in shown.inner_text() and row["percent"] in shown.inner_text()
        assert shown.get_attribute("title") == f"{row['mask']} of {row['dense']}"
    check_picture(lab, result)


def check_picture(lab, result):
    """The paths cover the right numbers of scores; each row and each tile is in its place."""
    setting, scores = result["setting"], result["scores"]
    paths = lab.locator(".flash-mask-scores").evaluate(
        """(element) => Object.fromEntries(["seen", "computed", "cut", "hidden", "corners"].map((name) =>
            [name, element.querySelector(`.flash-mask-${name}`).getAttribute("d")]))"""
    )
    wide, high = (lab.evaluate(f"lab => lab.flashWidget.scores.{name}") for name in ("wide", "high"))

    def covered(name):
        boxes = re.findall(r"M([\d.e-]+) ([\d.e-]+)H([\d.e-]+)v([\d.e-]+)H", paths[name])
        return sum((float(x1) - float(x0)) * float(h) for x0, _, x1, h in boxes) / (wide * high)

    assert covered("seen") == pytest.approx(scores["seen"])
    assert covered("computed") == pytest.approx(scores["computed"])
    assert covered("hidden") == pytest.approx(scores["all"] - scores["computed"])
    assert paths["corners"].count("M") in (0, result["tiles"]["cut"])
    assert lab.locator(".flash-mask-document").count() == len(result["lengths"] or [])
    label = lab.locator(".flash-mask-scores > svg").get_attribute("aria-label")
    tiles = result["tiles"]
    assert label == (
        f"S, {setting['N_q']} by {setting['N_k']}: "
        f"{tiles['whole']} tiles whole, {tiles['cut']} cut, {tiles['hidden']} hidden"
    )


def check_row(lab, row, result=None):
    """This row is shown, with Python's sentence on it."""
    result = result or MaskLab().result
    assert lab.get_attribute("data-row") == str(row)
    assert text(lab, ".flash-mask-one h3") == f"Row {row}"
    assert text(lab, ".flash-mask-one p") == plain(result["rows"][row])
    assert lab.locator(".flash-mask-strip .flash-mask-sees").get_attribute("d").count("M") == len(
        result["runs"][row]
    )


def check(lab):
    setting = lab.evaluate("lab => lab.flashWidget.result.setting")
    check_shown(lab, **setting)
    result = MaskLab(setting.pop("kind"), **setting).result
    for row in (0, setting["N_q"] // 3, setting["N_q"] - 1):
        lab.evaluate("(lab, row) => lab.flashWidget.choose(row)", row)
        check_row(lab, row, result)
