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

    def cache(self, n_pages: int, page: int) -> Cache:
        return Cache(n_pages, page, 1, self.E.shape[1], dtype=self.E.dtype)

    def check_prompt(self, prompt: Sequence[int], n: int) -> list[int]:
        """Return a prompt as a list: the widget's own are valid, and may have any length."""
        return list(prompt)

    def step(
        self, rows: Sequence[Sequence[int]], cache: Cache, sequences: Sequence[int], over: Callable | None = None
    ) -> torch.Tensor:
        """Return the logits of new tokens, (B, n, vocab), and leave their K and V in the cache.

        rows: B lists of n tokens. over: unused, there is one way to attend.
        """
        import torch  # only when called: `sampling.choose`, by which tokens are drawn, takes a tensor

        return torch.from_numpy(np.stack([self._next(cache, *one) for one in zip(rows, sequences, strict=True)]))

    def _next(self, cache, tokens, sequence):
        x = self.E[tokens]  # (n, d)
        Q, K, V = x @ self.W_QKV
        cache.write(cache.append(sequence, tokens), K[None], V[None])
        (K,), (V,) = cache.gather(sequence)  # (N, d), with those before
        n, N = len(Q), len(K)
        S = Q @ K.T / np.sqrt(Q.shape[1])
        S = np.where(np.tri(n, N, N - n, dtype=bool), S, -np.inf)
        P = np.exp(S - S.max(axis=1, keepdims=True))
        O = P @ V / P.sum(axis=1, keepdims=True)
        return (x + O) @ self.W.T
