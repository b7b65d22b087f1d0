"""The records were made with today's kernels; if not, a test says which was not, and how to record it again."""

import copy
import functools
import importlib
import json

import pytest

from flashlib.bench import clocks, ring, timelines
from flashlib.bench.common import harness, records
from flashlib.kernels.compiler import compiled
from flashlib.kernels.hopper import instrumented
from flashlib.pipeline import measured
from tests.bench import recorded
from tools import results

SIZE = {"d": 16, "causal": True, "shape": [1, 2, 2, 48]}
ASKED = {"B_r": 16, "B_c": 16, "num_warps": 1, "descriptors": False}


@functools.cache
def first_rows() -> dict:
    """Return where each kernel is noted first: {kernel: (file of the record, place)}."""
    found = {}
    for record in recorded.RECORDS:
        for place, entry, _ in record.entries(record.read()):
            found.setdefault(entry["kernel"], (record.file, place))
    return found


@pytest.mark.parametrize("amount", ["few", "all"])
@pytest.mark.parametrize("record", recorded.RECORDS, ids=lambda record: record.file)
def test_what_was_timed_is_what_is_compiled_today(record, amount):
    """All kernels of the tables, and of the best rows of the ladders; few: the first row of each kernel."""
    read = record.read()
    noted = list(record.entries(read))
    if amount == "few":
        noted = [(place, e, code) for place, e, code in noted if first_rows()[e["kernel"]] == (record.file, place)]
    found = recorded.outdated(read, noted, recorded.pinned_triton())
    if amount == "all" and (awaits := results.AWAITED.get(record.file.removesuffix(".json"))):
        named = tuple(f"{kernel} at " for kernel in awaits.kernels.split())
        awaited = [line for line in found if line.startswith(named)]
        assert awaited, f"{record.file} is up to date: delete its line in AWAITED"
        found = [line for line in found if line not in awaited]
    assert not found, f"{record.file} is out of date. To make it again: {record.command}\n" + "\n".join(found)


def test_the_marks_of_the_recorded_timelines_are_where_they_are_today():
    """A kernel with marks has more code than the one noted in its row, so its syntax is compared."""
    (record,) = (record for record in recorded.RECORDS if record.file == "h200_timelines.json")
    rows = record.read()["rows"]
    assert {(row["rung"], row["d"]) for row in rows} == {(rung, d) for rung in measured.MODELS for d in (64, 128)}
    for row in rows:
        source = instrumented.instrument(row["rung"]).source
        assert row["source"] == timelines.hash_of(source), f"{row['rung']}: {record.command}"


@pytest.mark.parametrize("name", ["h200_ring", "h200_ring_4"])
def test_rings_were_timed_as_they_are_today(name):
    (record,) = (record for record in recorded.RECORDS if record.file == f"{name}.json")
    then, today = record.read()["sources"], ring.sources()
    changed = {module.removeprefix("distributed.") for module in today if then.get(module) != today[module]}
    awaits = results.AWAITED.get(name)
    assert changed == {*(awaits.modules.split() if awaits else ())}, f"{record.command}; see results.AWAITED"


def test_the_units_were_timed_as_they_are_today():
    read = json.loads((recorded.DATA / "h200_clocks.json").read_text(encoding="utf-8"))
    assert read["source"] == clocks.sources(), (
        "python -m flashlib.bench.clocks --out notebooks/data/h200_clocks.json"
    )
    assert read["triton"] == recorded.pinned_triton()


@pytest.fixture
def noted():
    row = {}
    with records.Notes() as notes:
        notes.add(row, SIZE, {"forward": ASKED})
        notes.finish()
    return row["kernels"]


def outdated(entries, triton="3.7.1", code=True):
    return recorded.outdated({"triton": triton}, (("here", entry, code) for entry in entries), "3.7.1")


def test_a_note_says_what_was_compiled_and_that_it_still_is(noted):
    (entry,) = noted
    report = compiled.report(kernel="forward", d=16, causal=True, **ASKED)
    assert entry["config"] == [report.B_r, report.B_c, report.num_warps, report.num_stages]
    assert entry["sass"] == report.fingerprint and len(entry["sass"]) == 12
    assert entry["ttgir"] == compiled.launch(kernel="forward", **SIZE, **ASKED, until="ttgir").ttgir
    assert outdated(noted) == []


