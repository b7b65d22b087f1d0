"""The Q, K and V of EightBitsLab: drawn at random, with the chosen outliers and means."""

from functools import lru_cache

import numpy as np

ROWS, D, COLS = 8, 64, 16  # queries; channels of Q and K; channels of V
SHARE = 1000  # one number in so many is an outlier
SEED = 100


@lru_cache(maxsize=1)
def problem(N: int, outliers: int, sharpness: int, mean: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Q (ROWS, D), K (N, D) and V (N, COLS) in fp32; the first keys are the same for every N.

    outliers: the factor of an outlier. sharpness: the factor of Q, which spreads the scores. mean: "none";
    "channels", each channel of K and V with its own; "positive", all of V larger than 0.
    """
    Q, K, V = (_drawn(k, shape, outliers) for k, shape in enumerate([(ROWS, D), (N, D), (N, COLS)]))
    if mean == "channels":
        K, V = K + 4 * _rng(6).normal(size=D), V + _rng(7).normal(size=COLS)
    if mean == "positive":
        V = np.abs(V) + 1
    return tuple(_kept(X) for X in (Q * sharpness, K, V))


def _rng(k):
    return np.random.default_rng([SEED, k])


def _drawn(k, shape, outliers):
    X, chosen = _normal(k, shape)
    X = X.copy()
    X[chosen] *= outliers
    return X


@lru_cache(maxsize=3)
def _normal(k, shape):
    """Return normal numbers, and which can be outliers; cached, since a slider changes only their size."""
    return _rng(k).normal(size=shape), np.nonzero(_rng(k + 3).random(shape) * SHARE < 1)


def _kept(X):
    """Return X in fp32, read-only."""
    X = X.astype(np.float32)
    X.flags.writeable = False
    return X
