"""A scale is the largest number of its group divided by the format's largest, and nothing saturates."""

import numpy as np
import pytest

from flashlib import lowbit

SHARED = [s for s in lowbit.SHARES if s != "none"]


def groups(X, share, block):
    """Yield index expressions of the numbers that share a scale."""
    H, N, d = X.shape
    if share == "tensor":
        yield np.s_[:]
    for h in range(H):
        if share == "head":
            yield np.s_[h]
        if share == "channel":
            yield from (np.s_[h, :, c] for c in range(d))
        if share in ("block", "row"):
            size = block if share == "block" else 1
            yield from (np.s_[h, r : r + size] for r in range(0, N, size))


@pytest.mark.parametrize("share", SHARED)
@pytest.mark.parametrize("format", ["e4m3", "e5m2", "int8"])
@pytest.mark.parametrize("shape, block", [((3, 13, 5), 4), ((1, 1, 1), 64), ((2, 8, 3), 8)])
def test_the_largest_of_a_group_lands_on_the_largest_of_the_format(share, format, shape, block, rng):
    X = rng.standard_normal(shape) * np.exp(rng.uniform(-3, 3, shape))
    given = lowbit.quantised(X, format, share=share, block=block)
    scale = np.broadcast_to(given.scale, shape)
    for group in groups(X, share, block):
        assert len(np.unique(scale[group])) == 1
        np.testing.assert_allclose(np.abs(given.X_q[group]).max(), lowbit.FORMATS[format].largest, rtol=1e-15)
    np.testing.assert_array_equal(given.X_q, lowbit.rounded(X / scale, format))
    half = lowbit.FORMATS[format].spacing(given.X_q) / 2
    assert (np.abs(given.X - X) <= half * scale * (1 + 1e-12)).all()


@pytest.mark.parametrize("share", SHARED)
def test_a_power_of_two_is_the_next_one_above(share, rng):
    X = rng.standard_normal((2, 13, 5))
    fine = lowbit.scales(X, "e4m3", share=share, block=4)
    coarse = lowbit.scales(X, "e4m3", share=share, block=4, power_of_two=True)
    assert (np.frexp(coarse)[0] == 0.5).all()
    assert ((fine <= coarse) & (coarse < 2 * fine)).all()
    exact = np.full((1, 2), 448.0)  # a scale that is one already
    assert lowbit.scales(exact, "e4m3", power_of_two=True) == 1


def test_one_head_has_the_scales_of_the_same_head_among_others(rng):
    X = rng.standard_normal((3, 13, 5))
    for share in ("none", "head", "block", "row", "channel"):
        many, one = (
            lowbit.quantised(X, "int8", share=share, block=4),
            lowbit.quantised(X[1], "int8", share=share, block=4),
        )
        np.testing.assert_array_equal(many.X_q[1], one.X_q)
        np.testing.assert_array_equal(
            np.broadcast_to(many.scale, X.shape)[1], np.broadcast_to(one.scale, X.shape[1:])
        )


def test_zeros_tiny_numbers_empty_arrays_and_nan_are_handled():
    for share in lowbit.SHARES:
        zero = lowbit.quantised(np.zeros((5, 3)), "e4m3", share=share)
        assert not zero.X.any() and np.isfinite(zero.scale).all()
        tiny = lowbit.quantised(np.full((5, 3), 1e-45, np.float32), "int8", share=share)
        assert np.isfinite(tiny.X).all()
        for shape in ((0, 3), (5, 0)):
            assert lowbit.quantised(np.ones(shape), "int8", share=share).X.shape == shape
        X = np.ones((5, 3))
        X[2, 1] = np.nan
        assert np.isnan(lowbit.quantised(X, "e4m3", share=share).X[2, 1])


def test_invalid_arguments_are_refused():
    X = np.ones((4, 3))
    with pytest.raises(ValueError, match="'none', 'tensor', 'head', 'block', 'row', 'channel'"):
        lowbit.quantised(X, "e4m3", share="column")
    with pytest.raises(ValueError, match="block"):
        lowbit.quantised(X, "e4m3", share="block", block=0)
    with pytest.raises(ValueError, match=r"\(N, d\)"):
        lowbit.quantised(X[0], "e4m3")
    with pytest.raises(TypeError):
        lowbit.quantised(X.astype(int), "e4m3")
