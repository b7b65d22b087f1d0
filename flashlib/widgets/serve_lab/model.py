"""The model that ServeLab serves: as small as one can be, so that a change of a setting is answered at once."""

from collections.abc import Callable, Sequence

import numpy as np

from flashlib.cache import Pages


class ServedCache(Pages):
    """Pages with K and V of one head, beside each other: all rows of both are read and written at once.

    Who else needs a cache takes `flashlib.cache.Cache`, which checks what it is given: here that takes longer than
    all that the model computes.
    """

    def __init__(self, n_pages, page, d):
        super().__init__(n_pages, page)
        self.d = d
        self.KV = np.zeros((n_pages, page, 2 * d))

    def _copy(self, page, to):
        self.KV[to] = self.KV[page]

    def write(self, sequences: Sequence[int], rows: Sequence[Sequence[int]], KV: np.ndarray) -> None:
        """Put new tokens at the end of each sequence, and their K and V, (B n, 2 d)."""
        slots = [slot for one in zip(sequences, rows, strict=True) for slot in self._append(*one)]
        pages, at = np.array(slots).T
        self.KV[pages, at] = KV

    def read(self, sequences: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return K and V, (B, N, d) with N of the longest, and which rows of them are of the sequence, (B, N)."""
        KV = self.KV.take(self.table(sequences), axis=0).reshape(len(sequences), -1, 2 * self.d)
        return KV[..., : self.d], KV[..., self.d :], np.arange(KV.shape[1]) < self.lengths(sequences)[:, None]


class Model:
    """One head of attention with random weights, what `server.Server` needs of a model; a real one is `lm.model`.

    A token x attends to itself and to all before it, and the logits of the next are (x + O) W^T. All of it is
    fp64: a part of a prompt has other products than the whole, and no token may depend on their rounding.
    """

    def __init__(self, vocab, d=8, seed=0):
        rng = np.random.default_rng(seed)
        self.E = rng.standard_normal((vocab, d))  # a row for each token
        self.W_QKV = rng.standard_normal((3, d, d)) / np.sqrt(d)
        self.W = rng.standard_normal((vocab, d)) / np.sqrt(d)
        # A token has the same ones wherever it stands.
        self.Q, K, V = self.E @ self.W_QKV  # (vocab, d)
        self.Q /= np.sqrt(d)  # the scale of scores
        self.KV = np.concatenate([K, V], axis=1)  # (vocab, 2 d)
        self.own = self.E @ self.W.T  # (vocab, vocab): what x itself adds to the logits

    def cache(self, n_pages: int, page: int) -> ServedCache:
        return ServedCache(n_pages, page, self.E.shape[1])

    def check_prompt(self, prompt: Sequence[int], n: int) -> list[int]:
        """Return a prompt as a list: the widget's own are valid, and may have any length."""
        return list(prompt)

    def step(
        self,
        rows: Sequence[Sequence[int]],
        cache: ServedCache,
        sequences: Sequence[int],
        over: Callable | None = None,
    ) -> np.ndarray:
        """Return the logits of the last of n new tokens, (B, 1, vocab), and leave K and V of all in the cache.

        rows: B lists of n tokens. over: unused, there is one way to attend.
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
