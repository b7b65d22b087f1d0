"""Parts of rows and keys: Hopper's kernels return fp32 and take delta; interpreted, and on a Hopper GPU."""

import pytest
import torch

from flashlib import gluon, torch_ref
from flashlib.kernels import backward as portable
from flashlib.kernels import forward as portable_forward
from flashlib.kernels.hopper import backward, forward, launch
from tests import oracle
from tests.kernels import gradients
from tests.kernels.hopper import on_a_cpu
from tests.kernels.hopper.test_numbers import BACKWARD, BACKWARD_256, COMBINED

HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
FP32 = torch.float32
DTYPES = [torch.float16, torch.bfloat16]
on_hopper = [pytest.mark.gpu, pytest.mark.skipif(not HOPPER, reason="no Hopper GPU")]


class Interpreted:
    """Both kernels on a CPU."""

    @staticmethod
    def attention(Q, K, V, **options):
        return on_a_cpu.attended("forward", Q, K, V, on_a_cpu.Tiles(), on_a_cpu.ORDERS[2], **options)[0]

    @staticmethod
    def backward(*tensors, **options):
        given = {"tiles": on_a_cpu.Tiles(), "order": on_a_cpu.ORDERS[2], **options}
        return on_a_cpu.differentiated("backward", *tensors, **given)[0]


class Compiled:
    """Both kernels on a GPU."""

    attention, backward = staticmethod(forward.attention), staticmethod(backward.backward)


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=on_hopper)])
def way(request):
    return (Interpreted if request.param == "cpu" else Compiled), request.param


def problem(device, N_q, N_k, d, dtype=torch.bfloat16, heads=(1, 2, 1)):
    """Return Q, K, V, dO, and O, lse and delta of whole rows, which see more keys."""
    B, H, H_k = heads
    torch.manual_seed(N_q + N_k + d)
    shapes = (B, H, N_q, d), (B, H_k, N_k, d), (B, H_k, N_k, d), (B, H, N_q, d)
    Q, K, V, dO = (torch.randn(shape, device=device).to(dtype) for shape in shapes)
    O = torch.randn_like(Q)
    return (Q, K, V), (O, torch.rand(B, H, N_q, device=device) + 6, dO)


SIZES = [(77, 53), (131, 257)]


@pytest.mark.parametrize("N_q, N_k", SIZES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128])
def test_O_in_fp32_is_O_before_it_is_rounded(d, causal, N_q, N_k, way, poisoned):
    kernels, device = way
    (Q, K, V), _ = problem(device, N_q, N_k, d)
    rounded, given = (kernels.attention(Q, K, V, causal=causal, out_dtype=out) for out in (None, FP32))
    assert (rounded.O.dtype, given.O.dtype) == (Q.dtype, FP32)
    assert torch.equal(given.O.to(Q.dtype), rounded.O) and torch.equal(given.lse, rounded.lse)
    assert not torch.equal(given.O, rounded.O.float())


@pytest.mark.parametrize("N_q, N_k", SIZES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128])
def test_gradients_in_fp32_are_those_before_they_are_rounded(d, causal, N_q, N_k, way, poisoned):
    kernels, device = way
    inputs, saved = problem(device, N_q, N_k, d)
    rounded, given = (kernels.backward(*inputs, *saved, causal=causal, out_dtype=out) for out in (None, FP32))
    for X, X_rounded in zip(given, rounded, strict=True):
        assert (X.dtype, X_rounded.dtype) == (FP32, inputs[0].dtype)
        assert not torch.equal(X, X_rounded.float())
        assert (X - X_rounded).abs().max() <= torch.finfo(X_rounded.dtype).eps * X.abs().max()
    for name in ("dK", "dV"):  # sums of dQ come in any order
        assert torch.equal(getattr(given, name).to(inputs[0].dtype), getattr(rounded, name)), name


@pytest.mark.parametrize("with_dlse", [False, True])
@pytest.mark.parametrize("d", [64, 128])
def test_delta_computed_once_gives_the_same_bits(d, with_dlse, way, poisoned):
    kernels, device = way
    inputs, (O, lse, dO) = problem(device, 77, 200, d)
    options = {"dlse": torch.randn_like(lse) if with_dlse else None, "causal": True, "out_dtype": FP32}
    delta = portable.delta_of(O, dO).mT.contiguous().mT
    exact = kernels.backward(*inputs, O, lse, dO, **options)
    given = kernels.backward(*inputs, None, lse, dO, delta=delta, **options)
    assert torch.equal(given.dK, exact.dK) and torch.equal(given.dV, exact.dV)
    assert (given.dQ - exact.dQ).abs().max() <= 1e-6 * exact.dQ.abs().max()


FEW = BACKWARD[1], COMBINED, BACKWARD_256[1]
CASES = [*(("few", sizes) for sizes in FEW), *(("all", sizes) for sizes in (*BACKWARD[3:5], BACKWARD_256[2]))]


@pytest.mark.parametrize("amount, sizes", CASES, ids=str)
def test_the_gradients_are_as_exact_as_those_of_standard_attention(amount, sizes, poisoned):
    Q, K, V, O, lse, dO, dlse = on_a_cpu.inputs(sizes)
    options = {"causal": sizes.causal, "out_dtype": FP32}
    given = Interpreted.backward(Q, K, V, O, lse, dO, dlse=dlse, **options)
    gradients.hold(given, Q, K, V, dO, dlse, **options)


