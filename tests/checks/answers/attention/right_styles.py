"""Right answers in further styles: see `tests.checks.answers`."""


# causal_attention: -1e9, and rows that see none set to 0
def my_causal_attention(Q, K, V):
    seen = np.tri(len(Q), len(K), k=len(K) - len(Q), dtype=bool)
    S = np.where(seen, Q @ K.T / np.sqrt(Q.shape[1]).astype(Q.dtype), Q.dtype.type(-1e9))
    P = np.exp(S - S.max(axis=1, keepdims=True))
    P[~seen.any(axis=1)] = 0
    l = P.sum(axis=1, keepdims=True)
    return P @ V / np.where(l == 0, 1, l)


# causal_attention: row by row
def my_causal_attention(Q, K, V):
    O = np.zeros((len(Q), V.shape[1]), Q.dtype)
    past = len(K) - len(Q)
    for r, q in enumerate(Q):
        n = max(0, min(len(K), r + past + 1))
        if n:
            x = K[:n] @ q / q.dtype.type(np.sqrt(len(q)))
            p = np.exp(x - x.max())
            O[r] = p @ V[:n] / p.sum()
    return O


# causal_attention: einsum, float64 inside
def my_causal_attention(Q, K, V):
    S = np.einsum("rd,cd->rc", Q.astype(float), K.astype(float)) * Q.shape[1] ** -0.5
    r, c = np.indices(S.shape)
    S[c > r + len(K) - len(Q)] = -np.inf
    m = S.max(axis=1, keepdims=True)
    P = np.exp(S - np.nan_to_num(m, neginf=0))
    l = P.sum(axis=1, keepdims=True)
    return (np.divide(P, l, out=np.zeros_like(P), where=l > 0) @ V).astype(Q.dtype)


# causal_attention: a result of zeros, in fp64
def my_causal_attention(Q, K, V):
    O = np.zeros((len(Q), Q.shape[1]))
    for r in range(len(Q)):
        n = max(r + 1 + len(K) - len(Q), 0)
        if n:
            x = K[:n] @ Q[r] / Q.shape[1] ** 0.5
            p = np.exp(x - x.max())
            O[r] = p @ V[:n] / p.sum()
    return O


# causal_attention: a scale of NumPy, which makes all fp64
def my_causal_attention(Q, K, V):
    seen = np.tri(len(Q), len(K), k=len(K) - len(Q), dtype=bool)
    S = np.where(seen, Q @ K.T * (1 / np.sqrt(Q.shape[1])), -np.inf)
    m = S.max(axis=1, keepdims=True)
    P = np.exp(S - np.where(m == -np.inf, 0, m))
    l = P.sum(axis=1, keepdims=True)
    return P @ V / np.where(l == 0, 1, l)


# longest: by halves
def my_longest(capacity, H, itemsize):
    lo, hi = 0, 2**20
    while lo < hi:
        mid = (lo + hi + 1) // 2
        if 2 * H * mid * mid * itemsize <= capacity: lo = mid
        else: hi = mid - 1
    return lo


# window: a product of masks
def my_window(N_q, N_k, w):
    d = np.arange(N_k) - np.arange(N_q)[:, None] - (N_k - N_q)
    return (d <= 0) * (d > -w)


# causal_attention: a mask that is added, and lse
def my_causal_attention(Q, K, V):
    N_q, d = Q.shape
    mask = np.triu(np.full((N_q, len(K)), -np.inf), k=len(K) - N_q + 1)
    S = (Q @ K.T) * d ** -0.5 + mask
    lse = np.logaddexp.reduce(S, axis=-1, keepdims=True)
    P = np.exp(S - np.where(np.isneginf(lse), 0, lse))
    return (P @ V).astype(Q.dtype)


# causal_attention: the result in fp32, always
def my_causal_attention(Q, K, V):
    S = np.where(np.tri(len(Q), len(K), k=len(K) - len(Q), dtype=bool), Q @ K.T / Q.shape[1] ** 0.5, -np.inf)
    m = S.max(axis=1, keepdims=True)
    P = np.exp(S - np.where(m == -np.inf, 0, m))
    l = P.sum(axis=1, keepdims=True)
    return (P @ V / np.where(l == 0, 1, l)).astype(np.float32)


# causal_attention: the result in fp16, always
def my_causal_attention(Q, K, V):
    S = np.where(np.tri(len(Q), len(K), k=len(K) - len(Q), dtype=bool), Q @ K.T / Q.shape[1] ** 0.5, -np.inf)
    m = S.max(axis=1, keepdims=True)
    P = np.exp(S - np.where(m == -np.inf, 0, m))
    l = P.sum(axis=1, keepdims=True)
    return (P @ V / np.where(l == 0, 1, l)).astype(np.float16)


# causal_attention: the lowest number that there is, for -inf
def my_causal_attention(Q, K, V):
    S = Q @ K.T / Q.shape[1] ** 0.5
    S = np.where(np.tri(len(Q), len(K), k=len(K) - len(Q), dtype=bool), S, np.finfo(Q.dtype).min)
    P = np.exp(S - S.max(axis=-1, keepdims=True))
    return P / P.sum(axis=-1, keepdims=True) @ V


# causal_attention: rows over keys, the first row has one
def my_causal_attention(Q, K, V):
    past, O = max(0, len(K) - len(Q)), np.empty_like(Q)
    for r, q in enumerate(Q):
        x = K[: past + r + 1] @ q / len(q) ** 0.5
        p = np.exp(x - x.max())
        O[r] = p @ V[: past + r + 1] / p.sum()
    return O
