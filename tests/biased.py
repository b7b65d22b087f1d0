"""Biases to test with: a shape, a mask of a tensor, and the definition of a changed score, entry by entry."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from flashlib import masks


class Kind(NamedTuple):
    """shape(B, H, N_q, N_k): of the tensor. mask(T): a mask with it. score(s, t, r, c): the changed score.

    entry(b, h, i, r, c, N_q): the entry that it reads; i: the row of Q, at position r.
    """

    shape: Callable
    mask: Callable
    entry: Callable
    score: Callable = lambda s, t, r, c: s + t


def bucket(distance, n=6, far=20):
    """Return which of n buckets T5's decoder uses for a distance r - c: half of them exact, half logarithmic.

    Raffel and others, T5 (2020), section 2.1; distances are an array.
    """
    distance, exact = np.maximum(distance, 0), n // 2
    spread = np.log(np.maximum(distance, 1) / exact) / np.log(far / exact) * (n - exact)
    return np.where(distance < exact, distance, np.minimum(exact + spread.astype(int), n - 1))


def clipped(b, h, r, c):
    """Return an entry of (H, 7): the distance, from -3 to 3."""
    return h, (r - c).clip(-3, 3) + 3


def of_head(b, h, r, c):
    return h


def learned_alibi(T, kernel=None):
    """Return ALiBi whose slopes, (H,), are learned."""
    return masks.score(
        lambda S, h, r, c, t: S - t * abs(r - c), lambda S, h, r, c, t: 1.0, bias=T, at=of_head,
        by_bias=lambda S, h, r, c, t: 0 * S - abs(r - c), kernel=kernel,
    )  # fmt: skip


def between_caps(T, kernel=None):
    return masks.softcap(2.0) & masks.bias(T, clipped, kernel=kernel) & masks.softcap(1.5) & masks.window(9, 3)


def _capped(s, t, r, c):
    return 1.5 * np.tanh((2.0 * np.tanh(s / 2.0) + t) / 1.5)


KINDS = {
    "place": Kind(lambda B, H, N_q, N_k: (B, H, N_q, N_k), masks.bias, lambda b, h, i, r, c, N_q: (b, h, i, c)),
    "place of heads": Kind(lambda B, H, N_q, N_k: (H, N_q, N_k), masks.bias, lambda b, h, i, r, c, N_q: (h, i, c)),
    "keys": Kind(lambda B, H, N_q, N_k: (B, 1, 1, N_k), masks.bias, lambda b, h, i, r, c, N_q: (b, 0, 0, c)),
    "rows": Kind(lambda B, H, N_q, N_k: (H, N_q, 1), masks.bias, lambda b, h, i, r, c, N_q: (h, i, 0)),
    "distance": Kind(
        lambda B, H, N_q, N_k: (N_q + N_k - 1,), masks.distance_bias, lambda b, h, i, r, c, N_q: (r - c + N_q - 1,)
    ),
    "distance of heads": Kind(
        lambda B, H, N_q, N_k: (H, N_q + N_k - 1), masks.distance_bias,
        lambda b, h, i, r, c, N_q: (h, r - c + N_q - 1),
    ),
    "function": Kind(
        lambda B, H, *_: (H, 7), between_caps, lambda b, h, i, r, c, N_q: clipped(b, h, r, c), _capped
    ),
    "slopes": Kind(
        lambda B, H, *_: (H,), learned_alibi, lambda b, h, i, r, c, N_q: (h,),
        lambda s, t, r, c: s - t * abs(r - c),
    ),
}  # fmt: skip
