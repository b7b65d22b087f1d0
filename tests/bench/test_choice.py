"""The benchmark of small calls, in the interpreter: with the portable kernels in place of Hopper's."""

import contextlib

import pytest
import torch

from flashlib import kernels
from flashlib.bench import choice, short_sequences
from flashlib.bench.common import harness


@pytest.fixture
def on_a_cpu(monkeypatch):
    portable = choice.of_module
    monkeypatch.setattr(choice, "of_module", lambda name: portable(name.removeprefix("hopper.")))
    monkeypatch.setattr(harness, "captured", lambda run, times: run)
    monkeypatch.setattr(harness, "replayed_us", lambda graphs: dict.fromkeys(graphs, 50.0))


@pytest.mark.parametrize("which, N_q, N_k", [("forward", 5, 17), ("backward", 17, 17)])
def test_a_row_says_what_was_timed_and_what_is_chosen(which, N_q, N_k, on_a_cpu):
    row = choice.limit(which, (1, 2, N_q, 16), N_k, True, kernels.DEVICE)
    assert row["graph_us"] == {"portable": 5.0, "hopper": 5.0} and row["seen"] == N_k - N_q / 2
    assert row["chosen"] == "portable"


def test_a_wrong_kernel_is_not_timed(on_a_cpu, monkeypatch):
    right = choice.of_module

    def wrong(name):
        return lambda *given, **options: [X + name.startswith("hopper") for X in right(name)(*given, **options)]

    monkeypatch.setattr(choice, "of_module", wrong)
    with pytest.raises(AssertionError, match="not close"):
        choice.limit("forward", (1, 1, 5, 16), 5, False, kernels.DEVICE)


def test_calls_are_verified_and_timed(monkeypatch):
    torch.manual_seed(0)  # as `main` does: with some tensors the peer is over the bound of twice
    monkeypatch.setattr(choice, "CALLS", [(16, 24)])
    monkeypatch.setattr(
        choice, "PEERS", {name: choice.PEERS[name] for name in ("ours", "flash_attn_func", "sdpa")}
    )
    monkeypatch.setattr(short_sequences, "backend_of", lambda name: contextlib.nullcontext())
    monkeypatch.setattr(short_sequences, "host_us", lambda runs: {name: len(run()) for name, run in runs.items()})
    rows = choice.calls(kernels.DEVICE)
    assert [row["pass"] for row in rows] == ["forward", "both"]
    assert all(list(row["host_us"]) == list(choice.PEERS) for row in rows)
    monkeypatch.setitem(choice.PEERS, "ours", lambda Q, K, V, causal: Q)
    with pytest.raises(AssertionError, match="ours at d=16, N=24 is wrong"):
        choice.calls(kernels.DEVICE)
