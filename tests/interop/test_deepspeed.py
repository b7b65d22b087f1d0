"""The attention that a rank of DeepSpeed's Ulysses calls; `make deepspeed` runs DeepSpeed itself."""

import re

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
import torch.distributed as dist  # noqa: E402

from flashlib import kernels, masks, torch_ref  # noqa: E402
from flashlib.interop import deepspeed  # noqa: E402


@pytest.mark.parametrize("attention", [None, torch_ref.attention], ids=["kernels", "torch_ref"])
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"mask": masks.window(3, 0), "scale": 0.3}], ids=str)
def test_the_layout_has_tokens_first_and_gradients_agree(options, attention):
    Q, K, V = (torch.randn(2, 11, H, 16, device=kernels.DEVICE, requires_grad=True) for H in (4, 2, 2))
    O = deepspeed.Local(attention, **options)(Q, K, V)
    dO = torch.randn_like(O)
    O.backward(dO)
    exact = [X.detach().double().requires_grad_() for X in (Q, K, V)]
    expected = torch_ref.attention(*(X.transpose(1, 2) for X in exact), **options).O.transpose(1, 2)
    expected.backward(dO.double())
    assert O.shape == Q.shape
    for found, wide in ((O, expected), *((X.grad, Y.grad) for X, Y in zip((Q, K, V), exact, strict=True))):
        torch.testing.assert_close(found, wide.float(), rtol=0, atol=5e-6)


def test_what_a_rank_cannot_know_is_refused():
    with pytest.raises(ValueError, match="tells heads apart, .*ring.distributed.ulysses.attention"):
        deepspeed.Local(mask=masks.alibi([0.1, 0.2]))
    X = torch.randn(1, 3, 2, 16)
    with pytest.raises(ValueError, match="2 more arguments are given; .* causal, mask and scale"):
        deepspeed.Local(torch_ref.attention)(X, X, X, True, window=(3, 0))


def given_by_ranks():
    """Return what each rank is told for tensors that DeepSpeed cannot exchange, and how often it was asked to."""
    rank, P, exchanged = dist.get_rank(), dist.get_world_size(), []

    def told(n=4, H=4, H_k=4, dtype=torch.float32, axes=4, **options):
        Q, K, V = (torch.zeros(2, n, h, 16, dtype=dtype)[(0,) * (4 - axes)] for h in (H, H_k, H_k))
        options = {"causal": False, "mask": None, "scale": None} | options
        exchange = lambda *X: exchanged.append(X)  # noqa: E731
        try:
            deepspeed._called(exchange, dist.group.WORLD, options, Q, K, V)
        except ValueError as error:
            return str(error)
        return ""

    return {
        "N": told(n=len(range(rank, 4 * P - 1, P))),
        "a rank without tokens": told(n=int(rank > 0)),
        "H": told(H=6, H_k=2),
        "H_k": told(H=8, H_k=2),
        "H of one": told(H=8 if rank == 1 else 4),
        "dtype": told(dtype=torch.float16 if rank == 2 else torch.float32),
        "axes": told(axes=3),
        "axes of one": told(axes=3 if rank == 0 else 4),
        "causal": told(causal=rank == 3),
        "mask": told(mask=masks.window(rank, 0)),
        "right": told(H=8),
    }, len(exchanged)


SAID = {
    "N": r"ulysses disagree: Q is \(2, 4, 4, 16\) on ranks 0, 1, 2 and \(2, 3, 4, 16\) on rank 3, .*"
    "flashlib.ring.distributed.ulysses takes any N, H and H_k",
    "a rank without tokens": r"Q is \(2, 1, 4, 16\) on ranks 1, 2, 3 and \(2, 0, 4, 16\) on rank 0",
    "H": "Q has 6 heads, and 4 ranks share them: H and H_k must be multiples of 4",
    "H_k": "K has 2 heads, and 4 ranks share them: H and H_k must be multiples of 4",
    "H of one": r"Q is \(2, 4, 4, 16\) on ranks 0, 2, 3 and \(2, 4, 8, 16\) on rank 1",
    "dtype": "dtype of Q is float32 on ranks 0, 1, 3 and float16 on rank 2",
    "axes": r"Q has shape \(4, 4, 16\); pass a tensor \(B, N / 4, H, d\) on each rank",
    "axes of one": r"Q is \(2, 4, 4, 16\) on ranks 1, 2, 3 and \(4, 4, 16\) on rank 0",
    "causal": "causal is False on ranks 0, 1, 2 and True on rank 3",
    "mask": "mask is window",
    "right": "^$",
}


@pytest.mark.process
def test_what_deepspeed_cannot_exchange_is_refused_on_every_rank():
    pytest.importorskip("cloudpickle")
    from flashlib.ring import processes

    found = processes.run(given_by_ranks, ranks=4, seconds=200)
    for said, exchanges in found:
        assert exchanges == 1, "only what is right is exchanged"
        for name, words in SAID.items():
            assert said[name] == found[0][0][name] and re.search(words, said[name]), (name, said[name])
