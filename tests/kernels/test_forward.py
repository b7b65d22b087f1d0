"""The forward kernel, tuned or on the ladder, equals fp64 as closely as plain attention in the same dtype does."""

from functools import partial

import numpy as np
import pytest
import torch

from flashlib import torch_ref
from flashlib.kernels import DEVICE, forward
from flashlib.kernels.ablations import forward as ablated
from flashlib.kernels.ablations import warp_specialised
from flashlib.kernels.ladder import r3_flash, r4_exp2, r5_causal, r8_descriptors
from flashlib.kernels.launch import planning, tile_sizes
from tests import oracle
from tests.kernels.scores import under
from tests.tiers import amounts

HALF = [torch.float16, torch.bfloat16]
SMALL = {"B_r": 32, "B_c": 16}  # more than one block at the sizes of the interpreter
RUNGS = {
    "r3_flash": r3_flash.attention,
    "r4_exp2": r4_exp2.attention,
    "r5_causal": r5_causal.attention,
    "r8_descriptors": r8_descriptors.attention,
    "without_common_wait": partial(r8_descriptors.attention, common_wait=False),
    "warp_specialised": warp_specialised.attention,
    "without_warp_specialize": partial(warp_specialised.attention, warp_specialize=False),
    "without_late_division": partial(ablated.attention, late_division=False),
    "without_parallel_rows": partial(ablated.attention, parallel_rows=False),
    "without_split_rows": partial(ablated.attention, split_rows=False),
}
KERNELS = {
    "pointers": partial(forward.attention, descriptors=False),
    "descriptors": partial(forward.attention, descriptors=True),
    **RUNGS,
}
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
each_module = pytest.mark.parametrize(  # each with its own checks; the ablations are one module
    "amount, kernel",
    [("all" if name in list(KERNELS)[-3:] else "few", kernel) for name, kernel in KERNELS.items()],
    ids=KERNELS,
)
at_any_score = pytest.mark.parametrize("name", [name for name in KERNELS if name != "r3_flash"])


def tensors(device, N_q, N_k, d, dtype, heads=(1, 2)):
    return tuple(torch.randn(*heads, n, d, device=device).to(dtype) for n in (N_q, N_k, N_k))


def largest(X):
    """Return the largest finite absolute value in X, at least 1."""
    return max(1.0, X.double().nan_to_num(nan=0, posinf=0, neginf=0).abs().max().item() if X.numel() else 0)


def check(kernel, Q, K, V, **options):
    """Run the kernel and compare O and lse with fp64; options choose the tiles, causal, mask and scale."""
    problem = {name: options[name] for name in ("causal", "mask", "scale") if name in options}
    exact = torch_ref.attention(*(X.double() for X in (Q, K, V)), **problem)
    plain = torch_ref.attention(Q, K, V, **problem)
    given = kernel(Q, K, V, **options)
    assert given.O.dtype == Q.dtype and given.lse.dtype == torch.float32
    plain_fp32 = torch_ref.attention(*(X.float() for X in (Q, K, V)), **problem)  # what lse is computed in
    fp32 = 2.0**-23 * largest(exact.lse)
    O, O_exact, O_plain = (X.O.cpu().double() for X in (given, exact, plain))
    in_turn = 2.0**-24 * K.shape[2] ** 0.5  # keys are added one after the other, where plain attention adds blocks
    in_scores = dot_product_rounding(Q, K, problem.get("scale"), problem.get("mask"))
    rounding = (max(fp32, in_turn) + in_scores) * largest(V)
    oracle.assert_close(O, O_exact, plain=O_plain, rounding=rounding, what="O")
    lse, lse_exact, lse_plain = (X.lse.cpu() for X in (given, exact, plain_fp32))
    to_base_2_and_back = 2 * fp32  # four roundings: log2(e) in scale, the score, its inverse, the quotient
    oracle.assert_close(lse, lse_exact, plain=lse_plain, rounding=to_base_2_and_back + in_scores, what="lse")
    return given


def dot_product_rounding(Q, K, scale, mask=None):
    """Return how much a score can lose as its d products are added one after the other in fp32.

    That is about sqrt(d) half-ulps of a partial sum; the size of partial sums is the root of the squared products.
    A mask that changes scores multiplies the error by its slope, and rounds several times itself.
    """
    if not Q.numel() or not K.numel():
        return 0.0
    d = Q.shape[-1]
    farthest = (Q.double().square() @ K.double().square().mT).max().sqrt().item()
    scale = scale or 1 / d**0.5
    lost = 2.0**-24 * d**0.5 * farthest * scale
    if mask is None or not mask.changes_scores:
        return lost
    S = under(mask, Q.double() @ K.double().mT * scale)
    return lost * S.steepest + 2.0**-22 * S.steepest * S.size


