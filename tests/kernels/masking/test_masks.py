"""The kernels under masks equal the definitions of the masks, and standard attention in fp64 under them."""

import numpy as np
import pytest
import torch

from flashlib import kernels, masks, sink, torch_ref
from flashlib.kernels import autograd, backward, forward
from flashlib.kernels.masking import bits, bounds, device_side, packed, prepare
from flashlib.kernels.masking.device_side import MaskArgs
from flashlib.kernels.masking.pass_sizes import PassSizes
from tests import masked, oracle
from tests.kernels import drawn, gradients
from tests.kernels.test_forward import check as check_repeated
from tests.tiers import amounts

triton, tl = kernels.triton, kernels.triton.language

SIZES = [(21, 45), (45, 21)]
SMALL = {"B_r": 16, "B_c": 32, "num_warps": 4, "num_stages": 1}
WAYS = {  # to do the backward pass
    "pointers": {"deterministic": True, "descriptors": False},
    "descriptors": {"deterministic": True, "descriptors": True},
    "fused": {"deterministic": False, "descriptors": None},
}
LOADING = False, True  # descriptors


def one_of(ways, kind, kinds):
    """Return one of the ways, chosen by the index of a kind: each way is used, but not by all kinds."""
    return list(ways)[list(kinds).index(kind) % len(ways)]


def tensors(device, N_q, N_k, d=16, dtype=torch.float32, heads=(1, 2, 1)):
    """Return Q, K, V and dO."""
    B, H_q, H_k = heads
    shapes = (B, H_q, N_q, d), (B, H_k, N_k, d), (B, H_k, N_k, d), (B, H_q, N_q, d)
    return tuple(torch.randn(shape, device=device).to(dtype) for shape in shapes)


