"""The backward kernels equal fp64 as closely as standard attention in the same dtype does."""

import numpy as np
import pytest
import torch

from flashlib import tiled, torch_ref
from flashlib.kernels import DEVICE, INTERPRETED, backward, forward
from tests.kernels.gradients import check
from tests.kernels.test_forward import HALF
from tests.tiers import amounts

WAYS = [
    {"deterministic": True, "descriptors": False},
    {"deterministic": True, "descriptors": True},
    {"deterministic": False, "descriptors": None},
]
SMALL = {"B_r": 16, "B_c": 32, "num_warps": 4, "num_stages": 1}
ways = pytest.mark.parametrize("way", WAYS, ids=["pointers", "descriptors", "fused"])
X = torch.zeros(2, 3, 8, 16, device=DEVICE)
LSE = torch.zeros(2, 3, 8, device=DEVICE)


def tensors(device, N_q, N_k, d, dtype, heads=(1, 2, 2)):
    """Return Q, K, V and dO."""
    B, H_q, H_k = heads
    shapes = (B, H_q, N_q, d), (B, H_k, N_k, d), (B, H_k, N_k, d), (B, H_q, N_q, d)
    return tuple(torch.randn(shape, device=device).to(dtype) for shape in shapes)


@ways
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("N_q, N_k", [(37, 53), (53, 37), (1, 70)])
def test_equals_fp64(way, dtype, causal, N_q, N_k, device, poisoned):
    check(*tensors(device, N_q, N_k, 16, dtype), causal=causal, **way, **SMALL)


@ways
@pytest.mark.parametrize("N_q, N_k", [(83, 21), (0, 5), (5, 0), (1, 1)])
def test_rows_that_see_no_key_and_empty_tensors(way, N_q, N_k, device, poisoned):
    Q, K, V, dO = tensors(device, N_q, N_k, 16, torch.float32)
    dQ, dK, dV = check(Q, K, V, dO, causal=True, **way, **SMALL)
    blind = max(N_q - N_k, 0)
    assert not dQ[:, :, :blind].any()
    unseen = backward.backward(Q, K, V, *forward.attention(Q, K, V, causal=True), dO * 7, causal=True, **way)
    assert torch.isfinite(torch.cat([grad.flatten() for grad in unseen])).all()


@pytest.mark.parametrize("d", [17, 64, 128, 200])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("deterministic", [True, False])
def test_head_dimensions_with_the_default_tiles(d, dtype, deterministic, device, poisoned):
    check(*tensors(device, 53, 81, d, dtype, heads=(1, 1, 1)), causal=True, deterministic=deterministic)


@ways
@pytest.mark.parametrize("H_q, H_k", [(4, 2), (3, 1)])
@pytest.mark.parametrize("causal", [False, True])
def test_a_head_of_K_and_V_sums_over_its_query_heads(way, H_q, H_k, causal, device, poisoned):
    check(*tensors(device, 37, 43, 16, torch.float32, heads=(1, H_q, H_k)), causal=causal, **way, **SMALL)


@ways
@pytest.mark.parametrize("causal", [False, True])
def test_the_gradient_of_lse(way, causal, device, poisoned):
    Q, K, V, dO = tensors(device, 53, 37, 16, torch.float32)
    dlse = torch.randn(Q.shape[:-1], device=device)
    check(Q, K, V, dO, dlse, causal=causal, **way, **SMALL)
    check(Q, K, V, torch.zeros_like(dO), dlse.mT.contiguous().mT, causal=causal, **way, **SMALL)


@ways
@pytest.mark.parametrize("largest_score", [100.0, 1e4])
def test_large_scores(way, largest_score, device, poisoned):
    Q, K, V, dO = tensors(device, 37, 53, 16, torch.float32)
    Q *= largest_score / (Q @ K.mT / 4).abs().max()
    check(Q, K, V, dO, **way, **SMALL)


