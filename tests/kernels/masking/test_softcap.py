"""Soft caps of any size on scores of any size: the same numbers everywhere, and no warning."""

import warnings

import numpy as np
import pytest
import torch

from flashlib import masks, naive, tiled, torch_ref
from flashlib.kernels import backward, decode, forward, varlen

CAPS = 1e-300, 1e-40, 0.05, 50.0, 1e38, 1e300
SIZES = 1.0, 2200.0, 1e19, 1e37  # of scores; from 1e19 on the largest score has all the weight


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def drawn(size, device="cpu"):
    """Return Q, K, V, dO, with scores of about this size."""
    Q, K, V, dO = torch.randn(4, 1, 1, 9, 16, device=device)
    return *(X / X.abs().max() * size**0.5 * 2 for X in (Q, K)), V, dO


def exact(Q, K, V, dO, mask):
    Q, K, V = (X.double().clone().requires_grad_() for X in (Q, K, V))
    O, lse = torch_ref.attention(Q, K, V, mask=mask)
    return O.detach(), lse.detach(), torch.autograd.grad(O, (Q, K, V), dO.double())


def hold(given, O_exact, grads, exact_grads, size):
    """Compare O and the gradients, which grow with Q and K, with fp64; fp32 holds scores of 2200 to 1e-4."""
    tolerance = 1e-3 if size == 2200 else 1e-5
    assert np.abs(np.asarray(given.cpu()) - O_exact.cpu().numpy()).max() <= tolerance
    for X, Y in zip(grads, exact_grads, strict=True):
        assert np.abs(np.asarray(X) - Y.cpu().numpy()).max() <= tolerance * (1 + size**0.5)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("cap", CAPS)
def test_a_soft_cap_of_any_size_in_kernels(cap, size, device):
    Q, K, V, dO = drawn(size, device)
    mask = masks.softcap(cap) & masks.causal()
    O, lse, grads = exact(Q, K, V, dO, mask)
    given = forward.attention(Q, K, V, mask=mask)
    found = backward.backward(Q, K, V, *given, dO, mask=mask)
    hold(given.O, O, [X.cpu() for X in found], grads, size)
    hold(decode.attention(Q, K, V, mask=mask).O, O, [], [], size)
    pack, offsets = (
        (X[0].transpose(0, 1) for X in (Q, K, V)),
        torch.tensor([0, 9], dtype=torch.int32, device=device),
    )
    hold(varlen.attention(*pack, offsets, offsets, mask=mask).O.transpose(0, 1)[None], O, [], [], size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_soft_cap_of_any_size_on_arrays_and_tensors(cap, size, dtype):
    torch.manual_seed(0)
    Q, K, V, dO = (X.to(dtype) for X in drawn(size))
    mask = masks.softcap(cap) & masks.causal()
    O, lse, grads = exact(Q, K, V, dO, mask)
    arrays = [X[0, 0].numpy() for X in (Q, K, V, dO)]
    hold(torch_ref.attention(Q, K, V, mask=mask).O, O, [], [], size)
    for module, blocks in ((naive, {}), (tiled, {"B_r": 4, "B_c": 3})):
        given = module.attention(*arrays[:3], mask=mask, **blocks)
        found = module.backward(*arrays[:3], *given, arrays[3], mask=mask, **blocks)
        hold(torch.from_numpy(given.O)[None, None], O, [X[None, None] for X in found], grads, size)
