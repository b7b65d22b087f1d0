"""Sums in 13 bits: the measurements on an H200, and the rule that explains them."""

from fractions import Fraction

import numpy as np
import pytest

from flashlib import lowbit
from flashlib.lowbit import sums

# The bias of O measured on an H200: for equal P and V from 1 to 2; for P of normal scores and V from 1 up.
H200 = {1024: (-0.0006, -0.0156), 4096: (-0.0528, -0.0751), 16384: (-0.2390, -0.2554)}


def in_format(x):
    return lowbit.quantised(x, "e4m3", share="tensor").X_q


@pytest.mark.parametrize("N", H200)
def test_bias_is_that_of_an_h200(N, rng):
    uniform, positive = H200[N]
    V = in_format(rng.random((N, 32)) + 1)
    P = np.full((1, N), 256.0)
    assert abs((sums.product(P, V) / (P @ V) - 1).mean() - uniform) < 0.01
    V = in_format(np.abs(rng.standard_normal((N, 32))) + 1)
    S = rng.standard_normal((16, N))
    P = np.exp(S - S.max(axis=1, keepdims=True)) * 256
    bias = (sums.product(lowbit.rounded(P, "e4m3"), V) / (P @ V) - 1).mean()
    assert abs(bias - positive) < 0.01


def by_the_rule(terms, bits, step):
    """Return the running sum of one row of terms, in fractions."""
    total = Fraction(0)
    for at in range(0, len(terms), step):
        parts = [total, *map(Fraction, map(float, terms[at : at + step]))]
        largest = max(map(abs, parts))
        if largest:
            unit = Fraction(2) ** (int(np.frexp(float(largest))[1]) - 1 - bits)
            total = sum(int(part / unit) for part in parts) * unit
    return float(total)


@pytest.mark.parametrize("M, n, d", [(1, 1, 1), (3, 100, 2), (5, 33, 4), (70, 31, 1), (2, 0, 3)])
@pytest.mark.parametrize("bits, step", [(13, 32), (5, 7), (14, 16)])
def test_a_product_is_the_rule_for_each_number(M, n, d, bits, step, rng):
    A, B = (in_format(rng.standard_normal(shape)) for shape in ((M, n), (n, d)))
    given = sums.product(A, B, bits=bits, step=step)
    for r in range(M):
        for c in range(d):
            assert given[r, c] == by_the_rule(A[r] * B[:, c], bits, step)


def test_a_running_sum_is_the_rule_after_each_step(rng):
    terms = rng.standard_normal((100, 3))
    for k, total in enumerate(sums.running(terms, bits=6), 1):
        assert [*total] == [by_the_rule(terms[: 32 * k, c], 6, 32) for c in range(3)]
    assert k == 4


def test_a_product_continues_from_its_start_as_if_uninterrupted(rng):
    A, B = in_format(rng.standard_normal((5, 128))), in_format(rng.standard_normal((128, 3)))
    half = sums.product(A[:, :64], B[:64])
    np.testing.assert_array_equal(sums.product(A[:, 64:], B[64:], start=half), sums.product(A, B))


def test_heads_are_independent_products(rng):
    A, B = in_format(rng.standard_normal((2, 70, 40))), in_format(rng.standard_normal((2, 40, 3)))
    for h in range(2):
        np.testing.assert_array_equal(sums.product(A, B)[h], sums.product(A[h], B[h]))


def test_a_sum_of_equal_terms_stalls_and_whole_tiles_do_not():
    *_, last = sums.running(np.ones(2**15))
    assert last == 2**14  # there the unit is 2, and each 1 is cut to nothing
    tiles = sum(float(sums.product(np.ones((1, 128)), np.ones((128, 1)))[0, 0]) for _ in range(2**8))
    assert tiles == 2**15


def test_with_bits_enough_a_sum_is_exact(rng):
    A, B = in_format(rng.standard_normal((5, 64))), in_format(rng.standard_normal((64, 3)))
    exact = A @ B
    error = [np.abs(sums.product(A, B, bits=bits) - exact).max() for bits in (4, 8, 12)]
    assert error[0] > 8 * error[1] > 64 * error[2]


def test_zeros_nan_and_inf():
    zero = np.zeros((2, 40))
    assert not sums.product(zero, zero.T).any()
    A = np.ones((2, 40))
    A[0, 35] = np.nan
    given = sums.product(A, np.ones((40, 3)))
    assert np.isnan(given[0]).all() and (given[1] == 40).all()
    assert not np.isfinite(sums.add(np.array([np.inf, 1.0])))


def test_the_terms_are_not_changed(rng):
    terms = rng.standard_normal((40, 3))
    copy = terms.copy()
    sums.add(terms), list(sums.running(terms))
    np.testing.assert_array_equal(terms, copy)
