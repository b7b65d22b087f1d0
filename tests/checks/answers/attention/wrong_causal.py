"""Wrong answers: see `tests.checks.answers`."""


# causal_attention, top_left: row by row, top left
def my_causal_attention(Q, K, V):
    O = np.zeros_like(Q)
    for r in range(len(Q)):
        x = K[: r + 1] @ Q[r] / Q.shape[1] ** 0.5
        p = np.exp(x - x.max())
        O[r] = p @ V[: r + 1] / p.sum()
    return O


# causal_attention, no_maximum: row by row, no maximum
def my_causal_attention(Q, K, V):
    O = np.zeros_like(Q)
    for r in range(len(Q)):
        n = max(0, r + 1 + len(K) - len(Q))
        p = np.exp(K[:n] @ Q[r] * Q.shape[1] ** -0.5)
        if n:
            O[r] = (p[:, None] * V[:n]).sum(axis=0) / p.sum()
    return O


# causal_attention, top_left: triu, as for a square S
def my_causal_attention(Q, K, V):
    S = np.einsum("rd,cd->rc", Q, K) / Q.shape[1] ** 0.5
    S[np.triu(np.ones_like(S, dtype=bool), 1)] = -np.inf
    P = np.exp(S - S.max(axis=1)[:, None])
    return P @ V / P.sum(axis=1)[:, None]


# causal_attention, maximum_of_hidden: the maximum before the mask
def my_causal_attention(Q, K, V):
    S = Q @ K.T / Q.shape[1] ** 0.5
    m = S.max(axis=1, keepdims=True)
    S = np.where(np.tri(*S.shape, k=len(K) - len(Q), dtype=bool), S, -np.inf)
    P = np.exp(S - m)
    l = P.sum(axis=1, keepdims=True)
    return P @ V / np.where(l > 0, l, 1)


# causal_attention, maximum_of_hidden: the maximum before the mask, and no guard
def my_causal_attention(Q, K, V):
    S = Q @ K.T * Q.shape[1] ** -0.5
    P = np.exp(S - S.max(-1, keepdims=True))
    P[~np.tri(len(Q), len(K), len(K) - len(Q), dtype=bool)] = 0
    return P @ V / P.sum(-1, keepdims=True)


# causal_attention, inexact: 1e-9 added to l
def my_causal_attention(Q, K, V):
    seen = np.tri(len(Q), len(K), k=len(K) - len(Q), dtype=bool)
    S = np.where(seen, Q @ K.T / Q.shape[1] ** 0.5, -np.inf)
    m = S.max(axis=1, keepdims=True)
    P = np.exp(S - np.where(m == -np.inf, 0, m))
    return P @ V / (P.sum(axis=1, keepdims=True) + 1e-9)


# causal_attention, inexact: in fp32 whatever came
def my_causal_attention(Q, K, V):
    q, k, v = (X.astype(np.float32) for X in (Q, K, V))
    S = np.where(np.tri(len(q), len(k), k=len(k) - len(q), dtype=bool), q @ k.T / q.shape[1] ** 0.5, -np.inf)
    m = S.max(axis=1, keepdims=True)
    P = np.exp(S - np.where(m == -np.inf, 0, m))
    l = P.sum(axis=1, keepdims=True)
    return (P @ v / np.where(l == 0, 1, l)).astype(Q.dtype)


# causal_attention, hidden_weigh: -100 for -inf
def my_causal_attention(Q, K, V):
    S = Q @ K.T / Q.shape[1] ** 0.5
    S = np.where(np.tri(len(Q), len(K), k=len(K) - len(Q)) == 1, S, -100)
    P = np.exp(S - S.max(axis=-1, keepdims=True))
    return P / P.sum(axis=-1, keepdims=True) @ V


# causal_attention, scale_constant: sqrt(64)
def my_causal_attention(Q, K, V):
    S = Q @ K.T / 8
    S = np.where(np.tri(len(Q), len(K), k=len(K) - len(Q), dtype=bool), S, -np.inf)
    m = S.max(axis=1, keepdims=True)
    P = np.exp(S - np.where(m == -np.inf, 0, m))
    l = P.sum(axis=1, keepdims=True)
    return P @ V / np.where(l == 0, 1, l)


# causal_attention, hidden_0: tril of the scores
def my_causal_attention(Q, K, V):
    S = np.tril(Q @ K.T / Q.shape[1] ** 0.5, len(K) - len(Q))
    P = np.exp(S - S.max(axis=1, keepdims=True))
    return P @ V / P.sum(axis=1, keepdims=True)


# causal_attention, score_0_hidden: tril, then what is 0
def my_causal_attention(Q, K, V):
    S = np.tril(Q @ K.T / Q.shape[1] ** 0.5, k=len(K) - len(Q))
    S[S == 0] = -np.inf
    m = S.max(axis=1, keepdims=True)
    P = np.exp(S - np.where(m == -np.inf, 0, m))
    l = P.sum(axis=1, keepdims=True)
    return P @ V / np.where(l == 0, 1, l)