@each_kernel
@pytest.mark.parametrize("dtype", [*HALF, torch.float32])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("N_q, N_k", [(37, 53), (53, 37), (64, 64), (1, 70)])
def test_equals_fp64(kernel, dtype, causal, N_q, N_k, device, poisoned):
    check(kernel, *tensors(device, N_q, N_k, 16, dtype), causal=causal, **SMALL)


@pytest.mark.parametrize("amount, d", amounts([16, 17, 40, 64, 96, 128, 200, 256], few=[17, 64, 200]))
@pytest.mark.parametrize("dtype", [*HALF, torch.float32])
@pytest.mark.parametrize("causal", [False, True])
def test_every_head_dimension_with_the_default_tiles(amount, d, dtype, causal, device, poisoned):
    heads = (1, 2) if device == "cuda" else (1, 1)
    check(forward.attention, *tensors(device, 150, 201, d, dtype, heads), causal=causal)


@pytest.mark.parametrize("name", ["pointers", "descriptors"])
@pytest.mark.parametrize("d", [24, 40, 72])
@pytest.mark.parametrize("causal", [False, True])
def test_head_dimensions_that_are_not_powers_of_two_inside_nan(name, d, causal, device, poisoned):
    borders = [torch.full((2, 3, n, 2 * d), torch.nan, device=device, dtype=torch.float16) for n in (37, 53, 53)]
    Q, K, V = (X[..., :d].copy_(torch.randn(X[..., :d].shape)) for X in borders)
    check(KERNELS[name], Q, K, V, causal=causal, **SMALL)


def test_with_all_ideas_it_equals_rung_5_to_the_bit(device, poisoned):
    Q, K, V = tensors(device, 83, 53, 16, torch.float16)
    given, expected = (module.attention(Q, K, V, causal=True, **SMALL) for module in (ablated, r5_causal))
    assert torch.equal(given.O, expected.O) and torch.equal(given.lse, expected.lse)


@pytest.mark.parametrize("name", ["pointers", "descriptors"])
@pytest.mark.parametrize("H_q, H_k", [(6, 2), (4, 1), (3, 3)])
@pytest.mark.parametrize("causal", [False, True])
def test_grouped_heads_read_their_head_of_K_and_V(name, H_q, H_k, causal, device, poisoned):
    Q, K, V = tensors(device, 37, 53, 16, torch.float32, heads=(2, H_q))
    K, V = K[:, :H_k], V[:, :H_k]
    given = KERNELS[name](Q, K, V, causal=causal, **SMALL)
    repeated = [X.repeat_interleave(H_q // H_k, dim=1) for X in (K, V)]
    expected = check(KERNELS[name], Q, *repeated, causal=causal, **SMALL)
    assert torch.equal(given.O, expected.O) and torch.equal(given.lse, expected.lse)


@pytest.mark.parametrize("H_q, H_k", [(5, 2), (2, 4), (3, 0)])
def test_heads_that_cannot_be_grouped_are_refused(H_q, H_k):
    Q, K = (torch.zeros(1, H, 5, 16, device=DEVICE) for H in (H_q, H_k))
    with pytest.raises(ValueError, match=f"Q has {H_q} heads and K and V have {H_k}; H_q must be a multiple"):
        forward.attention(Q, K, K)
    with pytest.raises(ValueError, match="all axes before the last two must be equal"):
        r5_causal.attention(Q, K, K)


@each_kernel
@pytest.mark.parametrize(
    "amount, past", amounts([-17, -16, -15, -1, 0, 1, 2, 15, 16, 17, 31, 33], few=[-17, -16, -1, 0, 1, 15, 16, 17])
)
def test_the_diagonal_may_cross_tiles_anywhere(amount, kernel, past, device, poisoned):
    """past = N_k - N_q moves the diagonal through the tiles: those that it only touches are not left out."""
    check(kernel, *tensors(device, 48, 48 + past, 16, torch.float32, heads=(1, 1)), causal=True, **SMALL)


@each_kernel
@pytest.mark.parametrize("causal", [False, True])
def test_does_not_depend_on_the_tiles(kernel, causal, device):
    Q, K, V = tensors(device, 53, 71, 16, torch.float32)
    for B_r, B_c in [(16, 64), (64, 16)]:
        check(kernel, Q, K, V, causal=causal, B_r=B_r, B_c=B_c)


@each_kernel
@pytest.mark.parametrize(
    "largest_score, dtype", [(100.0, torch.float16), (100.0, torch.float32), (1e4, torch.float32)]
)
def test_large_scores(kernel, largest_score, dtype, device, poisoned):
    Q, K, V = tensors(device, 37, 53, 16, dtype)
    Q *= largest_score / (Q @ K.mT / 4).abs().max()
    check(kernel, Q, K, V, causal=True, **SMALL)


@at_any_score
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e5, 1e8, 1e11, 2e27])
def test_scores_of_any_size(name, scale, device, poisoned):
    """Products of small whole numbers are exact, so keys tie: they share a row's weight at any scale."""
    Q, K = (torch.randint(-2, 3, (1, 2, n, 16), device=device).half() for n in (37, 53))
    V = torch.randn(1, 2, 53, 16, device=device).half()
    O, lse = KERNELS[name](Q, K, V, causal=True, scale=scale, **SMALL)
    S = Q.double() @ K.double().mT
    S = S.masked_fill(~torch.ones_like(S, dtype=torch.bool).tril(53 - 37), -torch.inf)
    m = S.amax(-1, keepdim=True)
    P = torch.exp((S - m) * scale)  # scaled before, ties would part, in fp64 too
    exact, exact_lse = P @ V.double() / P.sum(-1, keepdim=True), (m * scale)[..., 0] + P.sum(-1).log()
    assert (O - exact).abs().max() <= torch.finfo(O.dtype).eps * largest(V), "more than P and O are rounded"
    assert ((lse - exact_lse).abs() <= 2.0**-22 * exact_lse.abs().clamp(min=4)).all()


