"""Solutions of this chapter."""

import numpy as np

from flashlib.tiled import blocks, is_hidden, is_visible
from flashlib.types import Step


# exercise: fa2
def my_fa2(Q, K, V, O, B_r, B_c, causal, scale):
    past = len(K) - len(Q)
    for i, rows in enumerate(blocks(len(Q), B_r)):
        Q_i = Q[rows]
        m, l, O_acc = np.full(len(Q_i), -np.inf), np.zeros(len(Q_i)), np.zeros(Q_i.shape)
        for j, cols in enumerate(blocks(len(K), B_c)):
            if causal and is_hidden(rows, cols, past):
                break
            K_j, V_j = K[cols], V[cols]
            S_ij = Q_i @ K_j.T * scale
            if causal:
                S_ij = np.where(is_visible(rows, cols, past), S_ij, -np.inf)
            m_old, m = m, np.maximum(m, S_ij.max(axis=1))
            shift = np.where(m == -np.inf, 0, m)
            alpha, P_ij = np.exp(m_old - shift), np.exp(S_ij - shift[:, None])
            l = alpha * l + P_ij.sum(axis=1)
            O_acc = alpha[:, None] * O_acc + P_ij @ V_j
            yield Step(i, j, m, l, O_acc)
        O[rows] = O_acc / np.where(l == 0, 1, l)[:, None]


# exercise: skipped_tiles
def my_skipped_tiles(N_q, N_k, B_r, B_c):
    T_r, T_c = -(-N_q // B_r), -(-N_k // B_c)
    skipped = set()
    for i in range(T_r):
        last_row = min((i + 1) * B_r, N_q) - 1
        for j in range(T_c):
            if j * B_c > last_row + N_k - N_q:
                skipped.add((i, j))
    return skipped


# exercise: last_tile
def my_last_tile(Q_i, K_j, V_j, n, m, l, O_acc, scale):
    S_ij = Q_i @ K_j.T * scale
    S_ij = np.where(np.arange(len(K_j)) < n, S_ij, -np.inf)
    m_old, m = m, np.maximum(m, S_ij.max(axis=1))
    alpha, P_ij = np.exp(m_old - m), np.exp(S_ij - m[:, None])
    return m, alpha * l + P_ij.sum(axis=1), alpha[:, None] * O_acc + P_ij @ V_j


# exercise: finish
def my_finish(m, l, O_acc):
    divisor = np.where(l == 0, 1, l)
    return O_acc / divisor[:, None], m + np.log(divisor)
