"""Attention sinks: a score in each softmax that belongs to no key, so a row's weights may sum to less than 1.

A sink is one more State, (m = sink, l = 1, O_acc = 0), merged into each row after its last tile. So `add` needs
only O and lse, whatever computed them, and kernels need not support sinks. The backward passes take the O and lse
that `add` returned: from these, P and delta are those of the softmax with its sink, and dQ, dK and dV are exact.

Source: Xiao and others, Efficient Streaming Language Models with Attention Sinks (2024); GPT-OSS (2025), which
learns a sink for each head.
"""

import numpy as np

from flashlib.types import Array, Attention


def add(attention: Attention, sink: float | Array) -> Attention:
    """Return O and lse of an Attention with a sink in each row: as if a key had this score and the value 0.

    attention: O (..., N_q, d_v) and lse (..., N_q), NumPy arrays or torch tensors. sink: a number, or, for an O of
    (B, H, N_q, d_v), one for each head, (H,). O and lse keep their dtypes. A row that sees no key has O = 0 and
    lse = sink.
    Raises ValueError for a sink of another shape.
    """
    O, lse = attention
    sink = _like(sink, lse)
    xp = _library(lse)
    lse_new = xp.logaddexp(lse, sink)
    shift = xp.where(lse_new == -np.inf, 0, lse_new)  # -inf - (-inf) would be nan
    return Attention(_product(O, xp.exp(lse - shift)[..., None]), lse_new)


def gradient(attention: Attention, sink: float | Array, dO: Array, dlse: Array | None = None) -> Array:
    """Return the gradient of sum(dO * O) + sum(dlse * lse) with respect to the sink: a number or (H,), like it.

    attention: the result of `add`. dO, dlse: the shapes of O and lse; None for zeros. Let P_sink = exp(sink - lse)
    be the sink's weight in a row; then the gradient is the sum over rows of P_sink * (dlse - rowsum(dO * O)).
    Raises ValueError for a sink of another shape.
    """
    O, lse = attention
    each = _like(sink, lse)
    xp = _library(lse)
    dO, O = (_cast(X, lse.dtype) for X in (dO, O))
    weight = xp.exp(each - xp.where(lse == -np.inf, np.inf, lse))  # (..., N_q)
    of_rows = weight * ((0 if dlse is None else dlse) - (dO * O).sum(-1))
    return of_rows.sum((0, 2)) if each.ndim else of_rows.sum()


def _like(sink, lse):
    """Return the sink as an array or tensor like lse, to broadcast with it: a number, or (H, 1)."""
    if isinstance(lse, np.ndarray):
        sink = np.asarray(sink, lse.dtype)
    else:
        sink = _library(lse).as_tensor(sink, dtype=lse.dtype, device=lse.device)
    if sink.ndim == 0:
        return sink
    if sink.ndim != 1 or lse.ndim != 3 or len(sink) != lse.shape[1]:
        raise ValueError(
            f"sink has shape {tuple(sink.shape)} and lse {tuple(lse.shape)}; pass a number, or for lse of "
            "(B, H, N_q) one for each head, (H,)"
        )
    return sink[:, None]


def _cast(X, dtype):
    return X.astype(dtype) if isinstance(X, np.ndarray) else X.to(dtype)


def _product(O, factor):
    """Return O * factor in the dtype of O; without autograd, O is not copied into another dtype."""
    if isinstance(O, np.ndarray):
        return (O * factor).astype(O.dtype, copy=False)
    torch = _library(O)
    if torch.is_grad_enabled() and (O.requires_grad or factor.requires_grad):
        return (O * factor).to(O.dtype)
    return torch.mul(O, factor, out=torch.empty_like(O))


def _library(X):
    if isinstance(X, np.ndarray):
        return np
    import torch  # already loaded, since X is a tensor

    return torch
