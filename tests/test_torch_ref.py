"""The kernels' reference equals the NumPy oracle head by head, and torch's own attention."""

import warnings

import numpy as np
import pytest
import torch

from flashlib import masks, naive, torch_ref
from tests import masked, oracle


def tensors(rng, N_q, N_k, d, dtype=torch.float64, heads=(2, 3)):
    return tuple(torch.from_numpy(rng.standard_normal((*heads, n, d))).to(dtype) for n in (N_q, N_k, N_k))


@pytest.mark.parametrize("N_q, N_k", oracle.SIZES)
@pytest.mark.parametrize("causal", [False, True])
def test_equals_the_oracle_head_by_head(N_q, N_k, causal, rng):
    Q, K, V = tensors(rng, N_q, N_k, 5)
    given = torch_ref.attention(Q, K, V, causal=causal)
    for b, h in np.ndindex(2, 3):
        O, lse = oracle.attention(Q[b, h], K[b, h], V[b, h], causal=causal)
        oracle.assert_close(given.O[b, h], O, rounding=1e-13, what=f"O of head {b}, {h}")
        oracle.assert_close(given.lse[b, h], lse, rounding=1e-13, what=f"lse of head {b}, {h}")


def test_scale_is_applied(rng):
    Q, K, V = tensors(rng, 7, 13, 5, heads=(1, 1))
    O, lse = oracle.attention(Q[0, 0], K[0, 0], V[0, 0], scale=0.3)
    given = torch_ref.attention(Q, K, V, scale=0.3)
    oracle.assert_close(given.O[0, 0], O, rounding=1e-14, what="O")
    oracle.assert_close(given.lse[0, 0], lse, rounding=1e-14, what="lse")


def test_equals_torch_with_an_explicit_mask(rng):
    Q, K, V = tensors(rng, 13, 17, 16, torch.float32)
    visible = torch.ones(13, 17, dtype=torch.bool).tril(17 - 13)  # bottom-right; is_causal is top-left
    expected = torch.nn.functional.scaled_dot_product_attention(Q, K, V, attn_mask=visible)
    assert oracle.worst(torch_ref.attention(Q, K, V, causal=True).O, expected) < 1e-6


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_rounds_as_naive_does(dtype, rng):
    Q, K, V = tensors(rng, 37, 53, 16, dtype, heads=(1, 1))
    given = torch_ref.attention(Q, K, V, causal=True)
    plain = naive.attention(*(X[0, 0].numpy() for X in (Q, K, V)), causal=True)
    O, lse = oracle.attention(Q[0, 0], K[0, 0], V[0, 0], causal=True)
    assert given.O.dtype == dtype and given.lse.dtype == torch.float32
    oracle.assert_close(given.O[0, 0], O, plain=plain.O, rounding=torch.finfo(dtype).eps)
    oracle.assert_close(given.lse[0, 0], lse, plain=plain.lse, rounding=1e-6)


@pytest.mark.parametrize("N_q, N_k", masked.SIZES)
@pytest.mark.parametrize("kind", masked.KINDS)
def test_masks_and_their_gradients_equal_the_oracle(kind, N_q, N_k, rng):
    case = masked.draw(kind, rng, N_q, N_k)
    mask = case.mask
    if kind == "alibi":  # two heads with the same slope
        mask = masks.alibi([mask.slopes[0]] * 2)
    elif mask.heads == 1:  # in a composition
        return
    shapes = (N_q, 3), (N_k, 3), (N_k, 4), (N_q, 4)
    Q, K, V, dO = (torch.from_numpy(rng.standard_normal((1, 2, *shape))) for shape in shapes)
    for X in (Q, K, V):
        X.requires_grad_()
    given = torch_ref.attention(Q, K, V, mask=mask)
    assert given.O.shape == (1, 2, N_q, 4) and given.lse.shape == (1, 2, N_q)
    (given.O * dO).sum().backward()
    for h in range(2):
        head = [X[0, h].detach().numpy() for X in (Q, K, V)]
        O, lse, grads = masked.attention(*head, case, dO=dO[0, h].numpy())
        oracle.assert_close(given.O[0, h].detach(), O, rounding=1e-13, what="O")
        oracle.assert_close(given.lse[0, h].detach(), lse, rounding=1e-13, what="lse")
        for name, X, exact in zip(("dQ", "dK", "dV"), (Q, K, V), grads, strict=True):
            oracle.assert_close(X.grad[0, h], exact, rounding=1e-9, what=name)


