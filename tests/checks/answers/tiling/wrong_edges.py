"""Wrong answers that only particular cases catch: see `tests.checks.answers`."""


# fa2, rounded: in fp32
def my_fa2(Q, K, V, O, B_r, B_c, causal, scale):
    past = len(K) - len(Q)
    for i, rows in enumerate(blocks(len(Q), B_r)):
        q = Q[rows].astype(np.float32)
        m, l, A = np.full(len(q), -np.inf), np.zeros(len(q)), np.zeros(q.shape)
        for j, cols in enumerate(blocks(len(K), B_c)):
            if causal and is_hidden(rows, cols, past):
                break
            S = (q @ K[cols].T.astype(np.float32) * scale).astype(np.float32)
            if causal:
                S = np.where(is_visible(rows, cols, past), S, -np.inf)
            mo, m = m, np.maximum(m, S.max(axis=1))
            sh = np.where(m == -np.inf, 0, m)
            a, P = np.exp(mo - sh), np.exp(S - sh[:, None])
            l, A = a * l + P.sum(axis=1), a[:, None] * A + P @ V[cols]
            yield Step(i, j, m, l, A)
        O[rows] = A / np.where(l == 0, 1, l)[:, None]


# fa2, no_array: tiles of one row
def my_fa2(Q, K, V, O, B_r, B_c, causal, scale):
    past = len(K) - len(Q)
    B_r, B_c = max(B_r, 2), max(B_c, 2)
    for i, rows in enumerate(blocks(len(Q), B_r)):
        q = Q[rows]
        m, l, A = np.full(len(q), -np.inf), np.zeros(len(q)), np.zeros(q.shape)
        for j, cols in enumerate(blocks(len(K), B_c)):
            if causal and is_hidden(rows, cols, past):
                break
            S = q @ K[cols].T * scale
            if causal:
                S = np.where(is_visible(rows, cols, past), S, -np.inf)
            mo, m = m, np.maximum(m, S.max(axis=1))
            sh = np.where(m == -np.inf, 0, m)
            a, P = np.exp(mo - sh), np.exp(S - sh[:, None])
            l, A = a * l + P.sum(axis=1), a[:, None] * A + P @ V[cols]
            yield Step(i, j, m, l, A)
        O[rows] = A / np.where(l == 0, 1, l)[:, None]


