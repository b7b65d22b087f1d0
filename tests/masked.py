"""Masks to test with, each with its definition, and attention computed from the definitions alone, in fp64."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flashlib import masks

# Coprime and ragged, more keys than queries and fewer, one, nothing, rows that see nothing.
SIZES = [(7, 13), (13, 7), (23, 29), (17, 17), (1, 1), (1, 19), (9, 2), (0, 5), (5, 0)]


class Case(NamedTuple):
    """A mask and its definition: sees(r, c) and score(s, r, c), for numbers, r being a position among the keys."""

    mask: masks.Mask
    sees: Callable = lambda r, c: True
    score: Callable = lambda s, r, c: s


class Dilated(masks.Mask):
    """A new kind that defines only `sees`."""

    asks_batch = asks_head = False

    def __init__(self, step):
        self.step = step

    def sees(self, place, r, c):
        return (r - c) % self.step == 0


@dataclass(frozen=True)
class Band(masks.Mask):
    """A new kind whose rows see intervals."""

    width: int
    asks_batch = asks_head = False

    def bounds(self, place, r):
        first = (r - self.width).clip(0, place.N_k)
        return first, (r + self.width + 1).clip(first, place.N_k)

    def sees(self, place, r, c):
        return abs(r - c) <= self.width


class OfHeads(masks.Mask):
    """A new kind that depends on the batch and the head, and does not say so."""

    def sees(self, place, r, c):
        return (r + place.h * 3 + place.b) % 7 >= c % 5


def draw(kind, rng, N_q, N_k) -> Case:
    """Return a mask of a kind in KINDS for one head of N_q queries and N_k keys."""
    return KINDS[kind](rng, N_q, N_k)


def attention(Q, K, V, case, *, scale=None, dO=None):
    """Return O and lse, and with dO the gradients dQ, dK, dV too; Q: (N_q, d), K: (N_k, d), V: (N_k, d_v)."""
    Q, K, V = (np.asarray(X, np.float64) for X in (Q, K, V))
    (N_q, d), N_k = Q.shape, len(K)
    scale = d**-0.5 if scale is None else scale
    raw = Q @ K.T * scale
    P, slope = np.zeros((N_q, N_k)), np.zeros((N_q, N_k))
    lse, past, h = np.full(N_q, -np.inf), N_k - N_q, 1e-5
    for i in range(N_q):
        r, keys = i + past, [c for c in range(N_k) if case.sees(i + past, c)]
        if keys:
            s = np.array([case.score(raw[i, c], r, c) for c in keys])
            lse[i] = s.max() + np.log(np.exp(s - s.max()).sum())
            P[i, keys] = np.exp(s - lse[i])
        for c in keys:
            slope[i, c] = (case.score(raw[i, c] + h, r, c) - case.score(raw[i, c] - h, r, c)) / (2 * h)
    O = P @ V
    if dO is None:
        return O, lse
    dP = dO @ V.T
    dS = P * (dP - (dO * O).sum(axis=1, keepdims=True)) * slope
    return O, lse, (dS @ K * scale, dS.T @ Q * scale, P.T @ dO)


def count(mask, N_q, N_k) -> int:
    """Return how many scores a mask sees: from its intervals of keys, if it has them."""
    tiles = masks.resolve(mask, False, N_q, N_k)
    if tiles.keys is None:
        return int(tiles.seen(*tiles.all).sum())
    first, end = tiles.keys
    return int((end - first).sum())


def seen(case, N_q, N_k):
    """Return which scores are seen according to the definition, (N_q, N_k) of bool."""
    rows = [[case.sees(i + N_k - N_q, c) for c in range(N_k)] for i in range(N_q)]
    return np.array(rows, bool).reshape(N_q, N_k)


def packed(rng, N_k):
    """Return the ids of documents of 1 to 7 tokens, in no order of their names, (N_k,)."""
    names = rng.permutation(N_k + 1)
    return np.repeat(names, rng.integers(1, 8, len(names)))[:N_k]


def _cap(x):
    return lambda s, r, c: x * np.tanh(s / x)


def _window(rng, N_q, N_k):
    left, right = (int(n) for n in rng.integers(0, 6, 2))
    return Case(masks.window(left, right), lambda r, c: r - left <= c <= r + right)


def _prefix(rng, N_q, N_k):
    n = int(rng.integers(0, 9))
    return Case(masks.prefix(n), lambda r, c: c <= r or c < n)


def _documents(rng, N_q, N_k, causal=False):
    ids = packed(rng, N_k)
    mask = masks.causal() & masks.documents(ids) if causal else masks.documents(ids)
    return Case(mask, lambda r, c: r >= 0 and ids[r] == ids[c] and (not causal or c <= r))


def _blocks(rng, N_q, N_k):
    table = rng.random((-(-N_q // 3), -(-N_k // 4))) < 0.4
    return Case(masks.blocks(table, 3, 4), lambda r, c: table[(r + N_q - N_k) // 3, c // 4])


def _dense(rng, N_q, N_k):
    table = rng.random((N_q, N_k)) < 0.4
    return Case(masks.dense(table), lambda r, c: table[r + N_q - N_k, c])


def _alibi(rng, N_q, N_k):
    slope = rng.uniform(0.05, 0.8)
    return Case(masks.alibi(slope), score=lambda s, r, c: s - slope * abs(r - c))


def _cap_after_alibi(rng, N_q, N_k):
    mask = masks.alibi(0.3) & masks.softcap(2.0) & masks.prefix(3)
    return Case(mask, lambda r, c: c <= r or c < 3, lambda s, r, c: 2 * np.tanh((s - 0.3 * abs(r - c)) / 2))


def _alibi_after_cap(rng, N_q, N_k):
    mask = masks.softcap(2.0) & masks.alibi(0.3) & masks.causal()
    return Case(mask, lambda r, c: c <= r, lambda s, r, c: 2 * np.tanh(s / 2) - 0.3 * abs(r - c))


def _union(rng, N_q, N_k):
    ids = packed(rng, N_k)
    mask = (masks.window(1, 0) | masks.prefix(2)) & masks.documents(ids)
    return Case(mask, lambda r, c: (r - 1 <= c <= r or c < 2 or c <= r) and r >= 0 and ids[r] == ids[c])


def _dilated(rng, N_q, N_k):
    step = int(rng.integers(2, 5))
    return Case(Dilated(step), lambda r, c: (r - c) % step == 0)


def _band(rng, N_q, N_k):
    width = int(rng.integers(0, 7))
    return Case(Band(width), lambda r, c: abs(r - c) <= width)


def _new_and_known(rng, N_q, N_k):
    mask = (Dilated(3) | masks.prefix(2)) & Band(9) & masks.window(None, 4) & masks.softcap(2.0)
    return Case(mask, lambda r, c: ((r - c) % 3 == 0 or c <= r or c < 2) and -4 <= r - c <= 9, _cap(2.0))


def _score(rng, N_q, N_k):
    f, slope = lambda S, h, r, c: S * (1 + 0.1 * S) - c % 2, lambda S, h, r, c: 1 + 0.2 * S
    return Case(masks.score(f, slope), score=lambda s, r, c: f(s, 0, r, c))


KINDS = {
    "all": lambda *_: Case(masks.Mask()),
    "causal": lambda *_: Case(masks.causal(), lambda r, c: c <= r),
    "window": _window,
    "no left bound": lambda *_: Case(masks.window(None, 2), lambda r, c: c <= r + 2),
    "no right bound": lambda *_: Case(masks.window(3, None), lambda r, c: c >= r - 3),
    "prefix": _prefix,
    "documents": _documents,
    "causal documents": lambda *sizes: _documents(*sizes, causal=True),
    "blocks": _blocks,
    "dense": _dense,
    "stripes": lambda *_: Case(masks.from_function(lambda r, c: (r - c) % 5 == 0), lambda r, c: (r - c) % 5 == 0),
    "nothing": lambda *_: Case(masks.from_function(lambda r, c: (r < c) & (c < r)), lambda r, c: False),
    "alibi": _alibi,
    "soft cap": lambda *_: Case(masks.softcap(1.3), score=_cap(1.3)),
    "score": _score,
    "capped window": lambda *_: Case(
        masks.softcap(1.5) & masks.window(4, 2), lambda r, c: r - 4 <= c <= r + 2, _cap(1.5)
    ),
    "cap after alibi": _cap_after_alibi,
    "alibi after cap": _alibi_after_cap,
    "union": _union,
    "new kind": _dilated,
    "new kind with bounds": _band,
    "new and known kinds": _new_and_known,
}
