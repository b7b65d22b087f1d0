"""Every rung of the ladder equals fp64 as closely as plain attention in the same dtype does."""

import itertools

import numpy as np
import pytest
import torch

from flashlib import torch_ref
from flashlib.kernels.ladder import (
    r1_eager,
    r2_softmax,
    r5_causal,
    r8_descriptors,
    without_common_wait,
    without_late_division,
    without_parallel_rows,
    without_split_rows,
)
from tests import oracle
from tests.kernels.test_forward import HALF, SMALL, check, tensors

# Rungs 3 to 5 go through all that `test_forward` asks of the kernel for use.
TILED = [
    r8_descriptors,
    without_common_wait,
    without_late_division,
    without_parallel_rows,
    without_split_rows,
]
STORED = [r1_eager, r2_softmax]  # S and P are stored, there are no tiles
SKIPPING = [r5_causal, *TILED]
PROBLEMS = {
    "ragged": (37, 53, 16, {}),
    "causal": (37, 53, 16, {"causal": True}),
    "more queries than keys": (53, 37, 16, {"causal": True}),
    "rows that see no key": (83, 21, 16, {"causal": True}),
    "one query": (1, 70, 64, {"causal": True}),
    "one token": (1, 1, 16, {}),
    "whole tiles": (64, 64, 64, {"causal": True}),
    "no query": (0, 5, 16, {}),
    "no key": (5, 0, 16, {}),
    "no key, causal": (5, 0, 16, {"causal": True}),
    "scale": (37, 53, 16, {"scale": 0.5}),  # a power of two, as r1 rounds S before and after it
}


def name(value):
    return value.__name__.rpartition(".")[2] if hasattr(value, "attention") else None


def each(*rungs):
    return pytest.mark.parametrize("rung", rungs, ids=name)


def check_stored(rung, Q, K, V, **options):
    """As `check`, with S rounded to the dtype of Q: lse is then as exact as in plain attention, no more."""
    exact = torch_ref.attention(*(X.double() for X in (Q, K, V)), **options)
    plain = torch_ref.attention(Q, K, V, **options)
    given = rung.attention(Q, K, V, **options)
    assert given.O.dtype == Q.dtype and given.lse.dtype == torch.float32
    for X, X_exact, X_plain in zip(given, exact, plain, strict=True):
        X, X_exact, X_plain = (Y.cpu().double() for Y in (X, X_exact, X_plain))
        oracle.assert_close(X, X_exact, plain=X_plain, rounding=1e-6)


@each(*TILED)
@pytest.mark.parametrize("dtype", [*HALF, torch.float32])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_tiled_rungs_equal_fp64(rung, dtype, problem, device, poisoned):
    *sizes, options = problem
    check(rung.attention, *tensors(device, *sizes, dtype), **options, **SMALL)


@each(*STORED)
@pytest.mark.parametrize("dtype", [*HALF, torch.float32])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_stored_rungs_equal_fp64(rung, dtype, problem, device, poisoned):
    *sizes, options = problem
    check_stored(rung, *tensors(device, *sizes, dtype), **options)


@each(*TILED, *STORED)
@pytest.mark.parametrize(
    "largest_score, dtype", [(100.0, torch.float16), (100.0, torch.float32), (1e4, torch.float32)]
)
def test_large_scores(rung, largest_score, dtype, device, poisoned):
    Q, K, V = tensors(device, 37, 53, 16, dtype)
    Q *= largest_score / (Q @ K.mT / 4).abs().max()
    if rung in STORED:
        check_stored(rung, Q, K, V, causal=True)
    else:
        check(rung.attention, Q, K, V, causal=True, **SMALL)


@each(*TILED)
def test_does_not_depend_on_tiles_warps_and_stages(rung, device):
    Q, K, V = tensors(device, 53, 71, 16, torch.float32)
    tiles = [(16, 16), (16, 64), (64, 16), (np.int64(64), np.int32(32))]
    for (B_r, B_c), num_warps, causal in itertools.product(tiles, (4, 8), (False, True)):
        options = {"B_r": B_r, "B_c": B_c, "num_warps": num_warps, "num_stages": 2}
        check(rung.attention, Q, K, V, causal=causal, **options)


@each(*TILED, *STORED)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_any_strides_and_nothing_read_outside(rung, dtype, device, poisoned):
    """Layout (B, N, H, d), every tensor inside a border of NaN."""
    borders = [torch.full((2, n + 4, 2, 32), torch.nan, device=device, dtype=dtype) for n in (37, 53, 53)]
    Q, K, V = (X[:, 2:-2, :, 8:24].copy_(torch.randn(2, X.shape[1] - 4, 2, 16)).transpose(1, 2) for X in borders)
    if rung in STORED:
        check_stored(rung, Q, K, V, causal=True)
    else:
        check(rung.attention, Q, K, V, causal=True, **SMALL)


@each(*SKIPPING)
def test_tiles_hidden_by_the_mask_are_not_read(rung, device):
    Q, K, V = tensors(device, 64, 64, 16, torch.float32)
    expected = rung.attention(Q, K, V, causal=True, B_r=32, B_c=16).O[:, :, :32]
    V[:, :, 32:] = torch.nan  # 0 * nan is nan: only a tile that is left out leaves no trace
    assert torch.equal(rung.attention(Q, K, V, causal=True, B_r=32, B_c=16).O[:, :, :32], expected)


@each(*TILED, *STORED)
def test_nan_is_not_hidden(rung, device):
    Q, K, V = tensors(device, 37, 53, 16, torch.float32)
    V[0, 1, 20, 3] = torch.nan
    O = rung.attention(Q, K, V).O
    assert O[0, 1, :, 3].isnan().all() and O.isnan().sum() == 37


@each(*TILED, *STORED)
def test_bad_input_and_gradients_are_refused(rung, device):
    X = torch.zeros(1, 2, 8, 16, device=device)
    wrong = [
        (X.double(), X.double(), X.double()),
        (X, X[:, :1], X[:, :1]),
        (X[..., :12],) * 3,
        (X, X, X[:, :, :3]),
    ]
    for tensors_ in wrong:
        with pytest.raises((TypeError, ValueError)):
            rung.attention(*tensors_)
    with pytest.raises(ValueError, match="scale is -1"):
        rung.attention(X, X, X, scale=-1)
    with pytest.raises(ValueError, match="requires a gradient, and this kernel has no backward"):
        rung.attention(X, X, X.clone().requires_grad_())


@each(r5_causal, *TILED)
@pytest.mark.parametrize(
    "options", [{"B_r": 0}, {"B_c": 48}, {"num_warps": 3}, {"num_warps": 32}, {"num_stages": 0}]
)
def test_bad_launch_options_are_refused(rung, options, device):
    option, value = next(iter(options.items()))
    with pytest.raises(ValueError, match=f"{option} is {value}; "):
        rung.attention(*tensors(device, 8, 8, 16, torch.float32), **options)


@pytest.mark.gpu
@each(*TILED, *STORED)
@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("N_q, N_k", [(1024, 1024), (1021, 2047), (2047, 1021)])
def test_long_sequences_on_a_gpu(rung, dtype, d, N_q, N_k, poisoned):
    torch.manual_seed(0)
    Q, K, V = tensors("cuda", N_q, N_k, d, dtype, heads=(2, 3))
    for causal in (False, True):
        if rung in STORED:
            check_stored(rung, Q, K, V, causal=causal, scale=0.125)  # a power of two, as above
        else:
            for num_stages in (1, 3):
                check(rung.attention, Q, K, V, causal=causal, num_stages=num_stages)
