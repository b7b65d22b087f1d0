"""Attention in chunks equals attention, for every chunk size, and stores at most a chunk of scores."""

import numpy as np
import pytest
import torch

from flashlib import chunked, torch_ref
from tests import oracle
from tests.test_torch_ref import tensors


@pytest.mark.parametrize("N_q, N_k", oracle.SIZES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("B_r, B_c", [(1, 1), (5, 3), (16, 64)])
def test_equals_the_oracle_for_every_chunk_size(N_q, N_k, causal, B_r, B_c, rng):
    Q, K, V = tensors(rng, N_q, N_k, 5)
    given = chunked.attention(Q, K, V, B_r=B_r, B_c=B_c, causal=causal, scale=0.3)
    for b, h in np.ndindex(2, 3):
        O, lse = oracle.attention(Q[b, h], K[b, h], V[b, h], causal=causal, scale=0.3)
        oracle.assert_close(given.O[b, h], O, rounding=1e-13, what=f"O of head {b}, {h}")
        oracle.assert_close(given.lse[b, h], lse, rounding=1e-13, what=f"lse of head {b}, {h}")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_large_scores_do_not_overflow_and_dtypes_are_kept(dtype, rng):
    Q, K, V = (X.to(dtype) for X in tensors(rng, 37, 53, 16, heads=(1, 2)))
    Q = Q * 40
    given = chunked.attention(Q, K, V, B_r=8, B_c=11, causal=True)
    exact = torch_ref.attention(*(X.double() for X in (Q, K, V)), causal=True)
    plain = torch_ref.attention(Q, K, V, causal=True)
    assert given.O.dtype == dtype and given.lse.dtype == torch.float32
    oracle.assert_close(given.O.double(), exact.O, plain=plain.O.double(), rounding=float(torch.finfo(dtype).eps))
    oracle.assert_close(given.lse, exact.lse, plain=plain.lse, rounding=1e-5)


def test_small_numpy_integers_are_valid_chunk_sizes(rng):
    Q, K, V = torch.from_numpy(rng.standard_normal((3, 1, 2, 300, 4)))
    given, plain = (chunked.attention(Q, K, V, B_r=of(100), B_c=of(90), causal=True) for of in (np.uint8, int))
    assert all(map(torch.equal, given, plain))


def test_bad_input_is_refused(rng):
    Q, K, V = tensors(rng, 7, 7, 16)
    for arguments, options, error, words in [
        ((Q.numpy(), K, V), {}, TypeError, "Q is of type ndarray; pass a torch tensor"),
        ((Q, K, V[:, :, :5]), {}, ValueError, "K has shape"),
        ((Q, K, V), {"B_c": 0}, ValueError, "B_c is 0; accepted are whole numbers of at least 1"),
        ((Q, K, V), {"causal": 1}, TypeError, "causal is 1; pass True or False"),
    ]:
        with pytest.raises(error, match=words):
            chunked.attention(*arguments, **options)
