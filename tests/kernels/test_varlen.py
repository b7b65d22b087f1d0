"""Packed sequences equal a loop over the sequences, in fp64."""

import warnings

import numpy as np
import pytest
import torch
import triton.language as tl

from flashlib import masks, torch_ref
from flashlib.kernels import forward, varlen
from flashlib.kernels.launch import planning, tile_sizes
from flashlib.kernels.masking import bounds
from flashlib.kernels.masking import packed as packing
from flashlib.kernels.masking.pass_sizes import PassSizes
from tests import oracle
from tests.tiers import amounts

PACKS = {  # lengths of queries and of keys
    "one": ([37], [53]),
    "empty ones": ([5, 0, 23, 1, 0], [9, 3, 0, 1, 0]),
    "more keys": ([7, 1, 18], [30, 17, 21]),
    "fewer keys": ([30, 17, 21], [7, 1, 18]),
    "nothing to see": ([20, 3], [0, 0]),
    "nothing to ask": ([0, 0], [20, 3]),
    "no sequences": ([], []),
}
FEW = "empty ones", "more keys", "fewer keys", "nothing to see", "no sequences"


def packed(device, lengths_q, lengths_k, heads=(2, 1), d=16, dtype=torch.float32, offsets=torch.int32):
    """Return Q, K and V, and both offsets."""
    T_q, T_k = sum(lengths_q), sum(lengths_k)
    shapes = (T_q, heads[0], d), (T_k, heads[1], d), (T_k, heads[1], d)
    Q, K, V = (torch.randn(shape, device=device).to(dtype).requires_grad_() for shape in shapes)
    return (
        Q,
        K,
        V,
        *(torch.tensor([0, *np.cumsum(n)], dtype=offsets, device=device) for n in (lengths_q, lengths_k)),
    )


def one_by_one(Q, K, V, cu_q, cu_k, **options):
    """Return O and lse of a loop over the sequences."""
    group = Q.shape[1] // K.shape[1]
    K, V = (X.repeat_interleave(group, dim=1) for X in (K, V))
    outputs = [(Q[:0] * 1.0, Q[:0, :, 0] * 1.0)]
    for b in range(len(cu_q) - 1):
        rows, keys = slice(cu_q[b], cu_q[b + 1]), slice(cu_k[b], cu_k[b + 1])
        O, lse = torch_ref.attention(*(X.transpose(0, 1)[None] for X in (Q[rows], K[keys], V[keys])), **options)
        outputs.append((O[0].transpose(0, 1), lse[0].mT))
    return tuple(torch.cat(parts) for parts in zip(*outputs, strict=True))


def check(Q, K, V, cu_q, cu_k, **options):
    """Check O, lse and the gradients of both: at most twice the error of the loop in the same dtype."""
    ours = [X.detach().requires_grad_() for X in (Q, K, V)]
    given = varlen.attention(*ours, cu_q, cu_k, **options)
    assert given.O.shape == Q.shape and given.O.dtype == Q.dtype and given.lse.shape == Q.shape[:2]
    dO, dlse = torch.randn_like(given.O), torch.randn_like(given.lse)

    def all_of(leaves, outputs):
        O, lse = outputs
        total = (O * dO.to(O)).sum() + (lse.masked_fill(lse == -torch.inf, 0) * dlse.to(lse)).sum()
        grads = torch.autograd.grad(total, leaves, allow_unused=True)
        return [O, lse, *(torch.zeros_like(X) if g is None else g for X, g in zip(leaves, grads, strict=True))]

    def of_the_loop(dtype):
        leaves = [X.detach().to(dtype).requires_grad_() for X in (Q, K, V)]
        return all_of(leaves, one_by_one(*leaves, cu_q.tolist(), cu_k.tolist(), **options))

    names = "O", "lse", "dQ", "dK", "dV"
    of_each = zip(names, all_of(ours, given), of_the_loop(torch.float64), of_the_loop(Q.dtype), strict=True)
    for name, X, exact, plain in of_each:
        X, exact, plain = (Y.detach().cpu().double().numpy() for Y in (X, exact, plain))
        unit = 1e-6 if name == "lse" else torch.finfo(Q.dtype).eps
        rounding = 8 * unit * max(1.0, np.abs(exact[np.isfinite(exact)]).max(initial=0))
        oracle.assert_close(X, exact, plain=plain, rounding=rounding, what=name)
    return given


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("amount, pack", amounts(PACKS, few=FEW))
def test_equals_a_loop_over_the_sequences(amount, pack, causal, device, poisoned):
    Q, K, V, *offsets = packed(device, *PACKS[pack], offsets=torch.int64 if causal else torch.int32)
    given = check(Q, K, V, *offsets, causal=causal)
    if pack == "nothing to see":
        assert (given.O == 0).all() and (given.lse == -torch.inf).all()


