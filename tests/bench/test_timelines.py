"""Rows of timelines: their times, and the comparison with the model."""

import json
from types import SimpleNamespace

import pytest

from flashlib.bench import timelines
from flashlib.bench.common import harness
from flashlib.pipeline import measured, run
from tests.bench import recorded

RECORD = json.loads((recorded.DATA / "h200_timelines.json").read_text(encoding="utf-8"))


def test_a_call_has_its_share_of_a_graph(monkeypatch):
    captured, graph = {}, SimpleNamespace(replay="replayed")
    monkeypatch.setattr(harness, "captured", lambda run, times: captured.update({run: times}) or graph)
    monkeypatch.setattr(harness, "median_ms", lambda run, rep_ms: {graph.replay: 3.0}[run])
    assert timelines.ms("a call") * captured["a call"] == pytest.approx(3.0)


@pytest.mark.parametrize("number", [0, 1])
def test_a_program_is_compared_with_the_model_of_its_rung(number):
    row = next(row for row in RECORD["rows"] if row["rung"] == "r3_turns")
    found = timelines.compared(row, number)
    there, model = measured.timeline(row, number), run(measured.program(row, number))
    assert found["clocks"] == [round(there.clocks), round(model.clocks)]
    assert found["use"] == [pytest.approx(one.use(), abs=5e-4) for one in (there, model)]
    assert found["same_order"] == (measured.order(there) == measured.order(model))


def test_a_row_has_every_block_once():
    for row in RECORD["rows"]:
        programs = [
            timelines.recorded_program(SimpleNamespace(marks=lambda n: n), row, number)
            for number in range(row["grid"])
        ]
        each = -(-row["N"] // row["B_r"]) * row["H"]
        assert sum(len(program["blocks"]) for program in programs) == each
        assert {n for program in programs for n in program["blocks"]} == {-(-row["N"] // row["B_c"])}
        assert [program["marks"] for program in programs] == list(range(row["grid"]))
