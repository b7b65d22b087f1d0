"""FlashAttention in NumPy, for one head: the forward pass in both loop orders, and the backward pass.

`steps` is the algorithm, tile by tile; `attention` runs it to its end. Everything that shows, checks or meters the
algorithm uses the same steps. Both orders keep `m`, `l` and `O_acc` per row and never hold more of S than one
tile; they differ in which block stays on chip:

    "fa2"  Q in the outer loop: the state of a row block stays on chip, K and V stream past, O is written once.
    "fa1"  K/V in the outer loop: K_j and V_j stay, and m, l and O of every row block are re-read and re-written.

`backward_steps` and `backward` are the same for the gradients. P is not stored: a tile of it is recomputed from
Q_i, K_j and lse.
"""

from collections import deque
from collections.abc import Iterator
from operator import index

import numpy as np

from flashlib import masks
from flashlib.inputs import check_block_sizes, check_floating, check_gradient_inputs, check_shapes, resolve_scale
from flashlib.types import Attention, BackwardStep, Grads, Step


def attention(
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    *,
    B_r: int = 64,
    B_c: int = 64,
    order: str = "fa2",
    causal: bool = False,
    mask: masks.Mask | None = None,
    scale: float | None = None,
) -> Attention:
    """Return softmax(Q K^T * scale) V and the log-sum-exp of each row without ever holding S.

    Q: (N_q, d); K: (N_k, d); V: (N_k, d_v); all float16, float32 or float64. O: (N_q, d_v), the dtype of Q; lse:
    (N_q,), fp32 or, for fp64 inputs, fp64, as is all arithmetic. The other arguments and what is raised: see
    `steps`.
    """
    check_floating(Q=Q, K=K, V=V)
    O = np.empty_like(Q, shape=Q.shape[:1] + V.shape[-1:])
    lse = np.empty_like(Q, shape=Q.shape[:1], dtype=_accumulator_dtype(Q))
    trace = steps(Q, K, V, B_r=B_r, B_c=B_c, order=order, causal=causal, mask=mask, scale=scale, O=O, lse=lse)
    deque(trace, maxlen=0)  # run to the end, keep nothing
    return Attention(O, lse)


def steps(
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    *,
    B_r: int = 64,
    B_c: int = 64,
    order: str = "fa2",
    causal: bool = False,
    mask: masks.Mask | None = None,
    scale: float | None = None,
    O: np.ndarray | None = None,
    lse: np.ndarray | None = None,
) -> Iterator[Step]:
    """Return a generator of the Steps of FlashAttention, one for each tile of S that is computed.

    Q: (N_q, d); K: (N_k, d); V: (N_k, d_v); all float16, float32 or float64.
    B_r, B_c: rows of Q and of K/V in a block; whole numbers of at least 1, the last block may be shorter.
    order: "fa2" (Q in the outer loop) or "fa1" (K/V in the outer loop).
    causal: query r sees key c if c <= r + N_k - N_q (aligned bottom-right). mask: one of flashlib.masks; combined
    with causal, the scores that both see. A tile in which nothing is seen is skipped and has no Step. A row that
    sees no key gets O = 0 and lse = -inf. O, lse: (N_q, d_v) and (N_q,), written as the generator runs; allocated
    if not given. In the "fa1" order O is stored after every step, rounded to its dtype. Raises TypeError or
    ValueError, at the call and before any work, for arguments other than these. Source: FlashAttention-2,
    Algorithm 1 ("fa2"); FlashAttention, Algorithm 1 ("fa1").
    """
    check_floating(Q=Q, K=K, V=V)
    check_shapes(Q, K, V, axes="(N, d)", values=True)
    check_block_sizes(B_r=B_r, B_c=B_c)
    mask = masks.resolve(mask, causal, len(Q), len(K))
    if order not in ("fa1", "fa2"):
        raise ValueError(f'order is {order!r}; accepted are "fa2" (Q in the outer loop) and "fa1" (K/V there)')
    scale = resolve_scale(scale, Q.shape[-1])
    O = _output("O", O, Q, (len(Q), V.shape[1]), Q.dtype)
    lse = _output("lse", lse, Q, Q.shape[:1], _accumulator_dtype(Q))
    generator = fa2_steps if order == "fa2" else fa1_steps
    return generator(Q, K, V, O, lse, B_r, B_c, mask, scale)


