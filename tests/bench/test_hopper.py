"""The benchmark of the Hopper kernel: a row says what was timed, a wrong result is not, and ratios are right."""

import importlib
import types

import pytest
import torch

from flashlib import gluon, torch_ref
from flashlib.bench import hopper, hopper_backward, hopper_backward_ladder, hopper_ladder, hopper_rescaling
from flashlib.bench.common import harness, records
from flashlib.bench.common.problem import Size
from flashlib.kernels.hopper import rescaling
from tests.bench import recorded

SIZE = Size(1, 2, 1, 150, 64, True)


@pytest.fixture
def on_a_cpu(monkeypatch):
    """The kernel in our interpreter, SDPA's default, and no clock: the peers' speeds are 1, 2, ..."""

    def clock(names, runs, flops):
        return {"tflops": {name: 1.0 + at if name in runs else None for at, name in enumerate(names)}, "mb": {}}

    mine = {name: hopper.PEERS[name] for name in ("hopper", "ours")} | {"sdpa_flash": hopper.peers.chosen_sdpa}
    monkeypatch.setattr(hopper, "PEERS", mine)
    monkeypatch.setattr(harness, "compare", clock)
    with gluon.on_cpu(seed=0):
        yield


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a_row_says_what_was_timed(dtype, on_a_cpu):
    torch.manual_seed(0)
    row = hopper.measure(SIZE, dtype, device="cpu")
    assert (row["d"], row["N"], row["H"], row["H_k"], row["causal"]) == (64, 150, 2, 1, True)
    assert row["dtype"] == str(dtype)[6:] and row["tflops"] == {"hopper": 1.0, "ours": 2.0, "sdpa_flash": 3.0}
    assert 0 < row["error"]["hopper"] <= 2 * row["error"]["ours"]
    assert hopper.ratios([row], "ours") == [0.5] and hopper.ratios([row], "sdpa_cudnn") == []
    assert "hopper / ours: geometric mean 0.500 of 1, smallest 0.500" in hopper.summary([row])


def test_a_row_of_gradients_has_each_backward_passes_largest_error(on_a_cpu, monkeypatch):
    """Each peer has its own backward pass, whatever autograd would choose."""
    calls, own = [], importlib.import_module("flashlib.kernels.hopper.backward").backward

    def backward(*given, **options):
        calls.append(options)
        return own(*given, **options)

    monkeypatch.setattr("flashlib.kernels.hopper.backward.backward", backward)
    given = {name: hopper_backward.PEERS[name] for name in ("hopper", "ours", "ours_fused")}
    torch.manual_seed(0)
    row = hopper.measure(SIZE, device="cpu", given=given, gradients=True)
    assert calls == [{"causal": True}] and list(row["tflops"]) == list(row["error"]) == list(given)
    assert 0 < row["error"]["hopper"] <= 2 * row["error"]["ours"]
    assert "hopper / ours_fused: geometric mean 0.333 of 1" in hopper.summary([row])
    monkeypatch.setitem(given, "hopper", lambda Q, K, V, causal: given["ours"](Q, K, V, not causal))
    with pytest.raises(AssertionError, match="dQ of hopper at Size.* is wrong"):
        hopper.measure(SIZE, device="cpu", given=given, gradients=True)


def test_a_wrong_result_is_not_timed(on_a_cpu, monkeypatch):
    monkeypatch.setitem(hopper.PEERS, "hopper", lambda Q, K, V, causal: hopper.PEERS["ours"](Q, K, V, not causal))
    with pytest.raises(AssertionError, match="O of hopper at Size.* is wrong"):
        hopper.measure(SIZE, device="cpu")


@pytest.fixture
def rungs(on_a_cpu):
    """Two rungs computed by `hopper` on the CPU, and between them one that refuses."""
    right = hopper.PEERS["hopper"]

    def refuses(Q, K, V, causal):
        raise ValueError("d is 64; the rung takes others")

    return {"hopper_r1_alike": right, "hopper_r2_producer": refuses, "hopper_forward": right}


@pytest.fixture
def notes(monkeypatch):
    """Notes on what was compiled, and the printed lines."""
    entries, lines = [], []
    monkeypatch.setattr(harness, "say", lines.append)
    return types.SimpleNamespace(
        add=lambda row, size, asked: entries.append((size, asked)), entries=entries, lines=lines
    )


def test_a_refused_rung_has_no_speed_and_no_note(rungs, notes, monkeypatch):
    measure = hopper.measure
    monkeypatch.setattr(hopper, "measure", lambda *given, **options: measure(*given, **options, device="cpu"))
    (row,) = hopper.table([(SIZE, torch.bfloat16)], 2, notes, rungs)
    assert row["tflops"] == {"hopper_r1_alike": 1.0, "hopper_r2_producer": None, "hopper_forward": 3.0}
    assert row["runs"]["hopper_r1_alike"] == [1.0, 1.0] and row["runs"]["hopper_r2_producer"] == [None, None]
    assert set(row["error"]) == {"hopper_r1_alike", "hopper_forward"}
    asked = {"dtype": "bfloat16"}
    assert notes.entries == [(SIZE.compiled, {"hopper_r1_alike": asked, "hopper_forward": asked})]
    assert "none, ValueError: d is 64; the rung takes others" in "\n".join(notes.lines)


