"""Wrong answers: see `tests.checks.answers`."""


# normalised, read_again: each row from all its keys
def my_normalised(x, V):
    outputs = np.zeros(V.shape)
    for j in range(len(x)):
        seen = x[: j + 1]
        if seen.max() > -np.inf:
            p = np.exp(seen - seen.max())
            outputs[j] = p @ V[: j + 1] / p.sum()
    return outputs


# normalised, read_again: one maximum, two passes
def my_normalised(x, V):
    m = max(x, default=0.0)
    l, O_acc, outputs = 0.0, 0.0, []
    for x_j, v_j in zip(x, V, strict=True):
        p = np.exp(x_j - max(m, -1e300))
        l, O_acc = l + p, O_acc + p * v_j
        outputs.append(O_acc / (l or 1.0))
    return np.array(outputs).reshape(V.shape)


# normalised, last_l: one l for all rows
def my_normalised(x, V):
    x, V = x.copy(), V.copy()
    p = np.exp(x - max(x.max(initial=-np.inf), -1e300))
    return np.cumsum(p[:, None] * V, axis=0) / (p.sum() or 1)


# normalised, plain_mean: a mean, kept by counting
def my_normalised(x, V):
    mean, outputs = np.zeros(V.shape[1]), []
    for n, v in enumerate(V, start=1):
        mean = mean + (v - mean) / n
        outputs.append(mean)
    return np.array(outputs).reshape(V.shape)


# block_step, O_not_rescaled: row by row, O_acc not rescaled
def my_block_step(Q_i, K_j, V_j, m, l, O_acc, scale):
    m_new, l_new, O_new = m.copy(), l.copy(), O_acc.copy()
    for r, q in enumerate(Q_i):
        scores = [scale * float(q @ k) for k in K_j]
        m_new[r] = max(m[r], *scores)
        weights = np.exp(np.array(scores) - m_new[r])
        l_new[r] = l[r] * np.exp(m[r] - m_new[r]) + weights.sum()
        for p, v in zip(weights, V_j, strict=True):
            O_new[r] += p * v
    return m_new, l_new, O_new


# block_step, maximum_of_tile: merge of two states, tile shifted by itself
def my_block_step(Q_i, K_j, V_j, m, l, O_acc, scale):
    scores = np.einsum("rd,cd->rc", Q_i, K_j) * scale
    largest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - largest)
    new = np.maximum(m, largest[:, 0])
    keep = np.exp(m - new)
    return new, keep * l + weights.sum(-1), (keep * O_acc.T).T + weights @ V_j


# one_row, read_again: two passes
def my_one_row(q, K, V, B_c, scale):
    m = max((K[cols] @ q).max() * scale for cols in tiled.blocks(len(K), B_c))
    l, O = 0.0, np.zeros(V.shape[1])
    for start in range(0, len(K), B_c):
        p = np.exp(K[start : start + B_c] @ q * scale - m)
        l, O = l + p.sum(), O + p @ V[start : start + B_c]
    return O / l


# one_row, outputs_averaged: mean of the outputs
def my_one_row(q, K, V, B_c, scale):
    outputs = []
    for cols in tiled.blocks(len(K), B_c):
        x = K[cols] @ q * scale
        p = np.exp(x - x.max())
        outputs.append(p / p.sum() @ V[cols])
    return np.mean(outputs, axis=0)


# one_row, last_block: only the last block
def my_one_row(q, K, V, B_c, scale):
    for cols in tiled.blocks(len(K), B_c):
        x = K[cols] @ q * scale
        p = np.exp(x - x.max())
        O = p @ V[cols] / p.sum()
    return O


# one_row, O_not_rescaled: scaled q, O_acc not rescaled
def my_one_row(q, K, V, B_c, scale):
    q = q * scale
    m, l, acc, start = -np.inf, 0.0, np.zeros(V.shape[1]), 0
    while start < len(K):
        k, v = K[start : start + B_c], V[start : start + B_c]
        for s, v_j in zip(k @ q, v, strict=True):
            if s > m:
                l, m = l * np.exp(m - s), s
            l += np.exp(s - m)
            acc = acc + np.exp(s - m) * v_j
        start += B_c
    return acc / l


# alpha, one_if_unseen: nan becomes 1
def my_alpha(m_old, m):
    return np.nan_to_num(np.exp(m_old - m), nan=1.0)