def fa2_steps(
    Q: np.ndarray, K: np.ndarray, V: np.ndarray, O: np.ndarray, lse: np.ndarray,
    B_r: int, B_c: int, mask: masks.Tiles, scale: float,
) -> Iterator[Step]:  # fmt: skip
    """FlashAttention-2, Algorithm 1: the row block stays, K and V stream past it."""
    for i, rows in enumerate(blocks(len(Q), B_r)):
        Q_i = load(Q, rows) * scale  # (B_r, d): scaled here, not in every S_ij
        m, l = np.full(len(Q_i), -np.inf, Q_i.dtype), np.zeros(len(Q_i), Q_i.dtype)  # (B_r,)
        O_acc = np.zeros((len(Q_i), V.shape[1]), Q_i.dtype)  # (B_r, d_v)
        for j, cols in enumerate(blocks(len(K), B_c)):
            if mask.hidden(rows, cols):
                continue
            K_j, V_j = load(K, cols), load(V, cols)  # (B_c, d)
            S_ij = mask.scores(Q_i @ K_j.T, rows, cols)  # (B_r, B_c)
            m_old, l_old, O_acc_old = m, l, O_acc
            m = np.maximum(m_old, S_ij.max(axis=1))
            shift = np.where(m == -np.inf, 0, m)  # -inf - (-inf) would be nan
            alpha = np.exp(m_old - shift)
            P_ij = np.exp(S_ij - shift[:, None])  # (B_r, B_c)
            l = alpha * l_old + P_ij.sum(axis=1)
            O_acc = alpha[:, None] * O_acc_old + P_ij @ V_j
            yield Step(i, j, m, l, O_acc, rows, cols, S_ij, P_ij, m_old, alpha, l_old, O_acc_old)
        divisor = np.where(l == 0, 1, l)  # a row that saw no key: O = 0, lse = -inf
        O[rows] = O_acc / divisor[:, None]
        lse[rows] = m + np.log(divisor)


def fa1_steps(
    Q: np.ndarray, K: np.ndarray, V: np.ndarray, O: np.ndarray, lse: np.ndarray,
    B_r: int, B_c: int, mask: masks.Tiles, scale: float,
) -> Iterator[Step]:  # fmt: skip
    """FlashAttention, Algorithm 1: the column block stays, the state of every row block passes by."""
    O[:] = 0
    m_hbm, l_hbm = np.full_like(lse, -np.inf), np.zeros_like(lse)  # (N_q,)
    for j, cols in enumerate(blocks(len(K), B_c)):
        K_j, V_j = load(K, cols), load(V, cols)  # (B_c, d)
        for i, rows in enumerate(blocks(len(Q), B_r)):
            if mask.hidden(rows, cols):
                continue
            Q_i, m_old, l_old = load(Q, rows) * scale, m_hbm[rows].copy(), l_hbm[rows].copy()
            O_acc_old = load(O, rows) * l_old[:, None]  # (B_r, d), un-normalised
            S_ij = mask.scores(Q_i @ K_j.T, rows, cols)  # (B_r, B_c)
            m = np.maximum(m_old, S_ij.max(axis=1))
            shift = np.where(m == -np.inf, 0, m)  # -inf - (-inf) would be nan
            alpha = np.exp(m_old - shift)
            P_ij = np.exp(S_ij - shift[:, None])  # (B_r, B_c)
            l = alpha * l_old + P_ij.sum(axis=1)
            O_acc = alpha[:, None] * O_acc_old + P_ij @ V_j
            O[rows] = O_acc / np.where(l == 0, 1, l)[:, None]
            m_hbm[rows], l_hbm[rows] = m, l
            yield Step(i, j, m, l, O_acc, rows, cols, S_ij, P_ij, m_old, alpha, l_old, O_acc_old)
    m, l = m_hbm[:], l_hbm[:]
    lse[:] = m + np.log(np.where(l == 0, 1, l))