def check(Q, K, V, **options):
    """Compare O and lse with standard attention in fp64, and return them; heads of K and V may be grouped."""
    repeated = (X.repeat_interleave(Q.shape[1] // K.shape[1], dim=1) for X in (K, V))
    return check_repeated(lambda Q, *_, **options: forward.attention(Q, K, V, **options), Q, *repeated, **options)


@pytest.mark.parametrize("kind", masked.KINDS)
@pytest.mark.parametrize("size", ["ragged", (0, 5), (5, 0)], ids=str)
def test_every_kind_of_mask_and_its_gradients_equal_the_definition(kind, size, device, rng, poisoned):
    N_q, N_k = one_of(SIZES, kind, masked.KINDS) if size == "ragged" else size
    case = drawn.case(kind, rng, N_q, N_k)
    Q, K, V, dO = tensors(device, N_q, N_k, heads=(1, 1, 1))
    descriptors, way = one_of(LOADING, kind, masked.KINDS), one_of(WAYS.values(), kind, masked.KINDS)
    O, lse = forward.attention(Q, K, V, mask=case.mask, B_r=16, B_c=16, descriptors=descriptors)
    given = backward.backward(Q, K, V, O, lse, dO, mask=case.mask, **way, **SMALL)
    Q_h, K_h, V_h, dO_h = (X[0, 0].cpu().double().numpy() for X in (Q, K, V, dO))
    O_exact, lse_exact, exact = masked.attention(Q_h, K_h, V_h, case, dO=dO_h)
    oracle.assert_close(O[0, 0].cpu(), O_exact, rounding=5e-6, what="O")
    oracle.assert_close(lse[0, 0].cpu(), lse_exact, rounding=5e-6, what="lse")
    bounds = gradients.rounding(Q, K, V, dO, mask=case.mask)
    for name, X, X_exact, bound in zip(given._fields, given, exact, bounds, strict=True):
        oracle.assert_close(
            X[0, 0].cpu(), X_exact, rounding=2 * bound + 1e-8, what=name
        )  # its slopes: differences


FEW = [  # one for each way to list tiles, to distinguish batches and heads, and to change scores
    "causal documents of sequences", "documents of sequences and a union", "slopes of heads", "function of heads",
    "function of heads with a kernel", "score of heads", "blocks of whole tiles", "blocks of parts of tiles",
    "new kind of heads",
]  # fmt: skip


@pytest.mark.parametrize("amount, kind", amounts(drawn.WIDE, few=FEW))
def test_masks_of_batches_heads_and_whole_tiles(amount, kind, device, rng, poisoned):
    N_q, N_k = one_of(SIZES, kind, drawn.WIDE)
    mask = drawn.WIDE[kind](rng, 2, 2, N_q, N_k)
    Q, K, V, dO = tensors(device, N_q, N_k, heads=(2, 2, 1))
    check(Q, K, V, mask=mask, B_r=16, B_c=16, descriptors=one_of(LOADING, kind, drawn.WIDE))
    dlse = torch.randn(Q.shape[:-1], device=device) if kind in ("score of heads", "long documents") else None
    gradients.check(Q, K, V, dO, dlse, mask=mask, **one_of(WAYS.values(), kind, drawn.WIDE), **SMALL)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", ["documents of sequences and a union", "score of heads"])
def test_half_precision(kind, dtype, device, rng, poisoned):
    Q, K, V, dO = tensors(device, 21, 45, dtype=dtype, heads=(1, 1, 1))
    mask = drawn.WIDE[kind](rng, 1, 1, 21, 45)
    check(Q, K, V, mask=mask, B_r=16, B_c=16, descriptors=True)
    gradients.check(Q, K, V, dO, mask=mask, **SMALL)


@pytest.mark.parametrize(
    "amount, kind",
    amounts(
        ["wide window", "long documents", "function of heads", "blocks of parts of tiles"],
        few=["wide window", "function of heads"],
    ),
)
def test_the_result_does_not_depend_on_the_tiles(amount, kind, device, rng, poisoned):
    B_r, B_c = one_of([(64, 16), (16, 64)], kind, drawn.WIDE)
    Q, K, V, dO = tensors(device, 53, 71, heads=(1, 1, 1))
    mask = drawn.WIDE[kind](rng, 1, 1, 53, 71)
    check(Q, K, V, mask=mask, B_r=B_r, B_c=B_c)
    gradients.check(Q, K, V, dO, mask=mask, B_r=B_r, B_c=B_c, num_warps=4)


@triton.jit
def _of_bits(Out_ptr, told, row, column, B_R: tl.constexpr, B_C: tl.constexpr, TRANSPOSED: tl.constexpr):
    r, c = row + tl.arange(0, B_R), column + tl.arange(0, B_C)
    at = Out_ptr + tl.arange(0, B_R)[:, None] * B_C + tl.arange(0, B_C)[None, :]
    if TRANSPOSED:
        tl.store(tl.trans(at), device_side.in_bits(1, 2, r[None, :], c[:, None], told))
    else:
        tl.store(at, device_side.in_bits(1, 2, r[:, None], c[None, :], told))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("B_r, B_c, rows", [(16, 16, 1), (32, 32, 1), (16, 128, 1), (64, 64, 7), (128, 16, 16)])
def test_a_tile_of_bits_is_that_of_the_mask(transposed, B_r, B_c, rows, device, rng):
    """Also past the ends of Q and K, where nothing is seen; rows: how many equal rows of the mask share bits."""
    N_q, N_k = 45, 77
    lines = torch.from_numpy(rng.random((2, 3, -(-N_q // rows), N_k)) < 0.5).to(device)
    whole = torch.zeros(N_q + 128, N_k + 128, dtype=torch.bool, device=device)
    whole[:N_q, :N_k] = lines[1, 2].repeat_interleave(rows, dim=0)[:N_q]
    sizes = PassSizes(2, 3, N_q, N_k, B_r, B_c, device)
    _, told = bits.bits_test(bits.packed_bits(lines), rows, sizes)
    for i, j in [(0, 0), (N_q // B_r, N_k // B_c)]:
        given = torch.full((B_r, B_c), 3, dtype=torch.int8, device=device)
        _of_bits[(1,)](
            given, told, i * B_r + N_k - N_q, j * B_c, B_R=B_r, B_C=B_c, TRANSPOSED=transposed, num_warps=4
        )
        assert torch.equal(given.bool(), whole[i * B_r : (i + 1) * B_r, j * B_c : (j + 1) * B_c])
        assert (given < 2).all()


@pytest.mark.parametrize("amount, heads", [("few", (1, 11, 1)), ("all", (3, 3, 3))], ids=str)
def test_every_block_of_every_head_is_computed(amount, heads, device, rng, poisoned):
    """For more heads than are computed at a time, and not a multiple of them."""
    Q, K, V, dO = tensors(device, 21, 45, heads=heads)
    ids = np.sort(rng.integers(0, 4, (heads[0], 45)), axis=1)
    check(Q, K, V, mask=masks.documents(ids), B_r=16, B_c=16)
    gradients.check(Q, K, V, dO, mask=masks.documents(ids), **SMALL)


@triton.jit
def _turns(Out_ptr, mask_args, T, MASK: tl.constexpr):
    p, head = device_side.program_order(MASK, mask_args, T)
    tl.store(Out_ptr + 2 * tl.program_id(0), p)
    tl.store(Out_ptr + 2 * tl.program_id(0) + 1, head)


@pytest.mark.parametrize("heads, at_a_time", [(3, 3), (8, 8), (19, 8)])
def test_the_longest_blocks_of_eight_heads_come_first(heads, at_a_time, device):
    T, order = 5, torch.empty(1, 5, 8, dtype=torch.int32, device=device)
    turns = torch.full((T * heads, 2), -1, dtype=torch.int32, device=device)
    _turns[(T * heads,)](turns, MaskArgs(order), T, MASK=packed.masking())
    expected = [
        (p, head)
        for first in range(0, heads, at_a_time)
        for p in range(T)
        for head in range(first, min(first + at_a_time, heads))
    ]
    assert [tuple(turn) for turn in turns.tolist()] == expected


@pytest.mark.parametrize("deterministic", [True, False])
def test_keys_past_the_end_have_no_weight_where_all_scores_are_low(deterministic, device, poisoned):
    """A padded key has a score of 0: without a mask its weight is 2^400."""
    Q, K, V, dO = tensors(device, 64, 40, heads=(1, 1, 1))
    Q, K, mask = 3 + Q / 100, -3 - K / 100, masks.window(None, 60)
    gradients.check(Q, K, V, dO, mask=mask, scale=2.0, deterministic=deterministic, **SMALL)


@pytest.mark.parametrize("amount, cap", [("all", 1e5), ("few", 1e8)])
def test_a_large_cap_keeps_the_digits_of_scores(amount, cap, device, poisoned):
    Q, K, V, dO = tensors(device, 21, 45, heads=(1, 1, 1))
    check(Q, K, V, mask=masks.softcap(cap), B_r=16, B_c=16)
    gradients.check(Q, K, V, dO, mask=masks.softcap(cap), **SMALL)


@triton.jit
def _capped(Out_ptr, X_ptr, cap, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(Out_ptr + at, device_side.capped(tl.load(X_ptr + at), 0, at, at, (cap, 1 / cap)))


def test_a_capped_score_is_right_to_the_digits_of_fp32(device):
    S = torch.logspace(-8, 1.5, 4096, device=device) * 30.0
    given = torch.full_like(S, torch.nan)
    _capped[(1,)](given, S, 30.0, N=4096)
    exact = 30.0 * torch.tanh(S.double() / 30.0)
    assert ((given - exact) / exact).abs().max() < 6e-7  # five roundings of fp32


def test_a_cap_beyond_fp32_has_no_effect(device):
    Q, K, V, _ = tensors(device, 21, 45, heads=(1, 1, 1))
    given, plain = (forward.attention(Q, K, V, mask=mask, B_r=16, B_c=16) for mask in (masks.softcap(1e39), None))
    assert torch.allclose(given.O, plain.O, atol=1e-6) and torch.allclose(given.lse, plain.lse, atol=1e-6)


@pytest.mark.parametrize("transposed", [False, True])
def test_blocks_come_in_the_order_of_their_tiles(transposed, device, rng, monkeypatch):
    """For each sequence of a batch separately, and for more blocks than are compared at a time."""
    monkeypatch.setattr(bounds, "OTHERS", 16)
    N_q, N_k, B_r, B_c = 501, 603, 16, 32
    ids = np.stack([np.sort(rng.integers(0, 40, N_k)), np.sort(rng.integers(0, 4, N_k))])
    sizes = PassSizes(2, 1, N_q, N_k, B_r, B_c, torch.device(device), transposed)
    (order, *_), _ = prepare.prepared_mask(masks.documents(ids), False, sizes)
    own, streamed, N = (B_c, B_r, N_k) if transposed else (B_r, B_c, N_q)
    for b in range(2):
        block, tiles = order[b, :, 0].cpu().numpy(), order[b, :, 6].cpu().numpy()
        assert (np.sort(block) == np.arange(-(-N // own))).all() and (np.diff(tiles) <= 0).all()
        same = np.flatnonzero(np.diff(tiles) == 0)
        assert (block[same] < block[same + 1]).all(), "of blocks with as many tiles the first comes first"
        device_side = ids[b, :, None] == ids[b, N_k - N_q :] if transposed else ids[b, N_k - N_q :, None] == ids[b]
        for i, n in list(zip(block, tiles, strict=True))[:: len(block) // 9]:
            found = np.flatnonzero(device_side[i * own : (i + 1) * own].any(0))
            if not found.size:
                assert n == 0
                continue
            # The first tile of keys begins at the first key that is seen.
            begin = found[0] // streamed * streamed if transposed else found[0]
            assert n == -(-(found[-1] + 1 - begin) // streamed)


@pytest.mark.parametrize(
    "amount, kind",
    amounts(["long documents", "slopes of heads", "function with a kernel"], few=["slopes of heads"]),
)
def test_with_causal_the_masks_intersect(amount, kind, device, rng, poisoned):
    N_q, N_k = one_of(SIZES, kind, drawn.WIDE)
    mask = drawn.WIDE[kind](rng, 1, 1, N_q, N_k)
    Q, K, V, dO = tensors(device, N_q, N_k, heads=(1, 1, 1))
    both = check(Q, K, V, mask=mask, causal=True, B_r=16, B_c=16)
    of_one = forward.attention(Q, K, V, mask=masks.causal() & mask, B_r=16, B_c=16)
    assert torch.equal(both.O, of_one.O) and torch.equal(both.lse, of_one.lse)
    gradients.check(Q, K, V, dO, mask=mask, causal=True, **SMALL)


@pytest.mark.parametrize(
    "mask, causal, N_q, N_k",
    [(masks.causal(), False, 21, 45), (masks.causal(), True, 45, 21), (masks.Mask(), False, 21, 45)],
)
def test_the_plain_and_the_causal_mask_equal_no_mask_to_the_bit(mask, causal, N_q, N_k, device):
    Q, K, V, dO = tensors(device, N_q, N_k, heads=(1, 1, 1))
    as_causal = causal or mask == masks.causal()
    plain = forward.attention(Q, K, V, causal=as_causal, B_r=16, B_c=16)
    given = forward.attention(Q, K, V, mask=mask, causal=causal, B_r=16, B_c=16)
    assert torch.equal(given.O, plain.O) and torch.equal(given.lse, plain.lse)
    of_mask = backward.backward(Q, K, V, *plain, dO, mask=mask, causal=causal, **SMALL)
    of_causal = backward.backward(Q, K, V, *plain, dO, causal=as_causal, **SMALL)
    assert all(torch.equal(X, Y) for X, Y in zip(of_mask, of_causal, strict=True))


NOTHING = {
    "documents": lambda N: masks.documents(np.arange(N)) & masks.from_function(lambda r, c: r != c),
    "table": lambda N: masks.blocks(np.zeros((-(-N // 16), -(-N // 16)), bool), 16, 16),
    "bits": lambda N: masks.from_function(lambda r, c: (r < c) & (c < r)),
    "changed": lambda N: masks.from_function(lambda r, c: c < 0, kernel=None) & masks.softcap(2.0),
}


@pytest.mark.parametrize("kind", NOTHING)
def test_rows_that_see_nothing_give_zeros(kind, device, poisoned):
    Q, K, V, dO = tensors(device, 37, 37, heads=(1, 1, 1))
    mask, way = NOTHING[kind](37), one_of(WAYS.values(), kind, NOTHING)
    O, lse = forward.attention(Q, K, V, mask=mask, B_r=16, B_c=16)
    assert (O == 0).all() and (lse == -torch.inf).all()
    for name, X in backward.backward(Q, K, V, O, lse, dO, mask=mask, **way, **SMALL)._asdict().items():
        assert (X == 0).all(), name


APART = {  # masks of 48 rows and keys of which no tile of 16 x 16 with a key from 16 to 31 is seen
    "window": masks.window(15, 0) & masks.from_function(lambda r, c: (c < 16) | (c > 31)),
    "blocks": masks.blocks(np.array([[True, False, True]] * 3), 16, 16),
    "kernel": masks.from_function(lambda r, c: c // 16 != 1),
}


@pytest.mark.parametrize("kind", APART)
def test_hidden_tiles_are_not_read(kind, device, poisoned):
    """0 * NaN is NaN: only a tile that is left out leaves no trace."""
    Q, K, V, dO = tensors(device, 48, 48, heads=(1, 1, 1))
    tiles = {"B_r": 16, "B_c": 16, "descriptors": one_of(LOADING, kind, APART)}
    expected = forward.attention(Q, K, V, mask=APART[kind], **tiles)
    before = backward.backward(Q, K, V, *expected, dO, mask=APART[kind], **tiles)
    K[:, :, 16:32] = V[:, :, 16:32] = torch.nan
    given = forward.attention(Q, K, V, mask=APART[kind], **tiles)
    assert torch.equal(given.O, expected.O) and torch.equal(given.lse, expected.lse)
    after = backward.backward(Q, K, V, *given, dO, mask=APART[kind], **tiles)
    assert torch.equal(after.dQ, before.dQ) and torch.equal(after.dK, before.dK)


@pytest.mark.parametrize("kind", ["window", "documents"])
def test_tiles_outside_an_interval_are_not_read(kind, device, poisoned):
    Q, K, V, _ = tensors(device, 48, 48, heads=(1, 1, 1))
    mask = masks.window(15, 0) if kind == "window" else masks.documents(np.arange(48) // 16)
    V[:, :, :16] = torch.nan
    O = forward.attention(Q, K, V, mask=mask, B_r=16, B_c=16).O
    assert O[:, :, 32:].isfinite().all() and O[:, :, :16].isnan().all()


@pytest.mark.parametrize("kind", ["wide window", "slopes of heads", "empty rows"])
def test_a_sink_is_one_more_key(kind, device, rng):
    """Standard attention with the score of the sink among the others, and 0 for its value."""
    Q, K, V, dO = tensors(device, 21, 29, heads=(1, 2, 2))
    mask = drawn.WIDE[kind](rng, 1, 2, 21, 29)
    leaves = [X.requires_grad_() for X in (Q, K, V, torch.tensor([0.7, -1.3], device=device))]
    given = sink.add(autograd.attention(*leaves[:3], mask=mask), leaves[3])
    exact = [X.detach().double().requires_grad_() for X in leaves]
    O, lse = torch_ref.attention(*exact[:3], mask=mask)
    sees = (lse > -torch.inf)[..., None]
    weights = torch.softmax(torch.stack([lse, exact[3][:, None].expand_as(lse)]), 0)[0]
    expected = torch.where(sees, O * weights[..., None], 0)
    assert oracle.worst(given.O.detach().cpu(), expected.detach().cpu()) < 3e-6
    got = torch.autograd.grad((given.O * dO).sum(), leaves)
    for X, Y in zip(got, torch.autograd.grad((expected * dO.double()).sum(), exact), strict=True):
        assert oracle.worst(X.cpu(), Y.cpu()) < 2e-5
    by_hand = sink.gradient(type(given)(*(X.detach() for X in given)), leaves[3].detach(), dO)
    assert oracle.worst(by_hand.cpu(), got[3].cpu()) < 2e-5


@pytest.mark.gpu
@pytest.mark.parametrize("kind", drawn.WIDE)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("N_q, N_k, d", [(1024, 1024, 64), (1021, 2047, 128), (2047, 1021, 80)])
def test_long_sequences_on_a_gpu(kind, dtype, N_q, N_k, d, rng, poisoned):
    torch.manual_seed(0)
    Q, K, V, dO = tensors("cuda", N_q, N_k, d, dtype, heads=(2, 4, 2))
    mask = drawn.WIDE[kind](rng, 2, 4, N_q, N_k)
    check(Q, K, V, mask=mask)
    for deterministic in (True, False):
        gradients.check(Q, K, V, dO, mask=mask, deterministic=deterministic)
