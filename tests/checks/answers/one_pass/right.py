"""Right answers in other styles: see `tests.checks.answers`."""


# alpha: a loop over rows
def my_alpha(m_old, m):
    return np.array([0.0 if old == -np.inf else float(np.exp(old - new)) for old, new in zip(m_old, m)])


# one_row: key by key, from lists
def my_one_row(q, K, V, B_c, scale):
    m, l, O = float("-inf"), 0.0, np.zeros(len(q))
    for start in range(0, len(K), B_c):
        for k, v in zip(K[start : start + B_c].tolist(), V[start : start + B_c]):
            s = scale * sum(a * b for a, b in zip(k, q))
            new = max(m, s)
            l = l * np.exp(m - new) + np.exp(s - new)
            O = O * np.exp(m - new) + np.exp(s - new) * v
            m = new
    return O / l


# normalised: item by item
def my_normalised(x, V):
    m, l, o, found = float("-inf"), 0.0, np.zeros(V.shape[1]), []
    for j in range(len(x)):
        s, v = x.item(j), V.take(j, axis=0)
        new = s if s > m else m
        if new > float("-inf"):
            keep, p = l * np.exp(m - new), np.exp(s - new)
            o, l, m = (keep * o + p * v) / (keep + p), keep + p, new
        found.append(o)
    return np.reshape(found, V.shape)


# normalised: O_acc and l, divided for each row
def my_normalised(x, V):
    m, l, O_acc = -np.inf, 0.0, 0.0
    outputs = np.empty_like(V)
    scores, values = iter(x), iter(V)
    for n, s in enumerate(scores):
        new = np.maximum(m, s)
        shift = 0.0 if np.isneginf(new) else new
        l = l * np.exp(m - shift) + np.exp(s - shift)
        O_acc = O_acc * np.exp(m - shift) + np.exp(s - shift) * next(values)
        outputs[n] = O_acc / l if l else 0
        m = new
    return outputs


# normalised: a moving average, of slices of one key
def my_normalised(x, V):
    lse, o, outputs = -np.inf, np.zeros((1, V.shape[1])), []
    for j in range(x.size):
        s, v = x[j : j + 1], V[j : j + 1]
        if s[0] != -np.inf:
            lse = np.logaddexp(lse, s[0])
            o = o + np.exp(s[0] - lse) * (v - o)
        outputs.append(o)
    return np.concatenate(outputs) if outputs else np.zeros(V.shape)


# block_step: the state of the block, merged
def my_block_step(Q_i, K_j, V_j, m, l, O_acc, scale):
    S = np.einsum("rd,cd->rc", Q_i * scale, K_j)
    m_j = np.amax(S, -1)
    P = np.exp(S - m_j.reshape(-1, 1))
    new = np.where(m > m_j, m, m_j)
    a, b = np.exp(m - new), np.exp(m_j - new)
    return [new, a * l + b * P.sum(-1), np.diag(a) @ O_acc + np.diag(b) @ P @ V_j]


# block_step: row by row, key by key
def my_block_step(Q_i, K_j, V_j, m, l, O_acc, scale):
    rows = []
    for q, m_r, l_r, o in zip(Q_i, m, l, O_acc):
        for k, v in zip(K_j, V_j):
            s = float(np.dot(q, k)) * scale
            if s > m_r:
                factor = np.exp(m_r - s)
                m_r, l_r, o = s, l_r * factor + 1, o * factor + v
            else:
                p = np.exp(s - m_r)
                l_r, o = l_r + p, o + p * v
        rows.append((m_r, l_r, o))
    return tuple(map(np.array, zip(*rows)))


# block_step: the scores before as one key more
def my_block_step(Q_i, K_j, V_j, m, l, O_acc, scale):
    S = np.concatenate([m[:, None], Q_i @ K_j.T * scale], axis=1)
    new = S.max(axis=1)
    W = np.exp(S - new[:, None])
    return new, W[:, 0] * l + W[:, 1:].sum(axis=1), W[:, :1] * O_acc + W[:, 1:] @ V_j


# one_row: columns of K.T, lse and O
def my_one_row(q, K, V, B_c, scale):
    lse, O = -np.inf, np.zeros(V.shape[1])
    for n in range(-(-len(K) // B_c)):
        s = q @ K.T[:, n * B_c : (n + 1) * B_c] * scale
        block = s.max() + np.log(np.exp(s - s.max()).sum())
        new = np.logaddexp(lse, block)
        O = O * np.exp(lse - new) + np.exp(s - new) @ V[n * B_c : (n + 1) * B_c]
        lse = new
    return O


# one_row: rows one by one, by their numbers
def my_one_row(q, K, V, B_c, scale):
    m, l, acc = None, 0.0, 0.0
    for j in range(len(K)):
        s = float(q @ K[j]) * scale
        if m is None or s > m:
            factor = 0.0 if m is None else np.exp(m - s)
            m, l, acc = s, l * factor, acc * factor
        p = np.exp(s - m)
        l, acc = l + p, acc + p * V[j]
    return acc / l


# one_row: the next block loaded ahead
def my_one_row(q, K, V, B_c, scale):
    cols = list(tiled.blocks(len(K), B_c))
    ahead = K[cols[0]]
    m, l, O_acc = -np.inf, 0.0, np.zeros(len(q))
    for n, c in enumerate(cols):
        k = ahead
        if n + 1 < len(cols):
            ahead = K[cols[n + 1]]
        x = np.dot(k, q * scale)
        new = np.max([m, *x])
        p = np.exp(x - new)
        l, O_acc, m = l * np.exp(m - new) + np.sum(p), O_acc * np.exp(m - new) + np.einsum("c,cd->d", p, V[c]), new
    return O_acc / l


# alpha: where, after the difference
def my_alpha(m_old, m):
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(m_old), 0.0, np.exp(m_old - m))


# alpha: exp only where something was seen
def my_alpha(m_old, m):
    factor = np.zeros_like(m)
    seen = m_old > -np.inf
    factor[seen] = np.exp(m_old[seen] - m[seen])
    return factor
