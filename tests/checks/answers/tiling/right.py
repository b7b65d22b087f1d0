"""Right answers in other styles: see `tests.checks.answers`."""


# fa2: key by key, plain numbers
def my_fa2(Q, K, V, O, B_r, B_c, causal, scale):
    import math

    N_q, N_k, d = len(Q), len(K), Q.shape[1]
    for i in range(math.ceil(N_q / B_r)):
        q = Q[i * B_r : (i + 1) * B_r].tolist()
        m, l, acc = [-math.inf] * len(q), [0.0] * len(q), [[0.0] * d for _ in q]
        for j in range(math.ceil(N_k / B_c)):
            last_seen = min((i + 1) * B_r, N_q) - 1 + N_k - N_q
            if causal and j * B_c > last_seen:
                continue
            keys, values = list(K[j * B_c : (j + 1) * B_c]), list(V[j * B_c : (j + 1) * B_c])
            for r in range(len(q)):
                for c in range(len(keys)):
                    if causal and j * B_c + c > i * B_r + r + N_k - N_q:
                        break
                    s = scale * sum(a * b for a, b in zip(q[r], keys[c]))
                    new = max(m[r], s)
                    alpha, p = math.exp(m[r] - new), math.exp(s - new)
                    l[r] = l[r] * alpha + p
                    acc[r] = [x * alpha + p * v for x, v in zip(acc[r], values[c])]
                    m[r] = new
            yield Step(i, j, np.array(m), np.array(l), np.array(acc))
        for r in range(len(q)):
            O[i * B_r + r] = [x / l[r] if l[r] else 0.0 for x in acc[r]]


# fa2: the state of all rows in three arrays, updated in place
def my_fa2(Q, K, V, O, B_r, B_c, causal, scale):
    m, l = np.full((len(Q), 1), -np.inf), np.zeros((len(Q), 1))
    O[:] = 0
    past = K.shape[0] - Q.shape[0]
    i = 0
    while i * B_r < len(Q):
        rows = slice(i * B_r, min((i + 1) * B_r, len(Q)))
        q = Q[rows] * scale
        j = 0
        while j * B_c < len(K):
            cols = slice(j * B_c, min((j + 1) * B_c, len(K)))
            if causal and is_hidden(rows, cols, past):
                break
            S = np.einsum("rd,cd->rc", q, K[cols])
            if causal:
                S[~is_visible(rows, cols, past)] = -np.inf
            new = np.fmax(m[rows], S.max(1, keepdims=True))
            shift = np.nan_to_num(new, neginf=0.0)
            alpha = np.exp(m[rows] - shift)
            P = np.exp(S - shift)
            l[rows] *= alpha
            l[rows] += P.sum(1, keepdims=True)
            O[rows] *= alpha
            O[rows] += np.einsum("rc,cd->rd", P, V[cols])
            m[rows] = new
            yield Step(i, j, m[rows, 0], l[rows, 0], O[rows])
            j += 1
        O[rows] /= np.maximum(l[rows], 1e-30)
        i += 1


# fa2: each tile alone, then merged; rows of K one by one
def my_fa2(Q, K, V, O, B_r, B_c, causal, scale):
    def of_tile(q, k, v, visible):
        S = q @ k.T * scale
        m = S.max(axis=1, where=visible, initial=-np.inf)
        P = np.exp(S - m[:, None], where=visible, out=np.zeros_like(S))
        return m, P.sum(axis=1), P @ v

    def merge(a, b):
        m = np.maximum(a[0], b[0])
        x, y = (np.where(s[0] == -np.inf, 0, np.exp(s[0] - np.where(m == -np.inf, 0, m))) for s in (a, b))
        return m, x * a[1] + y * b[1], x[:, None] * a[2] + y[:, None] * b[2]

    r, c = np.arange(len(Q))[:, None], np.arange(len(K))[None, :]
    for i, rows in enumerate(blocks(len(Q), B_r)):
        q = Q[rows]
        state = np.full(len(q), -np.inf), np.zeros(len(q)), np.zeros(q.shape)
        for j, cols in enumerate(blocks(len(K), B_c)):
            visible = (c[:, cols] - len(K) <= r[rows] - len(Q)) if causal else np.ones((len(q), cols.stop - cols.start), bool)
            if not visible.any():
                break
            k, v = (np.array([X[n] for n in range(cols.start, cols.stop)]) for X in (K, V))
            state = merge(state, of_tile(q, k, v, visible))
            yield Step(i, j, *state)
        with np.errstate(divide="ignore", invalid="ignore"):
            O[rows] = np.nan_to_num(state[2] / state[1][:, None])


# fa2: the next block loaded ahead, shapes asked of slices
def my_fa2(Q, K, V, O, B_r, B_c, causal, scale):
    past = len(K) - len(Q)
    cols_of = list(blocks(len(K), B_c))
    for i, rows in enumerate(blocks(len(Q), B_r)):
        m, l, O_acc = np.full(len(Q[rows]), -np.inf), np.zeros(len(Q[rows])), np.zeros(Q[rows].shape)
        Q_i = Q[rows]
        tiles = [j for j, cols in enumerate(cols_of) if not (causal and is_hidden(rows, cols, past))]
        ahead = (K[cols_of[0]], V[cols_of[0]]) if tiles else None
        for j in tiles:
            K_j, V_j = ahead
            if j + 1 in tiles:
                ahead = K[cols_of[j + 1]], V[cols_of[j + 1]]
            S = scale * np.dot(Q_i, K_j.T)
            if causal:
                S = S + np.where(is_visible(rows, cols_of[j], past), 0.0, -np.inf)
            m_old, m = m, np.maximum(m, np.max(S, axis=-1))
            safe = np.where(np.isfinite(m), m, 0)
            l = np.exp(m_old - safe) * l + np.exp(S - safe[:, None]).sum(-1)
            O_acc = np.exp(m_old - safe)[:, None] * O_acc + np.exp(S - safe[:, None]) @ V_j
            yield Step(i=i, j=j, m=m, l=l, O_acc=O_acc, rows=rows, cols=cols_of[j], S_ij=S)
        O[rows] = 0
        O[rows][l > 0] = O_acc[l > 0] / l[l > 0, None]


# fa2: K transposed and loaded by columns, only keys that some row sees
def my_fa2(Q, K, V, O, B_r, B_c, causal, scale):
    N_q, N_k = Q.shape[0], K.shape[0]
    KT = K.T
    for i in range((N_q + B_r - 1) // B_r):
        first, end = i * B_r, min(N_q, i * B_r + B_r)
        q = Q[first:end]
        m, l, acc = np.full(end - first, -np.inf), np.zeros(end - first), np.zeros((end - first, Q.shape[1]))
        visible = min(N_k, end + N_k - N_q) if causal else N_k
        for j, start in enumerate(range(0, max(visible, 0), B_c)):
            stop = min(start + B_c, visible)
            S = q @ KT[:, start:stop] * scale
            if causal:
                S = np.where(np.arange(start, stop) > np.arange(first, end)[:, None] + N_k - N_q, -np.inf, S)
            new = np.maximum(m, S.max(axis=1))
            for n in range(len(new)):
                if new[n] > -np.inf:
                    w = np.exp(S[n] - new[n])
                    alpha = np.exp(m[n] - new[n])
                    l[n], acc[n] = alpha * l[n] + w.sum(), alpha * acc[n] + w @ V[start:stop]
            m = new
            yield Step(i, j, m, l, acc)
        O[first:end] = np.divide(acc, l[:, None], out=np.zeros_like(acc), where=l[:, None] > 0)
