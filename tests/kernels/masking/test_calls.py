"""Calls of the kernels with masks: what is refused, what is kept, and what PyTorch does with them."""

import gc
import weakref

import numpy as np
import pytest
import torch
from torch import func

from flashlib import masks, torch_ref
from flashlib.kernels import DEVICE, autograd, backward, decode, forward, varlen
from flashlib.kernels.masking import bits, prepare
from flashlib.kernels.masking.pass_sizes import PassSizes
from tests.kernels import drawn
from tests.kernels.masking.test_masks import tensors
from tests.tiers import amounts

X = torch.zeros(2, 2, 8, 16, device=DEVICE)
CALLS = {
    "forward": lambda **options: forward.attention(X, X, X, **options),
    "autograd": lambda **options: autograd.attention(X, X, X, **options),
    "transformed": lambda **options: func.vmap(lambda Q: autograd.attention(Q, X, X, **options).O)(X[None]),
    "backward": lambda **options: backward.backward(X, X, X, X, X[..., 0].contiguous(), X, **options),
}
each_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@each_call
@pytest.mark.parametrize(
    "mask, error, words",
    [
        (
            lambda r, c: c <= r,
            TypeError,
            r"mask is of type function; pass one of flashlib.masks, e.g. window\(128, 0\)",
        ),
        (torch.ones(8, 8, dtype=torch.bool), TypeError, r"mask is of type Tensor; .* blocks\(table, B_r, B_c\)"),
        (True, TypeError, "mask is of type bool"),
        (masks.alibi([1.0, 2.0, 3.0]), ValueError, "is made for 3 heads, and Q has 2; they must be equal"),
        (masks.documents([0] * 7), ValueError, r"ids has shape \(7,\), and there are 8 keys: pass an id for each"),
        (masks.documents([[0] * 8] * 3), ValueError, "is made for 3 sequences, and Q has 2"),
        (
            masks.blocks(np.ones((2, 4), bool), 4, 4),
            ValueError,
            r"table has shape \(2, 4\); 8 queries and 8 keys have \(2, 2\) blocks of 4 x 4",
        ),
        (
            masks.causal() & masks.blocks(np.ones((2, 2), bool), 2, 4),
            ValueError,
            "is it a table of another block size",
        ),
        (
            masks.score(lambda S, h, r, c: 2 * S, lambda S, h, r, c: 2 + 0 * S) & masks.window(2, 0),
            ValueError,
            r"the score function has no kernel: pass masks.score\(f, slope, kernel=\(f, slope\)\)",
        ),
        (
            masks.from_function(lambda r, c: r - c),
            TypeError,
            "the function of the mask returned torch.int64; it must return bool",
        ),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(call, mask, error, words):
    with pytest.raises(error, match=words):
        call(mask=mask)


@each_call
def test_causal_is_a_bool_even_with_a_mask(call):
    with pytest.raises(TypeError, match="causal is 'yes'"):
        call(mask=masks.window(1, 1), causal="yes")


@pytest.mark.parametrize("amount", ["all"])
def test_a_mask_inside_torch_compile_is_refused(amount, device):
    compiled = torch.compile(lambda X: autograd.attention(X, X, X, mask=masks.window(3, 0)).O, backend="aot_eager")
    with pytest.raises(RuntimeError, match="cannot look into a mask: .* put torch.compiler.disable around"):
        compiled(tensors(device, 5, 5)[0])


def test_gradients_in_batches_with_a_mask_need_vmap(device):
    Q, K, V, dO = tensors(device, 21, 29)
    O = autograd.attention(Q.requires_grad_(), K, V, mask=masks.window(3, 0)).O
    batch = torch.stack([dO, 1 - dO])

    def pull(dO, **options):
        return torch.autograd.grad(O, Q, dO, retain_graph=True, **options)[0]

    words = r"batches its gradients \(is_grads_batched\).*: compute batches with torch.func.vmap or in a loop"
    with pytest.raises(RuntimeError, match=words):
        pull(batch, is_grads_batched=True)
    torch.testing.assert_close(func.vmap(pull)(batch), torch.stack([pull(each) for each in batch]))


@pytest.mark.parametrize("amount", ["all"])
def test_a_mask_in_a_function_that_is_not_compiled_is_accepted(amount, device):
    Q, K, V, _ = tensors(device, 21, 29)
    mask = masks.window(3, 0)
    apart = torch.compiler.disable(lambda *X: autograd.attention(*X, mask=mask).O)
    compiled = torch.compile(lambda Q, K, V: apart(2 * Q, K, V), backend="aot_eager")
    assert torch.equal(compiled(Q, K, V), autograd.attention(2 * Q, K, V, mask=mask).O)


FITTING = {
    "window": masks.window(5, 1),
    "documents": masks.documents([0] * 9 + [1] * 20),
    "function of heads": masks.from_function(lambda b, h, r, c: (r - c) % (h + 2) == 0),
    "slopes": masks.alibi([0.1, 0.4]),
    "score": drawn.OF_HEADS & masks.causal(),
}


@pytest.mark.parametrize("amount, kind", amounts(["documents", "function of heads", "score"], few=["score"]))
def test_torch_func_takes_gradients_and_batches(amount, kind, device):
    def of(attention):
        def loss(Q, K, V):
            O, lse = attention(Q, K, V, mask=FITTING[kind])
            return O.square().sum() + lse.nan_to_num(neginf=0).sum()

        return func.vmap(func.grad(loss, argnums=(0, 1, 2)))

    Q, K, V = (torch.stack([Y, 1 - Y]) for Y in tensors(device, 21, 29)[:3])
    given, exact = of(autograd.attention)(Q, K, V), of(torch_ref.attention)(Q.double(), K.double(), V.double())
    for Y, Y_exact in zip(given, exact, strict=True):
        torch.testing.assert_close(Y.double(), Y_exact, atol=5e-5, rtol=1e-4)


@pytest.mark.parametrize(
    "mask",
    [
        masks.from_function(lambda b, h, r, c: c <= r + 3 * b),
        masks.causal() & masks.documents([[0] * 8, [0, 0, 0, 1, 1, 1, 1, 1]]),
        masks.prefix(2) | masks.documents([[0] * 8, [0, 0, 0, 1, 1, 1, 1, 1]]),
    ],
    ids=["function of b", "ids of a batch", "union"],
)
def test_under_vmap_a_mask_gets_the_number_of_the_sequence(mask, device):
    Y = torch.randn(3, 2, 1, 8, 16, device=device)
    given = func.vmap(lambda Q: autograd.attention(Q, Q, Q, mask=mask).O)(Y)
    exact = torch.stack([torch_ref.attention(*[X.double()] * 3, mask=mask).O for X in Y])
    torch.testing.assert_close(given.double(), exact, atol=5e-6, rtol=1e-5)


@pytest.mark.parametrize("amount, kind", amounts(FITTING, few=["documents", "slopes", "score"]))
def test_gradients_by_autograd(amount, kind, device, poisoned):
    leaves = [Y.requires_grad_() for Y in tensors(device, 21, 29)[:3]]
    exact = [Y.detach().double().requires_grad_() for Y in leaves]
    both, causal = [], kind in ("documents", "function of heads")
    for attention, inputs in ((autograd.attention, leaves), (torch_ref.attention, exact)):
        O, lse = attention(*inputs, mask=FITTING[kind], causal=causal)
        both.append(torch.autograd.grad(O.square().sum() + lse.nan_to_num(neginf=0).sin().sum(), inputs))
    for Y, Y_exact in zip(*both, strict=True):
        torch.testing.assert_close(Y.double(), Y_exact, atol=5e-5, rtol=1e-4)


@pytest.fixture
def prepared(monkeypatch):
    """The masks that were prepared."""
    prepared_mask, asked = prepare.prepared_mask, []
    monkeypatch.setattr(
        prepare, "prepared_mask", lambda mask, *rest: asked.append(mask) or prepared_mask(mask, *rest)
    )
    return asked


@pytest.mark.parametrize(
    "amount, kind",
    amounts(
        ["long documents", "dense of heads", "function of heads with a kernel", "score of heads"],
        few=["long documents", "dense of heads"],
    ),
)
def test_a_second_call_prepares_nothing(amount, kind, prepared, device, rng):
    mask = drawn.WIDE[kind](rng, 1, 2, 21, 45)
    Q, K, V, dO = tensors(device, 21, 45)
    Q.requires_grad_()
    results = []
    for calls in (3, 3):  # a pass forward, and two backward
        O, lse = autograd.attention(Q, K, V, mask=mask)
        results.append((O.detach(), *torch.autograd.grad(O, Q, dO)))
        assert len(prepared) == calls and all(asked is mask for asked in prepared)
    assert all(torch.equal(*pair) for pair in zip(*results, strict=True))
    autograd.attention(*(X.repeat(2, 1, 1, 1) for X in (Q, K, V)), mask=mask)
    assert len(prepared) == 4, "other sizes are prepared for themselves"


def test_a_mask_for_requested_tiles_is_prepared_once_too(prepared, device, rng):
    mask = drawn.WIDE["dense of heads"](rng, 1, 2, 21, 45)
    Q, K, V, dO = tensors(device, 21, 45)
    for calls in (3, 3, 6, 6):
        tiles = dict(B_r=16, B_c=32, num_stages=1, descriptors=False) if calls == 3 else dict(B_r=32, B_c=16)
        given = forward.attention(Q, K, V, mask=mask, **tiles)
        backward.backward(Q, K, V, *given, dO, mask=mask, **tiles)
        assert len(prepared) == calls


@pytest.mark.parametrize("options", [{"num_warps": True}, {"num_stages": 1.0}, {"descriptors": 0}, {"causal": 0}])
def test_a_wrong_type_is_refused_even_if_it_equals_a_kept_option(options, device):
    Q, K, V, dO = tensors(device, 21, 45)
    kept = dict(num_warps=1, num_stages=1, descriptors=False, causal=False)
    given = forward.attention(Q, K, V, **kept)
    with pytest.raises(TypeError, match=f"{next(iter(options))} is "):
        forward.attention(Q, K, V, **kept | options)
    backward.backward(Q, K, V, *given, dO, **kept)
    with pytest.raises(TypeError, match=f"{next(iter(options))} is "):
        backward.backward(Q, K, V, *given, dO, **kept | options)


def test_masks_that_compare_by_value_may_be_made_anew(prepared, device):
    Q, K, V, _ = tensors(device, 21, 45)
    for calls, make in (
        (1, lambda: masks.window(17, 2)),
        (2, lambda: masks.prefix(9)),
        (3, lambda: masks.softcap(3)),
    ):
        first = forward.attention(Q, K, V, mask=make())
        assert torch.equal(first.O, forward.attention(Q, K, V, mask=make()).O) and len(prepared) == calls


@pytest.mark.parametrize("four", [False, True])
def test_a_call_evaluates_a_function_once_for_each_score(four, device, monkeypatch):
    monkeypatch.setattr(bits, "SCORES", 45 * 2 * 3)  # three rows at a time, or six
    asked = []

    def of_heads(b, h, r, c):
        asked.append(r.numel() * c.numel() * b.numel() * h.numel())
        return ((r + h + b - c) % 3 != 0) & (c <= r)

    def alike(r, c):
        asked.append(r.numel() * c.numel())
        return ((r - c) % 3 != 0) & (c <= r)

    mask = masks.from_function(of_heads if four else alike)
    Q, K, V, dO = tensors(device, 21, 45)
    leaves = [X.requires_grad_() for X in (Q, K, V)]
    exact = [X.detach().double().requires_grad_() for X in leaves]
    results = []
    for attention, inputs in ((autograd.attention, leaves), (torch_ref.attention, exact)):
        O, _ = attention(*inputs, mask=mask)
        results.append((O, *torch.autograd.grad(O, inputs, dO.to(O.dtype))))
        if inputs is leaves:
            scores = 21 * 45 * (2 if four else 1)
            assert sum(asked) == scores and len(asked) > 3, "by both passes and all tiles"
            forward.attention(Q.detach(), K.detach(), V.detach(), mask=mask, B_r=16, B_c=16)
            assert sum(asked) == 2 * scores, "once more in each call"
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one.double(), other, atol=5e-5, rtol=0)


def test_tiles_are_listed_once_for_heads_that_the_mask_does_not_distinguish(device):
    def listed(mask):
        sizes = PassSizes(2, 3, 40, 40, 16, 16, torch.device(device))
        counts, _, *strides, _ = prepare.prepared_mask(mask, False, sizes)[0][1]
        return tuple(counts.shape[:2]), tuple(stride > 0 for stride in strides)

    of = masks.from_function
    assert listed(of(lambda r, c: r % 7 != c)) == ((1, 1), (False, False))
    assert listed(of(lambda b, h, r, c: r % 7 != c + h)) == ((2, 3), (True, True))
    per_batch = masks.documents(np.arange(80).reshape(2, 40) // 9) | masks.prefix(3)
    assert listed(per_batch) == ((2, 1), (True, False))


def test_more_bits_than_a_kernel_can_count_are_refused(device):
    sizes = PassSizes(1, 1, 2**18, 2**18, 64, 64, torch.device(device))
    with pytest.raises(ValueError, match=r"262144 queries and 262144 keys have more than 2\^36 scores: write it"):
        bits.mask_bits(masks.from_function(lambda r, c: r > c), sizes)


def test_more_tiles_than_a_grid_has_programs_are_refused(device, monkeypatch):
    monkeypatch.setattr(bits, "mask_bits", lambda *_: pytest.fail("bits were asked for in vain"))
    mask, sizes = (
        masks.from_function(lambda b, h, r, c: r > c + h),
        PassSizes(2, 2, 2**20, 2**20, 16, 32, device),
    )
    with pytest.raises(
        ValueError, match=r"fewer than 2\^31 tiles, and 1048576 queries .* 16 x 32, for 2 sequences and 2 he"
    ):
        prepare.prepared_mask(mask, False, sizes)


@pytest.mark.parametrize(
    "f, error, words",
    [
        (lambda r, c: None, TypeError, "returned NoneType; it must return bool"),
        (
            lambda r, c: np.ones((5, 5), bool),
            TypeError,
            "given a torch tensor and returned a NumPy array: look",
        ),
        (lambda r, c: (r >= c)[:2], ValueError, r"returned the shape \(2, 5\) .* that broadcasts to \(5, 5\)"),
        (lambda b, h, r, c: (r >= c + 0 * h)[:1, :2], ValueError, "it must return one that broadcasts to"),
    ],
)
def test_a_wrong_result_of_a_function_is_refused_in_words(f, error, words, device):
    Q, K, V, _ = tensors(device, 5, 5)
    for attention in (forward.attention, torch_ref.attention):
        with pytest.raises(error, match=words):
            attention(Q, K, V, mask=masks.from_function(f))


def test_a_sparse_tensor_is_refused_in_words(device):
    sparse = torch.eye(16, device=device).expand(1, 2, 16, 16).to_sparse()
    for attention in (forward.attention, autograd.attention, torch_ref.attention):
        with pytest.raises(
            TypeError, match="Q has layout torch.sparse_coo; pass a dense tensor, e.g. Q.to_dense()"
        ):
            attention(sparse, sparse, sparse)


def test_a_function_that_does_not_take_tensors_is_refused_in_words(device):
    Q, K, V, _ = tensors(device, 5, 5)
    table = np.eye(5, dtype=bool)
    for f in (lambda r, c: table[r, c], lambda r, c: (c <= r) and (c < 4)):
        with pytest.raises(TypeError, match="does not work on torch tensors .*: compare r and c with & and |"):
            forward.attention(Q, K, V, mask=masks.from_function(f))


def test_the_steepest_slope_leaves_a_row_its_own_key(device):
    Q, K, V, _ = tensors(device, 5, 5)
    given = forward.attention(Q, K, V, mask=masks.alibi(1e39))
    torch.testing.assert_close(given.O, V.expand_as(given.O))


def test_two_masks_do_not_share_a_plan(device):
    Q, K, V, _ = tensors(device, 21, 29)
    for names in ([0] * 9 + [1] * 20, [0] * 20 + [1] * 9):
        mask = masks.documents(names)
        for causal in (False, True):
            given = forward.attention(Q, K, V, mask=mask, causal=causal)
            exact = torch_ref.attention(Q.double(), K.double(), V.double(), mask=mask, causal=causal)
            torch.testing.assert_close(given.O.double(), exact.O, atol=5e-6, rtol=0)


@pytest.mark.parametrize(
    "amount, kind",
    amounts(
        ["long documents", "dense of heads", "score of heads", "blocks of parts of tiles"],
        few=["dense of heads"],
    ),
)
def test_prepared_numbers_are_freed_with_their_mask(amount, kind, device, rng):
    mask = drawn.WIDE[kind](rng, 1, 1, 5, 7)
    plans = forward.PLANS.of_masks, backward.PLANS.of_masks
    gc.collect()
    before = [len(of) for of in plans]
    Q, K, V, dO = tensors(device, 5, 7, heads=(1, 1, 1))
    backward.backward(Q, K, V, *forward.attention(Q, K, V, mask=mask), dO, mask=mask)
    assert all(mask in of for of in plans)
    gone = weakref.ref(mask)
    del mask
    gc.collect()
    assert gone() is None and [len(of) for of in plans] == before


class Steps(masks.Mask):
    """A new kind that defines only `sees`."""

    def sees(self, place, r, c):
        return (r - c) % 2 == 0


class Halved(masks.Mask):
    """A new kind that changes scores."""

    def score(self, S, place, r, c):
        return S / 2

    def slope(self, S, place, r, c):
        return 0.5


def test_a_new_kind_that_kernels_do_not_support_is_refused():
    for attend in (*CALLS.values(), lambda mask: decode.attention(X, X, X, mask=mask)):
        with pytest.raises(TypeError, match=r"no kernel changes scores as Halved does: pass masks.score\("):
            attend(mask=Halved() & masks.causal())
    with pytest.raises(ValueError, match="decoding takes no mask of steps"):
        decode.attention(X, X, X, mask=Steps())
    with_kernel = Steps()
    with_kernel.kernel = drawn.in_stripes  # used only if the mask is a Function
    with pytest.raises(ValueError, match="decoding takes no mask of steps"):
        decode.attention(X, X, X, mask=with_kernel)
    begins = torch.tensor([0, 8], dtype=torch.int32, device=DEVICE)
    with pytest.raises(ValueError, match=r"the mask has Steps\(\), and packed sequences take windows"):
        varlen.attention(*X.new_zeros(3, 8, 2, 16), begins, begins, mask=Steps())
