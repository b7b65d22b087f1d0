"""Four trials that plain attention in eight bits fails: outliers, means, a mean of V that drifts, and a sink."""

from typing import NamedTuple

import numpy as np


class Trial(NamedTuple):
    """Q (N_q, d), K and V (N_k, d), what is special about them, and the largest error of O, as `error` has it."""

    words: str
    Q: np.ndarray
    K: np.ndarray
    V: np.ndarray
    bound: float


def trials() -> tuple[Trial, Trial, Trial, Trial]:
    """Return the trials, the same ones in each call. The middle two are so long that sums of 13 bits matter."""
    return _outliers(), _means(), _drifting_means(), _sink()


def _outliers(N=512, d=64):
    rng = np.random.default_rng(50)
    Q, K, V = (np.where(rng.random(T.shape) < 1e-3, 10 * T, T) for T in rng.normal(size=(3, N, d)))
    return Trial("outliers", Q, K, V, bound=0.035)


def _means(N_k=8192, d=64):
    rng = np.random.default_rng(5)
    Q, K, V = rng.normal(size=(16, d)), rng.normal(size=(N_k, d)), rng.normal(size=(N_k, d))
    return Trial("means", Q, K + 40 * rng.normal(size=d), V + rng.normal(size=d), bound=0.003)


def _drifting_means(N_k=8192, d=64):
    """V is near 1, and then near -1: its mean is 0, and yet the running sum grows over the first half."""
    rng = np.random.default_rng(5)
    Q, K, V = rng.normal(size=(16, d)), rng.normal(size=(N_k, d)), 0.3 * rng.normal(size=(N_k, d))
    V[: N_k // 2] += 1
    V[N_k // 2 :] -= 1
    return Trial("drifting means", Q, K, V, bound=0.08)


def _sink(N_k=2048, d=64):
    """The first key takes about half of the weight, so that all other weights are small, and count together."""
    rng = np.random.default_rng(5)
    Q, K, V = 1 + 0.3 * rng.normal(size=(64, d)), 0.5 * rng.normal(size=(N_k, d)), rng.normal(size=(N_k, d))
    K[0], V[0] = 1, 0  # scores of about 8, where those of the others are near 0
    return Trial("a sink", Q, K, V, bound=0.08)