def backward(
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    O: np.ndarray,
    lse: np.ndarray,
    dO: np.ndarray,
    *,
    B_r: int = 64,
    B_c: int = 64,
    causal: bool = False,
    mask: masks.Mask | None = None,
    scale: float | None = None,
) -> Grads:
    """Return the gradients of sum(dO * O) with respect to Q, K and V without ever holding S, P or their gradients.

    O, lse: from `attention` for the same Q, K, V, causal, mask and scale. There are two passes over the tiles,
    each of which recomputes P_ij: dK and dV by column blocks, dQ by row blocks. So every gradient is written once,
    and nothing depends on the order in which blocks run; the price is seven matrix products per tile instead of
    five. The other arguments and what is raised: see `backward_steps`.
    """
    _check_backward(Q, K, V, O, lse, dO, B_r, B_c)
    mask = masks.resolve(mask, causal, len(Q), len(K))
    scale = resolve_scale(scale, Q.shape[-1])
    delta = compute_delta(O, dO, lse, B_r)
    dQ, dK, dV = np.empty_like(Q), np.empty_like(K), np.empty_like(V)
    for trace in (
        dkv_steps(Q, K, V, lse, dO, delta, dK, dV, B_r, B_c, mask, scale),
        dq_steps(Q, K, V, lse, dO, delta, dQ, B_r, B_c, mask, scale),
    ):
        deque(trace, maxlen=0)  # run to the end, keep nothing
    return Grads(dQ, dK, dV)


def bias_gradients(
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    O: np.ndarray,
    lse: np.ndarray,
    dO: np.ndarray,
    *,
    B_r: int = 64,
    B_c: int = 64,
    causal: bool = False,
    mask: masks.Mask | None = None,
    scale: float | None = None,
) -> tuple[np.ndarray, ...]:
    """Return the gradients of sum(dO * O) with respect to the tensors that the mask reads, in their order.

    Each has the shape and dtype of its tensor. An entry sums dS, times the derivative of the change with respect
    to the entry, over the scores that read it. This is a third pass over the tiles, besides those of `backward`,
    with the same arguments.
    """
    _check_backward(Q, K, V, O, lse, dO, B_r, B_c)
    mask = masks.resolve(mask, causal, len(Q), len(K))
    scale = resolve_scale(scale, Q.shape[-1])
    delta, biases = compute_delta(O, dO, lse, B_r), mask.mask.biases
    sums = tuple(np.zeros(T.shape, np.promote_types(T.dtype, _accumulator_dtype(Q))) for T in biases)
    for rows in blocks(len(Q), B_r):
        Q_i, dO_i = load(Q, rows) * scale, load(dO, rows)  # (B_r, d)
        lse_i, delta_i = load(lse, rows)[:, None], load(delta, rows)[:, None]  # (B_r, 1)
        for cols in blocks(len(K), B_c):
            if mask.hidden(rows, cols):
                continue
            K_j, V_j = load(K, cols), load(V, cols)  # (B_c, d)
            S_raw = Q_i @ K_j.T  # (B_r, B_c), before the mask
            P_ij = np.exp(mask.scores(S_raw, rows, cols) - np.where(lse_i == -np.inf, 0, lse_i))
            mask.add_bias_gradients(sums, P_ij * (dO_i @ V_j.T - delta_i), S_raw, rows, cols)
    return tuple(dT.astype(T.dtype, copy=False) for dT, T in zip(sums, biases, strict=True))