@pytest.mark.parametrize("amount, seed", amounts(range(4), few=[1, 2]))
def test_lengths_drawn_at_random(amount, seed, device, poisoned):
    rng = np.random.default_rng(seed)
    longest = 40 if device == "cpu" else 700
    lengths = rng.integers(0, longest, (2, rng.integers(1, 6))) * (rng.random((2, 1)) < 0.9)
    if seed % 2:
        lengths[1] = lengths[0]  # self-attention
    group, H_k = rng.integers(1, 3, 2)
    dtype = [torch.float32, torch.float16, torch.bfloat16, torch.float32][seed]
    given = packed(device, *lengths.tolist(), heads=(int(group * H_k), int(H_k)), d=24, dtype=dtype)
    check(*given, causal=seed < 2, scale=0.3)


def test_nothing_is_read_outside_a_sequence(device):
    Q, K, V, cu_q, cu_k = packed(device, [20, 30], [20, 30], heads=(1, 1))
    before = varlen.attention(Q, K, V, cu_q, cu_k)
    louder = torch.where(torch.arange(50, device=device) < 20, 1.0, 3.0)[:, None, None]
    other = varlen.attention(Q, K * louder, V, cu_q, cu_k)
    assert torch.equal(before.O[:20], other.O[:20]) and not torch.equal(before.O[20:], other.O[20:])


@pytest.mark.parametrize("lengths", [[5, 0, 12], [0]])
def test_tokens_of_O_are_stored_like_those_of_Q(lengths, device):
    O = varlen.attention(*packed(device, lengths, lengths, heads=(3, 1))).O
    assert O.shape == (sum(lengths), 3, 16) and O.is_contiguous() and O.view(sum(lengths), 48).shape[1] == 48


def test_gradients_have_the_layout_of_the_tensors(device, poisoned):
    Q, K, V, *offsets = packed(device, [20, 3], [13, 30], heads=(2, 1))
    O = varlen.attention(Q, K, V, *offsets).O
    assert all(dX.is_contiguous() for dX in torch.autograd.grad(O, (Q, K, V), torch.ones_like(O)))


def test_the_gradient_of_lse_alone(device, poisoned):
    Q, K, V, *offsets = packed(device, [20, 3], [13, 30], heads=(2, 1))
    lse = varlen.attention(Q, K, V, *offsets).lse
    dQ, dK, dV = torch.autograd.grad(lse.square().sum(), (Q, K, V))
    expected = one_by_one(*(X.double() for X in (Q, K, V)), *(cu.tolist() for cu in offsets))[1]
    exact = torch.autograd.grad(expected.square().sum(), (Q, K))
    assert not dV.any() and all(torch.allclose(X, Y, atol=1e-4) for X, Y in zip((dQ, dK), exact, strict=True))


@pytest.fixture
def launched(monkeypatch):
    """The names of the kernels that are launched."""
    names, launch = [], planning.Launch.__call__

    def note(self, *given, **args):
        names.append(self.kernel.__name__)
        return launch(self, *given, **args)

    monkeypatch.setattr(planning.Launch, "__call__", note)
    return names


