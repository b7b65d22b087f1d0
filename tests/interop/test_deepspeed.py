"""The attention that a rank of DeepSpeed's Ulysses calls; `make deepspeed` runs DeepSpeed itself."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
from flashlib import kernels, masks, torch_ref  # noqa: E402
from flashlib.interop import deepspeed  # noqa: E402


@pytest.mark.parametrize("attention", [None, torch_ref.attention], ids=["kernels", "torch_ref"])
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"mask": masks.window(3, 0), "scale": 0.3}], ids=str)
def test_tokens_come_first_and_gradients_too(options, attention):
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