def backward_steps(
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    O: np.ndarray,
    lse: np.ndarray,
    dO: np.ndarray,
    *,
    wrt: str,
    B_r: int = 64,
    B_c: int = 64,
    causal: bool = False,
    mask: masks.Mask | None = None,
    scale: float | None = None,
    dQ: np.ndarray | None = None,
    dK: np.ndarray | None = None,
    dV: np.ndarray | None = None,
) -> Iterator[BackwardStep]:
    """Return a generator of the BackwardSteps of one of the two passes, one for each tile that is computed.

    Q: (N_q, d); K: (N_k, d); V: (N_k, d_v); O, dO: (N_q, d_v); all float16, float32 or float64. lse: (N_q,), as
    `attention` returned it.
    wrt: the gradients with respect to "kv" (dK and dV, column blocks outside) or "q" (dQ, row blocks outside).
    B_r, B_c, causal, mask, scale: as in `steps`. dQ, dK, dV: the shapes of Q, K, V; written as the generator runs,
    those that wrt names; allocated if not given. delta, the row sums of dO * O, is computed at the call. Raises
    TypeError or ValueError, at the call and before any work, for arguments other than these. Source:
    FlashAttention-2, Algorithm 2; the pass for dQ replaces its additions to dQ in HBM.
    """
    _check_backward(Q, K, V, O, lse, dO, B_r, B_c)
    mask = masks.resolve(mask, causal, len(Q), len(K))
    if wrt not in ("kv", "q"):
        raise ValueError(f'wrt is {wrt!r}; accepted are "kv" (for dK and dV) and "q" (for dQ)')
    scale = resolve_scale(scale, Q.shape[-1])
    if wrt == "q":
        dQ = _output("dQ", dQ, Q, Q.shape, Q.dtype)
        return dq_steps(Q, K, V, lse, dO, compute_delta(O, dO, lse, B_r), dQ, B_r, B_c, mask, scale)
    dK, dV = _output("dK", dK, K, K.shape, K.dtype), _output("dV", dV, V, V.shape, V.dtype)
    return dkv_steps(Q, K, V, lse, dO, compute_delta(O, dO, lse, B_r), dK, dV, B_r, B_c, mask, scale)


def dkv_steps(
    Q: np.ndarray, K: np.ndarray, V: np.ndarray, lse: np.ndarray, dO: np.ndarray,
    delta: np.ndarray, dK: np.ndarray, dV: np.ndarray,
    B_r: int, B_c: int, mask: masks.Tiles, scale: float,
) -> Iterator[BackwardStep]:  # fmt: skip
    """dK and dV: the column block stays and sums, the row blocks pass by."""
    for j, cols in enumerate(blocks(len(K), B_c)):
        K_j, V_j = load(K, cols), load(V, cols)  # (B_c, d)
        dK_j, dV_j = np.zeros_like(K_j), np.zeros_like(V_j)  # (B_c, d)
        for i, rows in enumerate(blocks(len(Q), B_r)):
            if mask.hidden(rows, cols):
                continue
            Q_i, dO_i = load(Q, rows) * scale, load(dO, rows)  # (B_r, d)
            lse_i, delta_i = load(lse, rows)[:, None], load(delta, rows)[:, None]  # (B_r, 1)
            S_raw = Q_i @ K_j.T  # (B_r, B_c), before the mask
            S_ij = mask.scores(S_raw, rows, cols)
            P_ij = np.exp(S_ij - np.where(lse_i == -np.inf, 0, lse_i))  # a tile of P, divided by l
            dP_ij = dO_i @ V_j.T  # (B_r, B_c)
            dS_ij = mask.gradient(P_ij * (dP_ij - delta_i), S_raw, rows, cols)
            dV_j = dV_j + P_ij.T @ dO_i
            dK_j = dK_j + dS_ij.T @ Q_i  # scale is in Q_i
            yield BackwardStep(i, j, None, dK_j, dV_j, rows, cols, S_ij, P_ij, dP_ij, dS_ij)
        dK[cols], dV[cols] = dK_j, dV_j


