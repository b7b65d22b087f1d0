"""Solutions of this chapter."""

import numpy as np

from flashlib import tiled


# exercise: normalised
def my_normalised(x, V):
    m, l, O = -np.inf, 0.0, np.zeros(V.shape[1])
    outputs = np.zeros(V.shape)
    for j, (x_j, v_j) in enumerate(zip(x, V, strict=True)):
        if x_j > -np.inf:
            m_old, m = m, max(m, x_j)
            alpha, p = np.exp(m_old - m), np.exp(x_j - m)
            l_old, l = l, alpha * l + p
            O = (alpha * l_old / l) * O + (p / l) * v_j
        outputs[j] = O
    return outputs


# exercise: block_step
def my_block_step(Q_i, K_j, V_j, m, l, O_acc, scale):
    S_ij = Q_i @ K_j.T * scale
    m_old, m = m, np.maximum(m, S_ij.max(axis=1))
    alpha = np.exp(m_old - m)
    P_ij = np.exp(S_ij - m[:, None])
    l = alpha * l + P_ij.sum(axis=1)
    O_acc = alpha[:, None] * O_acc + P_ij @ V_j
    return m, l, O_acc


# exercise: one_row
def my_one_row(q, K, V, B_c, scale):
    m, l, O_acc = -np.inf, 0.0, np.zeros(len(q))
    for cols in tiled.blocks(len(K), B_c):
        x = K[cols] @ q * scale
        m_old, m = m, max(m, x.max())
        alpha, p = np.exp(m_old - m), np.exp(x - m)
        l = alpha * l + p.sum()
        O_acc = alpha * O_acc + p @ V[cols]
    return O_acc / l


# exercise: alpha
def my_alpha(m_old, m):
    shift = np.where(m == -np.inf, 0, m)
    return np.exp(m_old - shift)
