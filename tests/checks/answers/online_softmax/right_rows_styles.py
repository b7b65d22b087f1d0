"""Right answers in further styles: see `tests.checks.answers`."""


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


# logsumexp: a list of numbers
def my_logsumexp(S):
    return [float(np.logaddexp.reduce(x, initial=-np.inf)) for x in S]


# log_softmax: a list of differences
def my_log_softmax(x):
    lse = np.logaddexp.reduce(x)
    return [x_j - lse for x_j in x]


# log_softmax: log1p of the sum less 1
def my_log_softmax(x):
    m = x.max()
    e = np.exp(x - m)
    return x - m - np.log1p(e.sum() - 1)


# causal_row_passes: slices
def my_causal_row_passes(x, n, p):
    p[n:] = 0
    if n:
        m = x[:n].max()
        l = np.exp(x[:n] - m).sum()
        p[:n] = np.exp(x[:n] - m) / l
