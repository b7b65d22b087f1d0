"""Right answers in other styles: see `tests.checks.answers`."""


# logsumexp: np.logaddexp
def my_logsumexp(S):
    return np.logaddexp.reduce(S, axis=1, initial=-np.inf)


# logsumexp: a list of numbers, row by row, only what is seen
import math


def my_logsumexp(S):
    found = []
    for row in S:
        seen = row[np.isfinite(row)]
        if seen.size == 0:
            found.append(-math.inf)
            continue
        m = float(seen.max())
        found.append(m + math.log(np.exp(seen - m).sum()))
    return np.array(found)


# logsumexp: online, key by key, for all rows at once
def my_logsumexp(S):
    m, l = np.full(len(S), -np.inf), np.zeros(len(S))
    for x in S.T:
        m_old, m = m, np.fmax(m, x)
        shift = np.where(np.isneginf(m), 0, m)
        l = l * np.exp(m_old - shift) + np.exp(x - shift)
    with np.errstate(divide="ignore"):
        return m + np.where(l > 0, np.log(l), 0)


# logsumexp: the log of 0 lets the guard be
def my_logsumexp(S):
    if S.shape[1] == 0:
        return np.full(S.shape[0], -np.inf, S.dtype)
    m = np.amax(S, axis=-1)
    m[~np.isfinite(m)] = 0
    return np.log(np.sum(np.exp(S - m[:, np.newaxis]), axis=-1)) + m


# log_softmax: shifted twice
def my_log_softmax(x):
    z = x - np.max(x)
    return z - np.log(np.sum(np.exp(z)))


# log_softmax: np.logaddexp
def my_log_softmax(x):
    return x - np.logaddexp.reduce(x)


# log_softmax: a list, the terms without the largest one in log1p
import math


def my_log_softmax(x):
    j_max = int(np.argmax(x))
    others = math.fsum(math.exp(x_j - x[j_max]) for j, x_j in enumerate(x) if j != j_max)
    lse = x[j_max] + math.log1p(others)
    return [x_j - lse for x_j in x]


# log_softmax: only what is seen
def my_log_softmax(x):
    out = np.full(x.shape, -np.inf)
    seen = np.isfinite(x)
    out[seen] = x[seen] - logsumexp(x[seen])
    return out


# causal_row_passes: slices, a slice for each pass
def my_causal_row_passes(x, n, p):
    if n == 0:
        p[:] = 0
        return
    m = x[:n].max()
    l = np.exp(x[:n] - m).sum()
    p[:n] = np.exp(x[:n] - m) / l
    p[n:] = 0


# causal_row_passes: item, while, and the hidden ones one by one
def my_causal_row_passes(x, n, p):
    m, l, j = float("-inf"), 0.0, 0
    while j < n:
        m = max(m, x.item(j))
        j += 1
    for j in range(n):
        l += float(np.exp(x.item(j) - m))
    for j in range(n):
        p[j] = np.exp(x.item(j) - m) / l
    for j in range(n, p.shape[0]):
        p[j] = 0


# causal_row_passes: iterators, fill, and out=
from itertools import islice


def my_causal_row_passes(x, n, p):
    p[n:].fill(0.0)
    if n:
        m = max(islice(x, n))
        l = sum(np.exp(x_j - m) for x_j in islice(x, n))
        np.divide(np.exp(x[:n] - m), l, out=p[:n])


# causal_row_passes: blocks of 4
def my_causal_row_passes(x, n, p):
    starts = range(0, n, 4)
    m = max((x[a : min(a + 4, n)].max() for a in starts), default=0.0)
    l = sum(np.exp(x[a : min(a + 4, n)] - m).sum() for a in starts)
    for a in starts:
        b = min(a + 4, n)
        p[a:b] = np.exp(x[a:b] - m) / l
    p[n:] = np.zeros(len(x) - n)


# causal_row_passes: a view of p, zip with the range first
def my_causal_row_passes(x, n, p):
    m = -np.inf
    for _, x_j in zip(range(n), x):
        m = np.maximum(m, x_j)
    l = np.sum([np.exp(x.take(j) - m) for j in range(n)])
    seen, hidden = p[:n], p[n:]
    for j, x_j in zip(range(n), x):
        seen[j] = np.exp(x_j - m) * (1 / l)
    hidden[...] = 0


# logsumexp: pair by pair, with reduce
from functools import reduce


def my_logsumexp(S):
    return reduce(np.logaddexp, S.T, np.full(len(S), -np.inf, S.dtype))


# causal_row_passes: a boolean index, terms one by one
def my_causal_row_passes(x, n, p):
    hidden = np.arange(len(x)) >= n
    p[hidden] = 0.0
    m = max(map(x.__getitem__, range(n)), default=0.0)
    l = sum(np.exp(x[j] - m) for j in range(n))
    if n:
        p[~hidden] = [np.exp(x[j] - m) / l for j in range(n)]
