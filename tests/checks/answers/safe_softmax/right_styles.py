"""Right answers to the exercises of chapter 02 in further styles: see `tests.checks.answers`."""


# safe_softmax: a low number for -inf, below a million
def my_safe_softmax(S):
    X = np.where(S == -np.inf, S.dtype.type(-1e9), S)
    m = X.max(axis=1, keepdims=True, initial=-1e9)
    P = np.where(S == -np.inf, 0, np.exp(X - m)).astype(S.dtype)
    l = P.sum(axis=1, keepdims=True)
    return P / np.where(l == 0, 1, l)


# logsumexp: a maximum of at least -1e6
def my_logsumexp(S):
    m = S.max(axis=1, initial=-1e6)
    with np.errstate(divide="ignore"):
        return m + np.log(np.exp(S - m[:, None]).sum(axis=1))


# log_softmax: -1e7 where masked
def my_log_softmax(x):
    y = np.where(x == -np.inf, -1e7, x)
    m = y.max()
    return np.where(x == -np.inf, -np.inf, y - m - np.log(np.exp(y - m).sum()))