def test_the_first_launch_of_a_call_finds_the_bounds_of_all_passes(device, launched):
    """A second launch would cost the CPU more time than this one takes on the GPU."""
    Q, K, V, *offsets = packed(device, [20, 3], [13, 30])
    O = varlen.attention(Q, K, V, *offsets).O
    assert launched == ["_find", "_forward"]
    torch.autograd.grad(O, Q, torch.ones_like(O))
    assert launched[2:] == ["_prepare", "_dkv", "_dq"]


def test_a_gradient_of_O_with_other_strides(device, launched, monkeypatch):
    """Its tiles cannot be loaded through descriptors, but the first launch was for tiles of descriptors."""
    gpu = tile_sizes.room(torch.device(device))._replace(multiprocessors=1, tma=True)
    monkeypatch.setattr(tile_sizes, "room", lambda device: gpu)
    monkeypatch.setattr(tile_sizes, "SMALL", 0)
    Q, K, V, *offsets = packed(device, [70, 13], [50, 30], heads=(2, 1), dtype=torch.float16)
    O = varlen.attention(Q, K, V, *offsets).O
    dO = torch.randn(1, 1, 16, device=device).to(O.dtype).expand_as(O)
    given, expected = (torch.autograd.grad(O, (Q, K, V), Y, retain_graph=True) for Y in (dO, dO.contiguous()))
    assert launched[2:] == 2 * ["_prepare", "_dkv", "_dq"]
    assert all(map(torch.equal, given, expected))


@pytest.mark.parametrize("causal", [False, True])
def test_the_first_launch_finds_the_numbers_of_prepared_masks(causal, device, monkeypatch):
    if device == "cpu":  # a kernel that is compiled takes no other constant
        monkeypatch.setattr(packing, "STRETCH", tl.constexpr(2))
    stretch = packing.STRETCH.value
    *_, cu_q, cu_k = packed(device, [20, 0, 67, 14], [41, 9, 5, 33], offsets=torch.int64)
    asked = {
        "rows": PassSizes(1, 2, 101, 88, 16, 32, device),
        "keys": PassSizes(1, 2, 101, 88, 32, 16, device, True),
    }
    found = packing.run(packing.plan(4, causal, asked), cu_q, cu_k)
    for name, tiles in asked.items():
        first, end = found[name].bounds[:2]
        N = tiles.N_k if tiles.transposed else tiles.N_q
        expected = bounds.tiles_of_intervals(first[:N][None], end[:N][None], tiles).order[0]
        order = found[name].order.view(-1, 8)[: len(expected)]
        by_block = [X[X[:, 0].argsort()][:, :7].cpu() for X in (order, expected)]
        assert torch.equal(*by_block)
        for start in range(0, len(order), stretch):
            blocks, _, _, _, _, _, most = order[start : start + stretch, :7].T.tolist()
            assert sorted(blocks) == list(range(start, start + len(blocks)))
            assert most == sorted(most, reverse=True)


def test_one_sequence_is_the_kernel_without_packing(device, poisoned):
    Q, K, V, *offsets = packed(device, [37], [53])
    given = varlen.attention(Q, K, V, *offsets, causal=True)
    with torch.no_grad():
        O, lse = forward.attention(*(X.transpose(0, 1)[None] for X in (Q, K, V)), causal=True)
    assert oracle.worst(given.O.detach().cpu(), O[0].transpose(0, 1).cpu()) < 2e-6
    assert oracle.worst(given.lse.detach().cpu(), lse[0].mT.cpu()) < 2e-6


def test_offsets_may_have_any_alignment(device):
    """A kernel that was compiled for offsets at a multiple of 16 bytes must not be launched with others."""
    Q, K, V, cu, _ = packed(device, [20, 30], [20, 30])
    apart = torch.cat([cu[:1], cu])[1:]
    assert cu.data_ptr() % 16 != apart.data_ptr() % 16
    launches = {varlen.plan_of(Q, K, V, X, cu, False).of_both.launch for X in (cu, apart)}
    assert len(launches) == 2
    assert torch.equal(varlen.attention(Q, K, V, cu, cu).O, varlen.attention(Q, K, V, apart, apart).O)


