"""Dropout for training models: the kernels that support it take packs, so a batch is passed to them as a pack.

A seed from torch's generator of the device determines which weights are dropped: after the same torch.manual_seed
they are the same, and they are recomputed in the backward pass. A row of padding gives O = 0, as its token is not
in the pack.
"""

from typing import NamedTuple

import numpy as np
import torch

from flashlib import masks
from flashlib import sink as sinks
from flashlib.interop.transformers.padding import Present
from flashlib.types import Attention


class Parts(NamedTuple):
    """A mask in the form for packs: windows and soft caps, and what the bounds of sequences express."""

    within: masks.Mask | None
    documents: masks.Mask | None
    present: Present | None


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, dropout: float, *, causal: bool, mask: masks.Mask | None,
    scale: float, sink: torch.Tensor | None = None,
) -> Attention:  # fmt: skip
    """Return O and lse, (B, H, N_q, d), with dropout; raise ValueError for a mask that packs cannot express."""
    from flashlib import kernels  # imported late: other engines do not need Triton

    B, H, N_q, _ = Q.shape
    parts = _parts(mask)
    rows, keys = _tokens(parts, causal, B, N_q, K.shape[2], Q.device)
    q, k, v = (at.taken(X.transpose(1, 2).flatten(0, 1)) for at, X in ((rows, Q), (keys, K), (keys, V)))
    O, lse = kernels.varlen.attention(
        q, k, v, rows.begins, keys.begins, causal=causal, mask=parts.within, scale=scale, dropout=dropout
    )
    O, lse = rows.put_back(O, 0.0), rows.put_back(lse, -torch.inf)
    found = Attention(*(X.unflatten(0, (B, N_q)).transpose(1, 2) for X in (O, lse)))
    return found if sink is None else sinks.add(found, sink)


class Tokens(NamedTuple):
    """Which of the `size` tokens of a batch are in a pack (None for all), and where its sequences begin."""

    size: int
    kept: torch.Tensor | None
    begins: torch.Tensor

    @classmethod
    def of(cls, begin: np.ndarray, kept: np.ndarray, device: torch.device) -> "Tokens":
        """begin, kept: (B, N), whether a token begins a sequence, and whether it is in the pack."""
        begins = np.append(0, kept.cumsum())[np.append(np.flatnonzero(begin), begin.size)]
        at = None if kept.all() else torch.from_numpy(np.flatnonzero(kept)).to(device)
        return cls(begin.size, at, torch.from_numpy(begins.astype(np.int32)))

    def taken(self, X: torch.Tensor) -> torch.Tensor:
        """Return the tokens of X, (size, ...), that are in the pack."""
        return X if self.kept is None else X[self.kept]

    def put_back(self, X: torch.Tensor, nothing: float) -> torch.Tensor:
        """Return all tokens, given those in the pack; the others are `nothing`."""
        if self.kept is None:
            return X
        return X.new_full((self.size, *X.shape[1:]), nothing).index_copy(0, self.kept, X)


def _tokens(parts, causal, B, N_q, N_k, device):
    """Return the Tokens of the rows and of the keys; raise ValueError if a pack would mean something else."""
    if N_q == N_k:
        both = _of(parts, B, N_q, device)
        return both, both
    if parts.documents is not None or (parts.present is not None and (causal or parts.within is not None)):
        raise ValueError(f"{UNSAID}: {N_q} queries and {N_k} keys with padding or documents. {INSTEAD}")
    return _of(NO_PARTS, B, N_q, device), _of(parts, B, N_k, device)


def _of(parts, B, N, device):
    begin = np.zeros((B, N), bool)
    begin[:, :1] = True
    if parts.documents is not None:
        ids = np.broadcast_to(parts.documents.document_ids(), (B, N))
        begin[:, 1:] = ids[:, 1:] != ids[:, :-1]
    kept = np.ones((B, N), bool)
    if parts.present is not None:
        first, end = (np.broadcast_to(X, B)[:, None] for X in (parts.present.first, parts.present.end))
        kept = (np.arange(N) >= first) & (np.arange(N) < end)
    return Tokens.of(begin, kept, device)


def _parts(mask):
    """Return the Parts of a mask; raise ValueError if it has other parts."""
    within, documents, present = [], None, None
    for part in () if mask is None else mask.conjuncts():
        band, cap = part.band(), part.changes_scores and not part.asks_positions
        if cap or band and not band.prefix:
            within.append(part)
        elif part.document_ids() is not None and documents is None:
            documents = part
        elif isinstance(part, Present) and present is None:
            present = part
        else:
            raise ValueError(f"{UNSAID}: it has {part!r}. {INSTEAD}")
    return Parts(masks.intersection(within) if within else None, documents, present)


NO_PARTS = Parts(None, None, None)
UNSAID = "dropout is given, and the kernels that have it do not take this mask"
INSTEAD = "Set the attention dropout of the model's config to 0"
