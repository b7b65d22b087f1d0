"""The kernels read tensors in changes of scores, and compute their gradients: compared with autograd in fp64."""

import gc
import weakref

import pytest
import torch
from torch import func

from flashlib import kernels, masks, sink, torch_ref
from flashlib.kernels import autograd, backward, decode, forward
from flashlib.kernels.masking import biases, looked_up
from flashlib.ring.distributed import agreements, of_heads
from tests import biased, oracle
from tests.kernels import cached
from tests.tiers import amounts

triton, tl = kernels.triton, kernels.triton.language

B, H, H_K, D = 2, 2, 1, 16


@triton.jit
def clipped(b, h, r, c):
    return h, tl.minimum(tl.maximum(r - c, -3), 3) + 3


@triton.jit
def of_head(b, h, r, c):
    return h


@triton.jit
def less(S, h, r, c, t):
    return S - t * tl.abs(r - c)


@triton.jit
def by_score(S, h, r, c, t):
    return 1.0


@triton.jit
def by_slope(S, h, r, c, t):
    return 0.0 - tl.abs(r - c)


KERNELS = {"function": clipped, "slopes": (less, by_score, by_slope, of_head)}


def mask_of(name, T):
    """Return the mask of a kind in biased.KINDS, as kernels take it."""
    options = {"kernel": KERNELS[name]} if name in KERNELS else {}
    return biased.KINDS[name].mask(T, **options)


def tensors(device, N_q, N_k, dtype=torch.float32):
    """Return Q, K, V and dO."""
    shapes = (B, H, N_q, D), (B, H_K, N_k, D), (B, H_K, N_k, D), (B, H, N_q, D)
    return tuple(torch.randn(shape, device=device).to(dtype) for shape in shapes)


def results(attention, given, T, make, dtype, **options):
    """Return O and the gradients of Q, K, V and T, computed in a dtype."""
    *leaves, T = (X.detach().to(dtype).requires_grad_() for X in (*given[:3], T))
    O = attention(*leaves, mask=make(T), **options).O
    return O, *torch.autograd.grad(O, (*leaves, T), given[3].to(dtype))


def hold(given, T, make, dtype=torch.float32, deterministic=True, **options):
    """Compare O and all gradients with fp64: at most twice the error of standard attention in the same dtype."""
    found = results(autograd.attention, given, T, make, dtype, deterministic=deterministic, **options)
    exact, plain = (results(torch_ref.attention, given, T, make, of, **options) for of in (torch.float64, dtype))
    for name, X, X_exact, X_plain in zip(("O", "dQ", "dK", "dV", "dT"), found, exact, plain, strict=True):
        assert X.dtype == dtype and X.shape == X_exact.shape
        stored = torch.finfo(dtype).eps * X_exact.abs().max().item()
        rounding = stored / 2 + 2e-6 * max(1, X_exact.abs().max().item())
        X, X_exact, X_plain = (Y.detach().cpu().double() for Y in (X, X_exact, X_plain))
        oracle.assert_close(X, X_exact, plain=X_plain, rounding=rounding, what=name)
    return found


@pytest.mark.parametrize(
    "amount, name", amounts(biased.KINDS, few=["place", "keys", "rows", "distance of heads", "function", "slopes"])
)
def test_every_kind_and_its_gradient(amount, name, device, poisoned):
    n = list(biased.KINDS).index(name)
    N_q, N_k = [(21, 45), (45, 21)][n % 2]
    dtype = [torch.float32, torch.bfloat16, torch.float16][n % 3]
    T = torch.randn(biased.KINDS[name].shape(B, H, N_q, N_k), device=device)
    given = tensors(device, N_q, N_k, dtype)
    hold(given, T, lambda T: mask_of(name, T), dtype, deterministic=n % 4 < 2, causal=n % 2 == 0)


@pytest.mark.parametrize("deterministic", [True, False])
def test_the_buckets_of_t5(deterministic, device):
    """Spread over distances in torch: a weight's gradient passes through the spreading."""
    N_q, N_k = 33, 47
    buckets = torch.from_numpy(biased.bucket(torch.arange(1 - N_q, N_k).numpy())).to(device)
    weight = torch.randn(6, H, device=device)
    given = tensors(device, N_q, N_k)
    hold(given, weight, lambda w: masks.distance_bias(w[buckets].T), deterministic=deterministic)