@at_any_score
@pytest.mark.parametrize("size", [3.8e5, 3.8e9, 1e30])
@pytest.mark.parametrize("sign", [1, -1])
def test_huge_scores_select_their_rows_of_V(name, size, sign, device, poisoned):
    """The largest score of a row, positive or negative, selects its row of V; two of them, the mean of two."""
    Q, K = torch.ones(1, 1, 37, 16, device=device).half(), torch.zeros(1, 1, 53, 16, device=device).half()
    V = torch.randn(1, 1, 53, 16, device=device).half()
    K[..., 0] = sign * (1.1875 if sign < 0 else 0.8125)  # every other score
    K[:, :, [20, 40], 0] = sign
    for selected in ([20, 40], [20]):
        K[:, :, 40, 0] = K[:, :, selected[-1], 0] if len(selected) == 2 else K[:, :, 0, 0]
        O, lse = KERNELS[name](Q, K, V, scale=size, **SMALL)
        expected = V[:, :, selected].float().mean(2, keepdim=True).expand(-1, -1, 37, -1)
        assert (O - expected).abs().max() <= torch.finfo(O.dtype).eps / 2 * largest(V)
        assert ((lse - sign * size).abs() <= 2.0**-22 * size + 1).all()


@pytest.mark.parametrize("name", ["pointers", "descriptors"])
def test_a_huge_score_that_is_replaced_leaves_nothing_behind(name, device, poisoned):
    """The first tile has only huge negative scores, whose weights may overflow before a later tile comes."""
    Q, K = torch.ones(1, 1, 37, 16, device=device).half(), torch.ones(1, 1, 53, 16, device=device).half()
    V = torch.randn(1, 1, 53, 16, device=device).half() * 1000
    K[:, :, :16] *= -30000.0
    K *= 2.0**-10
    check(KERNELS[name], Q, K, V, scale=1e6, **SMALL)


@each_kernel
def test_scale(kernel, device, poisoned):
    check(kernel, *tensors(device, 37, 53, 16, torch.float32), scale=0.7, **SMALL)


@each_kernel
@pytest.mark.parametrize("N_q, N_k", [(0, 5), (5, 0), (1, 1)])
@pytest.mark.parametrize("causal", [False, True])
def test_nothing_and_one_token(kernel, N_q, N_k, causal, device, poisoned):
    given = check(kernel, *tensors(device, N_q, N_k, 16, torch.float32), causal=causal, **SMALL)
    if N_k == 0:
        assert (given.O == 0).all() and (given.lse == -torch.inf).all()


