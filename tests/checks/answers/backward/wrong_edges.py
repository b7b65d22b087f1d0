"""Wrong answers that only particular cases catch: see `tests.checks.answers`."""


# delta, inexact: one factor in fp16
def my_delta(dO, O):
    return (dO.astype(np.float32) * O.astype(np.float16)).sum(axis=1)


# grad_V, inexact: P in fp16
def my_grad_V(P, dO):
    return P.astype(np.float16).astype(P.dtype).T @ dO


# grad_V, inexact: dO in fp16
def my_grad_V(P, dO):
    return P.T @ dO.astype(np.float16).astype(dO.dtype)


# grad_V, inexact: P in fp16 for fp32 alone
def my_grad_V(P, dO):
    if P.dtype == np.float32:
        P = P.astype(np.float16).astype(np.float32)
    return P.T @ dO


# grad_S, inexact: dP in fp16 for fp32
def my_grad_S(P, dP):
    if P.dtype == np.float32:
        dP = dP.astype(np.float16).astype(np.float32)
    return P * (dP - (P * dP).sum(axis=1, keepdims=True))


# grad_S, inexact: delta in fp16
def my_grad_S(P, dP):
    d = (P * dP).sum(axis=1, keepdims=True).astype(np.float16)
    return P * (dP - d)


# recompute_P, all_infinite: low lse is unseen
def my_recompute_P(Q_i, K_j, lse_i, scale):
    S = Q_i @ K_j.T * scale
    return np.where(lse_i[:, None] < -1e4, 0, np.exp(S - np.where(lse_i < -1e4, np.inf, lse_i)[:, None]))


# recompute_P, inexact: lse in fp16 for fp32
def my_recompute_P(Q_i, K_j, lse_i, scale):
    if lse_i.dtype == np.float32:
        lse_i = lse_i.astype(np.float16).astype(np.float32)
    return np.exp(Q_i @ K_j.T * scale - np.where(lse_i == -np.inf, np.inf, lse_i)[:, None])


# recompute_P, inexact: Q in fp16 for fp32
def my_recompute_P(Q_i, K_j, lse_i, scale):
    if Q_i.dtype == np.float32:
        Q_i, K_j = (X.astype(np.float16).astype(np.float32) for X in (Q_i, K_j))
    return np.exp(Q_i @ K_j.T * scale - np.where(lse_i == -np.inf, np.inf, lse_i)[:, None])


# dq_rows, all_kept: all blocks first
def my_dq_rows(Q_i, dO_i, lse_i, delta_i, K, V, B_c, scale):
    tiles = [(K[c], V[c]) for c in blocks(len(K), B_c)]
    dQ = np.zeros_like(Q_i)
    for k, v in tiles:
        P = np.exp(Q_i @ k.T * scale - lse_i[:, None])
        dQ = dQ + P * (dO_i @ v.T - delta_i[:, None]) @ k
    return dQ * scale


# dq_rows, all_kept: lists of rows
def my_dq_rows(Q_i, dO_i, lse_i, delta_i, K, V, B_c, scale):
    Ks, Vs = list(K), list(V)
    dQ = np.zeros_like(Q_i)
    for s in range(0, len(Ks), B_c):
        k, v = np.array(Ks[s:s + B_c]), np.array(Vs[s:s + B_c])
        P = np.exp(Q_i @ k.T * scale - lse_i[:, None])
        dQ = dQ + P * (dO_i @ v.T - delta_i[:, None]) @ k
    return dQ * scale


# dq_rows, all_kept: a dictionary of blocks
def my_dq_rows(Q_i, dO_i, lse_i, delta_i, K, V, B_c, scale):
    kept = {}
    dQ = np.zeros_like(Q_i)
    for n, s in enumerate(range(0, len(K), B_c)):
        kept[n] = K[s:s + B_c], V[s:s + B_c]
        k, v = kept[n]
        P = np.exp(Q_i @ k.T * scale - lse_i[:, None])
        dQ = dQ + P * (dO_i @ v.T - delta_i[:, None]) @ k
    return dQ * scale


# dkv_columns, all_kept: lists of rows
def my_dkv_columns(K_j, V_j, Q, dO, lse, delta, B_r, scale):
    Qs, Ds = [x for x in Q], [x for x in dO]
    dK, dV = np.zeros_like(K_j), np.zeros_like(V_j)
    for s in range(0, len(Qs), B_r):
        q, do = np.array(Qs[s:s + B_r]), np.array(Ds[s:s + B_r])
        P = np.exp(q @ K_j.T * scale - lse[s:s + B_r, None])
        dS = P * (do @ V_j.T - delta[s:s + B_r, None])
        dV, dK = dV + P.T @ do, dK + dS.T @ q
    return dK * scale, dV


# row_blocks, float: floats
def my_row_blocks(j, N_q, N_k, B_r, B_c):
    first = max(0, j * B_c - N_k + N_q) // B_r
    return list(np.arange(first, np.ceil(N_q / B_r)) * 1.0)


# row_blocks, value: + 0.9999
def my_row_blocks(j, N_q, N_k, B_r, B_c):
    first = max(0, j * B_c - N_k + N_q) // B_r
    return list(range(first, int(N_q / B_r + 0.9999)))
