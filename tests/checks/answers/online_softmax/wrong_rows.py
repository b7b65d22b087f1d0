"""Wrong answers: see `tests.checks.answers`."""


# logsumexp, finite: a small number in the logarithm
def my_logsumexp(S):
    result = []
    for row in S:
        m = max((s for s in row if s > -np.inf), default=0.0)
        result.append(m + np.log(np.sum(np.exp(row - m)) + 1e-12))
    return np.array(result)


# log_softmax, small_number: cut off
def my_log_softmax(x):
    weights = np.exp(x - np.max(x))
    weights /= np.sum(weights)
    return np.log(np.clip(weights, 1e-30, None))


# logsumexp, ties: the largest one set apart, and its equals with it
def my_logsumexp(S):
    out = np.full(len(S), -np.inf, S.dtype)
    for r, row in enumerate(S):
        if len(row) and row.max() > -np.inf:
            m = row.max()
            out[r] = m + np.log1p(np.exp(row[row != m] - m).sum())
    return out


# logsumexp, guard_of_all: nothing for a matrix that is wholly masked
def my_logsumexp(S):
    if (S == -np.inf).all():
        return np.full(len(S), -np.inf)
    m = S.max(axis=1)
    return m + np.log(np.exp(S - m[:, None]).sum(axis=1))


# logsumexp, one_score: the first score
def my_logsumexp(S):
    m = S[:, 0]
    return m + np.log(np.exp(S - m[:, None]).sum(axis=1))


# logsumexp, mean: the median
def my_logsumexp(S):
    m = np.median(S, axis=1)
    return m + np.log(np.exp(S - m[:, None]).sum(axis=1))


# logsumexp, finite: m from -1e4, in a loop
def my_logsumexp(S):
    out = []
    for row in S:
        m = -1e7
        for x in row:
            m = max(m, x)
        out.append(m + np.log(max(np.exp(row - m).sum(), 1.0)))
    return np.array(out)


# logsumexp, slightly_off: fp32 always
def my_logsumexp(S):
    out = np.empty(len(S), dtype=np.float32)
    for r in range(len(S)):
        out[r] = np.logaddexp.reduce(S[r])
    return out


# logsumexp, masked_nan: key by key, m - m
def my_logsumexp(S):
    m, l = np.full(len(S), -np.inf), np.zeros(len(S))
    for j in range(S.shape[1]):
        new = np.maximum(m, S[:, j])
        l = l * np.exp(m - new) + np.exp(S[:, j] - new)
        m = new
    return m + np.log(l)


# logsumexp, sum_of_columns: axis=0, no guard
def my_logsumexp(S):
    m = S.max(axis=1)
    return m + np.log(np.exp(S - m[:, None]).sum(axis=0))


# log_softmax, ties: the largest one set apart, and its equals with it
def my_log_softmax(x):
    m = max(x)
    return x - m - np.log1p(sum(np.exp(x_j - m) for x_j in x if x_j != m))


# log_softmax, one_score: the first score
def my_log_softmax(x):
    z = x - x[0]
    return z - np.log(np.exp(z).sum())


# log_softmax, m_from_finite: a running maximum from -1e4
def my_log_softmax(x):
    m, l = -1e4, 0.0
    for x_j in x:
        m = max(m, x_j)
    for x_j in x:
        l += np.exp(x_j - m)
    return x - m - np.log(l)


# log_softmax, masked_is_finite: no -inf in the result
def my_log_softmax(x):
    return np.nan_to_num(x - logsumexp(x), neginf=-1e9)


# log_softmax, slightly_off: fp32
def my_log_softmax(x):
    out = np.zeros(len(x), np.float32)
    out[:] = x - logsumexp(x)
    return out


# log_softmax, number_for_0: -1e9 where the weight is 0
def my_log_softmax(x):
    p = safe(x)
    return np.where(p > 0, np.log(p), -1e9)
