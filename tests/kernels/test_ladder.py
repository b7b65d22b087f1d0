"""The rungs that store S and P equal fp64 as closely as plain attention does; those with tiles: `test_forward`."""

import pytest
import torch

from flashlib import torch_ref
from flashlib.kernels.ladder import r1_eager, r2_softmax
from tests import oracle
from tests.kernels.test_forward import HALF, RUNGS, check, tensors

STORED = {"r1_eager": r1_eager.attention, "r2_softmax": r2_softmax.attention}
PROBLEMS = {
    "ragged": (37, 53, 16, {}),
    "causal": (37, 53, 16, {"causal": True}),
    "more queries than keys": (53, 37, 16, {"causal": True}),
    "rows that see no key": (83, 21, 16, {"causal": True}),
    "one query": (1, 70, 64, {"causal": True}),
    "one token": (1, 1, 16, {}),
    "no query": (0, 5, 16, {}),
    "no key": (5, 0, 16, {}),
    "no key, causal": (5, 0, 16, {"causal": True}),
    "scale": (37, 53, 16, {"scale": 0.5}),  # a power of two, as r1 rounds S before and after it
}
each = pytest.mark.parametrize("attention", STORED.values(), ids=STORED)


def check_stored(attention, Q, K, V, **options):
    """As `check`, with S rounded to the dtype of Q: lse is then as exact as in plain attention, no more."""
    exact = torch_ref.attention(*(X.double() for X in (Q, K, V)), **options)
    plain = torch_ref.attention(Q, K, V, **options)
    given = attention(Q, K, V, **options)
    assert given.O.dtype == Q.dtype and given.lse.dtype == torch.float32
    for X, X_exact, X_plain in zip(given, exact, plain, strict=True):
        X, X_exact, X_plain = (Y.cpu().double() for Y in (X, X_exact, X_plain))
        oracle.assert_close(X, X_exact, plain=X_plain, rounding=1e-6)


@each
@pytest.mark.parametrize("dtype", [*HALF, torch.float32])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_equals_fp64(attention, dtype, problem, device, poisoned):
    *sizes, options = problem
    check_stored(attention, *tensors(device, *sizes, dtype), **options)


def test_a_row_that_does_not_fit_is_read_in_blocks(device, monkeypatch, poisoned):
    monkeypatch.setattr(r2_softmax, "MAX_BLOCK", 16)
    check_stored(r2_softmax.attention, *tensors(device, 7, 53, 16, torch.float32), causal=True)


@each
@pytest.mark.parametrize(
    "largest_score, dtype", [(100.0, torch.float16), (100.0, torch.float32), (1e4, torch.float32)]
)
def test_large_scores(attention, largest_score, dtype, device, poisoned):
    Q, K, V = tensors(device, 37, 53, 16, dtype)
    Q *= largest_score / (Q @ K.mT / 4).abs().max()
    check_stored(attention, Q, K, V, causal=True)


@each
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_any_strides_and_nothing_read_outside(attention, dtype, device, poisoned):
    """Layout (B, N, H, d), every tensor inside a border of NaN."""
    borders = [torch.full((2, n + 4, 2, 32), torch.nan, device=device, dtype=dtype) for n in (37, 53, 53)]
    Q, K, V = (X[:, 2:-2, :, 8:24].copy_(torch.randn(2, X.shape[1] - 4, 2, 16)).transpose(1, 2) for X in borders)
    check_stored(attention, Q, K, V, causal=True)


@each
def test_nan_is_not_hidden(attention, device):
    Q, K, V = tensors(device, 37, 53, 16, torch.float32)
    V[0, 1, 20, 3] = torch.nan
    O = attention(Q, K, V).O
    assert O[0, 1, :, 3].isnan().all() and O.isnan().sum() == 37


@each
def test_bad_input_and_gradients_are_refused(attention, device):
    X = torch.zeros(1, 2, 8, 16, device=device)
    wrong = [
        (X.double(), X.double(), X.double()),
        (X, X[:, :1], X[:, :1]),
        (X[..., :12],) * 3,
        (X, X, X[:, :, :3]),
    ]
    for tensors_ in wrong:
        with pytest.raises((TypeError, ValueError)):
            attention(*tensors_)
    with pytest.raises(ValueError, match="scale is -1"):
        attention(X, X, X, scale=-1)
    with pytest.raises(ValueError, match="requires a gradient, and this kernel has no backward"):
        attention(X, X, X.clone().requires_grad_())


WITH_ROLES = pytest.mark.xfail(strict=True, reason="with roles from Triton 3.7.1 and three stages O is nan")


@pytest.mark.gpu
@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=WITH_ROLES) if x == "warp_specialised" else x for x in (*RUNGS, *STORED)]
)
@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("N_q, N_k", [(1024, 1024), (1021, 2047), (2047, 1021)])
def test_long_sequences_on_a_gpu(name, dtype, d, N_q, N_k, poisoned):
    torch.manual_seed(0)
    Q, K, V = tensors("cuda", N_q, N_k, d, dtype, heads=(2, 3))
    for causal in (False, True):
        if name in STORED:
            check_stored(STORED[name], Q, K, V, causal=causal, scale=0.125)  # a power of two, as above
        else:
            for num_stages in (1, 3):
                check(RUNGS[name], Q, K, V, causal=causal, num_stages=num_stages)
