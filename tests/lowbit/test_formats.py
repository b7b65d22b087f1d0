"""Formats have the numbers of torch's dtypes; rounding is torch's cast, except out of range."""

import numpy as np
import pytest

from flashlib import lowbit

torch = pytest.importorskip("torch")

DTYPES = {
    "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
    "int8": torch.int8,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
}
EIGHT = ("e4m3", "e5m2", "int8")


def all_numbers(name):
    """Return every finite number of a format, in order, from torch's codes."""
    dtype = DTYPES[name]
    codes = torch.arange(-(2 ** (8 * dtype.itemsize - 1)), 2 ** (8 * dtype.itemsize - 1))
    values = codes.to(torch.int8 if dtype.itemsize == 1 else torch.int16).view(dtype).double().numpy()
    return np.unique(values[np.isfinite(values)] + 0.0)


def cast(x, name):
    """Return what torch makes of numbers that lie within the format's."""
    X = torch.as_tensor(x)
    return (X.round() if name == "int8" else X).to(DTYPES[name]).to(X.dtype).numpy()


def assert_same(given, expected):
    assert given.dtype == expected.dtype
    np.testing.assert_array_equal(given, expected)
    np.testing.assert_array_equal(np.signbit(given[given != 0]), np.signbit(expected[expected != 0]))


@pytest.mark.parametrize("name", EIGHT)
def test_a_code_decodes_to_torchs_number(name):
    expected = torch.arange(256).to(torch.uint8).view(DTYPES[name]).double().numpy()
    np.testing.assert_array_equal(lowbit.decoded(name), expected)
    np.testing.assert_array_equal(lowbit.numbers(name), all_numbers(name))


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_of_the_format_are_unchanged(name, dtype):
    x = all_numbers(name).astype(dtype)
    assert_same(lowbit.rounded(x, name), x)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ties_and_their_neighbours_are_rounded_as_torch_does(name, dtype):
    values = all_numbers(name)
    ties = ((values[1:] + values[:-1]) / 2).astype(dtype)
    assert ((values[1:].astype(dtype) - ties) == (ties - values[:-1].astype(dtype))).all()
    for x in (ties, np.nextafter(ties, dtype(np.inf)), np.nextafter(ties, dtype(-np.inf))):
        assert_same(lowbit.rounded(x, name), nearest(x, values))
        if dtype == np.float32:  # torch rounds fp64 to fp32 first
            assert_same(lowbit.rounded(x, name), cast(x, name))


def nearest(x, values):
    """Return the nearest of the values for each x, by search; a tie goes to the one of even place from 0."""
    at = np.clip(np.searchsorted(values, x), 1, len(values) - 1)
    below, above = values[at - 1], values[at]
    place = at - 1 - np.searchsorted(values, 0.0)
    up = (above - x < x - below) | ((above - x == x - below) & (place % 2 != 0))
    return np.where(up, above, below).astype(x.dtype)


@pytest.mark.parametrize("name", DTYPES)
def test_random_numbers_of_all_sizes_are_rounded_as_torch_does(name, rng):
    x = (rng.standard_normal(20_000) * np.exp(rng.uniform(-20, 12, 20_000))).astype(np.float32)
    low, high = all_numbers(name)[[0, -1]]
    inside = x[(low <= x) & (x <= high)]
    assert len(inside) > 5_000
    assert_same(lowbit.rounded(inside, name), cast(inside, name))


@pytest.mark.parametrize("name", DTYPES)
def test_numbers_out_of_range_become_the_last_number(name):
    low, high = all_numbers(name)[[0, -1]]
    x = np.array([high * 1.001, 4.0 * high, -low * -1.5, 1e300, np.inf, -np.inf, -1e300])
    expected = np.where(x > 0, high, low)
    assert_same(lowbit.rounded(x, name), expected)


