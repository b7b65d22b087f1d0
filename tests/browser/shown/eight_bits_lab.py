"""What EightBitsLab shows: its errors, its histograms and grids, and what happens to one score and one sum."""

import re

import numpy as np
import pytest

from flashlib.pictures.number_text import number
from flashlib.widgets import EightBitsLab
from flashlib.widgets.eight_bits_lab.problem import ROWS
from flashlib.widgets.eight_bits_lab.words import percent
from tests.browser.labs import plain, text, wait_for
from tests.browser.shown.drawn import boxes

WIDTHS = "all => all.map((e) => e.getBoundingClientRect().width)"


def view(lab, name):
    """Show one of the views next to the controls."""
    lab.locator(f".flash-eight-shown > .flash-choice input[value={name}]").check(force=True)


def words_of(lab, selector):
    """The words of an element as Python writes them."""
    return plain(text(lab, selector)).replace("^", "")


def check_shown(lab, **setting):
    """The page shows what Python computes for this setting."""
    r = EightBitsLab(**setting).result
    wait_for(lab, r["setting"])
    view(lab, "causes")
    said = [
        ".flash-headline-now",
        ".flash-eight-causes > p:first-of-type",
        ".flash-eight-causes > p:last-child",
    ]
    for selector, words in zip(said, r["words"], strict=True):
        assert words_of(lab, selector) == plain(words)
    assert words_of(lab, ".flash-eight-read-body > p") == plain(r["read"])
    assert text(lab, "[data-cause=all]") == percent(r["total"])
    check_causes(lab, r)
    view(lab, "grids")
    for one, grid in zip(r["rounding"], ("qk", "qk", "pv", "pv"), strict=True):
        check_tensor(lab, one, r["grids"][grid], r["octaves"])


def check_causes(lab, r):
    """The lengths of the bars are the errors, those of the parts of the stack their squares."""
    rows = lab.locator(".flash-eight-cause")
    assert rows.count() == len(r["causes"])
    bars = np.array(rows.locator(".flash-eight-bar > i").evaluate_all(WIDTHS))
    stack = np.array(lab.locator(".flash-eight-stack > i").evaluate_all(WIDTHS))
    whole = lab.locator(".flash-eight-all .flash-eight-bar").bounding_box()["width"]
    for k, cause in enumerate(r["causes"]):
        assert rows.nth(k).locator("b").inner_text() == percent(cause["error"])
        assert plain(cause["how"]) in rows.nth(k).inner_text().replace("\u00a0", " ")
    errors, parts = (np.array([cause[name] for cause in r["causes"]]) for name in ("error", "part"))
    unit = bars[errors.argmax()] / errors.max()
    assert bars == pytest.approx(unit * errors, abs=0.5)
    assert stack == pytest.approx(unit * r["total"] * parts, abs=0.5)
    end = round(whole / unit, 9)
    assert max(errors.max(), r["total"]) <= end * 1.001
    assert re.fullmatch(r"[125]e[+-]\d\d", f"{end:.0e}") and float(f"{end:.0e}") == pytest.approx(end, rel=1e-2)


def check_tensor(lab, one, grid, octaves):
    """The heights of the bars are the shares of the numbers, and each number of the format has a mark below."""
    picture = lab.locator(f".flash-eight-tensors svg[data-name={one['name']}]")
    title = picture.locator("xpath=..").locator(".flash-note")
    assert title.inner_text().replace("\u00a0", " ") == one["words"]
    paths = [picture.locator(f".flash-eight-{name}").get_attribute("d") or "" for name in ("bars", "gone")]
    found = sorted(box for path in paths for box in boxes(path))
    shares = [share for share in one["bars"] if share]
    high = np.array([bottom - top for _, top, _, bottom in found])
    assert len(found) == len(shares) and np.allclose(high, np.maximum(54 * np.array(shares) / max(shares), 2))
    comb = (picture.locator(".flash-eight-comb").get_attribute("d") or "").count("M")
    assert comb == sum(value >= grid[-1] * 2.0**-octaves for value in grid)


def check_place(lab, row, key, column, **setting):
    """One score, its weight and one sum are those of this query, key and column, and they are marked."""
    expected = EightBitsLab(**setting).result
    rows, shown, cols, points = (expected[name] for name in ("rows", "shown", "cols", "points"))
    found = np.frombuffer(expected["buffer"], "<f8")
    scores = found[: 6 * rows * shown].reshape(6, rows, shown)[:, row, key]
    sums = found[-2 * points * rows * cols :].reshape(2, points, rows, cols)[:, -1, row, column]
    assert lab.get_attribute("data-shows") == f"{row},{key},{column}"
    before = lab.get_attribute("data-view")
    view(lab, "scores")
    assert text(lab, ".flash-eight-score h3").endswith(f"query {row}, key {key}")
    lines = text(lab, ".flash-eight-lines")
    for value in scores:
        assert number(value) in lines
    assert number(np.exp(scores[1] - scores[0])) in lines
    check_marks(lab, row, ("S", key, shown), ("weights", key, shown))
    view(lab, "sums")
    assert plain(text(lab, ".flash-eight-sum h3")).endswith(f"query {row}, column {column}")
    for value in sums:
        assert number(value) in text(lab, ".flash-eight-sum > p")
    check_marks(lab, row, ("O", column, cols))
    view(lab, before)


def check_marks(lab, row, *places):
    """In each map there is a mark on the number that is shown."""
    for name, at, count in places:
        field = lab.locator(f".flash-eight-field[data-name={name}]")
        box, mark = field.bounding_box(), field.locator("b").bounding_box()
        assert mark["x"] - box["x"] == pytest.approx(box["width"] * at / count, abs=1)
        assert mark["y"] - box["y"] == pytest.approx(box["height"] * row / ROWS, abs=1)


def check_maps(lab, r):
    """The colours of the maps are those of the errors: blue where too large, orange where too small."""
    rows, shown, cols = r["rows"], r["shown"], r["cols"]
    found = np.frombuffer(r["buffer"], "<f8")
    scores = found[: 6 * rows * shown].reshape(6, -1)
    outputs = found[6 * rows * shown :][: 2 * rows * cols].reshape(2, -1)
    errors = {"S": scores[1] - scores[0], "weights": scores[5] - scores[4], "O": outputs[1] - outputs[0]}
    for name, error in errors.items():
        view(lab, "sums" if name == "O" else "scores")
        pixels = lab.evaluate(PIXELS, name)
        assert len(pixels) == error.size
        blue = np.array([b - r for r, _, b in pixels])
        strong = np.abs(error) > 0.1 * np.abs(error).max()
        zero = blue[np.abs(error).argmin()]
        assert np.array_equal(blue[strong] > zero, error[strong] > 0)


PIXELS = """async (lab, name) => {
    const field = lab.querySelector(`.flash-eight-field[data-name=${name}]`);
    const image = new Image();
    image.src = field.style.backgroundImage.slice(5, -2);
    await image.decode();
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: image.width, height: image.height });
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, image.width, image.height);
    return Array.from({ length: data.length / 4 }, (_, k) => [...data.slice(4 * k, 4 * k + 3)]);
}"""


def check(lab):
    setting = lab.evaluate("lab => lab.flashWidget.result.setting")
    check_shown(lab, **setting)
    r = EightBitsLab(**setting).result
    check_maps(lab, r)
    check_place(lab, *r["opens"].values(), **setting)
    lab.evaluate("lab => lab.flashWidget.choose({ row: 0, key: 127, column: 3 })")
    check_place(lab, 0, 127, 3, **setting)