@pytest.mark.parametrize("amount, scale", amounts([1e-30, 1e3, 1e5, 1e6, 1e8, 2e27], few=[1e3, 1e6, 2e27]))
@pytest.mark.parametrize("deterministic", [True, False])
def test_gradients_are_finite_whatever_the_scores(amount, scale, deterministic, device, poisoned):
    """An fp32 lse of a huge score has an error too large for P; and the factor of dQ is huge, too."""
    Q, K = (torch.randint(-2, 3, (1, 2, n, 16), device=device).bfloat16() for n in (37, 53))
    V, dO = (torch.randn(1, 2, n, 16, device=device).bfloat16() for n in (53, 37))
    O, lse = forward.attention(Q, K, V, causal=True, scale=scale)
    options = {"causal": True, "scale": scale, "deterministic": deterministic}
    for name, X in backward.backward(Q, K, V, O, lse, dO, **options)._asdict().items():
        assert X.isfinite().all(), name


@ways
def test_very_negative_scores_do_not_overflow_past_the_end_of_K(way, device, poisoned):
    Q, K, V, dO = tensors(device, 37, 53, 16, torch.float32)
    Q, K = Q.abs() * 30, -K.abs() * 30  # lse is below -1000, and 2^-lse2 infinite
    check(Q, K, V, dO, **way, **SMALL)


@ways
def test_any_strides_and_borders_of_nan(way, device, poisoned):
    def inside(X):
        border = torch.full((*X.shape[:2], X.shape[2] + 4, X.shape[3] + 16), torch.nan, device=device)
        return border[:, :, 2:-2, 8:-8].copy_(X)

    Q, K, V, dO = tensors(device, 37, 53, 24, torch.float32)
    check(*map(inside, (Q, K, V, dO)), causal=True, **way, **SMALL)
    spread = dO[:, :, :, :1].expand_as(dO)  # as the gradient of a sum
    check(Q, K.mT.contiguous().mT, V.transpose(1, 2).contiguous().transpose(1, 2), spread, **way, **SMALL)


@ways
@pytest.mark.parametrize("scale", [0.05, 2.0])
def test_scale(way, scale, device, poisoned):
    check(*tensors(device, 37, 53, 16, torch.float32), scale=scale, **way, **SMALL)


@pytest.mark.parametrize("amount, B_r, B_c", [("few", 16, 64), ("few", 64, 16), ("all", 32, 32), ("all", 128, 16)])
@pytest.mark.parametrize("causal", [False, True])
def test_the_result_does_not_depend_on_the_tiles(amount, B_r, B_c, causal, device, poisoned):
    check(*tensors(device, 75, 91, 16, torch.float32), causal=causal, B_r=B_r, B_c=B_c, num_warps=4)


@ways
@pytest.mark.parametrize(
    "amount, past",
    amounts([-17, -16, -15, -1, 0, 1, 2, 14, 15, 16, 17, 31, 33], few=[-17, -16, -1, 0, 1, 14, 15, 16]),
)
def test_the_diagonal_may_cross_tiles_anywhere(amount, way, past, device, poisoned):
    """past = N_k - N_q moves the diagonal through the tiles: those that it only touches are not left out."""
    check(*tensors(device, 48, 48 + past, 16, torch.float32, heads=(1, 1, 1)), causal=True, **way, **SMALL)


@pytest.mark.parametrize("causal", [False, True])
def test_the_gradients_are_those_of_the_numpy_loop(causal, device):
    Q, K, V, dO = (X[0, 0] for X in tensors(device, 40, 56, 16, torch.float32))
    arrays = [X.cpu().numpy().astype(np.float64) for X in (Q, K, V)]
    O, lse = (torch.tensor(X, dtype=torch.float32, device=device) for X in tiled.attention(*arrays, causal=causal))
    given = backward.backward(*(X[None, None] for X in (Q, K, V, O, lse, dO)), causal=causal, **SMALL)
    exact = tiled.backward(
        *arrays, *tiled.attention(*arrays, causal=causal), dO.cpu().numpy().astype(np.float64),
        B_r=16, B_c=32, causal=causal,
    )  # fmt: skip
    for X, X_exact in zip(given, exact, strict=True):
        np.testing.assert_allclose(X[0, 0].cpu(), X_exact, atol=2e-5)


