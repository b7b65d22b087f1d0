"""Row softmax equals fp64 for any row length, layout and dtype."""

import pytest
import torch

from flashlib.kernels import DEVICE
from flashlib.kernels import softmax as kernel
from tests import oracle

DTYPES = [torch.float16, torch.bfloat16, torch.float32]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 7), (1, 1), (2, 3, 1000), (2, 5003), (37,), (0, 3), (3, 0)])
def test_equals_fp64(shape, dtype, device, poisoned):
    x = (torch.randn(shape) * 10).to(device, dtype)
    given = kernel.softmax(x)
    assert given.dtype == dtype and given.device == x.device
    exact = x.double().softmax(-1)
    oracle.assert_close(given.cpu().double(), exact.cpu(), plain=x.softmax(-1).cpu().double(), rounding=1e-7)


@pytest.mark.parametrize("dtype", DTYPES)
def test_masked_and_large_scores(dtype, device, poisoned):
    inf = torch.inf
    x = torch.tensor([[-inf, -inf, -inf], [-inf, 5e4, 5e4], [-5e4, -inf, -inf]]).to(device, dtype)
    expected = torch.tensor([[0, 0, 0], [0, 0.5, 0.5], [1, 0, 0]])
    assert torch.equal(kernel.softmax(x).cpu().float(), expected)


def test_reads_nothing_outside_and_changes_nothing(device, poisoned):
    border = torch.full((5, 17), torch.nan, device=device)
    border[1:4, 2:15] = torch.randn(3, 13)
    before = border.clone()
    x = border[1:4, 2:15]
    oracle.assert_close(kernel.softmax(x).cpu(), x.double().softmax(-1).cpu(), rounding=1e-6)
    assert kernel.softmax(x).isfinite().all() and kernel.softmax(x.T).isfinite().all()
    assert torch.equal(border.nan_to_num(7), before.nan_to_num(7))


def test_nan_is_not_hidden(device):
    x = torch.zeros(2, 5, device=device)
    x[0, 3] = torch.nan
    assert kernel.softmax(x).isnan().tolist() == [[True] * 5, [False] * 5]


@pytest.mark.parametrize(
    "x, error, words",
    [
        ([1.0], TypeError, "x is of type list; pass a torch tensor"),
        (torch.zeros(3, dtype=torch.float64), TypeError, "x has dtype torch.float64; accepted are"),
        (torch.tensor(1.0, device=DEVICE), ValueError, r"expected at least one axis"),
    ],
)
def test_bad_input_is_refused(x, error, words):
    with pytest.raises(error, match=words):
        kernel.softmax(x)
