"""Merging in the kernel equals fp64, in place, for any strides, and for rows that see nothing."""

import pytest
import torch

from flashlib.kernels import DEVICE
from flashlib.kernels import merge as kernel
from tests import oracle

SHAPES = [
    (1, 1, 1, 16),
    (2, 3, 37, 16),
    (1, 2, 53, 80),
    (2, 1, 7, 128),
    (0, 1, 3, 16),
    (1, 1, 0, 16),
    (1, 1, 2, 1),
]


def state(shape, device):
    """Return O and lse for some keys: every third row saw none."""
    O, lse = torch.randn(shape, device=device), torch.randn(shape[:3], device=device) * 30
    O[:, :, ::3], lse[:, :, ::3] = 0, -torch.inf
    return O, lse


def exact(O, lse, O_j, lse_j):
    """Return both merged in fp64."""
    O, lse, O_j, lse_j = (X.double().cpu() for X in (O, lse, O_j, lse_j))
    both = torch.logaddexp(lse, lse_j)
    shift = both.masked_fill(both == -torch.inf, 0)[..., None]
    return O * (lse[..., None] - shift).exp() + O_j * (lse_j[..., None] - shift).exp(), both


@pytest.mark.parametrize("dtype", [None, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", SHAPES)
def test_equals_fp64(shape, dtype, device, poisoned):
    (O, lse), (O_j, lse_j) = state(shape, device), state(shape, device)
    right, right_lse = exact(O, lse, O_j, lse_j)
    out = None if dtype is None else torch.empty(shape, dtype=dtype, device=device)
    kernel.merge(O, lse, O_j, lse_j, out=out)
    rounding = {torch.bfloat16: 2**-8, torch.float16: 2**-11}.get(dtype, 1e-6) * 4
    oracle.assert_close((O if out is None else out).cpu().double(), right, rounding=rounding)
    oracle.assert_close(lse.cpu(), right_lse, rounding=1e-5)


def test_merges_in_place_and_writes_nothing_else(device, poisoned):
    O, lse = state((2, 3, 40, 32), device)
    part, lse_j = state((2, 3, 64, 32), device)
    out = torch.full((2, 3, 40, 32), torch.nan, device=device, dtype=torch.bfloat16)
    rows, before = slice(7, 30), O.clone()
    of_part = part[:, :, 5:28], lse_j[:, :, 5:28]
    right, right_lse = exact(O[:, :, rows], lse[:, :, rows], *of_part)
    kernel.merge(O[:, :, rows], lse[:, :, rows], *of_part, out=out[:, :, rows])
    oracle.assert_close(out[:, :, rows].cpu().double(), right, rounding=0.03)
    oracle.assert_close(lse[:, :, rows].cpu(), right_lse, rounding=1e-5)
    assert out[:, :, :7].isnan().all() and out[:, :, 30:].isnan().all()
    kernel.merge(O[:, :, :7], lse[:, :, :7], part[:, :, :7], lse_j[:, :, :7])
    assert torch.equal(O[:, :, 30:], before[:, :, 30:])


def test_nan_is_not_hidden(device):
    (O, lse), (O_j, lse_j) = state((1, 1, 5, 16), device), state((1, 1, 5, 16), device)
    O_j[0, 0, 1, 3] = torch.nan
    kernel.merge(O, lse, O_j, lse_j)
    assert O[0, 0, 1, 3].isnan() and int(O.isnan().sum()) == 1


@pytest.mark.parametrize(
    "change, error, words",
    [
        (
            {"O": torch.zeros(1, 1, 2, 4, device=DEVICE).half()},
            TypeError,
            "O has dtype torch.float16; accepted are",
        ),
        ({"lse": torch.zeros(1, 1, 3, device=DEVICE)}, ValueError, "lse has shape .* its first three axes"),
        ({"O_j": torch.zeros(1, 1, 4, 2, device=DEVICE).mT}, ValueError, "O_j has strides .* must be contiguous"),
        ({"out": torch.zeros(1, 1, 2, 4, device=DEVICE).double()}, TypeError, "out has dtype torch.float64"),
        ({"O": torch.zeros(2, 4, device=DEVICE)}, ValueError, "expected 4 axes"),
    ],
)
def test_bad_input_is_refused(change, error, words):
    O, lse = torch.zeros(1, 1, 2, 4, device=DEVICE), torch.zeros(1, 1, 2, device=DEVICE)
    with pytest.raises(error, match=words):
        kernel.merge(**{"O": O, "lse": lse, "O_j": O, "lse_j": lse, **change})
