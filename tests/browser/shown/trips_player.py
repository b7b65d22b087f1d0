"""What TripsPlayer shows: at every position the bytes and the trips of both sides, in one scale."""

import itertools

import pytest

from flashlib.widgets import TripsPlayer
from tests.browser.labs import plain

SIDES = ("standard", "flash")
SHOWN = """player => {
    const { transport } = player.flashWidget;
    const before = transport.position;
    const shown = Array.from({ length: transport.last + 1 }, (_, position) => {
        transport.seek(position);
        const of = (side) => {
            const panel = player.querySelector(`section[data-side="${side}"]`);
            const bar = player.querySelector(`.flash-trips-bar[data-side="${side}"]`);
            const filled = (place) => [...panel.querySelectorAll(`.flash-trips-${place} .flash-matrix`)]
                .filter((e) => e.style.background.includes("url("))
                .map((e) => e.dataset.name);
            return {
                words: panel.querySelector(".flash-trips-words").textContent,
                count: bar.querySelector(".flash-trips-name .flash-steady > :first-child").textContent,
                hbm: filled("hbm"),
                chip: filled("chip"),
                flying: [...panel.querySelectorAll(".flash-trips-air > *")].map((e) => e.dataset.name),
                outlined: [...panel.querySelectorAll(".flash-here:not([hidden])")].length,
                clip: parseFloat(bar.querySelector(".flash-trips-moved").style.clipPath.split(" ")[1]),
                widths: [...bar.querySelectorAll(".flash-trips-all > i")].map((e) => parseFloat(e.style.width)),
            };
        };
        return { standard: of("standard"), flash: of("flash") };
    });
    transport.seek(before);
    return shown;
}"""


def check(player):
    setting = player.evaluate("player => player.flashWidget.model.get('frames').setting")
    expected = TripsPlayer(**setting)
    shown = player.evaluate(SHOWN)
    trips = {
        side: [sum(move[3] for move in trip["moves"]) for trip in expected.frames[side]["trips"]] for side in SIDES
    }
    ends = {side: list(itertools.accumulate(moved)) for side, moved in trips.items()}
    moments = sorted({*ends["standard"], *ends["flash"]})
    most = moments[-1]
    assert len(shown) == len(moments) + 1
    for moment, now in zip([*moments, most], shown, strict=True):
        for side in SIDES:
            check_side(now[side], expected.frames[side]["trips"], ends[side], moment, ended=now is shown[-1])
            assert now[side]["clip"] == pytest.approx(100 - 100 * min(moment, ends[side][-1]) / most, abs=0.01)
            assert now[side]["widths"] == pytest.approx([100 * one / most for one in trips[side]], rel=1e-3)


def check_side(now, trips, ends, moment, *, ended):
    """The trip that is under way is named; what has arrived is in its place, and nothing else."""
    digits = now["count"].replace("\u202f", "").replace("B", "").split(" of ")
    assert [int(n) for n in digits] == [min(moment, ends[-1]), ends[-1]]
    stored = {move[0] for trip, end in zip(trips, ends, strict=True) if end <= moment for move in trip["moves"]}
    assert set(now["hbm"]) == {"Q", "K", "V"} | {name for name in stored if name in ("S", "P", "O", "lse")}
    k = next((k for k, end in enumerate(ends) if end >= moment), None)
    if ended or k is None:
        assert now["words"].startswith("Finished") and now["chip"] == now["flying"] == []
        return
    assert now["words"].startswith(f"Trip {k + 1} of its {len(trips)}")
    names = [move[0] for move in trips[k]["moves"]]
    assert now["flying"] == (names if ends[k] > moment else []) and now["outlined"] == len(names)
    if ends[k] == moment:
        assert bool(now["chip"]) == trips[k]["loads"]
    else:
        assert not {plain(name)[0] for name in now["chip"]} & set(names) - {"O", "Q"}
