"""Solutions of chapter 06."""

import numpy as np

from flashlib.state import Step
from flashlib.tiled import blocks, is_hidden, is_visible


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