@pytest.mark.parametrize("name, last", [("e4m3", 464.0), ("e5m2", 61440.0), ("fp16", 65520.0)])
def test_without_saturation_numbers_out_of_range_become_special(name, last):
    """`last` is the tie of the largest number and the next, which there is not."""
    special, high = lowbit.FORMATS[name].beyond, lowbit.FORMATS[name].largest
    to_even = high if name == "e4m3" else special  # the largest of e4m3 is even, its code for nan is the next
    x = np.array([high, np.nextafter(last, 0), last, np.nextafter(last, np.inf), 1e30, np.inf])
    expected = np.array([high, high, to_even, special, special, special])
    assert_same(lowbit.rounded(x, name, overflow="special"), expected)
    np.testing.assert_array_equal(lowbit.rounded(-x, name, overflow="special"), -expected)
    if np.isinf(special):
        assert_same(
            lowbit.rounded(x.astype(np.float32), name, overflow="special"), cast(x.astype(np.float32), name)
        )


@pytest.mark.parametrize("overflow", ["saturate", "special"])
@pytest.mark.parametrize("name", DTYPES)
def test_nan_stays_nan_and_zero_keeps_its_sign(name, overflow):
    y = lowbit.rounded(np.array([np.nan, 0.0, -0.0, 1.0]), name, overflow=overflow)
    assert np.isnan(y[0]) and y[3] == 1
    np.testing.assert_array_equal(np.signbit(y[1:3]), [False, True])


@pytest.mark.parametrize("name", EIGHT)
def test_codes_of_numbers_are_torchs(name, rng):
    x = np.concatenate([all_numbers(name), rng.standard_normal(999) * 20]).astype(np.float32)
    expected = torch.from_numpy(cast(x, name)).to(DTYPES[name]).view(torch.uint8).numpy()
    given = lowbit.encoded(x, name)
    np.testing.assert_array_equal(lowbit.decoded(name)[given], lowbit.rounded(x, name))
    at = x != 0  # a number that is rounded to -0 has the code of -0
    np.testing.assert_array_equal(given[at], expected[at])
    if name != "int8":
        codes = lowbit.encoded(np.array([np.nan, np.copysign(np.nan, -1)]), name)
        assert np.isnan(lowbit.decoded(name)[codes]).all()


def test_the_result_has_the_shape_and_dtype_of_x(rng):
    for dtype, expected in ((np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64)):
        for shape in ((), (0,), (3, 0), (2, 3, 5)):
            y = lowbit.rounded(np.asarray(rng.standard_normal(shape), dtype), "e4m3")
            assert y.shape == shape and y.dtype == expected


def test_cached_arrays_are_read_only():
    for f in (lowbit.decoded, lowbit.numbers):
        with pytest.raises(ValueError):
            f("e4m3")[0] = 1


def test_errors_say_what_is_accepted():
    with pytest.raises(ValueError, match="'e4m3', 'e5m2', 'int8'"):
        lowbit.rounded(np.ones(3), "e3m4")
    with pytest.raises(ValueError, match='"saturate" and "special"'):
        lowbit.rounded(np.ones(3), "e4m3", overflow="inf")
    with pytest.raises(TypeError, match="float16, float32 and float64"):
        lowbit.rounded(np.ones(3, int), "e4m3")
    with pytest.raises(ValueError, match="eight bits"):
        lowbit.decoded("bf16")
    with pytest.raises(ValueError, match="no code"):
        lowbit.encoded(np.array([np.nan]), "int8")


@pytest.mark.parametrize("name, dtype", [("e4m3", "float8_e4m3fn"), ("e5m2", "float8_e5m2"), ("bf16", "bfloat16")])
def test_without_saturation_rounding_is_the_cast_of_ml_dtypes(name, dtype, rng):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = all_numbers(name)
    beyond = values[-1] * np.array([1, 1.01, 1.03, 1.05, 1.08, 1.2, 3])
    x = np.concatenate([values, (values[1:] + values[:-1]) / 2, beyond, -beyond, [np.inf, -np.inf, np.nan]])
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.concatenate([x, rng.standard_normal(9999) * np.exp(rng.uniform(-20, 12, 9999))]).astype(np.float32)
        expected = x.astype(getattr(ml_dtypes, dtype)).astype(np.float32)
    np.testing.assert_array_equal(lowbit.rounded(x, name, overflow="special"), expected)
