"""The plain backward kernels equal fp64 as closely as standard attention in the same dtype does."""

import pytest
import torch

from flashlib.kernels import forward
from flashlib.kernels.compiler import compiled
from flashlib.kernels.ladder import plain_backward
from tests.kernels.gradients import hold
from tests.kernels.test_backward import tensors

SMALL = {"B_r": 16, "B_c": 32}


def check(Q, K, V, dO, causal=False, scale=None):
    """Compare the gradients with fp64, and return them."""
    saved = forward.attention(Q, K, V, causal=causal, scale=scale)
    given = plain_backward.backward(Q, K, V, *saved, dO, causal=causal, scale=scale, **SMALL)
    hold(given, Q, K, V, dO, causal=causal, scale=scale)
    return given


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("N_q, N_k", [(37, 53), (53, 37), (1, 70), (64, 64)])
def test_equals_fp64(dtype, causal, N_q, N_k, device, poisoned):
    check(*tensors(device, N_q, N_k, 16, dtype), causal)


@pytest.mark.parametrize("N_q, N_k", [(83, 21), (0, 5), (5, 0), (1, 1)])
@pytest.mark.parametrize("causal", [False, True])
def test_rows_that_see_no_key_and_empty_tensors(causal, N_q, N_k, device, poisoned):
    dQ, _, _ = check(*tensors(device, N_q, N_k, 16, torch.float32), causal)
    assert not (causal and dQ[:, :, : max(N_q - N_k, 0)].any())


def test_any_strides_and_any_scale(device, poisoned):
    Q, K, V, dO = (X.mT.contiguous().mT for X in tensors(device, 21, 37, 64, torch.float32, heads=(2, 3, 3)))
    check(Q, K, V, dO, True, 0.3)


def test_large_scores(device, poisoned):
    Q, K, V, dO = tensors(device, 37, 53, 16, torch.float32)
    check(Q * (100 / (Q @ K.mT / 4).abs().max()), K, V, dO)


@pytest.mark.filterwarnings("ignore:overflow encountered")  # of weights that are replaced by 0, or not stored
@pytest.mark.parametrize("dtype, size", [(torch.float16, 4), (torch.float32, 30)])
def test_very_negative_scores_do_not_overflow_past_the_end_of_K(dtype, size, device, poisoned):
    Q, K, V, dO = tensors(device, 37, 53, 16, dtype)  # 53 keys do not fill two tiles of 32
    check(Q.abs() * size, -K.abs() * size, V, dO)


def test_bad_input_is_refused(device):
    Q, K, V, dO = tensors(device, 8, 8, 16, torch.float32)
    saved = forward.attention(Q, K, V)
    with pytest.raises(ValueError, match="B_r"):
        plain_backward.backward(Q, K, V, *saved, dO, B_r=24)
    with pytest.raises(ValueError, match="must be equal"):
        plain_backward.backward(Q, K[:, :1], V[:, :1], *saved, dO)


@pytest.mark.compiles
@pytest.mark.parametrize("kernel", ["plain_dkv", "plain_dq"])
def test_nothing_spills(kernel):
    made = compiled.report(kernel=kernel, d=64, causal=True, capability=90, sass=False)
    assert made.spilled == 0
