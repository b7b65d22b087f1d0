"""Short calls are timed after they are verified; in the interpreter, with made-up clocks."""

import contextlib
import functools
from types import SimpleNamespace

import pytest
import torch

from flashlib import kernels
from flashlib.bench import bandwidth, short_sequences
from flashlib.bench.common import harness, peers


@pytest.fixture
def clocks(monkeypatch):
    """Made-up times; SDPA with its math backend, FlexAttention as SDPA."""
    torch.manual_seed(0)
    monkeypatch.setattr(short_sequences, "CALL_HEADS", 2)
    monkeypatch.setattr(short_sequences, "backend_of", lambda name: contextlib.nullcontext())
    monkeypatch.setattr(short_sequences, "host_us", lambda runs: dict.fromkeys(runs, 30.0))
    monkeypatch.setattr(short_sequences, "loop_us", lambda runs: dict.fromkeys(runs, 40.1))
    for table in (short_sequences.PEERS, short_sequences.BACKWARD_PEERS):
        monkeypatch.setitem(table, "flex", peers.chosen_sdpa)


@pytest.mark.parametrize("which", ["forward", "both"])
def test_calls_are_verified_and_recorded(which, clocks, monkeypatch):
    monkeypatch.setattr(short_sequences, "IN_A_LOOP", {"d": 16, "N": 24})
    row = short_sequences.call(which, 16, 24, device=kernels.DEVICE)
    assert (row["pass"], row["B"], row["H"], row["N"], row["d"], row["causal"]) == (which, 1, 2, 24, 16, False)
    assert row["host_us"] == dict.fromkeys(short_sequences.NAMES, 30.0)
    assert row["loop_us"] == dict.fromkeys((*short_sequences.NAMES, "flex"), 40.1)
    assert "loop_us" not in short_sequences.call(which, 16, 32, device=kernels.DEVICE)


def test_a_wrong_call_is_not_timed(clocks, monkeypatch, capsys):
    right = short_sequences.BACKWARD_PEERS["ours"]
    wrong = lambda Q, K, V, causal: right(Q, K, 1.1 * V, causal)  # noqa: E731
    monkeypatch.setattr(short_sequences, "chosen_sdpa", wrong)
    row = short_sequences.call("both", 16, 24, device=kernels.DEVICE)
    assert row["host_us"] == {"ours": 30.0, "sdpa_flash": None, "sdpa_cudnn": None}
    assert "sdpa_flash: none, AssertionError: dQ of sdpa_flash at d=16, N=24 is wrong" in capsys.readouterr().out
    monkeypatch.setitem(short_sequences.BACKWARD_PEERS, "ours", wrong)
    with pytest.raises(AssertionError, match="of ours at d=16, N=24 is wrong"):
        short_sequences.call("both", 16, 24, device=kernels.DEVICE)


@pytest.mark.parametrize(("which", "waits"), [("host_us", 7), ("loop_us", 2)])
def test_a_call_is_timed_with_the_gpu_idle_and_a_loop_until_it_is_done(which, waits, monkeypatch):
    """With a clock that advances by 2 ms in each wait, by 1 ms in each call, and by 10 ms in a slow call."""
    now, waited = [0.0], []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: (waited.append(1), now.__setitem__(0, now[0] + 2e-3)))
    monkeypatch.setattr(short_sequences.time, "perf_counter", lambda: now[0])

    def call(seconds):
        now[0] += seconds

    us = getattr(short_sequences, which)({"one": lambda: call(1e-3), "slow": lambda: call(1e-2)}, calls=7)
    assert len(waited) == waits * short_sequences.TURNS * 2
    waiting = 0 if which == "host_us" else 2000 / 7
    assert us == {"one": pytest.approx(1000 + waiting, abs=0.1), "slow": pytest.approx(10000 + waiting, abs=0.1)}


