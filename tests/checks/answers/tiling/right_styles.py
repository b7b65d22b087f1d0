"""Right answers in further styles: see `tests.checks.answers`."""


# skipped_tiles: a comprehension with math.ceil
def my_skipped_tiles(N_q, N_k, B_r, B_c):
    from math import ceil

    return {
        (i, j)
        for i in range(ceil(N_q / B_r))
        for j in range(ceil(N_k / B_c))
        if j * B_c > min(i * B_r + B_r, N_q) - 1 + N_k - N_q
    }


# skipped_tiles: NumPy numbers
def my_skipped_tiles(N_q, N_k, B_r, B_c):
    i, j = np.arange(-(-N_q // B_r))[:, None], np.arange(-(-N_k // B_c))
    last = np.minimum((i + 1) * B_r, N_q) - 1 + N_k - N_q
    return list(zip(*np.nonzero(j * B_c > last)))


# last_tile: weights set to 0 in place, the maximum of real keys
def my_last_tile(Q_i, K_j, V_j, n, m, l, O_acc, scale):
    S = scale * (Q_i @ K_j.T)
    new = np.maximum(m, S[:, :n].max(axis=1))
    P = np.exp(S - new[:, None], where=np.arange(len(K_j)) < n, out=np.zeros_like(S))
    a = np.exp(m - new)
    return new, a * l + P.sum(axis=1), a[:, None] * O_acc + P @ V_j


# last_tile: scores overwritten from n on
def my_last_tile(Q_i, K_j, V_j, n, m, l, O_acc, scale):
    k, v = K_j[:], V_j[:]
    S = np.dot(Q_i, k.T) * scale
    S[:, n:] = -np.inf
    new = np.maximum(m, S.max(axis=1))
    a, P = np.exp(m - new), np.exp(S - new[:, None])
    return new, a * l + P.sum(axis=1), a[:, None] * O_acc + P.dot(v)


# last_tile: einsum, copies
def my_last_tile(Q_i, K_j, V_j, n, m, l, O_acc, scale):
    k, v = K_j.copy(), np.asarray(V_j)
    S = np.einsum("re,ce->rc", Q_i, k) * scale
    S = np.where(np.arange(S.shape[1]) >= n, -np.inf, S)
    new = np.maximum(m, S.max(axis=1))
    a, P = np.exp(m - new), np.exp(S - new[:, None])
    return new, a * l + P.sum(axis=1), a[:, None] * O_acc + np.einsum("rc,ce->re", P, v)


# finish: l is at least 1 where a key was seen
def my_finish(m, l, O_acc):
    d = np.maximum(l, 1)
    return O_acc / d[:, None], m + np.log(d)


# finish: np.divide with where
def my_finish(m, l, O_acc):
    O = np.divide(O_acc, l[:, None], out=np.zeros_like(O_acc), where=l[:, None] > 0)
    with np.errstate(divide="ignore"):
        lse: np.ndarray = np.log(l) + m
    return O, lse


# finish: row by row, printed
def my_finish(m, l, O_acc):
    rows = [(O / b, a + np.log(b)) if (b > 0) else (np.zeros_like(O), -np.inf) for a, b, O in zip(m, l, O_acc)]
    print(f"{len(rows)=}")
    return np.array([r[0] for r in rows]).reshape(O_acc.shape), np.array([r[1] for r in rows])


# finish: a reciprocal
def my_finish(m, l, O_acc):
    with np.errstate(divide="ignore", invalid="ignore"):
        r = np.where(l > 0, 1 / l, 0)
        return O_acc * r[:, None], m + np.log(l)


# last_tile: masked from the end
def my_last_tile(Q_i, K_j, V_j, n, m, l, O_acc, scale):
    S = Q_i @ K_j.T * scale
    if n < len(K_j): S[:, -(len(K_j) - n):] = -np.inf
    new = np.maximum(m, S.max(axis=1))
    a, P = np.exp(m - new), np.exp(S - new[:, None])
    return new, a * l + P.sum(axis=1), a[:, None] * O_acc + P @ V_j


# skipped_tiles: a list of lists
def my_skipped_tiles(N_q, N_k, B_r, B_c):
    past = N_k - N_q
    return [[i, j] for i in range(-(-N_q // B_r)) for j in range(-(-N_k // B_c)) if j * B_c > min((i + 1) * B_r, N_q) - 1 + past]


# skipped_tiles: from the first hidden tile on
def my_skipped_tiles(N_q, N_k, B_r, B_c):
    out = set()
    for i in range(-(-N_q // B_r)):
        seen = max(0, min((i + 1) * B_r, N_q) + N_k - N_q)
        for j in range(-(-seen // B_c), -(-N_k // B_c)):
            out.add((i, j))
    return out


# fa2: base 2
def my_fa2(Q, K, V, O, B_r, B_c, causal, scale):
    log2e, past = 1 / np.log(2), len(K) - len(Q)
    O[:] = 0
    for i, rows in enumerate(blocks(len(Q), B_r)):
        Q_i = Q[rows] * scale
        m, l, O_acc = np.full(len(Q_i), -np.inf), np.zeros(len(Q_i)), 0 * Q_i
        for j, cols in enumerate(blocks(len(K), B_c)):
            if causal and is_hidden(rows, cols, past):
                continue
            S = Q_i @ K[cols].T
            if causal:
                S[~is_visible(rows, cols, past)] = -np.inf
            m_old, m = m, np.column_stack([m, S]).max(axis=1)
            shift = np.maximum(m, -1e300)
            alpha, P = np.exp2((m_old - shift) * log2e), np.exp2((S.T - shift).T * log2e)
            l, O_acc = alpha * l + P.sum(axis=1), (alpha * O_acc.T).T + P @ V[cols]
            yield Step(i, j, m, l, O_acc)
        O[rows] = np.divide(O_acc, l[:, None], where=l[:, None] > 0, out=np.zeros_like(O_acc))
