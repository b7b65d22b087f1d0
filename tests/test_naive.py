"""Standard attention equals the oracle, in every dtype and at every size."""

import numpy as np
import pytest

from flashlib import naive
from tests import oracle


@pytest.mark.parametrize("N_q, N_k", oracle.SIZES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("largest_score", [None, 1e4])
def test_equals_fp64(N_q, N_k, causal, largest_score, rng):
    Q, K, V = oracle.inputs(rng, N_q, N_k, 5, largest_score=largest_score)
    O, lse = oracle.attention(Q, K, V, causal=causal)
    given = naive.attention(Q, K, V, causal=causal)
    rounding = 8 * np.finfo(float).eps * (largest_score or 10)
    oracle.assert_close(given.O, O, rounding=rounding, what="O")
    oracle.assert_close(given.lse, lse, rounding=rounding, what="lse")


@pytest.mark.parametrize("dtype, eps", [(np.float16, 2.0**-11), (np.float32, 2.0**-24)])
def test_the_error_is_that_of_storing_S_and_P(dtype, eps, rng):
    Q, K, V = oracle.inputs(rng, 37, 53, 16, dtype)
    O, lse = oracle.attention(Q, K, V, causal=True)
    given = naive.attention(Q, K, V, causal=True)
    assert given.O.dtype == dtype and given.lse.dtype == np.float32
    largest_S = np.abs(Q.astype(float) @ K.T.astype(float)).max() / 4
    assert 0 < oracle.worst(given.O, O) <= eps * (largest_S + 3) * np.abs(V).max()
    assert oracle.worst(given.lse, lse) <= eps * (largest_S + 3)


def test_scale_is_applied(rng):
    Q, K, V = oracle.inputs(rng, 7, 13, 5)
    given = naive.attention(Q, K, V, scale=0.3)
    assert oracle.worst(given.O, oracle.attention(Q, K, V, scale=0.3)[0]) < 1e-14
    assert oracle.worst(given.O, oracle.attention(Q, K, V)[0]) > 1e-3