# alpha, one_at_first: 1 before anything is seen
def my_alpha(m_old, m):
    return np.array([1.0 if a == -np.inf else np.exp(a - b) for a, b in zip(m_old, m, strict=True)])


# alpha, raises: an if on arrays
def my_alpha(m_old, m):
    if m == -np.inf:
        return 0.0
    return np.exp(m_old - m)


# normalised, ties_dropped: larger or smaller, but not equal
def my_normalised(x, V):
    m, l, O = -np.inf, 0.0, np.zeros(V.shape[1])
    outputs = np.zeros(V.shape)
    for j, (x_j, v_j) in enumerate(zip(x, V, strict=True)):
        if x_j > m:
            l_old, l = l, l * np.exp(m - x_j) + 1
            O = (l - 1) / l * O + v_j / l
            m = x_j
        elif x_j < m:
            p = np.exp(x_j - m)
            l_old, l = l, l + p
            O = l_old / l * O + p / l * v_j
        outputs[j] = O
    return outputs


# block_step, ties_dropped: key by key, larger or smaller
def my_block_step(Q_i, K_j, V_j, m, l, O_acc, scale):
    m, l, O_acc = m.copy(), l.copy(), O_acc.copy()
    for r in range(len(m)):
        for k, v in zip(K_j, V_j):
            s = Q_i[r] @ k * scale
            if s > m[r]:
                a = np.exp(m[r] - s)
                m[r], l[r], O_acc[r] = s, l[r] * a + 1, O_acc[r] * a + v
            if s < m[r]:
                p = np.exp(s - m[r])
                l[r], O_acc[r] = l[r] + p, O_acc[r] + p * v
    return m, l, O_acc


# block_step, m_and_l_exchanged: l, m, O_acc
def my_block_step(Q_i, K_j, V_j, m, l, O_acc, scale):
    S = Q_i @ K_j.T * scale
    new = np.maximum(m, S.max(axis=1))
    P, a = np.exp(S - new[:, None]), np.exp(m - new)
    return a * l + P.sum(axis=1), new, a[:, None] * O_acc + P @ V_j


# block_step, scale_missing and l_not_rescaled: two slips at once
def my_block_step(Q_i, K_j, V_j, m, l, O_acc, scale):
    S = Q_i @ K_j.T
    new = np.maximum(m, S.max(axis=1))
    P = np.exp(S - new[:, None])
    return new, l + P.sum(axis=1), np.exp(m - new)[:, None] * O_acc + P @ V_j


# one_row, all_kept: all scores, then softmax
def my_one_row(q, K, V, B_c, scale):
    x = np.concatenate([K[cols] @ q * scale for cols in tiled.blocks(len(K), B_c)])
    p = np.exp(x - x.max())
    p = p / p.sum()
    return sum(p[cols] @ V[cols] for cols in tiled.blocks(len(K), B_c))


# one_row, all_kept: K and V put together again
def my_one_row(q, K, V, B_c, scale):
    k = np.vstack([K[cols] for cols in tiled.blocks(len(K), B_c)])
    v = np.vstack([V[cols] for cols in tiled.blocks(len(K), B_c)])
    p = np.exp(k @ q * scale - (k @ q * scale).max())
    return p @ v / p.sum()


# one_row, all_kept: blocks in a list, which are views
def my_one_row(q, K, V, B_c, scale):
    tiles = [(K[cols], V[cols]) for cols in tiled.blocks(len(K), B_c)]
    m, l, O_acc = -np.inf, 0.0, np.zeros(len(q))
    for k, v in tiles:
        x = k @ q * scale
        m_old, m = m, max(m, x.max())
        alpha, p = np.exp(m_old - m), np.exp(x - m)
        l, O_acc = alpha * l + p.sum(), alpha * O_acc + p @ v
    return O_acc / l


# one_row, ties_dropped: larger or smaller, but not equal
def my_one_row(q, K, V, B_c, scale):
    m, l, O_acc = -np.inf, 0.0, np.zeros(len(q))
    for cols in tiled.blocks(len(K), B_c):
        for s, v in zip(K[cols] @ q * scale, V[cols], strict=True):
            if s > m:
                l, O_acc, m = l * np.exp(m - s) + 1, O_acc * np.exp(m - s) + v, s
            elif s < m:
                l, O_acc = l + np.exp(s - m), O_acc + np.exp(s - m) * v
    return O_acc / l
