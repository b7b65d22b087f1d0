"""What the sanitizers found, as recorded, and how their words are understood."""

import json
from pathlib import Path

import pytest

from tools.races import __main__ as program

RECORD = Path(__file__).with_name("races.json")
FOUND = {
    "nothing": (0, "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"),
    "a race": (9, "========= Error: Race reported between\n========= RACECHECK SUMMARY: 1 hazard displayed"),
    "an error": (1, "Traceback (most recent call last):\nRuntimeError: PassManager::run failed"),
}


@pytest.fixture
def calls():
    pytest.importorskip("triton")
    from tools.races import calls

    return calls


@pytest.mark.parametrize("found", FOUND)
def test_the_words_of_a_process_say_what_it_found(found):
    assert program.verdict(*FOUND[found])[0] == found
    assert program.verdict(1, "place.py:7: Assertion `Buffer has outstanding writes.` failed")[0] == "a race"


def test_a_call_that_takes_too_long_is_not_taken_for_one_without_a_race(monkeypatch):
    monkeypatch.setattr(program, "SANITIZERS", {"none": ((), {})})
    result = program.examine("none", "softmax", limit=0.01)
    assert result.found == "no end" and not program.wrong([result])


def test_a_planted_race_must_be_found():
    def result(call, found):
        return program.Found("racecheck", call, found, "", 1.0)

    assert not program.wrong([result(program.PLANTED, "a race"), result("softmax", "nothing")])
    assert len(program.wrong([result(program.PLANTED, "nothing"), result("softmax", "a race")])) == 2
    assert len(program.wrong([result("merge", "an error"), result(program.PLANTED, "no end")])) == 2


def test_the_record_has_all_calls_and_no_race_but_the_planted_ones(calls):
    rows = [program.Found(**row) for row in json.loads(RECORD.read_text(encoding="utf-8"))["rows"]]
    expected = {(name, call) for name, of in calls.CALLS.items() for call in (program.PLANTED, *of)}
    assert {(row.sanitizer, row.call) for row in rows} == expected and len(rows) == len(expected)
    assert not program.wrong(rows) and set(calls.PLANTED) == set(program.SANITIZERS) == set(calls.CALLS)
    assert {row.found for row in rows if row.sanitizer == "racecheck" and row.call != program.PLANTED} == {
        "nothing"
    }
    ended = [row.call for row in rows if row.sanitizer == "consan" and row.found == "nothing"]
    assert [name.partition(", ")[2] for name in ended] == ["r1_alike", "r2_producer"]


@pytest.mark.parametrize("call", ["merge", "decode, fp8 in pages", "ladder, r3_flash"])
def test_calls_run(call, calls):
    calls.CALLS["racecheck"][call]()