@each_kernel
def test_rows_that_see_no_key(kernel, device, poisoned):
    given = check(kernel, *tensors(device, 83, 21, 16, torch.float16), causal=True, **SMALL)
    assert (given.O[:, :, : 83 - 21] == 0).all() and (given.lse[:, :, : 83 - 21] == -torch.inf).all()


@each_kernel
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_any_strides_and_nothing_read_outside(kernel, dtype, device, poisoned):
    """Layout (B, N, H, d), every tensor inside a border of NaN."""
    borders = [torch.full((2, n + 4, 2, 32), torch.nan, device=device, dtype=dtype) for n in (37, 53, 53)]
    inside = [X[:, 2:-2, :, 8:24] for X in borders]
    for X in inside:
        X.copy_(torch.randn(X.shape))
    Q, K, V = (X.transpose(1, 2) for X in inside)
    before = [X.clone() for X in borders]
    check(kernel, Q, K, V, causal=True, **SMALL)
    for X, copy in zip(borders, before, strict=True):
        assert torch.equal(X.nan_to_num(7), copy.nan_to_num(7)), "an input was changed"


def test_strides_of_zero_and_a_last_axis_that_is_not_contiguous(device, poisoned):
    Q, K, V = tensors(device, 37, 53, 16, torch.float32, heads=(2, 3))
    shared = K[:, :1].expand(-1, 3, -1, -1)
    check(forward.attention, Q, shared, V.mT.contiguous().mT, **SMALL)


@pytest.mark.parametrize(
    "name", [name for name in KERNELS if name not in ("r3_flash", "r4_exp2")]
)  # they skip none
def test_tiles_hidden_by_the_mask_are_not_read(name, device):
    Q, K, V = tensors(device, 64, 64, 16, torch.float32)
    expected = KERNELS[name](Q, K, V, causal=True, B_r=32, B_c=16).O[:, :, :32]
    V[:, :, 32:] = torch.nan  # 0 * nan is nan: only a tile that is left out leaves no trace
    assert torch.equal(KERNELS[name](Q, K, V, causal=True, B_r=32, B_c=16).O[:, :, :32], expected)


@each_module
def test_a_lazy_negation_is_carried_out(amount, kernel, device):
    Q, K, V = tensors(device, 37, 53, 16, torch.float32)
    given = kernel(torch._neg_view(Q), K, V, **SMALL)
    assert torch.equal(given.O, kernel(-Q, K, V, **SMALL).O)


@each_module
def test_nan_is_not_hidden(amount, kernel, device):
    Q, K, V = tensors(device, 37, 53, 16, torch.float32)
    V[0, 1, 20, 3] = torch.nan
    O = kernel(Q, K, V, **SMALL).O
    assert O[0, 1, :, 3].isnan().all() and O.isnan().sum() == 37


@pytest.mark.gpu
@pytest.mark.parametrize("d", [16, 64, 80, 128, 256])
@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("N_q, N_k", [(1024, 1024), (1021, 2047), (2047, 1021), (1, 4099)])
@pytest.mark.parametrize("descriptors", [False, True])
def test_long_sequences_on_a_gpu(d, dtype, causal, N_q, N_k, descriptors, poisoned):
    torch.manual_seed(0)
    Q, K, V = tensors("cuda", N_q, N_k, d, dtype, heads=(2, 3))
    check(forward.attention, Q, K, V, causal=causal, descriptors=descriptors)


@pytest.mark.gpu
def test_tiles_that_do_not_fit_are_reported():
    Q, K, V = tensors("cuda", 300, 300, 128, torch.float16)
    with pytest.raises(ValueError, match="B_R=256, B_C=256, .* take .* of shared memory, and this GPU has"):
        forward.attention(Q, K, V, B_r=256, B_c=256, num_warps=8, num_stages=3)


@pytest.mark.gpu
def test_more_heads_than_a_grid_axis_and_offsets_beyond_32_bits(poisoned):
    torch.manual_seed(0)
    Q, K, V = tensors("cuda", 17, 33, 16, torch.float16, heads=(70000, 1))
    check(forward.attention, Q, K, V, causal=True)
    wide = torch.randn(3, 1, 64, 2**24 + 64, device="cuda", dtype=torch.float16)  # element 2^31 is in head 2
    Q, K, V = (wide[..., -64:] for _ in range(3))
    check(forward.attention, Q, K, V, causal=True)


X = torch.zeros(1, 2, 32, 16)


