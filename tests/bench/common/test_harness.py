"""The harness refuses wrong results, and its records can be read again."""

import csv
import io
import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from flashlib import chunked, torch_ref
from flashlib.bench import counters, cpu
from flashlib.bench.common import harness, peers
from flashlib.types import Attention
from tests import oracle

DATA = Path(__file__).resolve().parents[3] / "notebooks" / "data"


def test_an_error_of_twice_plain_attentions_passes_and_a_larger_one_fails():
    exact = torch.zeros(3, dtype=torch.float64)
    plain = torch.tensor([0.0, 0.5, 0.0])
    harness.verify("ours", torch.tensor([1.0, 0.0, -1.0]), exact, plain)
    with pytest.raises(AssertionError, match="ours is wrong: error 1.5, at most 1 accepted"):
        harness.verify("ours", torch.tensor([1.5, 0.0, 0.0]), exact, plain)
    with pytest.raises(AssertionError, match="error nan"):
        harness.verify("ours", torch.tensor([torch.nan, 0.0, 0.0]), exact, plain)


def test_a_record_is_json_with_one_row_per_line(tmp_path):
    record = {"gpu": "none", "rows": [{"d": 64, "tflops": {"ours": 1.5, "eager": None}}, {"d": 128, "tflops": {}}]}
    harness.write(tmp_path / "data" / "run.json", record)
    text = (tmp_path / "data" / "run.json").read_text()
    assert json.loads(text) == record
    assert sum('"d"' in line for line in text.splitlines()) == 2


def test_the_peak_is_the_memory_held_at_one_time():
    """Two arrays of 8 MB one after another peak at 8 MB, both at once at 16."""
    for library, peak_bytes in ((np, harness.peak_bytes), (torch, harness.torch_peak_bytes)):

        def in_turn(library=library):
            library.zeros(10**6, dtype=library.float64)
            library.zeros(10**6, dtype=library.float64)

        def together(library=library):
            _ = library.zeros(10**6, dtype=library.float64), library.zeros(10**6, dtype=library.float64)

        assert peak_bytes(in_turn) == pytest.approx(8e6, rel=0.01)
        assert peak_bytes(together) == pytest.approx(16e6, rel=0.01)


def test_chunks_take_a_fraction_of_the_memory_of_standard_attention():
    Q, K, V = torch.randn(3, 1, 1, 512, 16)
    standard = harness.torch_peak_bytes(lambda: torch_ref.attention(Q, K, V))
    in_chunks = harness.torch_peak_bytes(lambda: chunked.attention(Q, K, V, B_r=64, B_c=64))
    assert standard > 2 * 512 * 512 * 4 and in_chunks < 0.15 * standard


