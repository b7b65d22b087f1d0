"""Attention with a sink as one operation of PyTorch."""

import warnings

import numpy as np
import pytest
import torch
from torch import func
from torch.autograd import forward_ad

from flashlib import masks, torch_ref
from flashlib import sink as numbers
from flashlib.kernels import autograd
from tests import oracle
from tests.kernels.masking.test_masks import tensors


def attention(Q, K, V, sink, **options):
    return autograd.attention(Q, K, V, sink=sink, **options)


def learned(device):
    return torch.tensor([0.7, -1.3], device=device)


@pytest.mark.parametrize("mask", [None, masks.documents([0] * 9 + [1] * 20)], ids=["no mask", "documents"])
@pytest.mark.parametrize("deterministic", [True, False])
def test_values_and_gradients_are_those_of_one_more_key(mask, deterministic, device, poisoned):
    *inputs, dO = tensors(device, 21, 29)
    leaves = [X.requires_grad_() for X in (*inputs, learned(device))]
    exact = [X.detach().double().requires_grad_() for X in leaves]
    options = {"mask": mask, "causal": mask is None}
    both = []
    for given in (
        attention(*leaves, **options, deterministic=deterministic),
        numbers.add(torch_ref.attention(*exact[:3], **options), exact[3]),
    ):
        of = leaves if not both else exact
        both.append([*given, *torch.autograd.grad((given.O * dO).sum() + given.lse.sin().sum(), of)])
    for X, Y in zip(*both, strict=True):
        assert oracle.worst(X.detach().cpu(), Y.detach().cpu()) < 2e-5


@pytest.mark.parametrize("one", [1, 1.0, np.float32(1), np.float64(1), np.int64(1)])
def test_a_number_of_any_library_is_a_sink(one, device):
    Q, K, V, _ = tensors(device, 5, 7)
    given, plain = (attention(Q, K, V, sink) for sink in (one, torch.tensor(1.0, device=device)))
    assert torch.equal(given.O, plain.O) and torch.equal(given.lse, plain.lse)


@pytest.mark.parametrize(
    "sink, options, error, words",
    [
        (True, {}, TypeError, "sink is True; pass a number, or a tensor"),
        ("1", {}, TypeError, "sink is '1'; pass a number, or a tensor"),
        (float("nan"), {}, ValueError, "sink is nan; pass a number below 1e38"),
        (torch.zeros(3), {}, ValueError, r"sink has shape \(3,\); pass a number, or one for each of 2 heads"),
        (torch.zeros(2, dtype=torch.int32), {}, TypeError, "sink has dtype torch.int32"),
        (0.5, {"deterministic": 0}, TypeError, "deterministic is 0; pass True or False"),
        (0.5, {"deterministic": None}, TypeError, "deterministic is None; pass True or False"),
    ],
)
def test_bad_input_is_refused(sink, options, error, words, device):
    Q, K, V, _ = tensors(device, 5, 7)
    with pytest.raises(error, match=words):
        attention(Q, K, V, sink, **options)


@pytest.fixture
def use_deterministic_algorithms():
    yield torch.use_deterministic_algorithms
    torch.use_deterministic_algorithms(False)


def test_sums_in_any_order_obey_torch(use_deterministic_algorithms, device):
    *inputs, dO = tensors(device, 5, 7)
    leaves = [X.requires_grad_() for X in (*inputs, learned(device))]
    use_deterministic_algorithms(True)
    by_adding, by_passes = (attention(*leaves, deterministic=way).O for way in (False, True))
    with pytest.raises(RuntimeError, match="adds to dQ in any order.*pass deterministic=True"):
        torch.autograd.grad(by_adding, leaves, dO, retain_graph=True)
    torch.autograd.grad(by_passes, leaves, dO)
    use_deterministic_algorithms(True, warn_only=True)
    with pytest.warns(UserWarning, match="adds to dQ in any order.*pass deterministic=True"):
        torch.autograd.grad(by_adding, leaves, dO, retain_graph=True)
    use_deterministic_algorithms(False)
    with warnings.catch_warnings(action="error"):
        torch.autograd.grad(by_adding, leaves, dO)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # forward mode does, once
@pytest.mark.parametrize("at", range(4))
def test_forward_mode_is_refused_in_words_after_a_call_without_it_too(at, device):
    inputs = [*tensors(device, 5, 7)[:3], learned(device)]
    attention(*inputs)
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match="forward mode.*use flashlib.torch_ref"):
        inputs[at] = forward_ad.make_dual(inputs[at], torch.ones_like(inputs[at]))
        attention(*inputs)


@pytest.mark.parametrize("at", range(4))
def test_batches_are_refused_in_words(at, device):
    inputs = [*tensors(device, 5, 7)[:3], learned(device)]
    name = ("Q", "K", "V", "sink")[at]

    def of(X):
        return attention(*inputs[:at], X, *inputs[at + 1 :]).O

    with pytest.raises(RuntimeError, match=f"{name} is a batch of torch.func.vmap"):
        func.vmap(of)(inputs[at][None])
    leaf = inputs[at].requires_grad_()
    O = of(leaf)
    with pytest.raises(RuntimeError, match="dO is a batch of torch.func.vmap"):
        torch.autograd.grad(O, leaf, torch.ones_like(O)[None], is_grads_batched=True)
