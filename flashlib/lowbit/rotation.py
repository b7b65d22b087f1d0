"""Rotations of Q and K: S is unchanged, and one large number becomes many small ones.

A matrix R with R R^T = 1 changes no product of two vectors: (q R) (k R)^T = q k^T. Hadamard's matrix, divided by
sqrt(d), is one whose entries all have the same magnitude, so what was in one channel is spread over all of them.
Random signs applied first keep a vector that matches a row of the matrix, such as a constant one, from ending up
in a single channel.
"""

import numpy as np

from flashlib.inputs import check_counts, check_floating


def hadamard(d: int) -> np.ndarray:
    """Return Hadamard's matrix, (d, d) of +1 and -1 in fp64: H H^T = d. Raises unless d is a power of two."""
    check_power_of_two(d)
    return doubled(d)


def doubled(d: int) -> np.ndarray:
    """Return `hadamard` of the smallest power of two that is at least d."""
    H = np.ones((1, 1))
    while len(H) < d:
        H = np.block([[H, H], [H, -H]])
    return H


def signs(d: int, *, seed: int = 0) -> np.ndarray:
    """Return d random signs, +1 or -1, in fp64."""
    check_counts(d=d, seed=seed)
    return np.random.default_rng(seed).integers(0, 2, d) * 2.0 - 1


def rotated(X: np.ndarray, *, seed: int = 0) -> np.ndarray:
    """Return X diag(signs) H / sqrt(d) for X (..., d): the same lengths and products, spread over all channels.

    d: a power of two. Q and K need the same seed. Computed by doubling, with d log2(d) additions per row instead
    of d^2 products. Source: Ashkboos and others, QuaRot (2024); Shah and others, FlashAttention-3 (2024), section
    3.3.
    """
    check_floating(X=X)
    d = X.shape[-1] if X.ndim else 0
    check_power_of_two(d)
    dtype = np.promote_types(X.dtype, np.float32)
    Y = X.astype(dtype) * signs(d, seed=seed).astype(dtype)
    half = 1
    while half < d:
        pairs = Y.reshape(*X.shape[:-1], d // (2 * half), 2, half)
        a, b = pairs[..., 0, :], pairs[..., 1, :]
        Y = np.stack([a + b, a - b], axis=-2).reshape(X.shape)
        half *= 2
    return Y / np.sqrt(d).astype(dtype)


def check_power_of_two(d: int) -> None:
    """Raise TypeError or ValueError unless d is a power of two."""
    check_counts(d=d, at_least=1)
    if d & (d - 1):
        raise ValueError(
            f"d is {d}; Hadamard's matrix is made by doubling: pass a power of two, or pad with zeros"
        )