def test_the_first_of_several_runs_verifies(on_a_cpu, monkeypatch):
    measure, wrong = hopper.measure, hopper.PEERS["ours"]
    monkeypatch.setattr(hopper, "measure", lambda *given, **options: measure(*given, **options, device="cpu"))
    (row,) = hopper.in_runs([(SIZE, torch.bfloat16)], 2)
    assert row["runs"]["hopper"] == [1.0, 1.0] and row["error"]["hopper"] > 0
    assert hopper.measure(SIZE, verify=False)["error"] == {}
    monkeypatch.setitem(hopper.PEERS, "hopper", lambda Q, K, V, causal: wrong(Q, K, V, not causal))
    with pytest.raises(AssertionError, match="O of hopper at Size.* is wrong"):
        hopper.in_runs([(SIZE, torch.bfloat16)], 2)


def test_groups_are_those_of_32_heads_at_16384_tokens():
    sizes = [size for size, _ in hopper_backward.GROUPED]
    assert len(set(sizes)) == 60 and {(size.H_q, size.B * size.N) for size in sizes} == {(32, 16384)}
    assert {size.H_q // size.H_k for size in sizes} == {1, 2, 4, 8, 32}
    assert list(hopper_backward.WITH_GROUPS)[:2] == ["hopper", "ours"]


def test_a_wrong_rung_is_an_error(rungs):
    rungs["hopper_r2_producer"] = lambda Q, K, V, causal: hopper.PEERS["ours"](Q, K, V, not causal)
    with pytest.raises(AssertionError, match="O of hopper_r2_producer at Size.* is wrong"):
        hopper.measure(SIZE, device="cpu", given=rungs)


def test_the_rungs_are_those_of_the_ladder():
    given = hopper_ladder.rungs()
    assert len(given) == 7 and [list(given)[at] for at in (0, -1)] == ["hopper_r1_alike", "hopper_r6_persistent"]
    assert len(hopper.RUNG_SIZES) == 8 and {size.N for size in hopper.RUNG_SIZES} == {4096, 16384}
    with pytest.raises(ValueError, match="takes a Hopper GPU"):
        given["hopper_r1_alike"](*[torch.zeros(1, 1, 8, 64)] * 3, False)


def test_the_errors_of_the_rules_are_those_of_their_results():
    def off_by(error):
        return lambda *given: torch_ref.attention(*(X.double() for X in given[:3]), causal=given[3]).O + error

    row = hopper_rescaling.errors({"right": off_by(0), "wrong": off_by(0.25)}, 64, 3, N=50, device="cpu")
    assert row["rms"] == {"right": 0, "wrong": 0.25} and (row["d"], row["N"], row["times"]) == (64, 50, 3)
    assert list(hopper_rescaling.RULES.values()) == list(rescaling.TAUS)


def test_the_median_of_the_runs_counts_and_all_runs_are_kept():
    tables = [
        [{"N": 1, "tflops": {"a": speed, "b": 1.0}, "error": {"a": error}}, {"N": 2, "tflops": {"a": other}}]
        for speed, error, other in ((5.0, 0.1, 1.0), (3.0, 0.2, None), (4.0, 0.3, 1.0))
    ]
    first, second = hopper.merged(tables)
    assert first["tflops"] == {"a": 4.0, "b": 1.0} and first["runs"] == {"a": [5.0, 3.0, 4.0], "b": [1.0] * 3}
    assert (first["N"], first["error"], second["N"]) == (1, {"a": 0.1}, 2)
    assert second["tflops"] == {"a": None} and second["runs"] == {"a": [1.0, None, 1.0]}  # one run had none


def test_the_stored_record_has_the_runs_of_each_row_and_their_medians():
    modules = [
        f"flashlib.bench.{name}"
        for name in ("hopper", "hopper_ladder", "hopper_backward", "hopper_backward_ladder")
    ]
    for record in (record.read() for record in recorded.RECORDS if record.module in modules):
        for row in [row for part in ("rows", "more", "grouped", "rungs") for row in record.get(part, [])]:
            tables = [
                [{"tflops": dict(zip(row["runs"], run, strict=True))}]
                for run in zip(*row["runs"].values(), strict=True)
            ]
            (again,) = hopper.merged(tables)
            assert (again["tflops"], again["runs"]) == (row["tflops"], row["runs"])


def test_the_rungs_of_the_backward_are_those_of_the_ladder_and_cudnn():
    given = hopper_backward_ladder.rungs()
    assert len(given) == 7 and list(given)[-1] == "sdpa_cudnn"
    with pytest.raises(ValueError, match="takes a Hopper GPU"):
        O = given["hopper_backward_r1_alike"](*[torch.zeros(1, 1, 8, 128, requires_grad=True)] * 3, False)
        O.sum().backward()
    assert {(size.d, size.N) for size in hopper_backward_ladder.SIZES} == {(128, 4096), (128, 16384)}


def test_a_step_is_the_mean_over_rows_that_have_both():
    rows = [{"tflops": {"r1": 1.0, "r2": 2.0, "r3": None}}, {"tflops": {"r1": 1.0, "r2": 8.0, "r3": 4.0}}]
    assert hopper.steps(rows).splitlines() == [
        "r2 / r1: geometric mean 4.000 of 2",
        "r3 / r2: geometric mean 0.500 of 1",
    ]


def test_the_timed_sizes_are_supported_by_the_kernel():
    for size, dtype in hopper.MORE:
        assert size.d in (64, 128, 256) and dtype in (torch.bfloat16, torch.float16)
    size, dtype = hopper.MORE[0]
    entry = {"kernel": "hopper_forward", **size.compiled, "asked": {"dtype": str(dtype)[6:]}}
    assert set(records.launched(entry)) == {"config", "ttgir", "sass"}
    rung = entry | {"kernel": "hopper_r3_turns"}
    noted = rung | records.launched(rung)
    assert recorded.outdated({"triton": "3"}, [("here", noted, True)], "3") == []
    noted["config"][-1] += 1
    assert recorded.outdated({"triton": "3"}, [("here", noted, True)], "3")
