"""Wrong answers that only particular cases catch: see `tests.checks.answers`."""


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