def dq_steps(
    Q: np.ndarray, K: np.ndarray, V: np.ndarray, lse: np.ndarray, dO: np.ndarray,
    delta: np.ndarray, dQ: np.ndarray,
    B_r: int, B_c: int, mask: masks.Tiles, scale: float,
) -> Iterator[BackwardStep]:  # fmt: skip
    """dQ: the row block stays and sums, K and V stream past it, as in the forward pass."""
    for i, rows in enumerate(blocks(len(Q), B_r)):
        Q_i, dO_i = load(Q, rows) * scale, load(dO, rows)  # (B_r, d)
        lse_i, delta_i = load(lse, rows)[:, None], load(delta, rows)[:, None]  # (B_r, 1)
        dQ_i = np.zeros_like(Q_i)  # (B_r, d)
        for j, cols in enumerate(blocks(len(K), B_c)):
            if mask.hidden(rows, cols):
                continue
            K_j, V_j = load(K, cols), load(V, cols)  # (B_c, d)
            S_raw = Q_i @ K_j.T  # (B_r, B_c), before the mask
            S_ij = mask.scores(S_raw, rows, cols)
            P_ij = np.exp(S_ij - np.where(lse_i == -np.inf, 0, lse_i))  # a tile of P, divided by l
            dP_ij = dO_i @ V_j.T  # (B_r, B_c)
            dS_ij = mask.gradient(P_ij * (dP_ij - delta_i), S_raw, rows, cols)
            dQ_i = dQ_i + dS_ij @ K_j
            yield BackwardStep(i, j, dQ_i, None, None, rows, cols, S_ij, P_ij, dP_ij, dS_ij)
        dQ[rows] = dQ_i * scale


def compute_delta(O: np.ndarray, dO: np.ndarray, lse: np.ndarray, B_r: int) -> np.ndarray:
    """Return the row sums of dO * O, (N_q,), with which a tile of dS needs nothing but its own tile."""
    delta = np.empty_like(lse)
    for rows in blocks(len(O), B_r):
        delta[rows] = (load(dO, rows) * load(O, rows)).sum(axis=1)
    return delta


def blocks(N: int, B: int) -> Iterator[slice]:
    """Yield the slices that cut N rows into blocks of B, the last one shorter if B does not divide N."""
    N, B = index(N), index(B)  # a small NumPy integer would overflow
    for start in range(0, N, B):
        yield slice(start, min(start + B, N))


def load(X: np.ndarray, rows: slice) -> np.ndarray:
    """Return X[rows] in the accumulator's dtype."""
    return X[rows].astype(_accumulator_dtype(X), copy=False)


def is_hidden(rows: slice, cols: slice, past: int) -> bool:
    """Return whether the causal mask hides all of a tile: its last row does not see its first key.

    For loops that take `causal`, such as a learner's in Tiling; `masks.Tiles.hidden` is for any mask.
    """
    return cols.start > rows.stop - 1 + past


def is_visible(rows: slice, cols: slice, past: int) -> np.ndarray:
    """Return the causal mask of a tile, (B_r, B_c) of bool: row r sees key c if c <= r + past."""
    r, c = np.ogrid[rows, cols]
    return c <= r + past


def _accumulator_dtype(X):
    return np.promote_types(X.dtype, np.float32)


def _check_backward(Q, K, V, O, lse, dO, B_r, B_c):
    check_floating(Q=Q, K=K, V=V, O=O, dO=dO)
    check_floating(lse=lse)
    check_shapes(Q, K, V, axes="(N, d)", values=True)
    check_gradient_inputs(Q, O, lse, dO, _accumulator_dtype(Q), V=V)
    check_block_sizes(B_r=B_r, B_c=B_c)


def _output(name, X, like, shape, dtype):
    """Return X after checking it or, if X is None, an array of this shape and dtype allocated like `like`."""
    if X is None:
        return np.empty_like(like, shape=shape, dtype=dtype)
    check_floating(**{name: X})
    if X.shape != tuple(shape) or X.dtype != dtype:
        raise ValueError(f"{name} has shape {X.shape} and dtype {X.dtype}; expected {tuple(shape)}, {dtype}")
    return X
