"""Right answers in other styles: see `tests.checks.answers`."""


# delta: einsum with a dtype
def my_delta(dO, O):
    return np.einsum("re,re->r", dO, O, dtype=np.promote_types(O.dtype, np.float32))


# delta: sums of Python, a list
def my_delta(dO, O):
    return [sum(float(a) * float(b) for a, b in zip(g, o)) for g, o in zip(dO, O)]


# delta: always fp64, by columns
def my_delta(dO, O):
    total = np.zeros(len(O))
    for e in range(O.shape[1]):
        total = total + np.float64(1) * dO[:, e].astype("f8") * O[:, e]
    return total


# grad_V: outer products
def my_grad_V(P, dO):
    return sum((np.outer(p, g) for p, g in zip(P, dO)), np.zeros((P.shape[1], dO.shape[1])))


# grad_V: solve by tensordot
def my_grad_V(P, dO):
    return np.tensordot(P, dO, axes=(0, 0))


# grad_S: row by row, a product of vectors
def my_grad_S(P, dP):
    dS = np.empty_like(P)
    for r in range(len(P)):
        dS[r] = P[r] * dP[r] - P[r] * (P[r] @ dP[r])
    return dS


# grad_S: einsum, two terms
def my_grad_S(P, dP):
    return P * dP - np.einsum("rc,re,re->rc", P, P, dP, optimize=True)


# recompute_P: base 2, a boolean index
def my_recompute_P(Q_i, K_j, lse_i, scale):
    log2e, P = 1 / np.log(2), np.zeros((len(Q_i), len(K_j)), Q_i.dtype)
    seen = np.isfinite(lse_i)
    P[seen] = np.exp2((Q_i[seen] @ K_j.T * scale - lse_i[seen, None]) * log2e)
    return P


# recompute_P: number by number
def my_recompute_P(Q_i, K_j, lse_i, scale):
    rows = [[0.0 if x == -np.inf else np.exp(scale * (q @ k) - x) for k in K_j] for q, x in zip(Q_i, lse_i)]
    return np.array(rows)


# dq_rows: scaled rows, key by key
def my_dq_rows(Q_i, dO_i, lse_i, delta_i, K, V, B_c, scale):
    dQ = np.zeros(Q_i.shape)
    for cols in blocks(len(K), B_c):
        for k, v in zip(K[cols], V[cols]):
            p = np.exp(Q_i @ k * scale - lse_i)
            dQ += np.outer(p * (dO_i @ v - delta_i), scale * k)
    return dQ


# dq_rows: a while loop, transposed tiles, base 2
def my_dq_rows(Q_i, dO_i, lse_i, delta_i, K, V, B_c, scale):
    log2e = np.log2(np.e)
    Q, lse2, dQ, start = Q_i * (scale * log2e), lse_i * log2e, [], 0
    while start < len(K):
        k, v = K[start : start + B_c], V[start : start + B_c]
        dS = np.exp2(k @ Q.T - lse2) * (v @ dO_i.T - delta_i)
        dQ = [sum(dQ) + (dS.T @ k)]
        start += B_c
    return sum(dQ) * scale


# dq_rows: row by row within each block, einsum
def my_dq_rows(Q_i, dO_i, lse_i, delta_i, K, V, B_c, scale):
    T_c, dQ = -(-K.shape[0] // B_c), np.zeros_like(Q_i)
    for j in range(T_c):
        k, v = K[j * B_c : (j + 1) * B_c], V[j * B_c : (j + 1) * B_c]
        for r in range(len(Q_i)):
            p = np.exp(np.einsum("e,ce->c", Q_i[r], k) * scale - lse_i[r])
            dQ[r] += scale * np.einsum("c,ce->e", p * (v @ dO_i[r]) - p * delta_i[r], k)
    return dQ


# dkv_columns: transposed tiles, scaled keys, a list returned
def my_dkv_columns(K_j, V_j, Q, dO, lse, delta, B_r, scale):
    k, dK, dV = K_j * scale, np.zeros_like(K_j), np.zeros_like(V_j)
    for a in range(0, Q.shape[0], B_r):
        q, g = Q[a : a + B_r], dO[a : a + B_r]
        P = np.exp(k @ q.T - lse[a : a + B_r])
        dV += P @ g
        dK += P * (V_j @ g.T - delta[a : a + B_r]) @ q
    return [dK * scale, dV]


# dkv_columns: blocks from the last to the first
def my_dkv_columns(K_j, V_j, Q, dO, lse, delta, B_r, scale):
    lse, delta, dK, dV = lse[:, None], delta[:, None], 0.0, 0.0
    for rows in reversed(list(blocks(len(Q), B_r))):
        P = np.exp(scale * (Q[rows] @ K_j.T) - lse[rows])
        dV = P.T @ dO[rows] + dV
        dK = np.matmul((P * (np.matmul(dO[rows], V_j.T) - delta[rows]) * scale).T, Q[rows]) + dK
    return dK, dV


# row_blocks: every row asked, a set
def my_row_blocks(j, N_q, N_k, B_r, B_c):
    return {r // B_r for r in range(N_q) if j * B_c <= r + N_k - N_q}


# row_blocks: an array
def my_row_blocks(j, N_q, N_k, B_r, B_c):
    return np.arange(max(0, j * B_c + N_q - N_k) // B_r, (N_q + B_r - 1) // B_r)
