"""The model that ServeLab serves: as small as possible, so that a change of settings is answered at once."""

from collections.abc import Callable, Sequence

import numpy as np

from flashlib.cache import Pages


class ServedCache(Pages):
    """Pages with K and V of one head side by side: all rows of both are read and written at once.

    Elsewhere, use `flashlib.cache.Cache`, which checks its arguments; here the checks would take longer than
    everything that the model computes.
    """

    def __init__(self, n_pages, page, d):
        super().__init__(n_pages, page)
        self.d = d
        self.KV = np.zeros((n_pages, page, 2 * d))

    def _copy(self, page, to):
        self.KV[to] = self.KV[page]

    def write(self, sequences: Sequence[int], rows: Sequence[Sequence[int]], KV: np.ndarray) -> None:
        """Append new tokens to each sequence, with their K and V, (B n, 2 d)."""
        slots = [slot for one in zip(sequences, rows, strict=True) for slot in self._append(*one)]
        pages, at = np.array(slots).T
        self.KV[pages, at] = KV

    def read(self, sequences: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return K and V, (B, N, d) with N of the longest, and which rows belong to each sequence, (B, N)."""
        KV = self.KV.take(self.table(sequences), axis=0).reshape(len(sequences), -1, 2 * self.d)
        return KV[..., : self.d], KV[..., self.d :], np.arange(KV.shape[1]) < self.lengths(sequences)[:, None]


class Model:
    """One head of attention with random weights: what `server.Server` needs of a model. A real one is `lm.model`.

    A token x attends to itself and to all before it, and the logits of the next are (x + O) W^T. Everything is in
    fp64: a prompt read in parts has different products than the whole, and no token may depend on their rounding.
    """

    def __init__(self, vocab, d=8, seed=0):
        rng = np.random.default_rng(seed)
        self.E = rng.standard_normal((vocab, d))  # a row for each token
        self.W_QKV = rng.standard_normal((3, d, d)) / np.sqrt(d)
        self.W = rng.standard_normal((vocab, d)) / np.sqrt(d)
        # K and V of a token do not depend on its position.
        self.Q, K, V = self.E @ self.W_QKV  # (vocab, d)
        self.Q /= np.sqrt(d)  # the scale of scores
        self.KV = np.concatenate([K, V], axis=1)  # (vocab, 2 d)
        self.own = self.E @ self.W.T  # (vocab, vocab): the term of x itself in the logits

    def cache(self, n_pages: int, page: int) -> ServedCache:
        return ServedCache(n_pages, page, self.E.shape[1])

    def check_prompt(self, prompt: Sequence[int], n: int) -> list[int]:
        """Return a prompt as a list: the widget's own prompts are valid, and may have any length."""
        return list(prompt)

    def step(
        self,
        rows: Sequence[Sequence[int]],
        cache: ServedCache,
        sequences: Sequence[int],
        over: Callable | None = None,
    ) -> np.ndarray:
        """Return the logits of the last of n new tokens, (B, 1, vocab), and append K and V of all to the cache.

        rows: B lists of n tokens. over: unused, since there is only one way to attend.
        """
        tokens = np.array(rows)  # (B, n)
        cache.write(sequences, rows, self.KV.take(tokens.ravel(), axis=0))
        last = tokens[:, -1]
        O = _attend(self.Q.take(last, axis=0), *cache.read(sequences))
        return (self.own.take(last, axis=0) + O @ self.W.T)[:, None]


def _attend(Q, K, V, seen):
    """Return O of a query of each sequence, (B, d). Its scores are near 0: exp needs no maximum."""
    P = np.exp(K @ Q[:, :, None])[:, :, 0] * seen  # (B, N)
    return (P[:, None] @ V)[:, 0] / P.sum(axis=1, keepdims=True)
