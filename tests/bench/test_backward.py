"""The benchmark of the backward pass verifies every peer's gradients before it times them."""

import pytest
import torch

from flashlib import kernels
from flashlib.bench import __main__ as bench
from flashlib.bench.common import harness, peers, problem, sizes

HERE = ("ours", "ours_fused", "eager")  # the others need a GPU


@pytest.fixture
def measure(monkeypatch):
    torch.manual_seed(0)
    monkeypatch.setattr(harness, "median_ms", lambda run, rep_ms: 1e-3)
    monkeypatch.setattr(harness, "cuda_peak_bytes", lambda run: 2e6)

    def measure(causal, H_q=2, H_k=2, gradients=True, **others):
        here = {name: peer for name, peer in peers.BACKWARD_PEERS.items() if name in HERE and H_q == H_k}
        here["ours"] = peers.BACKWARD_PEERS["ours"]
        size = problem.Size(1, H_q, H_k, 80, 16, causal)
        return problem.measure(size, here | others, gradients, device=kernels.DEVICE)

    return measure


@pytest.mark.parametrize("causal", [False, True])
def test_every_peer_is_verified_and_recorded(measure, causal):
    row = measure(causal)
    assert set(row["tflops"]) == set(HERE)
    flops = 2.5 * 2 * 4 * 80 * 80 * 16 / (2 if causal else 1)
    assert set(row["tflops"].values()) == {round(flops / 1e-3 / 1e9, 1)} and set(row["mb"].values()) == {2.0}
    row["tflops"]["sdpa_flash"] = row["mb"]["sdpa_flash"] = 1.0
    assert "geometric mean of ours_fused / sdpa_flash" in bench.summary([row])
    row["tflops"]["ours_fused"] = None
    assert "ours_fused" not in bench.summary([row])


def test_a_wrong_gradient_is_not_timed(measure):
    right = peers.BACKWARD_PEERS["ours"]
    with pytest.raises(AssertionError, match="of ours at .*N=80, d=16, causal=True.* is wrong"):
        measure(True, ours=lambda Q, K, V, causal: right(Q, K, V * 1.1, causal))


def test_O_is_verified_in_the_forward_pass(measure):
    flops = 2 * 4 * 80 * 80 * 16
    assert measure(False, gradients=False)["tflops"]["ours"] == round(flops / 1e-3 / 1e9, 1)
    with pytest.raises(AssertionError, match="O of ours at .* is wrong"):
        measure(False, gradients=False, ours=lambda Q, K, V, causal: V)


def test_a_peer_that_does_not_work_is_left_out_unless_it_is_needed(measure, capsys):
    size = problem.Size(1, 2, 2, 80, 16, True)
    of_forward = {"ours": peers.PEERS["ours"], "sdpa_flash": lambda Q, K, V, causal: Q.on_a_t4}
    row = problem.measure(size, of_forward, device=kernels.DEVICE, dtype=torch.float16, needed=("ours",))
    assert (
        row["tflops"]["ours"] > 0 and row["tflops"]["sdpa_flash"] is None and "on_a_t4" in capsys.readouterr().out
    )
    with pytest.raises(AttributeError, match="on_a_t4"):
        problem.measure(size, of_forward, device=kernels.DEVICE)


@pytest.mark.parametrize("wrong", [False, True])
def test_heads_that_share_K_are_verified_by_their_sum(measure, wrong):
    """The gradient of the last head of K and V is a sum over the query heads that read it."""
    right = peers.BACKWARD_PEERS["ours"]

    def first_head_alone(Q, K, V, causal):
        O = right(Q, K, V, causal)
        return torch.cat((O[:, :-1].detach(), O[:, -1:]), dim=1)

    if wrong:
        with pytest.raises(AssertionError, match="d[QKV] of ours at .*H_q=4, H_k=2.* is wrong"):
            measure(False, H_q=4, ours=first_head_alone)
    else:
        assert measure(False, H_q=4)["tflops"]["ours"] > 0


def test_a_peer_that_cannot_run_is_none_and_says_why(measure, capsys):
    def fail(Q, K, V, causal):
        raise RuntimeError("No available kernel. Aborting execution.\nsecond line")

    row = measure(False, sdpa_cudnn=fail)
    assert row["tflops"]["sdpa_cudnn"] is None and row["mb"]["sdpa_cudnn"] is None and row["tflops"]["ours"]
    assert "sdpa_cudnn: none, RuntimeError: No available kernel. Aborting execution.\n" in capsys.readouterr().out
    with pytest.raises(RuntimeError, match="No available kernel"):
        measure(False, ours=fail)


def test_the_readmes_table_has_twelve_rows_and_further_sizes_follow():
    assert len(sizes.SIZES) == 12 and {size.d for size in sizes.SIZES} == {64, 128}
    for size in sizes.SIZES + sizes.MORE:
        assert size.B * size.N == sizes.TOKENS and size.H_q % size.H_k == 0
    for size in sizes.SIZES:
        assert size.H_q == size.H_k == sizes.WIDTH // size.d
    by_d = {(size.d, size.H_q // size.H_k, size.causal): size.H_q * size.d for size in sizes.MORE}
    assert set(by_d) == {(d, g, c) for d, g in ((80, 1), (96, 1), (256, 1), (128, 4)) for c in (False, True)}
    assert all(abs(width - sizes.WIDTH) < d for (d, group, _), width in by_d.items() if group == 1)