@pytest.mark.parametrize("causal", [False, True])
def test_heads_and_sequences_may_have_different_masks(causal, rng):
    B, H, N_q, N_k = 2, 3, 7, 11
    Q, K, V = tensors(rng, N_q, N_k, 5)
    slopes, ids = masks.alibi_slopes(H), np.array([masked.packed(rng, N_k) for _ in range(B)])
    every = masks.from_function(lambda b, h, r, c: (r - c) % (b + h + 1) == 0)
    given = torch_ref.attention(Q, K, V, mask=masks.alibi(slopes) & masks.documents(ids) & every, causal=causal)
    for b, h in np.ndindex(B, H):
        case = masked.Case(
            None,
            lambda r, c: ids[b, r] == ids[b, c] and (r - c) % (b + h + 1) == 0 and (c <= r or not causal),  # noqa: B023
            lambda s, r, c: s - slopes[h] * abs(r - c),  # noqa: B023
        )
        O, lse = masked.attention(*(X[b, h].numpy() for X in (Q, K, V)), case)
        oracle.assert_close(given.O[b, h], O, rounding=1e-13)
        oracle.assert_close(given.lse[b, h], lse, rounding=1e-13)


def test_groups_of_heads_share_keys_and_values_of_any_size(rng):
    Q, (K, V) = tensors(rng, 7, 7, 5, heads=(2, 6))[0], tensors(rng, 9, 9, 5, heads=(2, 2))[:2]
    V = V[..., :3].contiguous()
    mask = masks.alibi(masks.alibi_slopes(6))
    given = torch_ref.attention(Q, K, V, mask=mask)
    repeated = torch_ref.attention(Q, *(X.repeat_interleave(3, dim=1) for X in (K, V)), mask=mask)
    assert given.O.shape == (2, 6, 7, 3) and torch.equal(given.O, repeated.O)
    assert torch.equal(given.lse, repeated.lse)


def test_masks_in_half_precision_round_once(rng):
    Q, K, V = tensors(rng, 37, 53, 16, torch.float16, heads=(1, 1))
    mask = masks.window(20, 0) & masks.softcap(1.0)
    given = torch_ref.attention(Q, K, V, mask=mask)
    exact = torch_ref.attention(Q.double(), K.double(), V.double(), mask=mask)
    assert given.O.dtype == torch.float16 and given.lse.dtype == torch.float32
    assert oracle.worst(given.O, exact.O) < 2e-3


def test_a_mask_that_does_not_fit_is_refused(rng):
    Q, K, V = tensors(rng, 4, 6, 5)
    for mask, error, words in [
        (masks.alibi([1.0, 2.0]), ValueError, "the mask is made for 2 heads, and Q has 3; they must be equal"),
        (masks.documents([[0] * 6] * 3), ValueError, "the mask is made for 3 sequences, and Q has 2"),
        (masks.documents([0] * 5), ValueError, "ids has shape .5,., and there are 6 keys"),
        (lambda r, c: c <= r, TypeError, "mask is of type function; pass one of flashlib.masks"),
    ]:
        with pytest.raises(error, match=words):
            torch_ref.attention(Q, K, V, mask=mask)