def test_gradients_in_batches_are_refused_in_words(device):
    Q, K, V, *offsets = packed(device, [20, 30], [20, 30])
    O = varlen.attention(Q, K, V, *offsets).O
    with pytest.raises(RuntimeError, match="dO is a batch of torch.func.vmap"):
        torch.autograd.grad(O, Q, torch.ones_like(O)[None], is_grads_batched=True)


X, CU = torch.zeros(8, 2, 16), torch.tensor([0, 3, 8], dtype=torch.int32)


@pytest.mark.parametrize(
    "changed, error, words",
    [
        ({"Q": X[None]}, ValueError, r"Q is \(1, 8, 2, 16\); pass a tensor of packed tokens, \(T, H, d\)"),
        ({"K": X.numpy()}, ValueError, "K is ndarray; pass a tensor of packed tokens"),
        ({"V": X.half()}, TypeError, "V has dtype torch.float16 and Q has torch.float32"),
        ({"Q": X[:, :1]}, ValueError, "H_q must be a multiple"),
        ({"causal": "no"}, TypeError, "causal is 'no'"),
        ({"scale": -1}, ValueError, "scale is -1"),
        ({"cu_seqlens_q": [0, 3, 8]}, TypeError, r"cu_seqlens_q is list; pass a tensor \(B \+ 1,\) of int32"),
        ({"cu_seqlens_k": CU.float()}, TypeError, r"cu_seqlens_k is \(3,\) of torch.float32; pass a tensor"),
        ({"cu_seqlens_k": CU[None]}, TypeError, r"cu_seqlens_k is \(1, 3\) of torch.int32; pass a tensor"),
        ({"cu_seqlens_q": CU[:0]}, ValueError, "cu_seqlens_q has 0 numbers and T is 8; for B sequences"),
        ({"cu_seqlens_q": CU[:1]}, ValueError, "cu_seqlens_q has 1 numbers and T is 8"),
        ({"cu_seqlens_k": CU.new_tensor([0, 5, 3, 8])}, ValueError, "cu_seqlens_k falls from 5 to 3 at position"),
        ({"cu_seqlens_q": CU.new_tensor([0, 3, 7])}, ValueError, "goes from 0 to 7; it must go from 0 to T = 8"),
        ({"cu_seqlens_q": CU.new_tensor([1, 3, 8])}, ValueError, "goes from 1 to 8; it must go from 0 to T = 8"),
        ({"cu_seqlens_k": CU.new_tensor([0, 8])}, ValueError, "cu_seqlens_q has 3 numbers and cu_seqlens_k 2"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(changed, error, words, monkeypatch):
    monkeypatch.setattr(
        "flashlib.kernels.launch.inputs.check_device", lambda **_: None
    )  # the same on a machine with a GPU
    with pytest.raises(error, match=words):
        varlen.attention(**dict(Q=X, K=X, V=X, cu_seqlens_q=CU, cu_seqlens_k=CU) | changed)


@pytest.mark.gpu
@pytest.mark.parametrize("causal", [False, True])
def test_nothing_waits_for_the_gpu(causal):
    Q, K, V, *offsets = packed("cuda", [700, 0, 300], [500, 20, 300], heads=(4, 2), d=64, dtype=torch.bfloat16)

    def call():
        given = varlen.attention(Q, K, V, *offsets, causal=causal)
        return torch.autograd.grad(given.O, (Q, K, V), given.O.detach())

    expected = call()  # compiles
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # that the mode is a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        grads = call()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert all(torch.equal(given, before) for given, before in zip(grads, expected, strict=True))


def test_under_two_windows_each_row_sees_what_both_show():
    assert varlen._window_and_caps(masks.window(9, 2) & masks.window(3, 4))[0] == (3, 2)