# skipped_tiles, no_tile: fractions
def my_skipped_tiles(N_q, N_k, B_r, B_c):
    out = set()
    for i in range(-(-N_q // B_r)):
        last = min((i + 1) * B_r, N_q) - 1
        for j in range(-(-N_k // B_c)):
            if j * B_c > last + N_k - N_q:
                out.add((i + 0.5, j + 0.9))
    return out


# skipped_tiles, float: floats
def my_skipped_tiles(N_q, N_k, B_r, B_c):
    out = set()
    for i in np.arange(np.ceil(N_q / B_r)):
        last = min((i + 1) * B_r, N_q) - 1
        for j in np.arange(np.ceil(N_k / B_c)):
            if j * B_c > last + N_k - N_q:
                out.add((i, j))
    return out


# skipped_tiles, value: + 0.9999
def my_skipped_tiles(N_q, N_k, B_r, B_c):
    out = set()
    for i in range(int(N_q / B_r + 0.9999)):
        last = min((i + 1) * B_r, N_q) - 1
        for j in range(int(N_k / B_c + 0.9999)):
            if j * B_c > last + N_k - N_q:
                out.add((i, j))
    return out


# last_tile, finite_mask: hidden -1e9
def my_last_tile(Q_i, K_j, V_j, n, m, l, O_acc, scale):
    S = np.where(np.arange(len(K_j)) < n, Q_i @ K_j.T * scale, -1e9)
    m_old, m = m, np.maximum(m, S.max(axis=1))
    a, P = np.exp(m_old - m), np.exp(S - m[:, None])
    return m, a * l + P.sum(axis=1), a[:, None] * O_acc + P @ V_j


# last_tile, finite_mask: hidden -1e7
def my_last_tile(Q_i, K_j, V_j, n, m, l, O_acc, scale):
    S = np.where(np.arange(len(K_j)) < n, Q_i @ K_j.T * scale, -1e7)
    m_old, m = m, np.maximum(m, S.max(axis=1))
    a, P = np.exp(m_old - m), np.exp(S - m[:, None])
    return m, a * l + P.sum(axis=1), a[:, None] * O_acc + P @ V_j


# last_tile, part_taken: S and V_j sliced
def my_last_tile(Q_i, K_j, V_j, n, m, l, O_acc, scale):
    S = (Q_i @ K_j.T * scale)[:, :n]
    m_old, m = m, np.maximum(m, S.max(axis=1))
    a, P = np.exp(m_old - m), np.exp(S - m[:, None])
    return m, a * l + P.sum(axis=1), a[:, None] * O_acc + P @ V_j[:][:n]


# last_tile, part_taken: loads the whole and slices
def my_last_tile(Q_i, K_j, V_j, n, m, l, O_acc, scale):
    K, V = K_j[:], V_j[:]
    S = Q_i @ K[:n].T * scale
    m_old, m = m, np.maximum(m, S.max(axis=1))
    a, P = np.exp(m_old - m), np.exp(S - m[:, None])
    return m, a * l + P.sum(axis=1), a[:, None] * O_acc + P @ V[:n]


# last_tile, O_0_is_nothing: only tile told by O_acc = 0
def my_last_tile(Q_i, K_j, V_j, n, m, l, O_acc, scale):
    S = np.where(np.arange(len(K_j)) < n, Q_i @ K_j.T * scale, -np.inf)
    if not O_acc.any():
        m, l = np.full(len(m), -np.inf), np.zeros(len(l))
    new = np.maximum(m, S.max(axis=1))
    a, P = np.exp(m - new), np.exp(S - new[:, None])
    return new, a * l + P.sum(axis=1), a[:, None] * O_acc + P @ V_j


# last_tile, part_taken: only V_j sliced, P set to 0
def my_last_tile(Q_i, K_j, V_j, n, m, l, O_acc, scale):
    V = V_j[:]
    S = np.where(np.arange(len(K_j)) < n, Q_i @ K_j.T * scale, -np.inf)
    new = np.maximum(m, S.max(axis=1))
    a, P = np.exp(m - new), np.exp(S - new[:, None])
    return new, a * l + P.sum(axis=1), a[:, None] * O_acc + P[:, :n] @ V[:n]


# finish, empty_by_O: empty told by O = 0
def my_finish(m, l, O_acc):
    seen = (O_acc != 0).any(axis=1)
    d = np.where(seen, l, 1)
    return O_acc / d[:, None], np.where(seen, m + np.log(d), -np.inf)


# finish, empty_by_O: zero columns as empty
def my_finish(m, l, O_acc):
    O = np.divide(O_acc, l[:, None], out=np.zeros_like(O_acc), where=O_acc != 0)
    lse = np.where((O == 0).all(axis=1), -np.inf, m + np.log(np.where(l == 0, 1, l)))
    return O, lse


# finish, empty_by_O: sum of O
def my_finish(m, l, O_acc):
    d = np.where(l == 0, 1, l)
    empty = O_acc.sum(axis=1) == 0
    return O_acc / d[:, None], np.where(empty, -np.inf, m + np.log(d))


# finish, low_is_nothing: low m as empty
def my_finish(m, l, O_acc):
    d = np.where(l == 0, 1, l)
    return O_acc / d[:, None], np.where(m <= -1e9, -np.inf, m + np.log(d))


# finish, low_is_nothing: one shift for low m
def my_finish(m, l, O_acc):
    seen = m > -1e4
    d = np.where(seen, l, 1)
    return np.where(seen[:, None], O_acc / d[:, None], 0), np.where(seen, m + np.log(d), -np.inf)
