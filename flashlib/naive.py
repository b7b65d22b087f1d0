"""Standard attention in NumPy: S and P are written to memory, in three passes as three GPU kernels would.

Source: FlashAttention (2022), Algorithm 0.
"""

import numpy as np

from flashlib.state import Attention, check_causal, check_floating, check_shapes, resolve_scale


def attention(Q, K, V, *, causal=False, scale=None) -> Attention:
    """Return softmax(Q K^T * scale) V and the log-sum-exp of each row, for one head.

    Q: (N_q, d); K, V: (N_k, d); all float16, float32 or float64. O: (N_q, d), the dtype of Q; lse: (N_q,).
    Computes in fp32 (fp64 for fp64 inputs) and stores S and P, like O, in the dtype of Q.
    causal: query r sees key c if c <= r + N_k - N_q (aligned bottom-right). A row that sees no key gives
    O = 0 and lse = -inf.
    Raises TypeError or ValueError for other shapes, dtypes, causal or scale.
    """
    check_floating(Q=Q, K=K, V=V)
    check_shapes(Q, K, V, axes="(N, d)")
    check_causal(causal)
    scale = resolve_scale(scale, Q.shape[-1])
    S = np.empty_like(Q, shape=(len(Q), len(K)))
    P = np.empty_like(S)
    O = np.empty_like(Q)
    lse = np.empty_like(Q, shape=len(Q), dtype=np.promote_types(Q.dtype, np.float32))
    _attention(Q, K, V, S, P, O, lse, causal, scale)
    return Attention(O, lse)


def _attention(Q, K, V, S, P, O, lse, causal, scale):
    """Fill S, P, O and lse: each pass loads from memory, computes, and stores to memory."""
    dtype = lse.dtype
    S_ = Q[:].astype(dtype) @ K[:].astype(dtype).T * scale  # (N_q, N_k)
    if causal:
        past = len(K) - len(Q)
        S_[~np.tri(len(Q), len(K), k=past, dtype=bool)] = -np.inf
    S[:] = S_

    S_ = S[:].astype(dtype)
    m = S_.max(axis=1, initial=-np.inf)  # (N_q,)
    P_ = np.exp(S_ - np.where(m == -np.inf, 0, m)[:, None])  # (N_q, N_k)
    l = P_.sum(axis=1)
    l = np.where(l == 0, 1, l)  # a row that sees no key: O = 0, lse = -inf
    P[:] = P_ / l[:, None]
    lse[:] = m + np.log(l)

    O[:] = P[:].astype(dtype) @ V[:].astype(dtype)
