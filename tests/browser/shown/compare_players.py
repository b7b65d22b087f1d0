"""What ComparePlayers shows: on each side the tiles and the bytes of its order, on one scale."""

import pytest

from flashlib import cost


def side(compare, order):
    return compare.locator(f'.flash-side[data-order="{order}"]')


def moved(compare, order):
    """Bytes read and written, as the meter of a side shows them."""
    text = side(compare, order).locator(".flash-moved").inner_text()
    return [int("".join(filter(str.isdigit, part))) for part in text.split(",")]


def check(compare):
    setting = compare.evaluate("root => root.flashWidget.model.get('frames').setting")
    N, d = setting["N"], setting["d"]
    tiling = {name: setting[name] for name in ("B_r", "B_c", "causal")}
    compare.evaluate("root => root.flashWidget.transport.seek(root.flashWidget.transport.last)")
    for order, closed_form in (("fa1", cost.fa1_traffic), ("fa2", cost.fa2_traffic)):
        traffic = closed_form(N, N, d, **tiling, dtype="float64")
        assert moved(compare, order) == [traffic.read, traffic.written]
    check_scale(compare)
    check_words(compare)


def check_scale(compare):
    """A byte is equally long on both sides, and in their references."""
    standard = compare.locator(".flash-meters").first.inner_text().rpartition(": ")[2]
    units = []
    for order in ("fa1", "fa2"):
        bars = (
            side(compare, order)
            .locator(".flash-meter")
            .evaluate_all(
                "bars => bars.map((bar) => [...bar.children].map((part) => parseFloat(part.style.width)))"
            )
        )
        units += [bar / bytes for bar, bytes in zip(bars[0], moved(compare, order), strict=True)]
        units.append(sum(bars[1]) / int("".join(filter(str.isdigit, standard))))
    assert units == [pytest.approx(units[0], rel=1e-3)] * len(units) and units[0] > 0


def check_words(compare):
    total = {order: sum(moved(compare, order)) for order in ("fa1", "fa2")}
    text = compare.locator(".flash-sentence").inner_text()
    assert f"FA1 {total['fa1'] / total['fa2']:#.4g} times as much as FA2" in text
    assert "Both have the same O" in text