def test_rows_of_the_same_code_have_the_same_hashes():
    """The code for one length is that for all multiples of 1024."""
    shapes = (4, 2, 2, 1024), (1, 2, 2, 4096)
    calls = [{"kernel": "forward", "d": 16, "causal": True, "shape": shape, "asked": ASKED} for shape in shapes]
    one, other = (records.launched(call) for call in calls)
    exact = [compiled.launch(**SIZE | {"shape": shape}, kernel="forward", **ASKED) for shape in shapes]
    assert one == other == exact[0]._asdict() == exact[1]._asdict()


def test_changes_are_reported(noted):
    ttgir, sass, config = (copy.deepcopy(noted[0]) for _ in range(3))
    ttgir |= {"ttgir": "0" * 12}  # a different way to the same code
    sass |= {"ttgir": "0" * 12, "sass": "0" * 12}
    config["config"][-1] += 1
    assert outdated([ttgir]) == []
    assert outdated([sass]) == ["forward at here: its code has changed"] and outdated([sass], code=False) == []
    assert outdated([config]) == [
        f"forward at here: launched with {config['config']}, and today it would be {noted[0]['config']}"
    ]


def test_a_record_without_notes_or_of_another_triton_is_out_of_date(noted):
    assert outdated([None]) == ["here: it does not say what was compiled"]
    assert outdated(noted, "3.6.0") == ["it was made with Triton 3.6.0, and requirements.txt pins 3.7.1"]


def test_if_nothing_can_be_compiled_the_times_stay_and_the_reason_is_noted(capsys):
    row = {"tflops": 1.0}
    with records.Notes() as notes:
        notes.add(row, SIZE | {"d": 999}, {"forward": {}})
        notes.finish()
    assert row["tflops"] == 1.0 and "d is 999" in row["kernels"][0]["reason"]
    assert "forward is not known as compiled: ValueError: d is 999" in capsys.readouterr().out
    assert "d is 999" in outdated(row["kernels"])[0]


def test_old_rows_are_reported_to_have_no_notes():
    tables = {"rows": [{"d": 64, "causal": False, "N": 1024}]}
    ladder = {"rows": [{"part": "ladder", "rung": "r8", "best": True, "d": 128, "causal": True}]}
    hopper = {"rungs": [{"d": 64, "causal": False, "N": 4096}]}
    for entries, record in (
        (recorded._of_tables, tables),
        (recorded._of_ladder, ladder),
        (recorded._of_rows, hopper),
    ):
        ((place, entry, code),) = entries(record)
        assert "causal = " in place and entry is None and code


def test_a_row_of_a_ladder_is_noted_if_it_is_the_best_with_tiles():
    row = {"part": "ladder", "rung": "r8_descriptors", "best": True, "d": 128}
    assert records.has_notes(row) and records.has_notes(row | {"part": "wait"})
    for other in ({"best": False}, {"d": 64}, {"part": "peer"}, {"rung": "r1_eager"}):
        assert not records.has_notes(row | other)


def test_the_command_of_a_record_is_in_the_docstring_of_its_module():
    for record in recorded.RECORDS:
        words = record.command.split()
        assert words[:3] == ["python", "-m", record.module] and words[-2:] == [
            "--out",
            f"notebooks/data/{record.file}",
        ]
        options = {"h200_backward.json": ["--backward"], "h200_hopper_backward_256.json": ["--wide"]}
        options["h200_ring_4.json"] = ["--ranks", "4"]
        assert (recorded.DATA / record.file).is_file() and words[3:-2] == options.get(record.file, [])
        module = importlib.import_module(record.module)
        assert record.module == "flashlib.bench" or record.command in module.__doc__


def test_the_pinned_triton_is_read_from_the_requirements():
    assert recorded.pinned_triton().count(".") == 2


@pytest.mark.gpu
def test_what_runs_on_the_gpu_is_what_is_compiled_without_one():
    """The code of a launch, taken from Triton, against `compiled`, which knows only the shape of the launch."""
    import torch

    from flashlib.kernels import forward
    from flashlib.kernels.compiler import kernel_report

    if harness.capability() != records.CAPABILITY:
        pytest.skip("the records are of another generation")
    for shape, d, causal in (((4, 16, 16, 4096), 128, False), ((2, 8, 2, 1024), 64, True)):
        B, H_q, H_k, N = shape
        Q, K, V = (torch.randn(B, H, N, d, device="cuda", dtype=torch.bfloat16) for H in (H_q, H_k, H_k))
        forward.PLANS.of_none.clear()
        forward._forward.device_caches.clear()
        forward.attention(Q, K, V, causal=causal)
        (launched,) = forward._forward.device_caches[torch.cuda.current_device()][0].values()
        ran = compiled.fingerprint(kernel_report.sass(launched))
        assert ran == compiled.launch(kernel="forward", d=d, causal=causal, shape=shape).sass
