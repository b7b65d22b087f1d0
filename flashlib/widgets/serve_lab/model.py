"""The model that ServeLab serves: as small as one can be, so that a change of a setting is answered at once."""

from collections.abc import Callable, Sequence

import numpy as np

from flashlib.cache import Pages


class Cache(Pages):
    """Pages with K and V of one head, (2, n_pages, page, d): both in one array, which is read and written once.

    Who else needs a cache takes `flashlib.cache.Cache`, which checks what it is given: here that takes longer than
    all that the model computes.
    """

    def __init__(self, n_pages, page, d):
        super().__init__(n_pages, page)
        self.KV = np.zeros((2, n_pages, page, d))

    def _copy(self, page, to):
        self.KV[:, to] = self.KV[:, page]


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
        self.Q, *KV = self.E @ self.W_QKV  # (vocab, d)
        self.Q /= np.sqrt(d)  # the scale of scores
        self.KV = np.array(KV)  # (2, vocab, d)
        self.own = self.E @ self.W.T  # (vocab, vocab): what x itself adds to the logits

    def cache(self, n_pages: int, page: int) -> Cache:
        return Cache(n_pages, page, self.E.shape[1])

    def check_prompt(self, prompt: Sequence[int], n: int) -> list[int]:
        """Return a prompt as a list: the widget's own are valid, and may have any length."""
        return list(prompt)

    def step(
        self, rows: Sequence[Sequence[int]], cache: Cache, sequences: Sequence[int], over: Callable | None = None
    ) -> np.ndarray:
        """Return the logits of the last of n new tokens, (B, 1, vocab), and leave K and V of all in the cache.

        rows: B lists of n tokens. over: unused, there is one way to attend.
        """
        tokens = np.array(rows)  # (B, n)
        pages, at = np.concatenate([cache.append(*one) for one in zip(sequences, rows, strict=True)]).T
        cache.KV[:, pages, at] = self.KV[:, tokens.ravel()]
        last = tokens[:, -1]
        O = self._attend(self.Q[last], cache, sequences)
        return (self.own[last] + O @ self.W.T)[:, None]

    def _attend(self, Q, cache, sequences):
        """Return O of the last token of each sequence, (B, d), from the pages of the cache; it sees all."""
        B, d = Q.shape
        K, V = cache.KV[:, cache.table(sequences)].reshape(2, B, -1, d)  # (B, N, d), N of the longest
        S = (K @ Q[:, :, None])[:, :, 0]  # (B, N)
        S[np.arange(S.shape[1]) >= cache.lengths(sequences)[:, None]] = -np.inf
        P = np.exp(S - S.max(axis=1, keepdims=True))
        return (P[:, None] @ V)[:, 0] / P.sum(axis=1, keepdims=True)
