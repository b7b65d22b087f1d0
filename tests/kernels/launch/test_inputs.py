"""The arguments of a call are checked once: completely if its plan is not known yet, and not again if it is."""

from collections import Counter

import pytest
import torch

from flashlib.kernels import DEVICE, backward, forward
from flashlib.kernels.launch import inputs

CHECKS = ("check_attention", "check_device", "check_tensors", "have_memory")


@pytest.fixture
def seen(monkeypatch):
    """Count how often each check sees each tensor, known by its number of elements: {(check, elements): times}."""
    counts = Counter()

    def counting(name, check):
        def counted(*args, **named):
            counts.update((name, X.numel()) for X in (*args, *named.values()) if isinstance(X, torch.Tensor))
            return check(*args, **named)

        return counted

    for name in CHECKS:
        counted = counting(name, getattr(inputs, name))
        for module in (inputs, forward, backward):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, counted)
    return counts


def tensors():
    """Return Q, K and V of different sizes."""
    return [torch.randn(1, 1, N, d, device=DEVICE) for N, d in ((5, 16), (7, 16), (7, 32))]


def test_each_input_is_checked_once_and_not_in_later_calls(seen):
    Q, K, V = tensors()
    forward.PLANS.of_none.clear()
    forward.attention(Q, K, V)
    assert {X.numel() for X in (Q, K, V)} == {size for check, size in seen if check == "have_memory"}
    assert set(seen.values()) == {1}, seen
    seen.clear()
    forward.attention(Q + 1, K, V)
    assert not seen


def test_each_input_of_the_backward_pass_is_checked_once(seen):
    Q, K, V = tensors()
    O, lse = forward.attention(Q, K, V)
    dO = torch.randn_like(O)
    backward.PLANS.of_none.clear()
    seen.clear()
    backward.backward(Q, K, V, O, lse, dO)
    looked = {size: times for (check, size), times in seen.items() if check == "have_memory"}
    assert looked == Counter(X.numel() for X in (Q, K, V, O, lse, dO))
    seen.clear()
    backward.backward(Q, K, V, O, lse, dO + 1)
    assert not seen


def test_what_a_plan_cannot_know_is_checked_in_every_call():
    Q, K, V = tensors()
    for _ in range(2):
        forward.attention(Q, K, V)
        with pytest.raises(ValueError, match="K requires a gradient"):
            forward.attention(Q, K.clone().requires_grad_(), V)
