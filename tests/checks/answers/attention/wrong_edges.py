"""Wrong answers that only particular cases catch: see `tests.checks.answers`."""


# longest, value: float root
def my_longest(capacity, H, itemsize):
    return int((capacity / (2 * H * itemsize)) ** 0.5 + 1e-6)


# window, numbers: int mask of the positions
def my_window(N_q, N_k, w):
    p = np.arange(N_q)[:, None] + N_k - N_q
    c = np.arange(N_k)
    return ((c <= p) * (c > p - w)).astype(int)


# window, past_not_negative: at least one key
def my_window(N_q, N_k, w):
    p = np.maximum(np.arange(N_q)[:, None] + N_k - N_q, 0)
    c = np.arange(N_k)
    return (c <= p) & (c > p - w)


# causal_attention, inexact: scores in fp16
def my_causal_attention(Q, K, V):
    seen = np.tri(len(Q), len(K), k=len(K) - len(Q), dtype=bool)
    S = (Q @ K.T / np.sqrt(Q.shape[1])).astype(np.float16).astype(Q.dtype)
    S = np.where(seen, S, -np.inf)
    m = S.max(axis=1, keepdims=True)
    P = np.exp(S - np.where(m == -np.inf, 0, m))
    l = P.sum(axis=1, keepdims=True)
    return (P @ V / np.where(l == 0, 1, l)).astype(Q.dtype)


# causal_attention, inexact: weights in fp16
def my_causal_attention(Q, K, V):
    seen = np.tri(len(Q), len(K), k=len(K) - len(Q), dtype=bool)
    S = np.where(seen, Q @ K.T / np.sqrt(Q.shape[1]), -np.inf)
    m = S.max(axis=1, keepdims=True)
    P = np.exp(S - np.where(m == -np.inf, 0, m))
    l = P.sum(axis=1, keepdims=True)
    P = (P / np.where(l == 0, 1, l)).astype(np.float16)
    return (P.astype(Q.dtype) @ V).astype(Q.dtype)


# causal_attention, inexact: V in fp16 for fp32 inputs
def my_causal_attention(Q, K, V):
    half = np.float16 if Q.dtype == np.float32 else Q.dtype
    seen = np.tri(len(Q), len(K), k=len(K) - len(Q), dtype=bool)
    S = np.where(seen, Q @ K.T / np.sqrt(Q.shape[1]), -np.inf)
    m = S.max(axis=1, keepdims=True)
    P = np.exp(S - np.where(m == -np.inf, 0, m))
    l = P.sum(axis=1, keepdims=True)
    return (P @ V.astype(half).astype(Q.dtype) / np.where(l == 0, 1, l)).astype(Q.dtype)


# causal_attention, inexact: fp32 inputs rounded to fp16
def my_causal_attention(Q, K, V):
    if Q.dtype == np.float32:
        Q, K = (X.astype(np.float16).astype(np.float32) for X in (Q, K))
    seen = np.tri(len(Q), len(K), k=len(K) - len(Q), dtype=bool)
    S = np.where(seen, Q @ K.T / np.sqrt(Q.shape[1]), -np.inf)
    m = S.max(axis=1, keepdims=True)
    P = np.exp(S - np.where(m == -np.inf, 0, m))
    l = P.sum(axis=1, keepdims=True)
    return (P @ V / np.where(l == 0, 1, l)).astype(Q.dtype)
