"""Formats of few bits as sets of numbers, and rounding to the nearest of them.

A floating format of E exponent bits and M mantissa bits has the numbers +-k * 2^(e - M), with k from 2^M to
2^(M + 1) - 1: as many between 1 and 2 as between 2 and 4. Below its smallest exponent e the spacing stays the
same, down to 0: these are its subnormal numbers. int8 has the same spacing everywhere. Rounding needs nothing but
the spacing at x.
"""

import functools
from typing import NamedTuple

import numpy as np

from flashlib.inputs import check_floating

OVERFLOWS = ("saturate", "special")


class Format(NamedTuple):
    """A set of numbers. mantissa: bits after the leading one; None: integers, all with the spacing 1.

    smallest_exponent: that of the smallest number that is not subnormal. largest, lowest: the ends of its range.
    beyond: what a number that is too large becomes by IEEE's rules: inf or, if there is no code for it, nan.
    """

    name: str
    bits: int
    mantissa: int | None
    smallest_exponent: int
    largest: float
    lowest: float
    beyond: float

    def spacing(self, x: np.ndarray) -> np.ndarray:
        """Return the spacing of the format's numbers at x, a power of two, with the shape and dtype of x."""
        if self.mantissa is None:
            return np.ones_like(x)
        exponent = np.maximum(np.frexp(x)[1] - 1, self.smallest_exponent)  # x = 1.f * 2^exponent
        return np.ldexp(np.ones((), x.dtype), exponent - self.mantissa)


FORMATS = {
    f.name: f
    for f in (
        Format("e4m3", 8, 3, -6, 448.0, -448.0, np.nan),  # "fn": no inf, one nan code for each sign
        Format("e5m2", 8, 2, -14, 57344.0, -57344.0, np.inf),
        Format("int8", 8, None, 0, 127.0, -128.0, np.nan),
        Format("fp16", 16, 10, -14, 65504.0, -65504.0, np.inf),
        Format("bf16", 16, 7, -126, 2.0**128 - 2.0**120, 2.0**120 - 2.0**128, np.inf),
    )
}


def rounded(x: np.ndarray, format: str, *, overflow: str = "saturate") -> np.ndarray:
    """Return the nearest number of the format for each x; on a tie, the one whose last bit is 0.

    x: floating, any shape. format: a name in FORMATS. The result has the shape of x and its dtype, fp32 for fp16.
    overflow: with "saturate", numbers beyond the last one become the last one, and inf too, as with
    `cvt.satfinite` on a GPU. With "special", what would round to the number after the last becomes inf or, in e4m3
    and int8, nan, as with a cast in ml_dtypes. NaN stays NaN, even in int8, which has no code for it. Raises
    TypeError or ValueError for arguments other than these. Source: Micikevicius and others, FP8 Formats for Deep
    Learning (2022), table 1.
    """
    check_floating(x=x)
    f = check_format("format", format)
    if overflow not in OVERFLOWS:
        raise ValueError(f'overflow is {overflow!r}; accepted are "saturate" and "special"')
    x = x.astype(np.promote_types(x.dtype, np.float32), copy=False)
    if overflow == "saturate":
        return _nearest(np.clip(x, f.lowest, f.largest), f)
    with np.errstate(invalid="ignore"):  # spacing of inf
        y = np.where(np.isinf(x), x, _nearest(x, f))
    beyond = np.copysign(np.asarray(f.beyond, x.dtype), y)
    return np.where((y > f.largest) | (y < f.lowest), beyond, y)


def _nearest(x, f):
    spacing = f.spacing(x)
    return np.rint(x / spacing) * spacing  # rint: to nearest, half to even; multiplying by a power of two is exact


@functools.cache
def decoded(format: str) -> np.ndarray:
    """Return the number of each code of an eight-bit format, (256,) in fp64; nan and inf for their codes.

    A floating code is a sign bit, the exponent's bits and the mantissa's; int8 is two's complement.
    """
    f = check_format("format", format)
    if f.bits != 8:
        raise ValueError(f"format is {format!r}; accepted are those of eight bits: e4m3, e5m2 and int8")
    code = np.arange(256)
    if f.mantissa is None:
        return _frozen(np.where(code < 128, code, code - 256.0))
    exponent, fraction = (code & 127) >> f.mantissa, code & (2**f.mantissa - 1)
    leading = np.where(exponent > 0, 2**f.mantissa, 0)  # the leading one is not stored; subnormals have none
    size = np.ldexp(leading + fraction + 0.0, np.maximum(exponent, 1) - 1 + f.smallest_exponent - f.mantissa)
    last = np.flatnonzero(size[:128] == f.largest)[0]
    size[(code & 127) > last] = np.nan
    if np.isinf(f.beyond):
        size[[last + 1, last + 129]] = np.inf
    return _frozen(np.where(code < 128, size, -size))


@functools.cache
def numbers(format: str) -> np.ndarray:
    """Return all finite numbers of an eight-bit format, in order, each once, in fp64."""
    values = decoded(format)
    return _frozen(np.unique(values[np.isfinite(values)] + 0.0))  # + 0.0: -0 is 0


def encoded(x: np.ndarray, format: str) -> np.ndarray:
    """Return the codes of x, uint8: eight bits for each number, rounded as in `rounded`.

    NaN becomes the last code of its sign. Raises ValueError for NaN in int8.
    """
    y, values = rounded(x, format), decoded(format)
    if FORMATS[format].mantissa is None:
        if np.isnan(y).any():
            raise ValueError("x has NaN, and int8 has no code for it")
        return y.astype(np.int64).astype(np.uint8)
    finite = np.flatnonzero(np.isfinite(values[:128]))  # codes of one sign are in the order of their numbers
    code = np.searchsorted(values[finite], np.abs(np.nan_to_num(y)))
    return (np.where(np.isnan(y), 127, code) + 128 * np.signbit(y)).astype(np.uint8)


def check_format(name: str, format: str) -> Format:
    """Return the Format with this name; raise a ValueError that lists all formats if there is none."""
    if not isinstance(format, str) or format not in FORMATS:
        raise ValueError(f"{name} is {format!r}; accepted are {', '.join(map(repr, FORMATS))}")
    return FORMATS[format]


def _frozen(x):
    """Return x, made read-only, as it is cached."""
    x.flags.writeable = False
    return x
