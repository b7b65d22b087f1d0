"""Right answers in further styles: see `tests.checks.answers`."""


# safe_softmax: a low number for -inf, below a million
def my_safe_softmax(S):
    X = np.where(S == -np.inf, S.dtype.type(-1e9), S)
    m = X.max(axis=1, keepdims=True, initial=-1e9)
    P = np.where(S == -np.inf, 0, np.exp(X - m)).astype(S.dtype)
    l = P.sum(axis=1, keepdims=True)
    return P / np.where(l == 0, 1, l)


# safe_softmax: nan made 0 at the end
def my_safe_softmax(S):
    with np.errstate(invalid="ignore"):
        P = np.exp(S - S.max(axis=-1, keepdims=True, initial=-np.inf))
        return np.nan_to_num(P / P.sum(axis=-1, keepdims=True))


# safe_softmax: from the log-sum-exp
def my_safe_softmax(S):
    lse = np.logaddexp.reduce(S, axis=1, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(S), 0, np.exp(S - lse[:, None])).astype(S.dtype)
