"""Standard attention in NumPy, forward and backward: S, P and their gradients are written to memory.

Each pass loads, computes and stores, as a GPU kernel would. Source: FlashAttention (2022), Algorithms 0 and 3.
"""

import numpy as np

from flashlib import masks
from flashlib.inputs import check_floating, check_gradient_inputs, check_shapes, resolve_scale
from flashlib.types import Attention, Grads


def attention(
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    *,
    causal: bool = False,
    mask: masks.Mask | None = None,
    scale: float | None = None,
) -> Attention:
    """Return softmax(Q K^T * scale) V and the log-sum-exp of each row, for one head.

    Q: (N_q, d); K: (N_k, d); V: (N_k, d_v); all float16, float32 or float64. O: (N_q, d_v), the dtype of Q; lse:
    (N_q,).
    Computes in fp32 (fp64 for fp64 inputs) and stores S and P, like O, in the dtype of Q.
    causal: query r sees key c if c <= r + N_k - N_q (aligned bottom-right). mask: one of flashlib.masks; combined
    with causal, the scores that both see. A row that sees no key gives O = 0 and lse = -inf. Raises TypeError or
    ValueError for other shapes, dtypes, causal, mask or scale.
    """
    check_floating(Q=Q, K=K, V=V)
    check_shapes(Q, K, V, axes="(N, d)", values=True)
    mask = masks.resolve(mask, causal, len(Q), len(K))
    scale = resolve_scale(scale, Q.shape[-1])
    S = np.empty_like(Q, shape=(len(Q), len(K)))
    P = np.empty_like(S)
    O = np.empty_like(Q, shape=(len(Q), V.shape[1]))
    lse = np.empty_like(Q, shape=len(Q), dtype=np.promote_types(Q.dtype, np.float32))
    attention_passes(Q, K, V, S, P, O, lse, mask, scale)
    return Attention(O, lse)


def attention_passes(
    Q: np.ndarray, K: np.ndarray, V: np.ndarray, S: np.ndarray, P: np.ndarray,
    O: np.ndarray, lse: np.ndarray, mask: masks.Tiles, scale: float,
) -> None:  # fmt: skip
    """Fill S, P, O and lse: each pass loads from memory, computes, and stores to memory."""
    dtype = lse.dtype
    S_ = Q[:].astype(dtype) @ K[:].astype(dtype).T * scale  # (N_q, N_k)
    S[:] = mask.scores(S_, *mask.all)

    S_ = S[:].astype(dtype)
    m = S_.max(axis=1, initial=-np.inf)  # (N_q,)
    P_ = np.exp(S_ - np.where(m == -np.inf, 0, m)[:, None])  # (N_q, N_k)
    l = P_.sum(axis=1)
    l = np.where(l == 0, 1, l)  # a row that sees no key: O = 0, lse = -inf
    P[:] = P_ / l[:, None]
    lse[:] = m + np.log(l)

    O[:] = P[:].astype(dtype) @ V[:].astype(dtype)


def backward(
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    O: np.ndarray,
    lse: np.ndarray,
    dO: np.ndarray,
    *,
    causal: bool = False,
    mask: masks.Mask | None = None,
    scale: float | None = None,
) -> Grads:
    """Return the gradients of sum(dO * O) with respect to Q, K and V, for one head.

    Q: (N_q, d); K: (N_k, d); V: (N_k, d_v); O, dO: (N_q, d_v); all float16, float32 or float64. O, lse: from
    `attention` for the same Q, K, V, causal, mask and scale; lse: (N_q,), fp32 or, for fp64 inputs, fp64, as is
    all arithmetic. P, dP and dS are stored in the dtype of Q. P is recomputed from lse, as nothing of size N_q x
    N_k was saved. A mask that changes scores needs S again; this is not metered. Raises TypeError or ValueError
    for other shapes, dtypes, causal, mask or scale.
    """
    check_floating(Q=Q, K=K, V=V, O=O, dO=dO)
    check_floating(lse=lse)
    check_shapes(Q, K, V, axes="(N, d)", values=True)
    check_gradient_inputs(Q, O, lse, dO, np.promote_types(Q.dtype, np.float32), V=V)
    mask = masks.resolve(mask, causal, len(Q), len(K))
    scale = resolve_scale(scale, Q.shape[-1])
    P, dP, dS = (np.empty_like(Q, shape=(len(Q), len(K))) for _ in range(3))
    grads = Grads(np.empty_like(Q), np.empty_like(K), np.empty_like(V))
    backward_passes(Q, K, V, O, lse, dO, P, dP, dS, *grads, mask, scale)
    return grads


def backward_passes(
    Q: np.ndarray, K: np.ndarray, V: np.ndarray, O: np.ndarray, lse: np.ndarray,
    dO: np.ndarray, P: np.ndarray, dP: np.ndarray, dS: np.ndarray, dQ: np.ndarray,
    dK: np.ndarray, dV: np.ndarray, mask: masks.Tiles, scale: float,
) -> None:  # fmt: skip
    """Fill P, dP, dS, dQ, dK and dV: each pass loads from memory, computes, and stores to memory."""
    dtype = lse.dtype
    S_ = Q[:].astype(dtype) @ K[:].astype(dtype).T * scale  # (N_q, N_k)
    lse_ = lse[:]
    P[:] = np.exp(mask.scores(S_, *mask.all) - np.where(lse_ == -np.inf, 0, lse_)[:, None])

    dV[:] = P[:].astype(dtype).T @ dO[:].astype(dtype)

    dP[:] = dO[:].astype(dtype) @ V[:].astype(dtype).T

    delta = (dO[:].astype(dtype) * O[:].astype(dtype)).sum(axis=1)  # (N_q,)
    dS[:] = mask.gradient(P[:].astype(dtype) * (dP[:].astype(dtype) - delta[:, None]), S_, *mask.all)

    dQ[:] = dS[:].astype(dtype) @ K[:].astype(dtype) * scale

    dK[:] = dS[:].astype(dtype).T @ Q[:].astype(dtype) * scale
