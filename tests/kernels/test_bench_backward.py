"""The benchmark of the backward pass verifies every peer's gradients before it times them."""

import pytest
import torch

from flashlib import kernels
from flashlib.bench import __main__ as bench
from flashlib.bench import backward, harness, peers

HERE = ("ours", "ours_fused", "eager")  # the others need a GPU


@pytest.fixture
def measure(monkeypatch):
    torch.manual_seed(0)
    monkeypatch.setattr(harness, "median_ms", lambda run, rep_ms: 1e-3)
    monkeypatch.setattr(harness, "cuda_peak_bytes", lambda run: 2e6)
    here = {name: peer for name, peer in peers.BACKWARD_PEERS.items() if name in HERE}
    monkeypatch.setattr(backward, "BACKWARD_PEERS", here)
    return lambda causal: backward.measure(1, 2, 80, 16, causal, device=kernels.DEVICE)


@pytest.mark.parametrize("causal", [False, True])
def test_every_peer_is_verified_and_recorded(measure, causal):
    row = measure(causal)
    assert (row["d"], row["causal"], row["N"]) == (16, causal, 80) and set(row["tflops"]) == set(HERE)
    flops = 2.5 * 2 * 4 * 80 * 80 * 16 / (2 if causal else 1)
    assert set(row["tflops"].values()) == {round(flops / 1e-3 / 1e9, 1)} and set(row["mb"].values()) == {2.0}
    row["tflops"]["sdpa_flash"] = row["mb"]["sdpa_flash"] = 1.0
    assert "geometric mean of ours_fused / sdpa_flash" in bench.summary([row])


def test_a_wrong_gradient_is_not_timed(measure, monkeypatch):
    right = backward.BACKWARD_PEERS["ours"]
    monkeypatch.setitem(backward.BACKWARD_PEERS, "ours", lambda Q, K, V, causal: right(Q, K, V * 1.1, causal))
    with pytest.raises(AssertionError, match="of ours at d=16, causal=True, N=80 is wrong"):
        measure(True)