@each_kernel
@pytest.mark.parametrize(
    "Q, K, V, options, error, words",
    [
        (X.numpy(), X, X, {}, TypeError, "Q is of type ndarray; pass a torch tensor"),
        (
            X.double(),
            X.double(),
            X.double(),
            {},
            TypeError,
            "Q has dtype torch.float64; accepted are",
        ),
        (X, X.half(), X, {}, TypeError, "K has dtype torch.float16 and Q has torch.float32"),
        (X, X.to("meta"), X, {}, ValueError, "K is on meta and Q on cpu"),
        (X[0], X[0], X[0], {}, ValueError, r"Q has shape \(2, 32, 16\); expected 4 axes"),
        (X, X, X[:, :, :3], {}, ValueError, "they must be equal"),
        (X[..., :12], X[..., :12], X[..., :12], {}, ValueError, "d is 12; the kernel takes 16"),
        (X, X, X, {"causal": None}, TypeError, "causal is None"),
        (X, X, X, {"scale": -1}, ValueError, "scale is -1"),
        (X, X, X, {"B_r": 0}, ValueError, "B_r is 0; the kernel takes 16, 32, 64, 128, 256"),
        (X, X, X, {"B_c": -16}, ValueError, "B_c is -16"),
        (X, X, X, {"B_c": 48}, ValueError, "B_c is 48"),
        (X, X, X, {"B_r": 64.0}, TypeError, "B_r is 64.0"),
    ],
)
def test_bad_input_is_refused(kernel, Q, K, V, options, error, words, monkeypatch):
    monkeypatch.setattr(
        "flashlib.kernels.launch.inputs.check_device", lambda **_: None
    )  # the same on a machine with a GPU
    with pytest.raises(error, match=words):
        kernel(Q, K, V, **options)


def test_tensors_a_kernel_cannot_reach_are_refused(monkeypatch):
    with pytest.raises(ValueError, match="Q is on meta, where no kernel runs: Q.to"):
        forward.attention(*[X.to("meta")] * 3)
    monkeypatch.setattr("flashlib.kernels.launch.inputs.INTERPRETED", False)
    with pytest.raises(ValueError, match="Q is on cpu, where no kernel runs: (Q.to|torch finds no GPU)"):
        forward.attention(X, X, X)


@each_module
def test_a_gradient_is_refused_and_not_lost(amount, kernel, device):
    Q, K, V = tensors(device, 37, 53, 16, torch.float32)
    V.requires_grad_()
    with pytest.raises(
        ValueError,
        match="V requires a gradient, and this kernel has no backward: pass V.detach.*autograd.attention",
    ):
        kernel(Q, K, V, **SMALL)
    with torch.no_grad():
        kernel(Q, K, V, **SMALL)


@each_module
def test_numpy_integers_are_block_sizes(amount, kernel, device):
    check(kernel, *tensors(device, 37, 53, 16, torch.float32), B_r=np.int64(32), B_c=np.int32(16), causal=np.True_)


@each_kernel
@pytest.mark.parametrize("options", [{"num_warps": 3}, {"num_warps": 0}, {"num_warps": 32}, {"num_stages": 0}])
def test_bad_launch_options_are_refused(kernel, options, device):
    name, value = next(iter(options.items()))
    with pytest.raises(ValueError, match=f"{name} is {value}; "):
        kernel(*tensors(device, 8, 8, 16, torch.float32), **options)


def test_descriptors_are_a_bool(device):
    with pytest.raises(TypeError, match=r"descriptors is 1; pass True or False"):
        forward.attention(*tensors(device, 8, 8, 16, torch.float32), descriptors=1)


def test_descriptors_are_the_default_where_they_pay(monkeypatch):
    def default(tensor):
        return planning.resolve_descriptors(None, tensor, tensor, tensor)

    monkeypatch.setattr(tile_sizes, "room", lambda device: tile_sizes.Room(227 * 1024, 132, tma=True))
    assert default(X.half()) and default(X.half().transpose(1, 2))
    assert not default(X), "they spill registers in fp32"
    assert not default(X.half()[:, :, :0]) and not default(X.half()[..., 1:])
    monkeypatch.setattr(tile_sizes, "room", lambda device: tile_sizes.Room(163 * 1024, 108))
    assert not default(X.half())


def test_descriptors_are_refused_where_they_cannot_be(device):
    odd = torch.zeros(1, 1, 33, 17, device=device)[..., 1:]  # rows 68 bytes apart
    with pytest.raises(ValueError, match="rows and strides of multiples of 16 bytes"):
        forward.attention(odd, odd, odd, descriptors=True)
    forward.attention(odd, odd, odd)
