"""The model that ServeLab serves: as small as one can be, so that a change of a setting is answered at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from flashlib.cache import Cache

if TYPE_CHECKING:
    import torch


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
        self.QKV = self.E @ self.W_QKV  # (3, vocab, d): a token has the same ones wherever it stands

    def cache(self, n_pages: int, page: int) -> Cache:
        return Cache(n_pages, page, 1, self.E.shape[1], dtype=self.E.dtype)

    def check_prompt(self, prompt: Sequence[int], n: int) -> list[int]:
        """Return a prompt as a list: the widget's own are valid, and may have any length."""
        return list(prompt)

    def step(
        self, rows: Sequence[Sequence[int]], cache: Cache, sequences: Sequence[int], over: Callable | None = None
    ) -> torch.Tensor:
        """Return the logits of the last of n new tokens, (B, 1, vocab), and leave K and V of all in the cache.

        rows: B lists of n tokens. over: unused, there is one way to attend.
        """
        import torch  # only when called: `sampling.choose`, by which tokens are drawn, takes a tensor

        Q, K, V = self.QKV[:, np.concatenate(rows)]
        slots = np.concatenate([cache.append(*one) for one in zip(sequences, rows, strict=True)])
        cache.write(slots, K[None], V[None])
        last = np.array([row[-1] for row in rows])
        x = self.E[last] + self._attend(self.QKV[0, last], cache, sequences)
        return torch.from_numpy(x @ self.W.T)[:, None]

    def _attend(self, Q, cache, sequences):
        """Return O of the last token of each sequence, (B, d), from the pages of the cache; it sees all."""
        B, d = Q.shape
        table = cache.table(sequences)
        K, V = (X[0, table, 0].reshape(B, -1, d) for X in (cache.K, cache.V))  # (B, N, d), N of the longest
        S = (K @ Q[:, :, None])[:, :, 0] / np.sqrt(d)
        S[np.arange(S.shape[1]) >= cache.lengths(sequences)[:, None]] = -np.inf
        P = np.exp(S - S.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        return (P[:, None] @ V)[:, 0]
