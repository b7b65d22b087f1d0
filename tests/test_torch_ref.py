"""The kernels' reference equals the NumPy oracle head by head, and torch's own attention."""

import numpy as np
import pytest
import torch

from flashlib import naive, torch_ref
from tests import oracle


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


def test_bad_input_is_refused(rng):
    Q, K, V = tensors(rng, 7, 7, 16)
    for arguments, error, words in [
        ((Q.numpy(), K, V), TypeError, "Q is a ndarray; pass a torch tensor"),
        ((Q, K.long(), V), TypeError, "K has dtype torch.int64; accepted are"),
        ((Q, K, V.float()), TypeError, "V has dtype torch.float32 and Q has torch.float64"),
        ((Q, K.to("meta"), V), ValueError, "K is on meta and Q on cpu"),
        ((Q[0], K[0], V[0]), ValueError, r"Q has shape \(3, 7, 16\); expected 4 axes \(B, H, N, d\)"),
        ((Q[:1], K, V), ValueError, "all axes before the last two must be equal"),
    ]:
        with pytest.raises(error, match=words):
            torch_ref.attention(*arguments)
