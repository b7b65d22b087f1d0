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
