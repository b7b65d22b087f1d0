"""The fuzzer draws problems that the kernel must take, and finds a kernel that is wrong."""

import pytest
import torch

from flashlib.kernels import backward, forward
from flashlib.kernels.hopper import launch
from flashlib.types import Grads
from tests.kernels import fuzz

SEEDS = range(25)
# tanh is computed from 2^x, which is infinite where tanh is 1
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in exp2")


@pytest.mark.parametrize("amount", ["few", "all"])
def test_random_problems_are_right(amount, device, poisoned):
    if device == "cpu":
        for seed in SEEDS[:12] if amount == "few" else SEEDS[12:]:
            fuzz.run(seed, device)


@pytest.mark.parametrize("amount", ["few", "all"])
def test_gradients_of_random_problems_are_right(amount, device, poisoned):
    if device == "cpu":
        for seed in SEEDS[:4] if amount == "few" else SEEDS[4:9]:
            fuzz.run(seed, device, backward=True)


def test_random_problems_of_the_hopper_kernel_are_right(device, poisoned):
    if device == "cpu":
        for seed in SEEDS[:4]:
            fuzz.run(seed, device, hopper=True)


def test_the_hopper_kernel_takes_what_is_drawn_for_it():
    for seed in range(100):
        Q, K, V, options = fuzz.draw(seed, "cpu", hopper=True)
        assert (
            Q.shape[3] in launch.HEAD_DIMS and Q.dtype in launch.DTYPES and options.keys() <= {"causal", "scale"}
        )
        assert all(launch.describable(X) for X in (Q, K, V) if X.numel())


def test_the_drawn_problems_are_varied():
    drawn = [fuzz.draw(seed, "cpu") for seed in range(100)]
    assert {Q.dtype for Q, *_ in drawn} == set(fuzz.DTYPES)
    assert {options["causal"] for *_, options in drawn} == {False, True}
    assert any(Q.shape[1] > K.shape[1] for Q, K, *_ in drawn), "no grouped heads"
    assert any(not Q.is_contiguous() for Q, *_ in drawn) and any(K.shape[2] == 0 for _, K, *_ in drawn)
    assert any(Q.shape[3] & (Q.shape[3] - 1) for Q, *_ in drawn), "only powers of two"
    drawn_masks = [options["mask"] for *_, options in drawn if "mask" in options]
    assert 0.25 < len(drawn_masks) / len(drawn) < 0.5, "a third has a mask"
    assert {mask.changes_scores for mask in drawn_masks} == {False, True}
    assert any((mask.heads or 1) > 1 for mask in drawn_masks) and any(
        (mask.batches or 1) > 1 for mask in drawn_masks
    )
    assert any(options["causal"] and Q.shape[2] > K.shape[2] > 0 for Q, K, _, options in drawn), "no masked rows"


def test_a_wrong_kernel_is_found_with_its_seed(monkeypatch, device):
    right = forward.attention

    def without_last_key(Q, K, V, **options):
        if "mask" in options:  # it would not fit
            return right(Q, K, V, **options)
        return right(Q, K[:, :, :-1], V[:, :, :-1], **options)

    monkeypatch.setattr(forward, "attention", without_last_key)
    with pytest.raises(AssertionError, match=r"seed \d+: \[\("):
        for seed in SEEDS:
            fuzz.run(seed, torch.device(device).type)


def test_a_kernel_that_ignores_the_mask_is_found(monkeypatch, device):
    right = forward.attention
    monkeypatch.setattr(forward, "attention", lambda *QKV, mask=None, **options: right(*QKV, **options))
    with pytest.raises(AssertionError, match=r"seed \d+: .*'mask': ") as found:
        for seed in SEEDS:
            if "mask" in fuzz.draw(seed, torch.device(device).type)[3]:
                fuzz.run(seed, torch.device(device).type)
    assert isinstance(found.value.__cause__, AssertionError), "it was not found by its numbers"


def test_a_wrong_gradient_is_found_with_its_seed(monkeypatch, device):
    right = backward.backward

    def without_scale(Q, *others, **options):
        dQ, dK, dV = right(Q, *others, **options)
        return Grads(dQ * Q.shape[-1] ** 0.5, dK, dV)

    monkeypatch.setattr(backward, "backward", without_scale)
    with pytest.raises(AssertionError, match=r"seed \d+: \[\("):
        for seed in SEEDS:
            fuzz.run(seed, torch.device(device).type, backward=True)