def test_a_call_in_a_graph_has_its_share_of_the_replay(monkeypatch):
    captured = {}
    graph = SimpleNamespace(replay=lambda: None)
    monkeypatch.setattr(harness, "captured", lambda run, times: captured.update({run: times}) or graph)
    monkeypatch.setattr(harness, "median_ms", lambda run, rep_ms: {graph.replay: 0.5}[run])
    us, times = short_sequences.graph_us("a call"), captured["a call"]
    assert us * times == pytest.approx(500)


@pytest.mark.parametrize("wrong", [None, "sdpa_flash", "ours"])
def test_a_shape_is_timed_in_graphs_if_it_is_right(wrong, clocks, monkeypatch):
    peer = {name: short_sequences.chosen_sdpa for name in short_sequences.NAMES}
    if wrong:
        peer[wrong] = lambda Q, K, V, causal: V
    monkeypatch.setattr(short_sequences, "HEADS", 2)
    monkeypatch.setattr(short_sequences, "D", 16)
    monkeypatch.setattr(
        short_sequences, "BenchProblem", functools.partial(short_sequences.BenchProblem, device="cpu")
    )
    monkeypatch.setattr(short_sequences, "BACKENDS", {})
    monkeypatch.setattr(short_sequences, "PEERS", peer)
    monkeypatch.setattr(short_sequences, "graph_us", lambda run: 7.123)
    if wrong == "ours":
        with pytest.raises(AssertionError, match="O of ours at B=3, N=24, causal=True is wrong"):
            short_sequences.in_graph(3, 24, True)
        return
    row, right = short_sequences.in_graph(3, 24, True), [name for name in peer if name != wrong]
    assert (row["B"], row["H"], row["N"], row["d"], row["causal"]) == (3, 2, 24, 16, True)
    assert row["graph_us"] == dict.fromkeys(peer) | dict.fromkeys(right, 7.12)
    assert row["host_us"] == dict.fromkeys(peer) | dict.fromkeys(right, 30.0)


@pytest.mark.parametrize("run", [bandwidth.read, bandwidth.copy])
def test_each_number_is_read_the_stated_number_of_times(run):
    X, sums = bandwidth.numbers(3, kernels.DEVICE), torch.zeros(5, device=kernels.DEVICE)
    bandwidth.check("reads", run(X, sums, 4), X, 4)
    with pytest.raises(AssertionError, match="reads are wrong: the sum is"):
        bandwidth.check("reads", run(X, sums, 3), X, 4)


def test_bytes_count_reads_and_writes(monkeypatch):
    """On a made-up GPU, whose L2 cache has room for five tiles; two fifths of it are read."""
    here = SimpleNamespace(L2_cache_size=5 * 4 * bandwidth.TILE, multi_processor_count=1)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: here)
    monkeypatch.setattr(bandwidth, "numbers", functools.partial(bandwidth.numbers, device=kernels.DEVICE))
    monkeypatch.setattr(bandwidth, "TIMES", 3)
    monkeypatch.setattr(bandwidth, "LARGE", 4000)
    monkeypatch.setattr(harness, "median_ms", lambda run: run() is None or 0.5)
    assert bandwidth.l2_read() == bandwidth.l2_copy() == (2 * 4 * bandwidth.TILE * 3, 0.5)
    arange = torch.arange
    monkeypatch.setattr(torch, "arange", lambda n, device, **of: arange(n, **of))
    assert bandwidth.dram_copy() == (2 * 4000, 0.5)
    for name in ("read", "copy"):
        monkeypatch.setattr(bandwidth, name, lambda X, sums, times: sums + times)
        with pytest.raises(AssertionError, match="from the L2 cache are wrong"):
            getattr(bandwidth, f"l2_{name}")()


@pytest.mark.gpu
def test_the_cache_is_faster_than_dram():
    (l2_bytes, l2_ms), (dram_bytes, dram_ms) = bandwidth.l2_read(), bandwidth.dram_copy()
    assert l2_bytes / l2_ms > dram_bytes / dram_ms > 1e8  # bytes a millisecond
    copied, copied_ms = bandwidth.l2_copy()
    assert copied / copied_ms > dram_bytes / dram_ms
    assert harness.capability() >= 75