def test_bad_input_is_refused(rng):
    Q, K, V = tensors(rng, 7, 7, 16)
    for arguments, error, words in [
        ((Q.numpy(), K, V), TypeError, "Q is of type ndarray; pass a torch tensor"),
        ((Q, K.long(), V), TypeError, "K has dtype torch.int64; accepted are"),
        ((Q, K, V.float()), TypeError, "V has dtype torch.float32 and Q has torch.float64"),
        ((Q, K.to("meta"), V), ValueError, "K is on meta and Q on cpu"),
        ((Q[0], K[0], V[0]), ValueError, r"Q has shape \(3, 7, 16\); expected 4 axes \(B, H, N, d\)"),
        ((Q[:1], K, V), ValueError, "all axes before the last two must be equal"),
        ((Q, K[:, :2], V[:, :2]), ValueError, "Q has 3 heads and K and V have 2; H_q must be a multiple of H_k"),
        ((Q, K, V[:, :, :3]), ValueError, "they must be equal but for the last axis"),
    ]:
        with pytest.raises(error, match=words):
            torch_ref.attention(*arguments)


LESS = {  # settings of torch on which fp32 must not depend
    "medium": lambda: torch.set_float32_matmul_precision("medium"),
    "high": lambda: torch.set_float32_matmul_precision("high"),
    "TF32": lambda: setattr(torch.backends.cuda.matmul, "allow_tf32", True),
    "autocast": lambda: None,
}


@pytest.mark.parametrize("told", LESS)
def test_fp32_is_fp32_whatever_the_settings_of_torch(told, rng):
    inputs = tensors(rng, 64, 64, 128, torch.float32)
    exact = with_gradients([X.double() for X in inputs])
    try:
        LESS[told]()
        with torch.autocast("cpu", torch.bfloat16, enabled=told == "autocast"):
            given = with_gradients(inputs)
    finally:
        torch.set_float32_matmul_precision("highest")
    for name, x, y in zip(("O", "lse", "dQ", "dK", "dV"), given, exact, strict=True):
        assert x.dtype == torch.float32, f"{name} is {x.dtype}"
        assert (x - y).abs().max() < 1e-5, f"{name} was computed in less than fp32"


def with_gradients(inputs):
    """Return O, lse and the gradients of the sum of O^2."""
    leaves = [X.clone().requires_grad_() for X in inputs]
    O, lse = torch_ref.attention(*leaves)
    return O, lse, *torch.autograd.grad((O * O).sum(), leaves)


def not_plain():
    """Return tensors that no attention here takes, each with the words of its error."""
    X = torch.zeros(1, 1, 4, 16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that these are prototypes
        nested = torch.nested.nested_tensor([X[0]])
        masked = torch.masked.masked_tensor(X, X == 0)
        sparse = {"COO": X.to_sparse(), "CSR": X[0, 0].to_sparse_csr()}
        quantised = torch.quantize_per_tensor(X, 0.1, 0, torch.qint8)
    return {
        "nested": (nested, "Q is a nested tensor; pass a dense one"),
        **{name: (each, "Q has layout .*; pass a dense tensor") for name, each in sparse.items()},
        "masked": (masked, "Q is a masked tensor; pass a plain one"),
        "quantised": (quantised, "Q has dtype torch.qint8; accepted are"),
        "complex": (X.to(torch.complex64), "Q has dtype torch.complex64; accepted are"),
        "array": (X.numpy(), "Q is of type ndarray; pass a torch tensor"),
    }


NOT_PLAIN = not_plain()


@pytest.mark.parametrize("kind", NOT_PLAIN)
def test_an_unusual_tensor_is_refused_with_a_sentence(kind):
    X, words = NOT_PLAIN[kind]
    with pytest.raises(TypeError, match=words):
        torch_ref.attention(X, X, X)


def test_a_parameter_is_a_tensor(rng):
    inputs = tensors(rng, 5, 7, 4)
    given = torch_ref.attention(*map(torch.nn.Parameter, inputs))
    assert torch.equal(given.O.detach(), torch_ref.attention(*inputs).O)
