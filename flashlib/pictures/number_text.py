"""Numbers as text, in the form that the widgets and pictures show."""

import numpy as np


def number(x: float) -> str:
    """Return x to four significant digits, small integers unchanged, with a true minus sign."""
    if not np.isfinite(x):
        return "NaN" if np.isnan(x) else "∞" if x > 0 else "−∞"
    if x == int(x) and abs(x) < 1e4:
        return _tidy(f"{int(x)}")
    return _tidy(f"{x:.3e}" if abs(x) < 1e-4 else f"{x:#.4g}".rstrip("."))


def brief(x: float, digits: int = 3) -> str:
    """Return x for a sentence: with few significant digits, without trailing zeros."""
    if not np.isfinite(x):
        return number(x)
    x = float(f"{x:.{digits - 1}e}")
    return _tidy(f"{x:.{digits - 1}e}" if 0 < abs(x) < 1e-4 else f"{x:.12g}")


def short(x: float) -> str:
    """Return x with one decimal, for narrow places."""
    return _tidy(f"{x:.1f}" if abs(x) < 99.95 else f"{x:.0e}") if np.isfinite(x) else number(x)


def _tidy(text):
    """Return a number's text with a true minus sign and an exponent without padding."""
    mantissa, e, exponent = text.partition("e")
    return (mantissa + (f"e{int(exponent)}" if e else "")).replace("-", "−")
