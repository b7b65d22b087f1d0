"""Parts of rows and keys: the kernels' results for the parts, in fp32, merge into those for the whole."""

import itertools
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
import torch

from flashlib import masks, torch_ref
from flashlib.kernels import DEVICE, backward, forward
from flashlib.types import Grads
from tests import oracle
from tests.kernels import drawn
from tests.kernels.gradients import hold, reference
from tests.kernels.test_backward import LSE, SMALL, WAYS, X, tensors
from tests.kernels.test_forward import HALF
from tests.masks.test_parts import listed
from tests.tiers import amounts

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


@pytest.mark.parametrize("amount, dtype", [("all", torch.float16), ("few", torch.bfloat16), ("few", FP32)])
@pytest.mark.parametrize("with_dlse", [False, True])
def test_delta_computed_once_gives_the_same_bits(amount, dtype, with_dlse, device, poisoned):
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


def test_a_dtype_that_the_kernels_do_not_write_is_refused():
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


def test_delta_of_tensors_that_require_gradients_is_refused():
    with pytest.raises(ValueError, match="O requires a gradient, and this kernel has no backward"):
        backward.delta_of(torch.ones(1, 1, 2, 16, device=DEVICE, requires_grad=True), torch.ones(1, 1, 2, 16))


def zigzag(N, P):
    """Return the runs of each of P ranks: of 2 P pieces of N, rank p has pieces p and 2 P - 1 - p."""
    cuts = [N * k // (2 * P) for k in range(2 * P + 1)]
    pieces = [range(*ends) for ends in itertools.pairwise(cuts)]
    return [(pieces[p], pieces[-1 - p]) for p in range(P)]


def contiguous(N, P):
    return [range(N * p // P, N * (p + 1) // P) for p in range(P)]


def striped(N, P):
    return [range(p, N, P) for p in range(P)]


def random_cuts(rng, N, P):
    cuts = [0, *sorted(int(n) for n in rng.integers(0, N + 1, P - 1)), N]
    return [range(*ends) for ends in itertools.pairwise(cuts)]


class Cut(NamedTuple):
    """A problem whose rows and keys are cut into parts. rows, keys: runs of each part."""

    mask: masks.Mask
    rows: list
    keys: list


def joined(cut, Q, K, V, dO, rounded=lambda X: X, **options):
    """Return O, lse and the gradients as in a ring: all parts of rows with all parts of keys, in fp32.

    rounded: how a ring would round the O and the gradients of a part. O is rounded once, at the end.
    """
    (B, H, N_q, _), N_k = Q.shape, K.shape[2]
    O, lse = torch.zeros_like(Q, dtype=FP32), torch.full((B, H, N_q), -torch.inf, device=Q.device)
    grads = [torch.zeros_like(X, dtype=FP32) for X in (Q, K, V)]
    at = {runs: torch.tensor(listed(runs), device=Q.device) for runs in (*cut.rows, *cut.keys)}
    hops = [
        (at[r], at[c], masks.placed(cut.mask, N_q, N_k, r, c)) for r, c in itertools.product(cut.rows, cut.keys)
    ]
    for i, j, part in hops:
        found = forward.attention(Q[:, :, i], K[:, :, j], V[:, :, j], mask=part, out_dtype=FP32, **options)
        both = torch.logaddexp(lse[:, :, i], found.lse)
        weights = [torch.exp(x - both).nan_to_num(nan=0.0)[..., None] for x in (lse[:, :, i], found.lse)]
        O[:, :, i] = weights[0] * O[:, :, i] + weights[1] * rounded(found.O)
        lse[:, :, i] = both
    O = O.to(Q.dtype)
    delta = backward.delta_of(O, dO)
    for i, j, part in hops:
        given = backward.backward(
            Q[:, :, i], K[:, :, j], V[:, :, j], None, lse[:, :, i], dO[:, :, i], delta=delta[:, :, i],
            mask=part, out_dtype=FP32, **options,
        )  # fmt: skip
        for grad, own, of_part in zip(grads, (i, j, j), given, strict=True):
            grad[:, :, own] += rounded(of_part)
    return O, lse, Grads(*(X.to(Q.dtype) for X in grads))


MASKS = {
    "none": lambda N_q, N_k: masks.Mask(),
    "causal": lambda N_q, N_k: masks.causal(),
    "window": lambda N_q, N_k: masks.window(19, 0),
    "causal documents": lambda N_q, N_k: masks.causal() & masks.documents(np.arange(N_k) // 17),
    "alibi and a prefix": lambda N_q, N_k: masks.alibi([0.3, 0.1]) & masks.prefix(5),
    "a function": lambda N_q, N_k: masks.from_function(lambda r, c: (r - c) % 5 == 0, kernel=drawn.in_stripes),
    "blocks": lambda N_q, N_k: masks.blocks(np.tri(-(-N_q // 8), -(-N_k // 8), dtype=bool), 8, 8),
}
LAYOUTS = {"zigzag": zigzag, "contiguous": contiguous, "striped": striped}


@pytest.mark.parametrize(
    "amount, mask", amounts(MASKS, few=["causal documents", "alibi and a prefix", "a function", "blocks"])
)
@pytest.mark.parametrize("layout", [*LAYOUTS, "random"])
@pytest.mark.parametrize("P", [2, 3, 1])
def test_merged_parts_equal_the_whole(amount, mask, layout, P, device, rng, poisoned):
    for N_q, N_k in [(41, 53), (53, 41)][P % 2 :][:1]:
        Q, K, V, dO = tensors(device, N_q, N_k, 16, FP32, heads=(1, 2, 1))
        cut = LAYOUTS.get(layout, partial(random_cuts, rng))
        cut = Cut(MASKS[mask](N_q, N_k), cut(N_q, P), cut(N_k, P))
        O, lse, grads = joined(cut, Q, K, V, dO)
        exact = torch_ref.attention(*(X.double() for X in (Q, K, V)), mask=cut.mask)
        oracle.assert_close(O.cpu(), exact.O.cpu(), rounding=3e-6, what="O")
        oracle.assert_close(lse.cpu(), exact.lse.cpu(), rounding=3e-6, what="lse")
        hold(grads, Q, K, V, dO, mask=cut.mask)


def rms(given, exact):
    """Return the root mean square of the error of each, relative to that of the exact result."""
    pairs = zip(given, exact, strict=True)
    return [((X.double() - Y).square().mean() / Y.square().mean()).sqrt().item() for X, Y in pairs]


def errors(device, N, d, heads, parts, rounded=lambda X: X):
    """Return the errors of O, dQ, dK and dV in bf16 for each number of parts, causal, in a zigzag."""
    torch.manual_seed(0)
    Q, K, V, dO = tensors(device, N, N, d, torch.bfloat16, heads=heads)
    exact = torch_ref.attention(*(X.double() for X in (Q, K, V)), causal=True).O
    gradients = reference(*(X.double() for X in (Q, K, V)), dO, None, causal=True)
    found = []
    for P in parts:
        O, _, grads = joined(Cut(masks.causal(), zigzag(N, P), zigzag(N, P)), Q, K, V, dO, rounded)
        found.append(rms([O, *grads], [exact, *gradients]))
    return np.array(found)


SIZE = {"cpu": (64, 16, (1, 1, 1)), "cuda": (1024, 64, (1, 4, 4))}


@pytest.mark.parametrize("amount", ["few", "all"])
def test_the_error_does_not_grow_with_the_number_of_parts(amount, device):
    found = errors(device, *SIZE[device], {"few": (1, 4), "all": (1, 2, 16)}[amount])
    assert (found > 1e-3).all(), "bf16 keeps 3 digits"
    assert (found / found[0] < 1.02).all(), found


@pytest.mark.parametrize("amount", ["all"])
def test_it_would_grow_if_each_part_were_rounded(amount, device):
    """To 16 bits at each hop, as rings over other kernels do. So the test above can notice such errors."""
    found = errors(device, *SIZE[device], (1, 4), rounded=lambda X: X.bfloat16().float())
    assert (found[1] / found[0] > 1.05).all(), found
