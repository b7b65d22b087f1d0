"""Wrong answers: see `tests.checks.answers`."""


# delta, rounded: einsum in fp16
def my_delta(dO, O):
    return np.einsum("ij,ij->i", dO, O)


# delta, all_rows: a matrix product with a vector of ones
def my_delta(dO, O):
    return dO.astype(float) @ O.astype(float).T @ np.ones(len(O))


# delta, over_axis_0: columns, by einsum
def my_delta(dO, O):
    return np.einsum("re,re->e", dO.astype(float), O.astype(float))


# delta, products_in_fp16: the sum alone in fp32
def my_delta(dO, O):
    return np.add.reduce(np.multiply(dO, O), axis=-1, dtype=np.promote_types(O.dtype, np.float32))


# delta, norms: lengths of rows
def my_delta(dO, O):
    a, b = dO.astype(float), O.astype(float)
    return np.sqrt((a * a).sum(1) * (b * b).sum(1))


# delta, held: all pairs of rows, and a mask
def my_delta(dO, O):
    dtype = np.promote_types(O.dtype, np.float32)
    return ((dO.astype(dtype) @ O.astype(dtype).T) * np.eye(len(O), dtype=dtype)).sum(axis=1)


# delta, raises: no rows
def my_delta(dO, O):
    return np.concatenate([[np.dot(a.astype(float), b.astype(float))] for a, b in zip(dO, O)])


# grad_V, one_query: a loop that overwrites
def my_grad_V(P, dO):
    dV = np.zeros((P.shape[1], dO.shape[1]))
    for r in range(len(P)):
        dV = np.outer(P[r], dO[r])
    return dV


# grad_V, softmax: softmax of P, by einsum
def my_grad_V(P, dO):
    E = np.exp(P)
    return np.einsum("rc,re->ce", E / E.sum(axis=1)[:, None], dO)


# grad_V, last_query: one row too few
def my_grad_V(P, dO):
    dV = np.zeros((P.shape[1], dO.shape[1]))
    for r in range(1, len(P)):
        dV += P[r][:, None] * dO[r]
    return dV


# grad_V, largest_key: as if P were one-hot
def my_grad_V(P, dO):
    dV = np.zeros((P.shape[1], dO.shape[1]))
    for p, g in zip(P, dO):
        dV[p.argmax()] += p.max() * g
    return dV


# grad_S, log_softmax: gradient of log softmax
def my_grad_S(P, dP):
    total = np.add.reduce(dP, axis=1)
    return dP - P * total[:, None]


# grad_S, held: J for each row
def my_grad_S(P, dP):
    dS = np.zeros(P.shape)
    for r, p in enumerate(P):
        dS[r] = (np.diag(p) - np.outer(p, p)) @ dP[r] if len(p) > 1 else 0
    return dS


# grad_S, rows_divided: weights made anew
def my_grad_S(P, dP):
    p = P / P.sum(1)[:, None]
    return p * dP - p * (p * dP).sum(1)[:, None]


# grad_S, diagonal: of a sigmoid, row by row
def my_grad_S(P, dP):
    return np.array([[p * (1 - p) * g for p, g in zip(*rows)] for rows in zip(P, dP)]).reshape(P.shape)


# grad_S, over_axis_0: by einsum
def my_grad_S(P, dP):
    return np.multiply(P, np.subtract(dP, np.einsum("rc,rc->c", P, dP)))


# grad_S, nothing_returned: in place of a return
def my_grad_S(P, dP):
    dS = np.empty_like(dP)
    dS[:] = P * (dP - np.vecdot(P, dP)[:, None])


# recompute_P, own_sums: softmax of the tile
def my_recompute_P(Q_i, K_j, lse_i, scale):
    S = Q_i @ K_j.T * scale
    E = np.exp(S - S.max(axis=1)[:, None])
    return E / E.sum(axis=1)[:, None] * (lse_i > -np.inf)[:, None]


# recompute_P, shift_0: the chapter's line, without its mask
def my_recompute_P(Q_i, K_j, lse_i, scale):
    S_ij = scale * np.einsum("re,ce->rc", Q_i, K_j)
    lse_i = np.where(np.isinf(lse_i), 0, lse_i)[:, None]
    return np.exp(S_ij - lse_i)


# recompute_P, guard_for_all: row by row, all or nothing
def my_recompute_P(Q_i, K_j, lse_i, scale):
    if np.isinf(lse_i).any():
        return np.zeros((len(Q_i), len(K_j)))
    return np.array([np.exp(K_j @ q * scale - x) for q, x in zip(Q_i, lse_i)])


