"""What a rank computes in a hop: FlashAttention's tiles for its rows and another rank's keys, in NumPy, by head.

Arrays are (H, n, d), for the heads and rows that a rank holds. Head h of Q reads head `kv_heads[h]` of K and V.
All arithmetic is in fp32, or fp64 for fp64 inputs, and so is all that one hop passes to the next.
"""

from collections.abc import Sequence

import numpy as np

from flashlib import tiled
from flashlib.ring.hops import Hop
from flashlib.softmax import State
from flashlib.types import Attention, Grads


def nothing(Q: np.ndarray, d_v: int) -> State:
    """Return the State of rows that have seen no key. Q: (H, n, d)."""
    dtype, rows = np.promote_types(Q.dtype, np.float32), Q.shape[:-1]
    return State(np.full(rows, -np.inf, dtype), np.zeros(rows, dtype), np.zeros((*rows, d_v), dtype))


def finish(state: State, dtype: np.dtype) -> Attention:
    """Return O, in this dtype, and lse of rows that have seen all their keys."""
    divisor = np.where(state.l == 0, 1, state.l)  # a row that sees no key: O = 0, lse = -inf
    return Attention((state.O_acc / divisor[..., None]).astype(dtype), state.m + np.log(divisor))


def partial(
    hop: Hop, Q: np.ndarray, K: np.ndarray, V: np.ndarray, kv_heads: Sequence[int], **options: float
) -> tuple[State, int]:
    """Return the State of all rows of a rank over the keys of one hop alone, and the number of tiles computed.

    options: B_r, B_c and scale, as `tiled.steps` takes them.
    """
    state, n_tiles = nothing(Q, V.shape[-1]), 0
    dtype = state.m.dtype
    for h, kv in enumerate(kv_heads):
        q, k, v = (X.astype(dtype) for X in (Q[h, hop.rows], K[kv, hop.keys], V[kv, hop.keys]))
        m, l, O_acc = (X[h, hop.rows] for X in state)  # views: writing to them changes the state
        for step in tiled.steps(q, k, v, mask=hop.mask, **options):  # type: ignore[arg-type]
            m[step.rows], l[step.rows], O_acc[step.rows] = step.m, step.l, step.O_acc
            n_tiles += 1
    return state, n_tiles


def gradients(
    hop: Hop, Q: np.ndarray, K: np.ndarray, V: np.ndarray, lse: np.ndarray, dO: np.ndarray, delta: np.ndarray,
    kv_heads: Sequence[int], *, B_r: int, B_c: int, scale: float,
) -> tuple[Grads, int]:  # fmt: skip
    """Return what one hop adds to dQ of a rank's rows and to dK and dV of the keys, and the number of tiles.

    lse, delta: (H, n), of whole rows, over all hops: so P of a tile is final, and nothing is rescaled.
    Source: FlashAttention-2, Algorithm 2.
    """
    grads = Grads(*(np.zeros(X.shape, lse.dtype) for X in (Q, K, V)))
    n_tiles = 0
    for h, kv in enumerate(kv_heads):
        own = [X[h, hop.rows].astype(lse.dtype) for X in (Q, lse, dO, delta)]
        theirs = [X[kv, hop.keys].astype(lse.dtype) for X in (K, V)]
        sums = grads.dQ[h, hop.rows], grads.dK[kv, hop.keys], grads.dV[kv, hop.keys]
        n_tiles += _add_tiles(hop.mask, own, theirs, sums, B_r, B_c, scale)
    return grads, n_tiles


def _add_tiles(mask, own, theirs, sums, B_r, B_c, scale):
    """Add the gradients of each tile to dQ, dK and dV; return the number of tiles computed."""
    (Q, lse, dO, delta), (K, V), (dQ, dK, dV) = own, theirs, sums
    asked, n_tiles, shift = mask.on(len(Q), len(K)), 0, np.where(lse == -np.inf, 0, lse)
    for rows in tiled.blocks(len(Q), B_r):
        Q_i, dO_i = Q[rows] * scale, dO[rows]  # (B_r, d)
        for cols in tiled.blocks(len(K), B_c):
            if asked.hidden(rows, cols):
                continue
            S_raw = Q_i @ K[cols].T  # (B_r, B_c), before the mask
            P_ij = np.exp(asked.scores(S_raw, rows, cols) - shift[rows, None])
            dP_ij = dO_i @ V[cols].T
            dS_ij = asked.gradient(P_ij * (dP_ij - delta[rows, None]), S_raw, rows, cols)
            dV[cols] += P_ij.T @ dO_i
            dK[cols] += dS_ij.T @ Q_i  # scale is in Q_i
            dQ[rows] += dS_ij @ K[cols] * scale
            n_tiles += 1
    return n_tiles
