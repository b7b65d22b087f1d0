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