@pytest.mark.parametrize("N_q, N_k", [(1, 1), (1, 4099), (129, 127), (193, 1021), (1021, 193), (2047, 1021)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.gpu
@pytest.mark.skipif(not HOPPER, reason="no Hopper GPU")
def test_equals_fp64_on_a_gpu(d, dtype, causal, N_q, N_k, poisoned):
    (Q, K, V), (_, _, dO) = problem("cuda", N_q, N_k, d, dtype, (2, 6, 3))
    options = {"causal": causal, "out_dtype": FP32}
    exact = torch_ref.attention(
        Q.double(), *(X.double().repeat_interleave(2, dim=1) for X in (K, V)), causal=causal
    )
    O, lse = forward.attention(Q, K, V, **options)
    other = portable_forward.attention(Q, K, V, **options)
    plain = other.O.cpu().double()
    oracle.assert_close(O.cpu(), exact.O.cpu(), rounding=1e-6, plain=plain, what="O")
    oracle.assert_close(lse.cpu(), exact.lse.cpu(), rounding=4e-6, plain=other.lse.cpu(), what="lse")
    saved = forward.attention(Q, K, V, causal=causal)
    gradients.hold(backward.backward(Q, K, V, *saved, dO, **options), Q, K, V, dO, **options)


@pytest.mark.parametrize("rows, keys", [((3, 130), (5, 133)), ((64, 197), (0, 64))])
@pytest.mark.parametrize("d", [64, 128])
def test_slices_of_tensors_are_taken_without_a_copy(d, rows, keys, way, poisoned):
    """Slices of rows and keys, as in a ring: nothing around them is read, and results are contiguous."""
    kernels, device = way
    (Q, K, V), (_, lse, dO) = problem(device, 197, 197, d)
    i, j = slice(*rows), slice(*keys)
    for X, inside in ((Q, i), (K, j), (V, j), (dO, i)):
        kept = X[:, :, inside].clone()
        X.fill_(torch.nan)
        X[:, :, inside] = kept
    parts = Q[:, :, i], K[:, :, j], V[:, :, j]
    copies = [X.contiguous() for X in parts]
    given, other = (kernels.attention(*of, out_dtype=FP32) for of in (parts, copies))
    assert torch.equal(given.O, other.O) and given.O.isfinite().all() and given.O.is_contiguous()
    of_rows = lse[:, :, i], dO[:, :, i]
    options = {"delta": lse[:, :, i] * 0.1, "out_dtype": FP32}
    given, other = (kernels.backward(*of, None, *of_rows, **options) for of in (parts, copies))
    assert torch.equal(given.dK, other.dK) and torch.equal(given.dV, other.dV)
    assert all(X.isfinite().all() and X.is_contiguous() for X in given)


@pytest.mark.parametrize("out_dtype", [torch.float64, torch.float16, "float32"])
def test_a_dtype_that_the_kernels_do_not_write_is_refused(out_dtype):
    (Q, K, V), (O, lse, dO) = problem("cpu", 8, 8, 64)
    with pytest.raises(TypeError, match="out_dtype is .*; pass torch.float32, .* or None for torch.bfloat16"):
        Interpreted.attention(Q, K, V, out_dtype=out_dtype)
    with pytest.raises(TypeError, match="out_dtype is "):
        Interpreted.backward(Q, K, V, O, lse, dO, out_dtype=out_dtype)


def test_O_in_fp32_has_no_room_at_d_256():
    Q = torch.zeros(1, 1, 8, 256).half()
    with pytest.raises(ValueError, match="out_dtype is torch.float32 and d 256; O is put where Q was, .*: call"):
        launch.dtype_of_O(FP32, Q)
    assert launch.dtype_of_O(None, Q) == launch.dtype_of_O(torch.float16, Q) == torch.float16


def test_parts_of_the_keys_add_up_to_the_whole(poisoned):
    """At d = 256; lse, O and delta are those of rows that see more keys; shares are in fp32."""
    Q, K, V, O, lse, dO, _ = on_a_cpu.inputs(on_a_cpu.Sizes((1, 2, 1), 70, 150, 256, False))
    options = {"delta": (O.float() * dO.float()).sum(-1), "out_dtype": FP32}
    whole = Interpreted.backward(Q, K, V, None, lse, dO, **options)
    keys = slice(0, 83), slice(83, 150)
    parts = [Interpreted.backward(Q, K[:, :, j], V[:, :, j], None, lse, dO, **options) for j in keys]
    assert (sum(part.dQ for part in parts) - whole.dQ).abs().max() <= 1e-4 * whole.dQ.abs().max()
    for name in ("dK", "dV"):
        found, same = torch.cat([getattr(part, name) for part in parts], dim=2), getattr(whole, name)
        assert (found - same).abs().max() <= 1e-4 * same.abs().max()


def test_a_call_with_the_plan_of_another_has_the_same_bits(poisoned):
    """At d = 256, which has a different launch; also with delta computed before."""
    *tensors, dlse = on_a_cpu.inputs(on_a_cpu.Sizes((2, 2, 1), 67, 70, 256, True))
    Q, K, V, O, lse, dO = tensors
    options = {"dlse": dlse, "causal": True}
    with on_a_cpu.tiled(on_a_cpu.Tiles()), gluon.on_cpu(seed=1):
        first, again = (backward.backward(*tensors, **options) for _ in range(2))
        parts = backward.backward(Q, K, V, None, lse, dO, delta=portable.delta_of(O, dO), **options)
    gradients.hold(first, Q, K, V, dO, dlse, causal=True)
    for other in (again, parts):
        assert all(torch.equal(one, same) for one, same in zip(first, other, strict=True))
