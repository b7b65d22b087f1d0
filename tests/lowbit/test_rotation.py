"""A rotation keeps all products and spreads what is in one channel."""

import numpy as np
import pytest

from flashlib import lowbit

SIZES = [1, 2, 8, 64, 128]


@pytest.mark.parametrize("d", SIZES)
def test_rows_of_hadamard_are_orthogonal(d):
    H = lowbit.hadamard(d)
    np.testing.assert_array_equal(H @ H.T, d * np.eye(d))
    assert (np.abs(H) == 1).all()


@pytest.mark.parametrize("d", SIZES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 5)])
def test_rotated_is_the_product_with_signs_and_hadamard(d, shape, rng):
    X = rng.standard_normal((*shape, d))
    for seed in (0, 7):
        R = np.diag(lowbit.signs(d, seed=seed)) @ lowbit.hadamard(d) / np.sqrt(d)
        np.testing.assert_allclose(lowbit.rotated(X, seed=seed), X @ R, rtol=0, atol=1e-13)


def test_scores_are_kept_and_an_outlier_is_spread(rng):
    Q, K = rng.standard_normal((7, 64)), rng.standard_normal((13, 64))
    Q[3, 5] = 100.0
    np.testing.assert_allclose(lowbit.rotated(Q) @ lowbit.rotated(K).T, Q @ K.T, rtol=0, atol=1e-11)
    assert np.abs(lowbit.rotated(Q)[3]).max() < 100 / 8 + 4  # 100 / sqrt(64), and the rest


def test_both_signs_occur_and_they_differ_by_seed():
    assert set(lowbit.signs(64)) == {-1, 1}
    assert (lowbit.signs(64) != lowbit.signs(64, seed=1)).any()


def test_dtypes(rng):
    for dtype, expected in ((np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64)):
        assert lowbit.rotated(rng.standard_normal((3, 8)).astype(dtype)).dtype == expected


@pytest.mark.parametrize("d", [0, 3, 96])
def test_other_sizes_are_refused(d):
    for f in (lambda: lowbit.rotated(np.ones((2, d))), lambda: lowbit.hadamard(d)):
        with pytest.raises(ValueError, match="d is"):
            f()
