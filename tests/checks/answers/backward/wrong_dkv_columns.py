"""Wrong answers: see `tests.checks.answers`."""


# dkv_columns, held: whole columns
def my_dkv_columns(K_j, V_j, Q, dO, lse, delta, B_r, scale):
    P = np.exp(scale * Q @ K_j.T - lse[:, None])
    dS = P * (dO @ V_j.T - delta[:, None])
    return scale * dS.T @ Q, P.T @ dO


# dkv_columns, own_sums: softmax over the tile's keys, transposed tiles
def my_dkv_columns(K_j, V_j, Q, dO, lse, delta, B_r, scale):
    dK, dV = 0 * K_j, 0 * V_j
    for a in range(0, len(Q), B_r):
        q, g = Q[a : a + B_r], dO[a : a + B_r]
        P = np.exp(K_j @ q.T * scale)
        P = P / P.sum(axis=0)
        dV += P @ g
        dK += scale * (P * (V_j @ g.T - delta[a : a + B_r])) @ q
    return dK, dV


# dkv_columns, exchanged: transposed tiles
def my_dkv_columns(K_j, V_j, Q, dO, lse, delta, B_r, scale):
    dK, dV = 0 * K_j, 0 * V_j
    for a in range(0, len(Q), B_r):
        b = slice(a, a + B_r)
        P = np.exp(K_j @ Q[b].T * scale - lse[b])
        dV += P @ dO[b]
        dK += scale * (P * (V_j @ dO[b].T - delta[b])) @ Q[b]
    return dV, dK


# dkv_columns, loaded_at_once: blocks of 32 rows
def my_dkv_columns(K_j, V_j, Q, dO, lse, delta, B_r, scale):
    dK, dV = 0, 0
    for a in range(0, len(Q), 32):
        b = slice(a, a + 32)
        P = np.exp(K_j @ Q[b].T * scale - lse[b])
        dV, dK = dV + P @ dO[b], dK + scale * (P * (V_j @ dO[b].T - delta[b])) @ Q[b]
    return dK, dV


# dkv_columns, lse_of_first: only delta is cut
def my_dkv_columns(K_j, V_j, Q, dO, lse, delta, B_r, scale):
    dK, dV = np.zeros(K_j.shape), np.zeros(V_j.shape)
    for i in range(-(-len(Q) // B_r)):
        q, g, D = (X[i * B_r : (i + 1) * B_r] for X in (Q, dO, delta))
        P = np.exp(q @ K_j.T * scale - lse[: len(q), None])
        dV += np.einsum("rc,re->ce", P, g)
        dK += np.einsum("rc,re->ce", P * (g @ V_j.T - D[:, None]), q)
    return dK * scale, dV


# dkv_columns, delta_over_queries: delta summed along the wrong axis
def my_dkv_columns(K_j, V_j, Q, dO, lse, delta, B_r, scale):
    dK, dV = np.zeros(K_j.shape), np.zeros(V_j.shape)
    for rows in blocks(len(Q), B_r):
        P = np.exp(Q[rows] @ K_j.T * scale - lse[rows, None])
        dP = dO[rows] @ V_j.T
        dV += P.T @ dO[rows]
        dK += (P * (dP - (P * dP).sum(axis=0))).T @ Q[rows] * scale
    return dK, dV


# row_blocks, top_left: a mask, aligned top left
def my_row_blocks(j, N_q, N_k, B_r, B_c):
    seen = np.tri(N_q, N_k)[:, j * B_c : (j + 1) * B_c]
    return [i for i in range((N_q + B_r - 1) // B_r) if seen[i * B_r : (i + 1) * B_r].any()]


# row_blocks, last_key: only whole tiles
def my_row_blocks(j, N_q, N_k, B_r, B_c):
    past, last_key = N_k - N_q, min(j * B_c + B_c, N_k) - 1
    return {i for i, rows in enumerate(blocks(N_q, B_r)) if last_key <= rows.stop - 1 + past}


# row_blocks, cut_left_out: first rows asked
def my_row_blocks(j, N_q, N_k, B_r, B_c):
    return [i for i, rows in enumerate(blocks(N_q, B_r)) if j * B_c <= rows.start + N_k - N_q]


# row_blocks, numbers_compared: as if all blocks were square
def my_row_blocks(j, N_q, N_k, B_r, B_c):
    return [i for i in range(-(-N_q // B_r)) if i >= j]


# row_blocks, last_dropped: whole blocks alone
def my_row_blocks(j, N_q, N_k, B_r, B_c):
    return np.arange(max(0, j * B_c - N_k + N_q) // B_r, N_q // B_r)
