"""Wrong answers that only particular cases catch: see `tests.checks.answers`."""


# safe_softmax, m_from_finite: -1e4 hidden
def my_safe_softmax(S):
    X = np.where(S == -np.inf, S.dtype.type(-1e4), S)
    m = X.max(axis=1, keepdims=True, initial=-1e4)
    P = np.exp(X - m) * (S > -np.inf)
    l = P.sum(axis=1, keepdims=True)
    return P / np.where(l == 0, 1, l)


# safe_softmax, inexact: fp32 rounded to fp16
def my_safe_softmax(S):
    m = S.max(axis=1, keepdims=True, initial=-np.inf)
    P = np.exp((S - np.where(m == -np.inf, 0, m)).astype(np.float16 if S.dtype == np.float32 else S.dtype))
    l = P.sum(axis=1, keepdims=True)
    return (P / np.where(l == 0, 1, l)).astype(S.dtype)


# logsumexp, inexact: sum in fp16 for fp32
def my_logsumexp(S):
    m = S.max(axis=1, initial=-np.inf)
    E = np.exp(S - np.where(m == -np.inf, 0, m)[:, None])
    l = E.astype(np.float16).astype(S.dtype).sum(axis=1) if S.dtype == np.float32 else E.sum(axis=1)
    return m + np.log(np.where(l == 0, 1, l))


# log_softmax, value: eps
def my_log_softmax(x):
    y = x - x.max()
    return y - np.log(np.exp(y).sum() + 1e-12)


# causal_row_passes, m_from_finite: a maximum of at least -1e5
def my_causal_row_passes(x, n, p):
    m, l = -1e5, 0.0
    for j in range(n):
        m = max(m, x[j])
    for j in range(n):
        l += np.exp(x[j] - m)
    for j in range(len(x)):
        p[j] = np.exp(x[j] - m) / l if j < n else 0.0