# recompute_P, scale_missing: no guard beside it
def my_recompute_P(Q, K, lse, scale):
    return np.array([[np.exp(q @ k - x) for k in K] for q, x in zip(Q, lse)])


# recompute_P, half_in_base_2: scores in base 2 alone
def my_recompute_P(Q_i, K_j, lse_i, scale):
    S2 = Q_i @ K_j.T * (scale * np.log2(np.e))
    return np.where((lse_i > -np.inf)[:, None], np.exp2(S2 - lse_i[:, None]), 0)


# recompute_P, inf_unseen: the wrong infinity asked for
def my_recompute_P(Q_i, K_j, lse_i, scale):
    return np.where((lse_i == np.inf)[:, None], 0, np.exp(Q_i @ K_j.T * scale - lse_i[:, None]))


# recompute_P, all_infinite: weights cut off at 1, and large lse taken for none
def my_recompute_P(Q_i, K_j, lse_i, scale):
    P = np.exp(Q_i @ K_j.T * scale - lse_i[:, None])
    P[lse_i < -500] = 0
    return P


# dq_rows, own_sums: softmax of each tile, slices
def my_dq_rows(Q, dO, lse, D, K, V, step, scale):
    total = 0 * Q
    for a in range(0, len(K), step):
        s = scale * Q @ K[a : a + step].T
        p = np.exp(s - s.max(axis=1)[:, None])
        p = p / p.sum(axis=1)[:, None]
        total += scale * (p * (dO @ V[a : a + step].T - D[:, None])) @ K[a : a + step]
    return total


# dq_rows, rescaled: as in the forward pass
def my_dq_rows(Q_i, dO_i, lse_i, delta_i, K, V, B_c, scale):
    dQ_i, m = np.zeros_like(Q_i), np.full(len(Q_i), -np.inf)
    for cols in blocks(len(K), B_c):
        S = Q_i @ K[cols].T * scale
        m_old, m = m, np.maximum(m, S.max(axis=1))
        dS = np.exp(S - lse_i[:, None]) * (dO_i @ V[cols].T - delta_i[:, None])
        dQ_i = dQ_i * np.exp(m_old - m)[:, None] + dS @ K[cols]
    return dQ_i * scale


# dq_rows, held: the whole row
def my_dq_rows(Q_i, dO_i, lse_i, delta_i, K, V, B_c, scale):
    P = np.exp(Q_i @ K.T * scale - lse_i[:, None])
    return P * (dO_i @ V.T - delta_i[:, None]) @ K * scale


# dq_rows, held: tiles kept, joined at the end
def my_dq_rows(Q_i, dO_i, lse_i, delta_i, K, V, B_c, scale):
    kept = []
    for cols in blocks(len(K), B_c):
        P = np.exp(Q_i @ K[cols].T * scale - lse_i[:, None])
        kept.append(P * (dO_i @ V[cols].T - delta_i[:, None]))
    dQ = 0
    for dS, cols in zip(kept, blocks(len(K), B_c)):
        dQ = dQ + dS @ K[cols] * scale
    return dQ


# dq_rows, loaded_at_once: all of K turned round, then blocks of it
def my_dq_rows(Q_i, dO_i, lse_i, delta_i, K, V, B_c, scale):
    keys, values, dQ = np.ascontiguousarray(K), np.array(V), np.zeros(Q_i.shape)
    for a in range(0, len(keys), B_c):
        P = np.exp(Q_i @ keys[a : a + B_c].T * scale - lse_i[:, None])
        dQ += P * (dO_i @ values[a : a + B_c].T - delta_i[:, None]) @ keys[a : a + B_c]
    return dQ * scale


# dq_rows, scale_of_d: not the argument, with two products
def my_dq_rows(Q_i, dO_i, lse_i, delta_i, K, V, B_c, scale):
    scale, dQ = Q_i.shape[1] ** -0.5, 0.0
    for a in range(0, len(K), B_c):
        k, v = K[a : a + B_c], V[a : a + B_c]
        P = np.exp(scale * Q_i @ k.T - lse_i[:, None])
        dQ = dQ + scale * (P * (dO_i @ v.T) @ k - P * delta_i[:, None] @ k)
    return dQ


# dq_rows, dQ_scaled_each_step: another place for the scale
def my_dq_rows(Q_i, dO_i, lse_i, delta_i, K, V, B_c, scale):
    dQ = np.zeros_like(Q_i)
    for a in range(0, len(K), B_c):
        k, v = K[a : a + B_c], V[a : a + B_c]
        dQ += np.exp(scale * Q_i @ k.T - lse_i[:, None]) * (dO_i @ v.T - delta_i[:, None]) @ k
        dQ *= scale
    return dQ