@pytest.mark.parametrize("causal", [False, True])
def test_the_reference_of_the_cpu_benchmark_is_attention(causal, rng):
    arrays = [rng.standard_normal((37, cpu.D), dtype=np.float32) for _ in range(3)]
    O, _ = oracle.attention(*arrays, causal=causal)
    oracle.assert_close(cpu.exact(*arrays, causal, rows=16), O, rounding=1e-13)
    oracle.assert_close(cpu.plain(*arrays, causal), O, rounding=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_peers_are_attention(causal, rng):
    """The peers that run on a CPU; the others are verified in every benchmark."""
    pytest.importorskip("flashlib.kernels", exc_type=ImportError)  # not triton: that would come too early
    arrays = [rng.standard_normal((1, 1, 37, 16)) for _ in range(3)]
    O, _ = oracle.attention(*(X[0, 0] for X in arrays), causal=causal)
    Q, K, V = map(torch.from_numpy, arrays)
    for given in (peers.eager(Q, K, V, causal), peers.sdpa(torch.nn.attention.SDPBackend.MATH, Q, K, V, causal)):
        oracle.assert_close(given[0, 0].numpy(), O, rounding=1e-12)


@pytest.mark.process
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_numpy_is_timed_and_recorded(tmp_path):
    """The times must be there; a test does not judge speed, only memory."""
    command = [sys.executable, "-m", "flashlib.bench", "--quick", "--out", str(tmp_path / "run.json")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0 and "512 x 512" in run.stdout, run.stderr
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["threads"] == 1 and [row["N"] for row in record["rows"]] == [1024, 1024, 2048, 2048]
    for row in record["rows"]:
        assert all(tile["ms"] > 0 for tile in [row["plain"], *row["tiled"]])


def test_tiles_of_512_hold_less_than_3_percent_of_plain_numpy_at_4096():
    Q, K, V = np.random.default_rng(0).standard_normal((3, 4096, cpu.D), dtype=np.float32)
    cpu.tiled.attention(Q[:8], K, V)  # the first call of a process keeps what it imports
    plain = harness.peak_bytes(lambda: cpu.plain(Q, K, V, False))
    tiles = harness.peak_bytes(lambda: cpu.tiled.attention(Q, K, V, B_r=512, B_c=512))
    assert tiles < 0.03 * plain


def test_a_wrong_tile_is_not_timed(monkeypatch):
    monkeypatch.setattr(cpu.tiled, "attention", lambda Q, *_, **__: Attention(np.full_like(Q, np.nan), None))
    with pytest.raises(AssertionError, match=r"tiled.attention with B_r, B_c = \(64, 64\), N = 128.* error nan"):
        cpu.measure(128, causal=False, turns=1)


def ncu_prints(calls):
    """Return text like ncu's: two kernels per call, the second of which moves twice as much."""
    metrics = [metric for metric, _ in counters.METRICS.values()]
    mark = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
    lines = [["ID", mark, "Kernel Name", "Grid Size", *metrics]]
    lines.append(["", "", "", "", *("sector" if "sectors" in metric else "Kbyte" for metric in metrics)])
    for call, k in itertools.product(calls, (1, 2)):
        name = f'"<default domain>":"{call.label}":none:none'
        lines.append([str(k), name, f"kernel {k}", "(1, 1, 1)", *("1,000.5" for _ in metrics[:-1]), str(k)])
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(lines)
    return "==PROF== Connected\n" + text.getvalue() + "==PROF== Disconnected\n"


def test_counters_are_read_in_bytes_for_each_call_and_kernel():
    counted = counters.parse(ncu_prints(counters.CALLS))
    assert list(counted) == [call.label for call in counters.CALLS]
    for kernels in counted.values():
        assert [kernel["kernel"] for kernel in kernels] == ["kernel 1", "kernel 2"]
        assert kernels[0]["sm_read"] == 1_000_500 and kernels[0]["l2_read"] == 32_016
        assert [kernel["spill_written"] for kernel in kernels] == [1000, 2000]
        assert counters.total(kernels, "sm") == 4 * 1_000_500


def test_recorded_counters_at_the_sms_equal_the_closed_form_of_our_kernel():
    """To a thousandth, on an H200, for every size and tile whose state fits the registers."""
    record = json.loads((DATA / "h200_counters.json").read_text(encoding="utf-8"))
    assert len(record["rows"]) == len(counters.CALLS)
    compared = 0
    for row in record["rows"]:
        call = counters.CountedCall(*(row[field] for field in counters.CountedCall._fields))
        spilled = sum(kernel["spill_written"] for kernel in row["cold"])
        if call.name == "ours" and not spilled:
            form = call.closed_form()
            assert counters.total(row["cold"], "sm", ("read",)) == pytest.approx(form.read, rel=1e-3)
            assert counters.total(row["cold"], "sm", ("written",)) == pytest.approx(form.written, rel=0.02)
            compared += 1
    assert compared == 23


@pytest.mark.gpu
def test_steps_are_watched_on_a_gpu():
    def steps():
        for k in range(3):
            held = torch.zeros(10**7, device="cuda")  # 40 MB
            yield k
            del held

    results, ms, held = harness.watch(steps())
    assert results == [0, 1, 2] and len(ms) == 3 and min(ms) > 0 and held >= 4 * 10**7


def test_the_smaller_of_two_times_counts_and_the_second_is_in_the_opposite_order(monkeypatch):
    order, times = [], iter([3.0, 1.0, 2.0, 2.0])
    monkeypatch.setattr(harness, "median_ms", lambda run, rep_ms: order.append(run()) or next(times))
    assert harness.side_by_side({"ours": lambda: "ours", "flash": lambda: "flash"}) == {"ours": 2.0, "flash": 1.0}
    assert order == ["ours", "flash", "flash", "ours"]
