"""The oracle for every implementation: attention in fp64, row by row, with nothing clever in it."""

import numpy as np

# Coprime and ragged, one token, nothing, more keys than queries and fewer.
SIZES = [(7, 13), (13, 7), (37, 53), (53, 37), (1, 1), (1, 70), (64, 64), (0, 5), (5, 0)]


def attention(Q, K, V, *, causal=False, scale=None):
    """Return O and lse in fp64, for NumPy arrays (N_q, d) and (N_k, d); keys are sliced, not masked."""
    Q, K, V = (np.asarray(X, np.float64) for X in (Q, K, V))
    scale = 1 / np.sqrt(Q.shape[1]) if scale is None else scale
    O, lse = np.zeros_like(Q), np.full(len(Q), -np.inf)
    for r in range(len(Q)):
        n_seen = max(0, r + 1 + len(K) - len(Q)) if causal else len(K)
        if n_seen:
            s = K[:n_seen] @ Q[r] * scale
            p = np.exp(s - s.max())
            O[r] = p @ V[:n_seen] / p.sum()
            lse[r] = s.max() + np.log(p.sum())
    return O, lse


def inputs(rng, N_q, N_k, d, dtype=np.float64, largest_score=None):
    """Return random Q, K, V; with `largest_score`, Q is scaled so that the largest |score| is about that."""
    Q, K, V = (rng.standard_normal((n, d)) for n in (N_q, N_k, N_k))
    if largest_score and Q.size and K.size:
        Q *= largest_score / np.abs(Q @ K.T / np.sqrt(d)).max()
    return tuple(X.astype(dtype) for X in (Q, K, V))


def worst(given, exact):
    """Return the largest error, with equal infinities equal; NaN stays NaN, and fails every comparison."""
    given, exact = np.asarray(given, np.float64), np.asarray(exact, np.float64)
    assert given.shape == exact.shape, f"shape {given.shape}, expected {exact.shape}"
    equal = given == exact  # inf - inf would be nan
    return np.abs(np.where(equal, 0, given - np.where(equal, 0, exact)) * ~equal).max(initial=0)


def assert_close(given, exact, *, rounding, plain=None, what="result"):
    """Fail unless the error is at most twice that of a plain implementation, if given, plus the rounding."""
    error = worst(given, exact)
    bound = rounding + (0 if plain is None else 2 * worst(plain, exact))
    accepted = np.isfinite(error) and error <= bound  # inf <= inf, where the plain one overflows too
    assert accepted, f"{what}: error {error:.3g}, at most {bound:.3g} accepted"
