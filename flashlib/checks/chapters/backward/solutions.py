"""Solutions of this chapter."""

import numpy as np

from flashlib.tiled import blocks


# exercise: delta
def my_delta(dO, O):
    dtype = np.promote_types(O.dtype, np.float32)
    return (dO.astype(dtype) * O.astype(dtype)).sum(axis=1)


# exercise: grad_V
def my_grad_V(P, dO):
    return P.T @ dO


# exercise: grad_S
def my_grad_S(P, dP):
    delta = (P * dP).sum(axis=1, keepdims=True)  # (N_q, 1)
    return P * (dP - delta)


# exercise: recompute_P
def my_recompute_P(Q_i, K_j, lse_i, scale):
    S_ij = Q_i @ K_j.T * scale  # (B_r, B_c)
    shift = np.where(lse_i == -np.inf, np.inf, lse_i)  # exp(S_ij - inf) = 0
    return np.exp(S_ij - shift[:, None])


# exercise: dq_rows
def my_dq_rows(Q_i, dO_i, lse_i, delta_i, K, V, B_c, scale):
    dQ_i = np.zeros_like(Q_i)  # (B_r, d)
    for cols in blocks(len(K), B_c):
        K_j, V_j = K[cols], V[cols]  # (B_c, d)
        S_ij = Q_i @ K_j.T * scale  # (B_r, B_c)
        P_ij = np.exp(S_ij - lse_i[:, None])
        dP_ij = dO_i @ V_j.T
        dS_ij = P_ij * (dP_ij - delta_i[:, None])
        dQ_i = dQ_i + dS_ij @ K_j
    return dQ_i * scale


# exercise: dkv_columns
def my_dkv_columns(K_j, V_j, Q, dO, lse, delta, B_r, scale):
    dK_j, dV_j = np.zeros_like(K_j), np.zeros_like(V_j)  # (B_c, d)
    for rows in blocks(len(Q), B_r):
        Q_i, dO_i = Q[rows], dO[rows]  # (B_r, d)
        S_ij = Q_i @ K_j.T * scale  # (B_r, B_c)
        P_ij = np.exp(S_ij - lse[rows, None])
        dP_ij = dO_i @ V_j.T
        dS_ij = P_ij * (dP_ij - delta[rows, None])
        dV_j = dV_j + P_ij.T @ dO_i
        dK_j = dK_j + dS_ij.T @ Q_i
    return dK_j * scale, dV_j


# exercise: row_blocks
def my_row_blocks(j, N_q, N_k, B_r, B_c):
    first_row = max(0, j * B_c - (N_k - N_q))  # the first that sees key j * B_c
    T_r = -(-N_q // B_r)
    return range(first_row // B_r, T_r)
