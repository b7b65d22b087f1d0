"""Q, K and V in eight bits: rounded to the nearest numbers, together with the scales and means taken out."""

import functools

import pytest
import torch

from flashlib.kernels import DEVICE, quantise
from tests.kernels import eight
from tests.tiers import amounts

# B, H, H_k, N_q, N_k, d, dtype
SIZES = [
    (1, 2, 1, 70, 133, 64, torch.bfloat16),
    (2, 2, 2, 33, 521, 128, torch.float16),
    (1, 3, 1, 1, 1, 256, torch.bfloat16),
    (1, 1, 1, 65, 1031, 32, torch.float16),
]


@functools.cache
def inputs(B, H, H_k, N_q, N_k, d, dtype):
    generator = torch.Generator().manual_seed(N_q * N_k)
    shapes = (B, H, N_q, d), (B, H_k, N_k, d), (B, H_k, N_k, d)
    given = [torch.randn(s, generator=generator) + 3 * torch.randn(s[-1], generator=generator) for s in shapes]
    return [X.to(device=DEVICE, dtype=dtype) for X in given]


def turned(X, rotated=True):
    """Return rows times the orthogonal matrix, in fp64."""
    group = min(X.shape[-1], quantise.WIDEST)
    matrix = quantise.rotation(group, torch.float64, X.device) / group**0.5
    return (X.double().unflatten(-1, (-1, group)) @ matrix).flatten(-2) if rotated else X.double()


def off(x, q, scale, qk):
    """Return the error of q relative to the allowed one: half a spacing, and the rounding of x in fp32."""
    y = x / scale
    spacing = torch.exp2(y.abs().clamp(2.0**-6, 448).log2().floor() - 3) if qk == "e4m3" else torch.ones_like(y)
    return ((q.double() - y).abs() / (spacing / 2 + y.abs() * 2.0**-20 + 5e-4)).max().item()


@pytest.mark.parametrize("rotated, centred", [(True, True), (False, True), (True, False)])
@pytest.mark.parametrize("qk", sorted(quantise.FORMATS))
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_numbers_are_the_nearest(size, qk, rotated, centred):
    Q, K, V = inputs(*size)
    small = quantise.quantised(Q, K, V, qk=qk, rotated=rotated, centred=centred)
    assert small.Q.dtype == small.K.dtype == quantise.FORMATS[qk] and small.V.dtype == torch.float8_e4m3fn
    q, k = turned(Q, rotated), turned(K, rotated)
    k_mean, v_mean = (X.mean(-2, keepdim=True) * centred for X in (k, V.double()))
    assert off(q, small.Q, small.q_scale.double()[..., None], qk) <= 1
    assert off(k - k_mean, small.K, small.k_scale.double()[..., None, None], qk) <= 1
    columns = small.V.double()[..., : size[4]].mT
    assert off(V.double() - v_mean, columns, small.v_scale.double()[..., None, None], "e4m3") <= 1
    assert not small.V.double()[..., size[4] :].any()  # past the last key
    taken = (q * k_mean.repeat_interleave(size[1] // size[2], 1)).sum(-1)
    assert (small.v_mean.double() - v_mean[:, :, 0]).abs().max() < 1e-5
    assert (small.q_taken.double() - taken).abs().max() < 1e-3


@pytest.mark.parametrize("qk", sorted(quantise.FORMATS))
def test_the_largest_number_of_a_scale_is_the_last_of_the_format(qk):
    small = quantise.quantised(*inputs(*SIZES[0]), qk=qk)
    assert (small.Q.double().abs().amax(-1) == quantise.LARGEST[qk]).all()
    assert (small.K.double().abs().amax((-1, -2)) == quantise.LARGEST[qk]).all()
    assert (small.V.double().abs().amax((-1, -2)) == quantise.LARGEST["e4m3"]).all()


@pytest.mark.parametrize("d", [16, 64, 128])
def test_the_rotation_is_orthogonal_and_has_only_1_and_minus_1(d):
    matrix = quantise.rotation(d, torch.float64, torch.device("cpu"))
    assert torch.equal(matrix @ matrix.T, d * torch.eye(d, dtype=torch.float64)) and (matrix.abs() == 1).all()


@pytest.mark.parametrize("amount, size", amounts(SIZES, few=SIZES[:1]), ids=str)
def test_permuted_columns_are_the_same_columns(amount, size):
    plain, permuted = (quantise.quantised(*inputs(*size), permuted=x) for x in (False, True))
    assert torch.equal(eight.natural(permuted.V), plain.V.double())
    assert torch.equal(permuted.K.double(), plain.K.double())


def test_strides_inside_nan():
    """Tensors are slices of larger ones, (B, N, H, d), whose other elements are NaN: nothing there is read."""
    given = []
    for X in inputs(*SIZES[0]):
        B, H, N, d = X.shape
        wide = torch.full((B, N + 5, H + 1, 2 * d), torch.nan, device=X.device, dtype=X.dtype)
        inner = wide[:, 2 : N + 2, :H, d:].transpose(1, 2)
        inner.copy_(X)
        given.append(inner)
    one, two = quantise.quantised(*given), quantise.quantised(*inputs(*SIZES[0]))
    assert all(torch.equal(X.double(), Y.double()) for X, Y in zip(one, two, strict=True))


def test_zeros_stay_zeros():
    X = torch.zeros(1, 1, 20, 64, dtype=torch.float16, device=DEVICE)
    small = quantise.quantised(X, X, X)
    assert not any(Y.double().any() for Y in small[:3])
    assert (small.q_scale == 1).all() and (small.v_scale == 1).all()


def test_it_repeats_to_the_bit():
    first, again = (quantise.quantised(*inputs(*SIZES[0])) for _ in range(2))
    assert all(torch.equal(X.double(), Y.double()) for X, Y in zip(first, again, strict=True))
