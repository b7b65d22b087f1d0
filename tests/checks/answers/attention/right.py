"""Right answers in other styles: see `tests.checks.answers`."""


# longest: counted up
def my_longest(capacity, H, itemsize):
    N = 0
    while 2 * H * itemsize * (N + 1) * (N + 1) <= capacity:
        N += 1
    return N


# longest: a float, rounded down
def my_longest(capacity, H, itemsize):
    return int(np.floor(np.sqrt(capacity / itemsize / H / 2)))


# longest: exact
def my_longest(capacity, H, itemsize):
    import math
    from fractions import Fraction

    return Fraction(math.isqrt(math.floor(Fraction(capacity, 2 * H * itemsize))))


# longest: kept, and a number of NumPy
@__import__("functools").cache
def my_longest(capacity, H, itemsize):
    return np.int64((capacity // itemsize // (2 * H)) ** 0.5)


# longest: halving
def my_longest(capacity, H, itemsize):
    low, high = 0, capacity + 1
    while high - low > 1:
        N = (low + high) // 2
        low, high = (N, high) if 2 * N * N * H * itemsize <= capacity else (low, N)
    return low


# window: lists
@__import__("functools").cache
def my_window(N_q, N_k, w):
    return np.array([[0 <= r + N_k - N_q - c < w for c in range(N_k)] for r in range(N_q)])


# window: two triangles
def my_window(N_q, N_k, w):
    k = N_k - N_q
    return np.tri(N_q, N_k, k, dtype=bool) & ~np.tri(N_q, N_k, k - w, dtype=bool)


# window: from the last row up
def my_window(N_q, N_k, w):
    mask = np.zeros((N_q, N_k), dtype=np.bool_)
    for back in range(min(N_q, N_k)):
        end = N_k - back
        mask[N_q - 1 - back, max(end - w, 0) : end] = True
    return mask


# window: triu and tril of ones, by product
def my_window(N_q, N_k, w):
    ones = np.ones((N_q, N_k), int)
    return np.triu(np.tril(ones, N_k - N_q), N_k - N_q - w + 1).astype(bool)


# window: indices, set one by one
def my_window(N_q, N_k, w):
    mask = np.full((N_q, N_k), False)
    for r, c in np.ndindex(N_q, N_k):
        mask[r, c] = c - N_k in range(r - N_q - w + 1, r - N_q + 1)
    return mask


# causal_attention: row by row, in lists
def my_causal_attention(Q, K, V):
    import math

    rows = []
    for r, q in enumerate(Q.tolist()):
        x = [sum(map(float.__mul__, q, k)) / math.sqrt(len(q)) for k in K.tolist()[: max(r + 1 + len(K) - len(Q), 0)]]
        p = [math.exp(s - max(x)) for s in x]
        rows.append([sum(a * b for a, b in zip(p, column)) / sum(p) if p else 0.0 for column in V.T.tolist()])
    return np.array(rows, dtype=Q.dtype)


# causal_attention: boolean index and einsum
def my_causal_attention(Q, K, V):
    S = np.einsum("rd,cd->rc", Q, K) * Q.shape[1] ** -0.5
    S[np.triu(np.ones(S.shape, bool), len(K) - len(Q) + 1)] = -np.inf
    m = S.max(-1)
    m[np.isneginf(m)] = 0
    P = np.exp(S - m[:, None])
    l = P.sum(-1)
    l[l == 0] = 1
    return np.einsum("rc,cd->rd", P, V) / l[:, None]


# causal_attention: nan made 0
def my_causal_attention(Q, K, V):
    S = (Q / Q.shape[1] ** 0.5) @ K.T
    S = np.where(np.arange(len(K)) <= np.arange(len(Q))[:, None] + len(K) - len(Q), S, -np.inf)
    P = np.exp(S - S.max(axis=1, keepdims=True))
    return np.nan_to_num(P @ V / P.sum(axis=1, keepdims=True))


# causal_attention: where of max and of sum
def my_causal_attention(Q, K, V):
    seen = ~np.triu(np.ones((len(Q), len(K)), dtype=bool), k=1 + len(K) - len(Q))
    S = np.matmul(Q, np.transpose(K)) / np.sqrt(Q.shape[1]).astype(Q.dtype)
    m = np.max(S, axis=1, keepdims=True, where=seen, initial=np.finfo(Q.dtype).min)
    P = np.exp(np.minimum(S - m, 0)) * seen
    return P @ V / np.maximum(P.sum(axis=1, keepdims=True), np.finfo(Q.dtype).tiny)


# causal_attention: only the rows that see a key
def my_causal_attention(Q, K, V):
    O, first = np.zeros_like(Q), max(len(Q) - len(K), 0)
    q = Q[first:]
    S = q @ K.T / Q.shape[1] ** 0.5
    S[~np.tri(len(q), len(K), len(K) - len(q), dtype=bool)] = -np.inf
    P = np.exp(S - S.max(axis=1, keepdims=True))
    O[first:] = P / P.sum(axis=1, keepdims=True) @ V
    return O


# causal_attention: key by key, with the online update
def my_causal_attention(Q, K, V):
    m, l, O = np.full(len(Q), -np.inf), np.zeros(len(Q)), np.zeros(Q.shape)
    for c, (k, v) in enumerate(zip(K, V)):
        rows = slice(max(c + len(Q) - len(K), 0), None)
        s = Q[rows] @ k / Q.shape[1] ** 0.5
        new = np.maximum(m[rows], s)
        alpha, p = np.exp(m[rows] - new), np.exp(s - new)
        m[rows], l[rows] = new, alpha * l[rows] + p
        O[rows] = alpha[:, None] * O[rows] + p[:, None] * v
    return (O / np.where(l == 0, 1, l)[:, None]).astype(Q.dtype)


# causal_attention: in fp64, and back
def my_causal_attention(Q, K, V):
    S = Q.astype(float) @ K.T.astype(float) / np.sqrt(Q.shape[1])
    S += np.where(np.tri(len(Q), len(K), len(K) - len(Q)), 0, -np.inf)
    total = np.logaddexp.reduce(S, axis=1, keepdims=True)
    return (np.exp(S - np.where(np.isinf(total), 0, total)) @ V).astype(Q.dtype)
