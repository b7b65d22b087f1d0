"""Wrong answers: see `tests.checks.answers`."""


# skipped_tiles, top_left: a mask, aligned top left
def my_skipped_tiles(N_q, N_k, B_r, B_c):
    seen = np.tri(N_q, N_k)
    found = []
    for i, rows in enumerate(blocks(N_q, B_r)):
        for j, cols in enumerate(blocks(N_k, B_c)):
            if not seen[rows, cols].any():
                found.append((i, j))
    return found


# last_tile, padding_in_m: weights 0 after exp
def my_last_tile(Q_i, K_j, V_j, n, m, l, O_acc, scale):
    S = Q_i @ K_j.T * scale
    new = np.maximum(m, S.max(axis=1))
    P = np.exp(S - new[:, None])
    P[:, n:] = 0
    alpha = np.exp(m - new)
    return new, alpha * l + P.sum(axis=1), alpha[:, None] * O_acc + P @ V_j


# last_tile, padding_in_l: V_j set to 0
def my_last_tile(Q_i, K_j, V_j, n, m, l, O_acc, scale):
    V = V_j.copy()
    V[n:] = 0
    S = scale * (Q_i @ K_j.T)
    new = np.maximum(m, S.max(axis=1))
    P, alpha = np.exp(S - new[:, None]), np.exp(m - new)
    return new, alpha * l + P.sum(axis=1), alpha[:, None] * O_acc + P @ V


# finish, lse_zero: row by row
def my_finish(m, l, O_acc):
    O, lse = np.zeros(O_acc.shape), np.zeros(len(m))
    for r in range(len(m)):
        if l[r] > 0:
            O[r], lse[r] = O_acc[r] / l[r], m[r] + np.log(l[r])
    return O, lse


# skipped_tiles, single_scores: a mask of all scores
def my_skipped_tiles(N_q, N_k, B_r, B_c):
    seen = np.tri(N_q, N_k, N_k - N_q, dtype=bool)
    rows, cols = enumerate(blocks(N_q, B_r)), list(enumerate(blocks(N_k, B_c)))
    return {(i, j) for i, r in rows for j, c in cols if not seen[r, c].any()}


# skipped_tiles, no_set: an array of pairs
def my_skipped_tiles(N_q, N_k, B_r, B_c):
    hidden = [[is_hidden(r, c, N_k - N_q) for c in blocks(N_k, B_c)] for r in blocks(N_q, B_r)]
    return np.argwhere(np.array(hidden))


# last_tile, mask_on_rows: S[n:]
def my_last_tile(Q_i, K_j, V_j, n, m, l, O_acc, scale):
    S = Q_i @ K_j.T * scale
    S[n:] = -np.inf
    new = np.maximum(m, S.max(axis=1))
    P, alpha = np.exp(S - new[:, None]), np.exp(m - new)
    return new, alpha * l + P.sum(axis=1), alpha[:, None] * O_acc + P @ V_j


# last_tile, part_loaded: the real keys one by one
def my_last_tile(Q_i, K_j, V_j, n, m, l, O_acc, scale):
    for c in range(n):
        s = Q_i @ K_j[c] * scale
        m_old, m = m, np.maximum(m, s)
        alpha, p = np.exp(m_old - m), np.exp(s - m)
        l, O_acc = alpha * l + p, alpha[:, None] * O_acc + p[:, None] * V_j[c]
    return m, l, O_acc


# last_tile, l_not_rescaled and padding_counted: l not rescaled, padding counted
def my_last_tile(Q_i, K_j, V_j, n, m, l, O_acc, scale):
    S = Q_i @ K_j.T * scale
    new = np.maximum(m, S.max(axis=1))
    P, alpha = np.exp(S - new[:, None]), np.exp(m - new)
    return new, l + P.sum(axis=1), alpha[:, None] * O_acc + P @ V_j


# finish, added_to_l: 1e-9, also in lse
def my_finish(m, l, O_acc):
    safe = l + 1e-9
    return O_acc / safe.reshape(-1, 1), m + np.log(safe)


# finish, no_guard: nan only in O
def my_finish(m, l, O_acc):
    with np.errstate(all="ignore"):
        return O_acc / l[:, None], m + np.log(l)
