"""What `Looked` takes for a computation of PyTorch's: to make tensors and views of them is none."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import flashlib.kernels  # noqa: E402, F401
from flashlib.checks.harness.decoding import Looked  # noqa: E402


@pytest.mark.parametrize(
    ("does", "computed"),
    [
        (lambda X: torch.empty_like(X).fill_(0.5), []),
        (lambda X: X.new_full((3,), 2.0), []),
        (lambda X: torch.zeros(5, device=X.device), []),
        (lambda X: X.view(2, 2).transpose(0, 1)[0], []),
        (lambda X: X.contiguous().to(X.dtype), []),
        (lambda X: torch.empty_like(X).__setitem__(slice(None), 0.0), []),
        (lambda X: X.shape[0] + X.stride(0) + X.numel(), []),
        (lambda X: X / 2, ["div"]),
        (lambda X: X.to(torch.float16), ["to"]),
        (lambda X: torch.stack([X, X]), ["stack"]),
        (lambda X: torch.empty_like(X).copy_(X), ["copy_"]),
        (lambda X: torch.empty_like(X).__setitem__(slice(None), X), ["__setitem__"]),
        (lambda X: torch.add(input=X, other=1), ["add"]),
        (lambda X: torch.mul(X, 2, out=X), ["mul"]),
        (lambda X: X.__imul__(2), ["mul"]),
    ],
)
def test_only_numbers_that_are_made_of_others_are_computed(does, computed):
    looked = Looked()
    with looked:
        does(torch.arange(4.0))
    assert [name.strip("_") for name in looked.computed] == [name.strip("_") for name in computed]
    looked.clear()
    assert not looked.computed
