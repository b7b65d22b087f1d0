"""Wrong answers: see `tests.checks.answers`."""


# fa2, O_not_rescaled: own slices, O_acc not rescaled
def my_fa2(Q, K, V, O, B_r, B_c, causal, scale):
    N_q, N_k = len(Q), len(K)
    for i in range(-(-N_q // B_r)):
        stop = min((i + 1) * B_r, N_q)
        q = Q[i * B_r : stop] * scale
        m, l, acc = np.full(len(q), -np.inf), np.zeros(len(q)), np.zeros((len(q), Q.shape[1]))
        for j in range(-(-N_k // B_c)):
            keys = np.arange(j * B_c, min((j + 1) * B_c, N_k))
            past = np.arange(i * B_r, stop) + N_k - N_q
            if causal and keys[0] > past[-1]:
                break
            S = np.einsum("rd,cd->rc", q, K[keys])
            if causal:
                S[keys[None, :] > past[:, None]] = -np.inf
            for r in range(len(q)):
                largest = max(m[r], S[r].max())
                if largest == -np.inf:
                    continue
                p = np.exp(S[r] - largest)
                l[r] = l[r] * np.exp(m[r] - largest) + p.sum()
                acc[r] += p @ V[keys]
                m[r] = largest
            yield Step(i, j, m, l, acc)
        O[i * B_r : stop] = acc / np.maximum(l, 1e-30)[:, None]


# fa2, loops_exchanged: the loops the other way round
def my_fa2(Q, K, V, O, B_r, B_c, causal, scale):
    past = len(K) - len(Q)
    m, l, O_acc = np.full(len(Q), -np.inf), np.zeros(len(Q)), np.zeros(Q.shape)
    for j, cols in enumerate(blocks(len(K), B_c)):
        for i, rows in enumerate(blocks(len(Q), B_r)):
            if causal and is_hidden(rows, cols, past):
                continue
            S = Q[rows] @ K[cols].T * scale
            if causal:
                S = np.where(is_visible(rows, cols, past), S, -np.inf)
            new = np.maximum(m[rows], S.max(axis=1))
            shift = np.where(new == -np.inf, 0, new)[:, None]
            alpha, P = np.exp(m[rows, None] - shift), np.exp(S - shift)
            O_acc[rows] = alpha * O_acc[rows] + P @ V[cols]
            l[rows] = alpha[:, 0] * l[rows] + P.sum(axis=1)
            m[rows] = new
            yield Step(i, j, m[rows], l[rows], O_acc[rows])
    O[:] = O_acc / np.where(l == 0, 1, l)[:, None]


# fa1, O_unnormalised: O divided at the end
def my_fa1(Q, K, V, O, B_r, B_c, causal, scale):
    past = len(K) - len(Q)
    O[:] = 0
    M, L = np.full(len(Q), -np.inf), np.zeros(len(Q))
    for j, cols in enumerate(blocks(len(K), B_c)):
        K_j, V_j = K[cols], V[cols]
        for i, rows in enumerate(blocks(len(Q), B_r)):
            if causal and is_hidden(rows, cols, past):
                continue
            S = Q[rows] @ K_j.T * scale
            if causal:
                S[~is_visible(rows, cols, past)] = -np.inf
            m = np.maximum(M[rows], S.max(axis=1))
            safe = np.where(np.isinf(m), 0, m)
            alpha = np.exp(M[rows] - safe)
            P = np.exp(S - safe[:, None])
            L[rows] = alpha * L[rows] + P.sum(axis=1)
            O[rows] = alpha[:, None] * O[rows] + P @ V_j
            M[rows] = m
            yield Step(i, j, m, L[rows], O[rows])
    O /= np.where(L == 0, 1, L)[:, None]


# fa1, loops_exchanged: the loops the other way round
def my_fa1(Q, K, V, O, B_r, B_c, causal, scale):
    past = len(K) - len(Q)
    O[:] = 0
    for i, rows in enumerate(blocks(len(Q), B_r)):
        m_i, l_i = np.full(rows.stop - rows.start, -np.inf), np.zeros(rows.stop - rows.start)
        for j, cols in enumerate(blocks(len(K), B_c)):
            if causal and is_hidden(rows, cols, past):
                break
            S = Q[rows] @ K[cols].T * scale
            if causal:
                S = np.where(is_visible(rows, cols, past), S, -np.inf)
            m = np.maximum(m_i, S.max(axis=1))
            shift = np.where(m == -np.inf, 0, m)
            P = np.exp(S - shift[:, None])
            O_acc = (np.exp(m_i - shift) * l_i)[:, None] * O[rows] + P @ V[cols]
            l_i = np.exp(m_i - shift) * l_i + P.sum(axis=1)
            m_i = m
            O[rows] = O_acc / np.where(l_i == 0, 1, l_i)[:, None]
            yield Step(i, j, m_i, l_i, O_acc)


# fa1, O_not_unnormalised: one O for all
def my_fa1(Q, K, V, O, B_r, B_c, causal, scale):
    N_q, N_k = Q.shape[0], K.shape[0]
    O[...] = 0.0
    state = {i: (np.full(rows.stop - rows.start, -np.inf), 0.0) for i, rows in enumerate(blocks(N_q, B_r))}
    for j, cols in enumerate(blocks(N_k, B_c)):
        k, v = K[cols], V[cols]
        for i, rows in enumerate(blocks(N_q, B_r)):
            if causal and is_hidden(rows, cols, N_k - N_q):
                continue
            m_i, l_i = state[i]
            scores = scale * (Q[rows] @ k.T)
            if causal:
                scores[~is_visible(rows, cols, N_k - N_q)] = -np.inf
            m = np.maximum(m_i, scores.max(-1))
            shift = np.where(m > -np.inf, m, 0.0)
            p, alpha = np.exp(scores - shift[:, None]), np.exp(m_i - shift)
            l = alpha * l_i + p.sum(-1)
            acc = alpha[:, None] * O[rows] + p @ v
            O[rows] = acc / np.where(l > 0, l, 1)[:, None]
            state[i] = m, l
            yield Step(i, j, m, l, acc)


# fa2, all_held: all blocks of K and V in lists
def my_fa2(Q, K, V, O, B_r, B_c, causal, scale):
    past, cols_of = len(K) - len(Q), list(blocks(len(K), B_c))
    Ks, Vs = [K[cols] for cols in cols_of], [V[cols] for cols in cols_of]
    for i, rows in enumerate(blocks(len(Q), B_r)):
        Q_i = Q[rows]
        m, l, O_acc = np.full(len(Q_i), -np.inf), np.zeros(len(Q_i)), np.zeros(Q_i.shape)
        for j, cols in enumerate(cols_of):
            if causal and is_hidden(rows, cols, past):
                break
            S = Q_i @ Ks[j].T * scale
            if causal:
                S = np.where(is_visible(rows, cols, past), S, -np.inf)
            m_old, m = m, np.maximum(m, S.max(axis=1))
            shift = np.where(m == -np.inf, 0, m)
            alpha, P = np.exp(m_old - shift), np.exp(S - shift[:, None])
            l, O_acc = alpha * l + P.sum(axis=1), alpha[:, None] * O_acc + P @ Vs[j]
            yield Step(i, j, m, l, O_acc)
        O[rows] = O_acc / np.where(l == 0, 1, l)[:, None]


# fa2, all_held: a dictionary of blocks, filled as they come
def my_fa2(Q, K, V, O, B_r, B_c, causal, scale):
    past, kept = len(K) - len(Q), {}
    for i, rows in enumerate(blocks(len(Q), B_r)):
        Q_i = Q[rows]
        m, l, O_acc = np.full(len(Q_i), -np.inf), np.zeros(len(Q_i)), np.zeros(Q_i.shape)
        for j, cols in enumerate(blocks(len(K), B_c)):
            if causal and is_hidden(rows, cols, past):
                break
            if j not in kept:
                kept[j] = K[cols].copy(), V[cols].copy()
            K_j, V_j = kept[j]
            S = Q_i @ K_j.T * scale
            if causal:
                S = np.where(is_visible(rows, cols, past), S, -np.inf)
            m_old, m = m, np.maximum(m, S.max(axis=1))
            shift = np.where(m == -np.inf, 0, m)
            alpha, P = np.exp(m_old - shift), np.exp(S - shift[:, None])
            l, O_acc = alpha * l + P.sum(axis=1), alpha[:, None] * O_acc + P @ V_j
            yield Step(i, j, m, l, O_acc)
        O[rows] = O_acc / np.where(l == 0, 1, l)[:, None]


# fa2, all_held: K copied block by block into an array
def my_fa2(Q, K, V, O, B_r, B_c, causal, scale):
    past = len(K) - len(Q)
    whole = np.empty(K.shape)
    for cols in blocks(len(K), B_c):
        whole[cols] = K[cols]
    for i, rows in enumerate(blocks(len(Q), B_r)):
        Q_i = Q[rows]
        m, l, O_acc = np.full(len(Q_i), -np.inf), np.zeros(len(Q_i)), np.zeros(Q_i.shape)
        for j, cols in enumerate(blocks(len(K), B_c)):
            if causal and is_hidden(rows, cols, past):
                break
            S = Q_i @ whole[cols].T * scale
            if causal:
                S = np.where(is_visible(rows, cols, past), S, -np.inf)
            m_old, m = m, np.maximum(m, S.max(axis=1))
            shift = np.where(m == -np.inf, 0, m)
            alpha, P = np.exp(m_old - shift), np.exp(S - shift[:, None])
            l, O_acc = alpha * l + P.sum(axis=1), alpha[:, None] * O_acc + P @ V[cols]
            yield Step(i, j, m, l, O_acc)
        O[rows] = O_acc / np.where(l == 0, 1, l)[:, None]


# fa2, ties_dropped: ties dropped, row by row
def my_fa2(Q, K, V, O, B_r, B_c, causal, scale):
    past = len(K) - len(Q)
    for i, rows in enumerate(blocks(len(Q), B_r)):
        Q_i = Q[rows]
        m, l, acc = np.full(len(Q_i), -np.inf), np.zeros(len(Q_i)), np.zeros(Q_i.shape)
        for j, cols in enumerate(blocks(len(K), B_c)):
            if causal and is_hidden(rows, cols, past):
                break
            S, V_j = Q_i @ K[cols].T * scale, V[cols]
            if causal:
                S = np.where(is_visible(rows, cols, past), S, -np.inf)
            for r, x in np.ndenumerate(S):
                n, c = r
                if x > m[n]:
                    alpha = np.exp(m[n] - x)
                    l[n], acc[n], m[n] = alpha * l[n] + 1, alpha * acc[n] + V_j[c], x
                elif x < m[n]:
                    p = np.exp(x - m[n])
                    l[n], acc[n] = l[n] + p, acc[n] + p * V_j[c]
            yield Step(i, j, m, l, acc)
        O[rows] = acc / np.where(l == 0, 1, l)[:, None]


# fa2, edges_dropped: floor block counts
def my_fa2(Q, K, V, O, B_r, B_c, causal, scale):
    N_q, N_k = len(Q), len(K)
    O[:] = 0
    for i in range(N_q // B_r):
        rows = slice(i * B_r, (i + 1) * B_r)
        Q_i = Q[rows]
        m, l, O_acc = np.full(B_r, -np.inf), np.zeros(B_r), np.zeros(Q_i.shape)
        for j in range(N_k // B_c):
            cols = slice(j * B_c, (j + 1) * B_c)
            if causal and is_hidden(rows, cols, N_k - N_q):
                break
            S = Q_i @ K[cols].T * scale
            if causal:
                S = np.where(is_visible(rows, cols, N_k - N_q), S, -np.inf)
            m_old, m = m, np.maximum(m, S.max(axis=1))
            shift = np.where(m == -np.inf, 0, m)
            alpha, P = np.exp(m_old - shift), np.exp(S - shift[:, None])
            l, O_acc = alpha * l + P.sum(axis=1), alpha[:, None] * O_acc + P @ V[cols]
            yield Step(i, j, m, l, O_acc)
        O[rows] = O_acc / np.where(l == 0, 1, l)[:, None]


# fa1, O_not_stored: O kept aside, written at the end
def my_fa1(Q, K, V, O, B_r, B_c, causal, scale):
    past = len(K) - len(Q)
    m_hbm, l_hbm, acc = np.full(len(Q), -np.inf), np.zeros(len(Q)), np.zeros(Q.shape)
    for j, cols in enumerate(blocks(len(K), B_c)):
        K_j, V_j = K[cols], V[cols]
        for i, rows in enumerate(blocks(len(Q), B_r)):
            if causal and is_hidden(rows, cols, past):
                continue
            S = Q[rows] @ K_j.T * scale
            if causal:
                S = np.where(is_visible(rows, cols, past), S, -np.inf)
            m = np.maximum(m_hbm[rows], S.max(axis=1))
            shift = np.where(m == -np.inf, 0, m)
            alpha, P = np.exp(m_hbm[rows] - shift), np.exp(S - shift[:, None])
            l_hbm[rows] = alpha * l_hbm[rows] + P.sum(axis=1)
            acc[rows] = alpha[:, None] * acc[rows] + P @ V_j
            m_hbm[rows] = m
            yield Step(i, j, m, l_hbm[rows], acc[rows])
    O[:] = acc / np.where(l_hbm == 0, 1, l_hbm)[:, None]


# fa1, all_held: all blocks of Q in a list
def my_fa1(Q, K, V, O, B_r, B_c, causal, scale):
    past = len(K) - len(Q)
    rows_of = list(blocks(len(Q), B_r))
    queries = [Q[rows] * scale for rows in rows_of]
    O[:] = 0
    m_hbm, l_hbm = np.full(len(Q), -np.inf), np.zeros(len(Q))
    for j, cols in enumerate(blocks(len(K), B_c)):
        K_j, V_j = K[cols], V[cols]
        for i, rows in enumerate(rows_of):
            if causal and is_hidden(rows, cols, past):
                continue
            S = queries[i] @ K_j.T
            if causal:
                S = np.where(is_visible(rows, cols, past), S, -np.inf)
            m = np.maximum(m_hbm[rows], S.max(axis=1))
            shift = np.where(m == -np.inf, 0, m)
            alpha, P = np.exp(m_hbm[rows] - shift), np.exp(S - shift[:, None])
            O_acc = (alpha * l_hbm[rows])[:, None] * O[rows] + P @ V_j
            m_hbm[rows], l_hbm[rows] = m, alpha * l_hbm[rows] + P.sum(axis=1)
            O[rows] = O_acc / np.where(l_hbm[rows] == 0, 1, l_hbm[rows])[:, None]
            yield Step(i, j, m, l_hbm[rows], O_acc)
