"""Theorems about one row: every softmax is the same function, and (m, l, O_acc) with merge is a monoid."""

import functools

import numpy as np
import pytest

from flashlib import softmax
from flashlib.softmax import IDENTITY, State, merge, summarise

DTYPES = [np.float16, np.float32, np.float64]
IMPLEMENTATIONS = {
    "naive": softmax.naive,
    "safe": softmax.safe,
    "online": softmax.online,
    **{f"blocks of {B_c}": functools.partial(softmax.online_blocks, B_c=B_c) for B_c in (1, 2, 5, 7, 100)},
}
STABLE = {name: f for name, f in IMPLEMENTATIONS.items() if name != "naive"}


def exact(x):
    p = np.exp(x.astype(np.float64) - x.astype(np.float64).max())
    return p / p.sum()


def rounding(x):
    """A bound on the rounding error in x's dtype, from the arguments of exp, x - m, and each of the N additions.

    It is relative, so that it never hides an error of the size of the largest weight.
    """
    finite = x[np.isfinite(x)].astype(np.float64)
    return np.finfo(x.dtype).eps * (len(x) + 2 * np.ptp(finite)) * exact(finite).max()


@pytest.mark.parametrize("f", IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_equals_fp64(f, dtype, rng):
    for N in (1, 2, 7, 37, 64):
        x = rng.standard_normal(N).astype(dtype)
        y = f(x)
        assert y.dtype == dtype and y.shape == x.shape
        assert np.abs(y - exact(x)).max() <= rounding(x)
        assert abs(y.sum(dtype=np.float64) - 1) <= np.finfo(dtype).eps * (N + 2)


@pytest.mark.parametrize("f", STABLE.values(), ids=STABLE)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("c", [-1e4, -100.0, 0.5, 1e4])
def test_shift_invariance(f, dtype, c, rng):
    x = rng.standard_normal(37).astype(dtype)
    shifted = x + dtype(c)
    assert np.abs(f(shifted) - exact(shifted)).max() <= rounding(shifted)
    if dtype == np.float64:  # otherwise x + c itself is rounded, and is a different row
        assert np.abs(f(shifted) - f(x)).max() <= 1e-11


@pytest.mark.parametrize("f", STABLE.values(), ids=STABLE)
@pytest.mark.parametrize(
    "x, y",
    [
        ([], []),
        ([-np.inf, -np.inf, -np.inf], [0, 0, 0]),
        ([-np.inf, 3.0, -np.inf], [0, 1, 0]),
        ([-np.inf, -np.inf, 0.0, 0.0], [0, 0, 0.5, 0.5]),
        ([1e4, 1e4, -1e4], [0.5, 0.5, 0]),
    ],
)
def test_masked_and_large_scores(f, x, y):
    np.testing.assert_array_equal(f(np.array(x, np.float64)), y)


@pytest.mark.parametrize("f", IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS)
def test_nan_is_not_hidden(f):
    assert np.isnan(f(np.array([0.0, np.nan, 1.0]))).all()


def test_naive_overflows_where_safe_does_not():
    x = np.array([12.0, 1.0], np.float16)  # exp(12) > 65504
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.isnan(softmax.naive(x)).any()
    assert np.abs(softmax.safe(x) - exact(x)).max() <= rounding(x)


@pytest.mark.parametrize("largest", [1.0, 700.0, 1e4])
def test_logsumexp(largest, rng):
    x = rng.uniform(-largest, largest, 53)
    wide = x.astype(np.longdouble)
    expected = np.log(np.exp(wide - wide.max()).sum()) + wide.max()
    assert abs(softmax.logsumexp(x) - expected) <= 4 * np.finfo(float).eps * largest + 1e-15
    assert softmax.logsumexp(x[:0]) == -np.inf
    assert softmax.logsumexp(np.full(3, -np.inf)) == -np.inf


@pytest.mark.parametrize("f", [softmax.weighted_sum, softmax.weighted_sum_normalised])
@pytest.mark.parametrize("largest", [1.0, 1e4])
def test_weighted_sum_is_softmax_times_values(f, largest, rng):
    x, V = rng.uniform(-largest, largest, 37), rng.standard_normal((37, 5))
    x[[0, 1, 17]] = -np.inf
    assert np.abs(f(x, V) - exact(x) @ V).max() <= 2 * rounding(x) * np.abs(V).sum(axis=0).max()
    np.testing.assert_array_equal(f(x[:0], V[:0]), np.zeros(5))
    np.testing.assert_array_equal(f(x[:2], V[:2]), np.zeros(5))


def states(rng, n):
    """Return n states of random scores and values, some large, one empty and one fully masked."""
    sizes = [0, 3, *rng.integers(1, 9, n - 2)]
    scores = [rng.standard_normal(k) * 10.0 ** rng.integers(0, 4) for k in sizes]
    scores[1][:] = -np.inf
    return [summarise(x, rng.standard_normal((len(x), 5))) for x in scores]


def assert_same(a, b):
    for part_a, part_b in zip(a, b, strict=True):
        np.testing.assert_allclose(part_a, part_b, rtol=1e-13, atol=1e-13)


def test_merge_is_associative_and_commutative_with_an_identity(rng):
    for a in (many := states(rng, 7)):
        assert_same(merge(a, IDENTITY), a)
        assert_same(merge(IDENTITY, a), a)
        for b in many:
            assert_same(merge(a, b), merge(b, a))
            for c in many:
                assert_same(merge(merge(a, b), c), merge(a, merge(b, c)))
    assert merge(IDENTITY, IDENTITY) == IDENTITY


def test_any_split_in_any_order_gives_the_whole(rng):
    x, V = rng.standard_normal(53) * 30, rng.standard_normal((53, 5))
    for _ in range(50):
        cuts = np.sort(rng.integers(0, 54, 6))
        parts = [summarise(*part) for part in zip(np.split(x, cuts), np.split(V, cuts), strict=True)]
        rng.shuffle(order := list(range(len(parts))))
        whole = functools.reduce(merge, (parts[k] for k in order), IDENTITY)
        assert_same(whole, summarise(x, V))
        assert np.abs(whole.O_acc / whole.l - exact(x) @ V).max() < 1e-13


def test_merge_of_many_rows_is_merge_of_each(rng):
    rows = [(states(rng, 3)[2], states(rng, 3)[2]) for _ in range(4)]
    stacked = [State(*map(np.stack, zip(*side, strict=True))) for side in zip(*rows, strict=True)]
    together = merge(*stacked)
    for r, (a, b) in enumerate(rows):
        assert_same(State(together.m[r], together.l[r], together.O_acc[r]), merge(a, b))


def test_a_plain_mean_of_parts_is_wrong(rng):
    x, V = np.array([0.0, 0.0, 5.0]), rng.standard_normal((3, 2))
    a, b = summarise(x[:2], V[:2]), summarise(x[2:], V[2:])
    mean = (a.O_acc / a.l + b.O_acc / b.l) / 2
    assert np.abs(mean - exact(x) @ V).max() > 0.1
