"""Extreme scores and unusual rows in Hopper's kernels on a CPU."""

import pytest
import torch

from flashlib.kernels.hopper import forward
from tests.kernels.hopper import on_a_cpu
from tests.kernels.hopper.on_a_cpu import FORWARD_RUNGS, ORDERS, Sizes, Tiles

SMALL = Sizes((1, 1, 1), 77, 131, 64, True)
SCALES = [
    (Sizes((1, 2, 1), 150, 300, 64, True), Tiles(multiprocessors=2, section=2)),
    (Sizes((1, 2, 2), 650, 330, 64, True), Tiles(3, multiprocessors=3, section=2)),
]


def check(given, exact, of_O, of_lse):
    """Check O and lse: -inf exactly where it must be, and no nan."""
    assert torch.equal(given.lse.isneginf(), exact.lse.isneginf())
    seen = ~exact.lse.isneginf()
    assert (given.O - exact.O).abs().max() <= of_O
    assert not seen.any() or (given.lse - exact.lse)[seen].abs().max() <= of_lse


def attended(name, Q, K, V, tiles=Tiles(), **options):  # noqa: B008  a NamedTuple
    return on_a_cpu.attended(name, Q, K, V, tiles, ORDERS[2], **options)[0]


def test_rows_that_see_nothing_are_zero_and_minus_infinity(poisoned):
    Q, K, V, *_ = on_a_cpu.inputs(Sizes((2, 2, 2), 77, 53, 64, True))
    given = attended("forward", Q, K, V, causal=True)
    assert not given.O[:, :, :24].any() and given.lse[:, :, :24].isneginf().all()
    assert given.lse[:, :, 24:].isfinite().all()


@pytest.mark.parametrize("sizes, tiles", SCALES, ids=str)
@pytest.mark.parametrize("scale", [1e4, 3.7, 1e-30])
def test_any_scale_is_exact(sizes, tiles, scale, poisoned):
    Q, K, V, *_ = on_a_cpu.inputs(sizes)
    exact = on_a_cpu.exact(Q, K, V, causal=True, scale=scale)
    largest = exact.lse[exact.lse.isfinite()].abs().max().item()
    check(attended("forward", Q, K, V, tiles, causal=True, scale=scale), exact, 0.03, 1e-5 * max(1.0, largest))


@pytest.mark.parametrize("name", FORWARD_RUNGS)
@pytest.mark.parametrize("scale", [1e9, 1e-30])
def test_no_scale_gives_nan_in_a_rung(name, scale, poisoned):
    Q, K, V, *_ = on_a_cpu.inputs(SMALL)
    exact = on_a_cpu.exact(Q, K, V, causal=True, scale=scale)
    largest = exact.lse[exact.lse.isfinite()].abs().max().item()
    check(attended(name, Q, K, V, causal=True, scale=scale), exact, 0.03, 1e-5 * max(1.0, largest))


@pytest.mark.parametrize("name", ["forward", *FORWARD_RUNGS])
@pytest.mark.parametrize("hidden", [slice(64, 131), slice(None)], ids=str)
def test_keys_of_minus_infinity_are_not_seen(hidden, name, poisoned):
    Q, K, V, *_ = (X.clone() for X in on_a_cpu.inputs(SMALL))
    Q[..., 0], K[0, 0, hidden, 0] = 1, -torch.inf
    check(attended(name, Q, K, V), on_a_cpu.exact(Q, K, V), 0.02, 1e-5)


def test_scores_up_to_1e38_are_exact(poisoned):
    Q, K, V, *_ = (X.clone() for X in on_a_cpu.inputs(Sizes((1, 1, 1), 64, 128, 64, False)))
    Q[:], K[:] = 0, 0
    Q[..., 0], K[0, 0, :, 0] = 1e10, torch.linspace(-1, 3, 128) * 1e10
    for largest in (1e30, 1e38):
        scale = largest / (Q[0, 0, 0, 0].item() * K[0, 0, -1, 0].item())
        exact = on_a_cpu.exact(Q, K, V, scale=scale)
        check(attended("forward", Q, K, V, scale=scale), exact, 0.02, largest * 1e-6)


def test_keys_past_the_end_stay_out_of_low_scores(poisoned):
    """Scores of all real keys are below -1e4: zeros past the end would have 2^1e4 times the weight."""
    Q, K, V, _, _, dO, _ = on_a_cpu.inputs(Sizes((1, 1, 1), 70, 67, 256, False), torch.float16)
    Q, K = Q.clone(), K.clone()
    Q[..., 0], K[..., 0] = 450, -450
    O, lse = on_a_cpu.exact(Q, K, V)
    assert (lse < -1e4).all()
    tensors = Q, K, V, O.half(), lse.float(), dO
    grads, _ = on_a_cpu.differentiated("backward", *tensors, tiles=Tiles(), order=ORDERS[2])
    assert all(X.isfinite().all() for X in grads)


@pytest.mark.parametrize("shapes", [(0, 5), (5, 0)])
@pytest.mark.parametrize("d", [64, 256])
def test_nothing_to_sum_gives_zeros(shapes, d):
    Q, K = (torch.ones(1, 2, N, d).half() for N in shapes)
    given = attended("forward", Q, K, K)
    assert not given.O.any() and given.lse.isneginf().all()
    tensors = Q, K, K, Q, torch.zeros(Q.shape[:3]), Q
    grads, ran = on_a_cpu.differentiated("backward", *tensors, tiles=Tiles(), order=ORDERS[0])
    assert [X.shape for X in grads] == [Q.shape, K.shape, K.shape] and not ran
    assert not any(X.any() for X in grads)


def test_without_a_gpu_it_refuses_after_an_interpreted_call_too():
    Q, K, V, *_ = on_a_cpu.inputs(SMALL)
    attended("forward", Q, K, V)
    with pytest.raises(ValueError, match="no GPU to run this kernel"):
        forward.attention(Q, K, V)
