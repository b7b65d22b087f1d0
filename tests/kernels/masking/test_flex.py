"""PyTorch's FlexAttention and our kernels agree on random masks and changes of scores."""

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from flashlib import masks
from flashlib.kernels import autograd
from tests import oracle

B, H, D = 2, 2, 16


def drawn(seed, N_q, N_k, device):
    """Return a random mask for us and for FlexAttention, which counts rows from the first query."""
    torch.manual_seed(seed)
    allowed = torch.rand(B, H, N_q, N_k, device=device) < (0.02, 0.3, 0.9)[seed % 3]
    allowed[..., 0] |= ~allowed.any(-1)  # a row that sees no key is nan there
    past = N_k - N_q
    ours = masks.from_function(lambda b, h, r, c: allowed.to(r.device)[b, h, r - past, c])
    theirs = create_block_mask(lambda b, h, q, k: allowed[b, h, q, k], B, H, N_q, N_k, device=device)
    return ours, theirs


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize(
    "amount, seed, N_q, N_k, capped",
    [("few", 1, 53, 37, True)]
    + [
        ("all", *size, capped)
        for size in ((0, 37, 53), (1, 53, 37), (2, 45, 45), (3, 1, 70))
        for capped in (False, True)
    ],
)
def test_random_masks(amount, seed, N_q, N_k, capped, device):
    ours, theirs = drawn(seed, N_q, N_k, device)
    Q, K, V = (torch.randn(B, H, n, D, device=device) for n in (N_q, N_k, N_k))
    dO = torch.randn_like(Q)
    score = (lambda s, b, h, q, k: 1.5 * torch.tanh(s / 1.5)) if capped else None
    gradients = device == "cuda"  # it has none on a CPU
    leaves = [X.double().requires_grad_(gradients) for X in (Q, K, V)]
    O = flex_attention(*leaves, score_mod=score, block_mask=theirs)
    expected = O, *(torch.autograd.grad(O, leaves, dO.double()) if gradients else ())
    leaves = [X.requires_grad_(gradients) for X in (Q, K, V)]
    O = autograd.attention(*leaves, mask=ours & masks.softcap(1.5) if capped else ours).O
    given = O, *(torch.autograd.grad(O, leaves, dO) if gradients else ())
    for X, Y in zip(given, expected, strict=True):
        assert oracle.worst(X.detach().cpu(), Y.detach().cpu()) < 5e-6


@pytest.mark.parametrize("amount", ["all"])
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_a_captured_buffer_is_a_tensor_that_scores_read(amount, device):
    N_q, N_k, gradients = 21, 37, device == "cuda"
    Q, K, V = (torch.randn(B, H, n, D, device=device) for n in (N_q, N_k, N_k))
    T, dO = torch.randn(H, N_q + N_k - 1, device=device), torch.randn_like(Q)

    def found(attention, dtype):
        leaves = [X.detach().to(dtype).requires_grad_(gradients) for X in (Q, K, V, T)]
        O = attention(*leaves)
        return O, *(torch.autograd.grad(O, leaves, dO.to(dtype)) if gradients else ())

    def theirs(Q, K, V, T):
        return flex_attention(Q, K, V, score_mod=lambda s, b, h, q, k: s + T[h, q - k + N_k - 1])

    given = found(lambda *X: autograd.attention(*X[:3], mask=masks.distance_bias(X[3])).O, torch.float32)
    for X, Y in zip(given, found(theirs, torch.float64), strict=True):
        assert oracle.worst(X.detach().cpu(), Y.detach().cpu()) < 1e-5