def test_two_passes_give_the_same_bits_every_time(device):
    N_q, N_k = (300, 291) if device == "cuda" else (70, 91)
    Q, K, V, dO = tensors(device, N_q, N_k, 16, torch.float32)
    saved = forward.attention(Q, K, V, causal=True)
    first, second = (backward.backward(Q, K, V, *saved, dO, causal=True) for _ in range(2))
    assert all(torch.equal(X, Y) for X, Y in zip(first, second, strict=True))


def test_autograd_of_the_reference_agrees_with_finite_differences():
    torch.manual_seed(0)
    Q, K, V = (torch.randn(1, 2, n, 4, dtype=torch.float64, requires_grad=True) for n in (5, 7, 7))
    assert torch.autograd.gradcheck(lambda *X: tuple(torch_ref.attention(*X, causal=True)), (Q, K, V))


@pytest.mark.parametrize(
    "changed, error, message",
    [
        ({"dO": X[:, :, :5]}, ValueError, r"dO has shape \(2, 3, 5, 16\) and Q \(2, 3, 8, 16\)"),
        ({"O": X.half()}, TypeError, "O has dtype torch.float16; accepted are torch.float32"),
        ({"lse": LSE[:, :2]}, ValueError, r"lse has shape \(2, 2, 8\).* expected \(2, 3, 8\)"),
        ({"lse": LSE.half()}, TypeError, "lse has dtype torch.float16; accepted are torch.float32"),
        ({"dlse": LSE[0]}, ValueError, r"dlse has shape \(3, 8\) and lse \(2, 3, 8\)"),
        ({"dO": None}, TypeError, "dO is of type NoneType; pass a torch tensor"),
        ({"lse": LSE.to("meta")}, ValueError, f"lse is on meta and Q on {X.device}; move them to one device"),
        ({"deterministic": 1}, TypeError, "deterministic is 1; pass True for two passes"),
        ({"B_r": 48}, ValueError, "B_r is 48; the kernel takes 16, 32"),
        ({"num_stages": 0}, ValueError, "num_stages is 0"),
        ({"scale": -1}, ValueError, "scale is -1"),
        ({"causal": "yes"}, TypeError, "causal is 'yes'"),
        ({"K": X[:, :2], "V": X[:, :2]}, ValueError, "heads"),
    ],
)
def test_bad_input_is_refused(changed, error, message):
    arguments = dict(Q=X, K=X, V=X, O=X, lse=LSE, dO=X) | changed
    with pytest.raises(error, match=message):
        backward.backward(**arguments)


@pytest.mark.skipif(not INTERPRETED, reason="a GPU adds through descriptors")
def test_the_interpreter_refuses_to_add_through_descriptors():
    with pytest.raises(ValueError, match="does not support adding through a descriptor; leave descriptors out"):
        backward.backward(X, X, X, X, LSE, X, deterministic=False, descriptors=True)


@pytest.mark.gpu
@pytest.mark.parametrize("way", [True, False, None], ids=["two passes", "fused", "pointers"])
@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("d", [64, 128, 256])
@pytest.mark.parametrize("N_q, N_k", [(1024, 1024), (1021, 2047), (2047, 1021)])
def test_long_sequences_on_a_gpu(way, dtype, d, N_q, N_k, poisoned):
    torch.manual_seed(0)
    options = {"deterministic": way} if way is not None else {"descriptors": False}
    for causal in (False, True):
        check(*tensors("cuda", N_q, N_k, d, dtype, heads=(2, 6, 3)), causal=causal, **options)


@pytest.mark.gpu
def test_the_fused_pass_adds_to_dQ_as_the_two_passes_sum():
    torch.manual_seed(0)
    Q, K, V, dO = tensors("cuda", 2000, 1500, 64, torch.bfloat16)
    saved = forward.attention(Q, K, V)
    fused, passes = (backward.backward(Q, K, V, *saved, dO, deterministic=way) for way in (False, True))
    assert torch.equal(fused.dK, passes.dK) and torch.equal(fused.dV, passes.dV)
    torch.testing.assert_close(fused.dQ, passes.dQ, atol=1e-2, rtol=1e-2)
