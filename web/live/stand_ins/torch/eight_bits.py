"""The two types of floats with 8 bits: their numbers, and the nearest one to any number."""

import numpy as np

SIGN, NAN = 0x80, 0x7F
LARGEST = {"float8_e4m3fn": 0x7E, "float8_e5m2": 0x7C}  # 448, beyond which it does not go; infinity


def _positive(name):
    """Return the numbers of the codes from 0 to LARGEST, as if infinity too were a number."""
    fraction, bias = (3, 7) if name == "float8_e4m3fn" else (2, 15)
    codes = np.arange(LARGEST[name] + 1)
    exponents, parts = codes >> fraction, (codes & (2**fraction - 1)) / 2**fraction
    return np.where(exponents == 0, parts * 2.0 ** (1 - bias), (1 + parts) * 2.0 ** (exponents - bias))


POSITIVE = {name: _positive(name) for name in LARGEST}


def numbers(codes: np.ndarray, name: str) -> np.ndarray:
    """Return the numbers of codes, in fp32."""
    found = np.full(SIGN, np.nan, np.float32)
    found[: len(POSITIVE[name])] = POSITIVE[name]
    if name == "float8_e5m2":
        found[LARGEST[name]] = np.inf
    return np.concatenate([found, -found])[codes]


def codes(given: np.ndarray, name: str) -> np.ndarray:
    """Return the codes of the nearest numbers; of two that are equally near the one with an even code."""
    given = np.asarray(given, np.float32)
    table = POSITIVE[name]
    size = np.minimum(np.nan_to_num(np.abs(given.astype(np.float64))), table[-1])
    above = np.clip(np.searchsorted(table, size), 1, len(table) - 1)
    up, down = table[above] - size, size - table[above - 1]
    nearest = np.where((up < down) | ((up == down) & (above % 2 == 0)), above, above - 1)
    found = np.where(np.isnan(given), NAN, nearest)
    return np.where(np.signbit(given), found | SIGN, found).astype(np.uint8)
