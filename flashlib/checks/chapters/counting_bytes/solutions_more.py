"""Solutions: the loop with K and V outside, and the best tile that fits."""

import numpy as np

from flashlib import cost
from flashlib.tiled import blocks, is_hidden, is_visible
from flashlib.types import Step


# exercise: best_tile
def my_best_tile(N, d, capacity, dtype):
    powers = [2**p for p in range(4, 11)]
    fitting = []
    for B_r in powers:
        for B_c in powers:
            if cost.sram_bytes(B_r, B_c, d, dtype) <= capacity:
                moved = cost.fa2_traffic(N, N, d, B_r=B_r, B_c=B_c, dtype=dtype).total
                fitting.append((moved, -B_c, B_r))
    _, minus_B_c, B_r = min(fitting)
    return B_r, -minus_B_c


# exercise: fa1
def my_fa1(Q, K, V, O, B_r, B_c, causal, scale):
    past = len(K) - len(Q)
    O[:] = 0
    m_hbm, l_hbm = np.full(len(Q), -np.inf), np.zeros(len(Q))
    for j, cols in enumerate(blocks(len(K), B_c)):
        K_j, V_j = K[cols], V[cols]
        for i, rows in enumerate(blocks(len(Q), B_r)):
            if causal and is_hidden(rows, cols, past):
                continue
            m_old, l_old = m_hbm[rows], l_hbm[rows]
            S_ij = Q[rows] @ K_j.T * scale
            if causal:
                S_ij = np.where(is_visible(rows, cols, past), S_ij, -np.inf)
            m = np.maximum(m_old, S_ij.max(axis=1))
            shift = np.where(m == -np.inf, 0, m)
            alpha, P_ij = np.exp(m_old - shift), np.exp(S_ij - shift[:, None])
            l = alpha * l_old + P_ij.sum(axis=1)
            O_acc = (alpha * l_old)[:, None] * O[rows] + P_ij @ V_j
            O[rows] = O_acc / np.where(l == 0, 1, l)[:, None]
            m_hbm[rows], l_hbm[rows] = m, l
            yield Step(i, j, m, l, O_acc)
