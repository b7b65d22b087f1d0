"""`make measure`: widgets answer where it expects the answer; a limit that is exceeded is named."""

from functools import reduce

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("nbformat")

from flashlib import widgets
from tools import measure_widgets
from tools.measure_widgets import CASES, LimitCheck

CHANGES = [(case, control) for case, control in CASES if control]


@pytest.mark.parametrize("case, control", CHANGES, ids=lambda x: getattr(x, "label", x))
def test_each_change_is_answered_where_it_is_looked_for(case, control):
    widget = eval(case, vars(widgets).copy())
    *_, name = control.path
    wanted = [answer for *_, answer in control.steps]
    assert len(set(wanted)) == 2, "between two equal settings nothing changes"
    for answer in wanted:
        setattr(widget, name, answer)
        assert widget.refused == widget.problem == ""
        assert reduce(lambda found, key: found[key], control.path[1:], getattr(widget, control.path[0])) == answer


def test_a_slider_of_stops_has_its_value_at_that_index():
    for case, control in CHANGES:
        stops = getattr(eval(case, vars(widgets).copy()), "result", {}).get("stops", {}).get(control.path[-1])
        for _, value, event, answer in control.steps:
            assert event == ("input" if control.label.startswith("slider") else event)
            assert not stops or stops[value] == answer


def test_a_limit_that_is_exceeded_is_marked_and_named():
    held = LimitCheck()
    assert held("time", 44.96, "{:.1f} ms", most=45) == "45.0 ms"
    assert held("rate", 50.0, "{:.1f}", least=50) == "50.0"
    assert held("nothing plays", None, "{:.1f}", least=50) == "-"
    assert held.missed == []
    assert held("time", 46, "{:.1f} ms", most=45) == "! 46.0 ms"
    assert held("rate", 49.94, "{:.1f}", least=50) == "! 49.9"
    assert held.missed == ["time: 46.0 ms, the limit is at most 45", "rate: 49.9, the limit is at least 50"]


def test_a_picture_is_timed_in_cpu_time(monkeypatch):
    clock = iter([0, 9, *(x for k in range(5) for x in (10 * k, 10 * k + (k + 1) / 1000))])
    monkeypatch.setattr(measure_widgets.time, "process_time", lambda: next(clock))
    assert measure_widgets.picture_time("MaskLab()") == pytest.approx(3), (
        "ms: the median of 1 to 5, the first left out"
    )


def test_columns_are_aligned():
    lines = [
        measure_widgets.line(*cells)
        for cells in (["a", "b", 1, 2, 3, 4, 5, 6], ["case", "label", "10 ms", 0.5, "-", "50", "7 ms", "60"])
    ]
    assert len({len(text) for text in lines}) == 1
