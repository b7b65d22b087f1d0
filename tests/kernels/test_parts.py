"""Parts of rows and keys: what the kernels make of each, in fp32, joins to what they make of the whole."""

import pytest
import torch

from flashlib.kernels import DEVICE, backward, forward
from tests.kernels.test_backward import LSE, SMALL, WAYS, X, tensors
from tests.kernels.test_forward import HALF

ways = pytest.mark.parametrize("way", WAYS, ids=["pointers", "descriptors", "fused"])
FP32 = torch.float32


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("descriptors", [False, True])
def test_O_in_fp32_is_O_before_it_is_rounded(dtype, descriptors, device, poisoned):
    Q, K, V, _ = tensors(device, 37, 53, 24, dtype)
    options = {"causal": True, "descriptors": descriptors, "B_r": 32, "B_c": 16}
    rounded, given = (forward.attention(Q, K, V, **options, out_dtype=out) for out in (None, FP32))
    assert (given.O.dtype, rounded.O.dtype) == (FP32, dtype) and given.O.is_contiguous()
    assert torch.equal(given.O.to(dtype), rounded.O) and not torch.equal(given.O, rounded.O.float())
    assert torch.equal(given.lse, rounded.lse)


@ways
@pytest.mark.parametrize("dtype", HALF)
def test_gradients_in_fp32_are_those_before_they_are_rounded(way, dtype, device, poisoned):
    Q, K, V, dO = tensors(device, 37, 53, 24, dtype, heads=(1, 4, 2))
    saved = forward.attention(Q, K, V, causal=True)
    rounded, given = (
        backward.backward(Q, K, V, *saved, dO, causal=True, **way, **SMALL, out_dtype=out) for out in (dtype, FP32)
    )
    for X_given, X_rounded in zip(given, rounded, strict=True):
        assert (X_given.dtype, X_rounded.dtype) == (FP32, dtype)
        if way["deterministic"]:  # else sums come in any order
            assert torch.equal(X_given.to(dtype), X_rounded)
        assert not torch.equal(X_given, X_rounded.float())
        assert (X_given - X_rounded).abs().max() <= torch.finfo(dtype).eps * X_given.abs().max()


@pytest.mark.parametrize("dtype", [*HALF, FP32])
@pytest.mark.parametrize("with_dlse", [False, True])
def test_delta_found_once_gives_the_same_bits(dtype, with_dlse, device, poisoned):
    Q, K, V, dO = tensors(device, 83, 53, 40, dtype)
    O, lse = forward.attention(Q, K, V, causal=True)
    dlse = torch.randn(lse.shape, device=device).mT.contiguous().mT if with_dlse else None
    delta = backward.delta_of(O, dO)
    assert delta.dtype == FP32 and delta.shape == lse.shape
    torch.testing.assert_close(delta, (O.double() * dO.double()).sum(-1).float(), atol=4e-6, rtol=4e-6)
    spread = delta.mT.contiguous().mT  # in any strides
    exact = backward.backward(Q, K, V, O, lse, dO, dlse=dlse, causal=True, **SMALL)
    given = backward.backward(Q, K, V, None, lse, dO, dlse=dlse, delta=spread, causal=True, **SMALL)
    assert all(torch.equal(*pair) for pair in zip(given, exact, strict=True))


@pytest.mark.parametrize("shape", [(2, 3, 0, 16), (0, 3, 5, 16), (1, 1, 1, 17)], ids=str)
def test_delta_of_nothing_and_of_one_row(shape, device, poisoned):
    O, dO = torch.randn(2, *shape, device=device)
    torch.testing.assert_close(backward.delta_of(O, dO), (O * dO).sum(-1))


def test_delta_of_any_strides(device, poisoned):
    O, dO = torch.randn(2, 2, 37, 3, 24, device=device).half()
    O, dO = O.transpose(1, 2), dO[:, :1, :1, :1].expand(2, 3, 37, 24)
    torch.testing.assert_close(backward.delta_of(O, dO), (O.float() * dO.float()).sum(-1))


def test_a_dtype_that_is_not_kept_is_refused():
    call = {"Q": X, "K": X, "V": X}
    for dtype in (torch.float16, torch.float64, "float32"):
        with pytest.raises(TypeError, match="out_dtype is .*; pass torch.float32, .* or None for torch.float32"):
            forward.attention(**call, out_dtype=dtype)
        with pytest.raises(TypeError, match="out_dtype is "):
            backward.backward(**call, O=X, lse=LSE, dO=X, out_dtype=dtype)


@pytest.mark.parametrize(
    "changed, error, message",
    [
        ({"delta": LSE[:, :2]}, ValueError, r"delta has shape \(2, 2, 8\) and lse \(2, 3, 8\)"),
        ({"delta": LSE.half()}, TypeError, "delta has dtype torch.float16"),
        ({"delta": LSE.to("meta")}, ValueError, "delta is on meta and lse on"),
        ({"delta": 0.0}, TypeError, "delta is of type float; pass a torch tensor"),
        ({"O": None}, TypeError, r"O is None; pass the O that .* or delta=delta_of\(O, dO\)"),
        ({"O": None, "delta": LSE, "dO": X[..., :5]}, ValueError, "dO has shape"),
    ],
)
def test_bad_deltas_are_refused(changed, error, message):
    with pytest.raises(error, match=message):
        backward.backward(**dict(Q=X, K=X, V=X, O=X, lse=LSE, dO=X) | changed)


@pytest.mark.parametrize(
    "O, dO, error, message",
    [
        (X, X[:, :2], ValueError, r"O has shape \(2, 3, 8, 16\) and dO \(2, 2, 8, 16\); they must be equal"),
        (X[0], X[0], ValueError, r"they must be equal, \(B, H_q, N_q, d_v\)"),
        (X, X.half(), TypeError, "dO has dtype torch.float16 and O has torch.float32"),
        (X, None, TypeError, "dO is of type NoneType"),
        (X.to("meta"), X.to("meta"), ValueError, "O is on meta, where no kernel runs"),
    ],
)
def test_delta_of_bad_input_is_refused(O, dO, error, message):
    with pytest.raises(error, match=message):
        backward.delta_of(O, dO)


def test_delta_of_what_requires_a_gradient_is_refused():
    with pytest.raises(ValueError, match="O requires a gradient, and this kernel has no backward"):
        backward.delta_of(torch.ones(1, 1, 2, 16, device=DEVICE, requires_grad=True), torch.ones(1, 1, 2, 16))
