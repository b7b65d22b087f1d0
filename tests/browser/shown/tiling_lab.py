"""What TilingLab shows: Python's numbers for its setting, and the marks of its map."""

import pytest

from flashlib.pictures.number_text import number
from flashlib.widgets import TilingLab
from tests.browser.shown.drawn import boxes

NAMES = ("N", "d", "B_r", "B_c", "capacity", "dtype", "causal", "order")


def wait_for(lab, setting):
    """Wait until the lab shows this setting."""
    lab.page.wait_for_function(
        "([lab, wanted]) => Object.entries(wanted).every(([name, x]) => lab.flashWidget.result[name] === x)",
        arg=[lab.element_handle(), setting],
    )


def texts(lab, selector):
    return lab.locator(selector).all_inner_texts()


def check_shown(lab, **setting):
    """The page shows what Python computes for this setting."""
    result = TilingLab(**setting).result
    wait_for(lab, {name: result[name] for name in NAMES})
    assert texts(lab, ".flash-words p") == [words.replace("_", "") for words in result["words"]]  # a subscript
    grid = result["grid"]
    counts = {name: grid[name] for name in ("T_r", "T_c", "tiles", "computed")}
    counts |= {"skipped": grid["tiles"] - grid["computed"], "tile": f"{result['B_r']} × {result['B_c']}"}
    for name, count in counts.items():
        assert texts(lab, f"[data-count={name}]") == [str(count)]
    for name, traffic in result["traffic"].items():
        row = lab.locator(f".flash-tiling-moved[data-name={name}]")
        text, more = traffic["text"], traffic["ratio"] > 1
        assert row.locator(".flash-tiling-moved-total").inner_text() == f"{text['total']} {text['unit']}"
        assert (
            row.locator(".flash-tiling-moved-parts").inner_text()
            == f"read {text['read']}, written {text['written']}"
        )
        assert row.get_attribute("data-more") == str(more).lower()
        assert row.get_attribute("title") == f"{traffic['read']} bytes read, {traffic['written']} written"
        if name != "standard":
            assert row.locator(".flash-tiling-moved-ratio").inner_text() == f"× {number(traffic['ratio'])}"
            assert row.locator(".flash-tiling-moved-more").inner_text() == ("▲ more" if more else "")
    sram = result["sram"]
    for name, held in sram["pieces"].items():
        piece = lab.locator(f'[data-piece="{name}"]')
        assert piece.locator("span").last.inner_text() == f"{number(held / 1024)} KB"
    verdict = "✓ fits" if sram["fits"] else "✕ does not fit"
    assert texts(lab, ".flash-tiling-verdict") == [
        f"{number(sram['held'] / 1024)} of {result['capacity']} KB: {verdict}"
    ]
    assert lab.locator(".flash-tiling-sram .flash-tiling-over").is_visible() == (not sram["fits"])
    excess = "" if sram["fits"] else f"▲ {number((sram['held'] - sram['room']) / 1024)} KB too much"
    assert texts(lab, ".flash-tiling-excess") == [excess]
    check_scale(lab, result)
    check_map(lab, result)


def check_scale(lab, result):
    """A tile and SRAM are drawn to the scale of S, as scores; and enlarged, if that is small."""
    sides = [[box[2] - box[0] for box in drawn(lab, name)] for name in ("one", "chip")]
    size = result["sram"]["pieces"]["Q_i"] / (result["B_r"] * result["d"])
    chip = (1024 * result["capacity"] / size) ** 0.5
    assert texts(lab, "[data-count=chip]") == [f"{int(chip)} × {int(chip)}"]
    side = 240 / result["N"]
    assert sides[0][0] == pytest.approx(min(result["B_c"], result["N"]) * side, abs=0.01)
    assert sides[1][:1] == ([pytest.approx(chip * side)] if chip < result["N"] else [])
    assert len(sides[0]) == 1 + (chip * side < 48)
    if len(sides[0]) == 2:
        assert sides[0][1] == pytest.approx(min(96, result["B_c"] * sides[1][1] / chip))


def drawn(lab, name):
    paths = lab.locator(f".flash-tiling-cutting path.flash-tiling-{name}")
    return [box for d in paths.evaluate_all("all => all.map((e) => e.getAttribute('d'))") for box in boxes(d)]


def check_map(lab, result):
    m = result["map"]
    cells = lab.locator("tbody td").evaluate_all(
        "cells => cells.map((cell) => [cell.dataset.cell, cell.dataset.fits, cell.getAttribute('aria-label')])"
    )
    expected = []
    for r, B_r in enumerate(m["blocks"]):
        for c, B_c in enumerate(m["blocks"]):
            fits = m["fits"][r][c]
            words = f"{number(m['ratios'][r][c])} of standard attention, {'fits' if fits else 'does not fit'}"
            expected.append([f"{B_r},{B_c}", str(fits).lower(), words])
    assert cells == expected
    best = m["best"]
    assert lab.locator(".flash-tiling-map").get_attribute("data-best") == f"{best['B_r']},{best['B_c']}"
    assert texts(lab, ".flash-tiling-map-words") == [m["words"]]
    text = result["traffic"][result["order"].upper()]["text"]
    now = f"your tile, {result['B_r']} × {result['B_c']}: {text['total']} {text['unit']}"
    assert texts(lab, ".flash-tiling-map-now") == [now]


def check(lab):
    setting = lab.evaluate("(lab, names) => names.map((name) => [name, lab.flashWidget.result[name]])", NAMES)
    check_shown(lab, **dict(setting))
    check_marks(lab, **dict(setting))


def check_marks(lab, *, B_r, B_c, **_):
    """The frame is on the cell of the tile, if the map has one."""
    cell = lab.locator(f'[data-cell="{B_r},{B_c}"]')
    if cell.count():
        now, cell = (found.bounding_box() for found in (lab.locator("rect.flash-tiling-now"), cell))
        for side in ("x", "y", "width", "height"):
            assert now[side] == pytest.approx(cell[side], abs=3)