def test_a_part_and_several_tensors(device, poisoned):
    """Tensors with any order of axes, expanded, and read at the positions of a part; with a sink."""
    rows, keys = (range(3, 14), range(31, 41)), range(1, 45, 2)
    given, T = tensors(device, 21, 22), torch.randn(45, 41, H, device=device)
    of_keys, s = torch.randn(45, device=device), torch.tensor([0.5, -1.0], device=device)

    def make(T):
        first, second = T.permute(2, 1, 0), of_keys.to(T).expand(1, 1, 41, 45)  # heads are innermost
        whole = masks.softcap(3.0) & masks.bias(first) & masks.bias(second) & masks.prefix(5)
        return masks.placed(whole, 41, 45, rows, keys)

    hold(given, T, make)
    O = autograd.attention(*given[:3], mask=make(T), sink=s).O
    plain = torch_ref.attention(*(X.double() for X in given[:3]), mask=make(T))
    oracle.assert_close(O.cpu(), sink.add(plain, s.double()).O.cpu(), rounding=5e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy, about NaN
def test_the_gradient_has_the_same_bits_in_any_order_of_programs(device):
    """A different order of sequences is a different order of programs. A sum that is NaN stays NaN."""
    given, T = tensors(device, 21, 19), torch.randn(7, device=device)

    def gradient(given):
        leaf = T.clone().requires_grad_()
        mask = masks.bias(leaf, lambda b, h, r, c: (r - c).clip(-3, 3) + 3, kernel=near)
        O = autograd.attention(*given[:3], mask=mask).O
        return torch.autograd.grad(O, leaf, given[3])[0]

    first = gradient(given)
    assert first.any() and torch.equal(first, gradient([X.flip(0) for X in given]))
    given[3][0, 0, 0, 0] = torch.inf
    assert gradient(given).isnan().all()


@triton.jit
def near(b, h, r, c):
    return tl.minimum(tl.maximum(r - c, -3), 3) + 3


def test_shares_of_parts_add_up(device):
    """`backward` adds to the tensors it gets: the gradient of a tensor is the sum over parts of the keys."""
    Q, K, V, dO = tensors(device, 20, 24)
    T = torch.randn(H, 43, device=device)
    mask = masks.distance_bias(T) & masks.window(9, 2)
    O, lse = forward.attention(Q, K, V, mask=mask)
    whole, parts = torch.zeros(2, H, 43, device=device)
    backward.backward(Q, K, V, O, lse, dO, mask=mask, d_bias=[whole])
    for s in (0, 1):
        part = masks.placed(mask, 20, 24, range(20), range(s, 24, 2))
        backward.backward(Q, K[:, :, s::2], V[:, :, s::2], O, lse, dO, mask=part, d_bias=[parts])
    torch.testing.assert_close(parts, whole, atol=2e-6, rtol=1e-5)
    before = whole.clone()
    mask &= masks.from_function(lambda r, c: (r < c) & (c < r))
    backward.backward(Q, K, V, O, lse, dO, mask=mask, d_bias=[whole])
    assert torch.equal(whole, before), "nothing is seen"


@pytest.mark.parametrize("page", [0, 16])
@pytest.mark.parametrize("N_q", [1, 3])
def test_decoding_reads_biases_of_distances_and_of_keys(N_q, page, device, poisoned):
    lengths = [37, 5, 48]
    problem = cached.problem(device, lengths, heads=(4, 2), N_q=N_q, page=page, N=48)
    of_distance, of_keys = torch.randn(4, N_q + 47, device=device), torch.randn(3, 4, 1, 48, device=device)
    mask = masks.distance_bias(of_distance) & masks.bias(of_keys) & masks.softcap(2.0)
    O, lse = decode.attention(problem.Q, **problem.cache, mask=mask, causal=True)

    def of(b):  # the same, cut to the sequence's length
        cut = masks.distance_bias(of_distance[:, : N_q + lengths[b] - 1].double())
        keys = masks.bias(of_keys[b, :, :, : lengths[b]].double())
        return cut & keys & masks.softcap(2.0) & masks.causal()

    exact = cached.attention(problem.Q.double(), problem.K_exact, problem.V_exact, lengths, mask=of)
    oracle.assert_close(O.cpu(), exact[0].cpu(), rounding=5e-6)
    oracle.assert_close(lse.cpu(), exact[1].cpu(), rounding=5e-6)


@pytest.mark.parametrize("size", [(0, 5), (5, 0), (0, 0)], ids=str)
def test_where_there_are_no_scores_the_gradient_is_0(size, device, poisoned):
    N_q, N_k = size
    given, T = tensors(device, N_q, N_k), torch.randn(max(N_q + N_k - 1, 0), device=device)
    O, *grads = results(autograd.attention, given, T, masks.distance_bias, torch.float32)
    assert O.shape == given[0].shape and not any(X.any() for X in (O, *grads)) and grads[3].shape == T.shape


def test_minus_infinity_hides(device, poisoned):
    Q, K, V, dO = tensors(device, 21, 45)
    T = torch.randn(B, 1, 21, 45, device=device)
    hidden = torch.rand(T.shape, device=device) < 0.5
    T[hidden] = -torch.inf
    T[0, 0, 3] = -torch.inf
    O, _, _, _, dT = results(autograd.attention, (Q, K, V, dO), T, masks.bias, torch.float32)
    assert not O[0, :, 3].any() and not dT[hidden].any() and dT.isfinite().all()
    exact = torch_ref.attention(Q.double(), K.double(), V.double(), mask=masks.bias(T))
    oracle.assert_close(O.detach().cpu(), exact.O.cpu(), rounding=5e-6)


def test_changes_of_a_bias_take_effect_and_a_new_tensor_needs_no_new_plan(device):
    Q, K, V, _ = tensors(device, 9, 11)
    T = torch.zeros(H, 19, device=device)
    mask = masks.distance_bias(T)
    first = forward.attention(Q, K, V, mask=mask).O
    plans = forward.PLANS.of(mask)
    kept = len(plans)  # some are from earlier calls
    T += torch.arange(19, device=device)
    second = forward.attention(Q, K, V, mask=mask).O
    torch.testing.assert_close(first, forward.attention(Q, K, V).O)
    assert not torch.equal(first, second)
    assert plans is forward.PLANS.of(mask) is forward.PLANS.of(masks.distance_bias(T)) and len(plans) == kept
    assert torch.equal(second, forward.attention(Q, K, V, mask=masks.distance_bias(T.clone())).O)
    assert len(plans) == kept
    both = [forward.PLANS.of(masks.distance_bias(T) & masks.window(5, 0)) for _ in range(2)]
    assert both[0] is both[1] and both[0] is not plans
    gone = weakref.ref(T)
    del T, mask
    gc.collect()
    assert gone() is None, "no plan holds a tensor"


def test_a_change_before_the_backward_pass_is_noticed(device):
    Q, K, V, dO = tensors(device, 9, 11)
    T = torch.randn(9, 11, device=device)
    O = autograd.attention(Q.requires_grad_(), K, V, mask=masks.bias(T)).O
    T += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        O.backward(dO)


@pytest.mark.parametrize("amount", ["all"])
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # torch.compile asks it
def test_it_runs_between_compiled_graphs(amount, device):
    Q, K, V, _ = tensors(device, 9, 11)
    weight = torch.randn(19, H, device=device, requires_grad=True)

    def loss(Q, K, V, weight):
        return autograd.attention(2 * Q, K, V, mask=masks.distance_bias(weight.T)).O.sin().sum()

    compiled = torch.compile(loss, backend="aot_eager")(Q, K, V, weight)
    plain = loss(Q, K, V, weight)
    assert torch.equal(compiled, plain)
    assert torch.equal(*(torch.autograd.grad(X, weight)[0] for X in (compiled, plain)))


X = torch.zeros(2, 2, 8, 16, device=kernels.DEVICE)
T8 = torch.zeros(2, 8, 8, device=kernels.DEVICE)
REFUSED = [
    (masks.bias(T8.cpu().numpy()), TypeError, "bias is of type ndarray; pass a tensor, e.g."),
    (masks.bias(T8.double()), TypeError, "bias has dtype torch.float64; accepted are torch.float16"),
    (masks.bias(T8.to("meta")), ValueError, "bias is on meta and Q on"),
    (masks.bias(T8[:, 1:]), ValueError, "bias has 7 queries, and there are 8"),
    (masks.bias(torch.zeros(3, 1, 8)), ValueError, "is made for 3 heads, and Q has 2"),
    (masks.distance_bias(T8[0, 0]), ValueError, "bias has 8 distances"),
    (masks.bias(T8, lambda b, h, r, c: (h, r, c)), ValueError, "reads a tensor has no kernel: pass @triton.jit"),
    (masks.bias(T8[0], lambda b, h, r, c: (h, r - c), kernel=clipped), ValueError, "returned -7 for axis 1"),
    (masks.bias(T8[0, :1], lambda b, h, r, c: (h, 0 * c), kernel=clipped), ValueError, "returned 1 for axis 0"),
]  # fmt: skip


@pytest.mark.parametrize("mask, error, words", REFUSED)
def test_a_bias_that_does_not_fit_is_refused_before_any_work(mask, error, words):
    for attend in (
        lambda: forward.attention(X, X, X, mask=mask),
        lambda: autograd.attention(X, X, X, mask=mask & masks.causal()),
        lambda: backward.backward(X, X, X, X, X[..., 0].contiguous(), X, mask=mask),
        lambda: decode.attention(X, X, X, mask=mask),
    ):
        with pytest.raises(error, match=words):
            attend()


def test_gradients_that_would_be_lost_are_refused():
    leaf = T8.clone().requires_grad_()
    mask, lse = masks.bias(leaf), X[..., 0].contiguous()
    for attend in (forward.attention, lambda *Y, mask: backward.backward(*Y, X, lse, X, mask=mask)):
        with pytest.raises(ValueError, match="the bias of the mask requires a gradient, and this kernel has no"):
            attend(X, X, X, mask=mask)
    with pytest.raises(RuntimeError, match="batch of torch.func.vmap, or stands in"):
        func.vmap(lambda Q: autograd.attention(Q, X, X, mask=masks.bias(T8)).O)(X[None])
    with pytest.raises(TypeError, match="a bias and forward are given"):
        autograd.attention(X, X, X, mask=mask, forward=forward)
    with pytest.raises(ValueError, match="bias has 8 queries, and in decoding their positions differ"):
        decode.attention(X, X, X, mask=masks.bias(T8))
    with pytest.raises(ValueError, match="decoding takes no mask of placed"):
        decode.attention(
            X, X, X, mask=masks.placed(masks.distance_bias(T8[0, 0, :1].expand(23)), 8, 16, range(8), range(8))
        )
    with pytest.raises(ValueError, match="returned -1 for axis 0"):  # of the first row of a shorter sequence
        early = masks.bias(T8[0, 0], lambda b, h, r, c: r - 1 + 0 * c, kernel=of_head)
        decode.attention(X[:, :, :1], X, X, mask=early)
    with pytest.raises(ValueError, match="a mask that depends on how far"):
        decode.attention(X[:, :, :1], X, X, mask=masks.bias(T8[:1, :1]), shared=4)
    with pytest.raises(ValueError, match="a bias of the mask requires a gradient, which attention over ranks"):
        arguments = agreements.Arguments(X, X, X, "contiguous", False, mask & masks.causal(), None, None, None)
        agreements.checked(arguments, agreements.Agreements())
    mask = masks.bias(T8)
    for d_bias, error in ((T8, TypeError), ([], TypeError), ([T8.double()], TypeError), ([T8[0]], ValueError)):
        with pytest.raises(error, match="d_bias "):
            backward.backward(X, X, X, X, lse, X, mask=mask, d_bias=d_bias)


def test_some_heads_read_their_own_entries(device):
    T, S, c = torch.randn(4, 5, 7), torch.randn(2, 5, 7), torch.arange(7)
    part = of_heads.part(masks.bias(T), 2, 4)
    place = masks.Place(5, 7, 0, torch.arange(2)[:, None, None])
    assert torch.equal(part.score(S, place, torch.arange(5)[:, None] + 2, c), S + T[2:4])
    assert part.biases[0] is T


def test_a_tensor_whose_heads_span_more_than_32_bits_is_read_in_64():
    for N, at in ((2**15, looked_up.of_place), (2**16, looked_up.of_far_place)):
        mask = masks.bias(torch.empty(N, N, device="meta"))
        change, read = biases.bias_change(mask.device_change(masks.Place(N, N), 1))
        assert change.at is at and read.strides == (None, None, N, 1)
