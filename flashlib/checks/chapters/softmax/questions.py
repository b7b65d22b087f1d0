"""The questions on the naive softmax."""

import numpy as np

from flashlib.checks.engine.prediction import Question
from flashlib.softmax import naive

FORMATS = {"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}
LAB = (-2, -1, 0)  # the offsets of the scores in the lab


def _count(x, step, holds):
    """Return the first of x, x + step, x + 2 step, ... for which `holds` is no longer true."""
    with np.errstate(all="ignore"):
        while holds(x):
            x += step
    return x


def _first_overflow():
    return {name: _count(0, 1, lambda x, of=of: np.isfinite(np.exp(of(x)))) for name, of in FORMATS.items()}


def _nans():
    with np.errstate(all="ignore"):
        return int(np.isnan(naive(np.array([1, 2, 12], np.float16))).sum())


def _sum_overflow():
    limit = np.log(float(np.finfo(np.float16).max) / 1024)
    with np.errstate(all="ignore"):
        weights = naive(np.full(1024, limit + 0.05, np.float16))
    kinds = {"0": 0, "1/1024": 1 / 1024}
    kind = next((name for name, p in kinds.items() if np.allclose(weights, p, atol=1e-5)), "nan")
    return {"limit": round(float(limit), 2), "weights": kind}


def _stuck_at(bits):
    """Return where a running sum of ones stops in a format that keeps this many binary digits."""
    s = 1
    while _rounded(s + 1, bits) != s:
        s = _rounded(s + 1, bits)
    return s


def _rounded(n, bits):
    """Return the whole number n rounded to `bits` binary digits, ties to even."""
    unit = 2 ** max(n.bit_length() - bits, 0)
    return round(n / unit) * unit


def _lab():
    with np.errstate(all="ignore"):
        weights = naive(np.float16(11) + np.array(LAB, np.float16))
    if np.isnan(weights).any():
        return "nan"
    return "right" if np.allclose(weights, [0.09, 0.245, 0.665], atol=0.01) else f"{weights.max():.0f}"


QUESTIONS = [
    Question(
        "first_overflow",
        _first_overflow,
        "exp passes the largest number at its logarithm: 11.09, 88.72 and 709.78. log(a b) is log(a) + log(b), so "
        "a range 10^303 times as large, that of fp64 beside fp16, moves the limit only by about 699. An "
        "exponential uses up any range quickly.",
        hint="exp(x) passes a number where x passes its logarithm. Take the natural logarithm of each largest "
        "number, and round up.",
        wrong={
            11: "log(65504) is 11.09: the exponential of 11 is finite",
            16: "log2(65504) is 16: exp is a power of e, not of 2",
            65505: "that is where x itself overflows, not its exponential",
            88: "log(3.4e38) is 88.72: the exponential of 88 is finite",
            709: "log(1.8e308) is 709.78: the exponential of 709 is finite",
        },
    ),
    Question(
        "nans_of_an_overflow",
        _nans,
        "the sum is inf. Each finite exponential becomes finite / inf = 0. The one that overflowed becomes "
        "inf / inf, which has no value: nan.",
        hint="Work out each of the three quotients: what is finite / inf, and what is inf / inf?",
        wrong={
            3: "the first two terms are finite, and finite / inf is 0",
            2: "finite / inf is 0",
            0: "the exponential of 12 is inf, and inf / inf has no value",
        },
    ),
    Question(
        "sum_overflow",
        _sum_overflow,
        "1024 exp(x) passes 65504 at x = log(65504 / 1024) = 4.16, long before a single term overflows at 11.09. "
        "Then the sum is inf while each term is finite, and every weight is finite / inf = 0. There is no "
        "inf / inf, so no nan warns of the failure.",
        hint="Set 1024 exp(x) equal to the largest number of fp16. For the weights: is a single term inf there, "
        "or only the sum?",
        choices=("0", "1/1024", "nan"),
        wrong={
            11.09: "that is where a single exponential overflows",
            64: "that is the exponential: x is its logarithm",
            6: "log2(64) is 6: exp is a power of e",
            "nan": "no term is inf, so there is no inf / inf",
            "1/1024": "that would be right, but the sum is inf",
        },
        tolerance=0.005,
    ),
    Question(
        "first_underflow",
        lambda: _count(0, -1, lambda x: np.exp(np.float16(x)) > 0),
        "the logarithm of 2^-24 is -16.64. An exponential below 2^-24 is rounded up to it as long as it is above "
        "half of it, so down to x = -17.33. exp(-17) is rounded up, and exp(-18) is rounded to 0.",
        hint="Which results are rounded to 0? Take the natural logarithm of the largest of them.",
        wrong={
            -17: "the exponential of -17 is 0.69 times the smallest number: it is rounded up",
            -12: "the range is not the same at both ends: 65504 is about 2^16",
            -24: "the smallest number is a power of 2, and exp is a power of e: 24 log(2) is 16.6",
            18: "the exponential of a positive number is larger than 1",
            17: "the exponential of a positive number is larger than 1",
        },
    ),
    Question(
        "running_sum",
        lambda: _stuck_at(8),
        "with t binary digits the numbers from 2^t on are 2 apart. So 2^t + 1 is halfway between two of them "
        "and is rounded back to 2^t, the even one, however often 1 is added. For fp16 that is 2^11 = 2048, for "
        "bf16 2^8 = 256.",
        hint="With t binary digits, from which power of two on are neighbouring numbers 2 apart?",
        wrong={
            2048: "that is where fp16 stops: bf16 has three digits fewer",
            128: "from 128 on the neighbours are still 1 apart",
            512: "from 256 on the neighbours are already 2 apart",
        },
    ),
    Question(
        "overflow_lab",
        _lab,
        "each exponential is finite, but rounded to fp16 they add up to 90008, more than 65504. So l is inf, and "
        "finite / inf is 0. There is no inf / inf, so no nan warns of the failure.",
        hint="The exponential of 10 is about 22026. Add up the three exponentials, and compare with 65504.",
        choices=("right", "0", "nan"),
        wrong={
            "right": "each exponential is finite, but their sum is about 90000",
            "nan": "no term is inf, so there is no inf / inf",
        },
    ),
]
