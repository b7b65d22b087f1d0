"""Right answers in other styles: see `tests.checks.answers`."""


# softmax_rows: row by row, what is visible, with the function of the chapter
def my_softmax_rows(S, visible):
    P = np.zeros_like(S)
    for r in range(len(S)):
        P[r, visible[r]] = safe(S[r, visible[r]])
    return P


# softmax_rows: where= in the maximum, the terms masked
def my_softmax_rows(S, visible):
    m = S.max(axis=1, keepdims=True, initial=-np.inf, where=visible)
    P = np.where(visible, np.exp(S - np.where(m == -np.inf, 0, m)), 0)
    l = P.sum(axis=1, keepdims=True)
    return P / np.where(l == 0, 1, l)


# softmax_rows: -inf added, nan made 0 at the end
def my_softmax_rows(S, visible):
    S = S + np.where(visible, 0, -np.inf)
    P = np.exp(S - S.max(axis=-1, keepdims=True, initial=-np.inf))
    return np.nan_to_num(P / P.sum(axis=-1, keepdims=True))


# safe_softmax: only the rows that are seen, by a boolean index
def my_safe_softmax(S):
    P = np.zeros_like(S)
    seen = (S > -np.inf).any(axis=1)
    if seen.any():
        x = S[seen]
        x = np.exp(x - x.max(axis=1, keepdims=True))
        P[seen] = x / x.sum(axis=1, keepdims=True)
    return P


# safe_softmax: columns by rows, the guards by errstate and nan_to_num
def my_safe_softmax(S):
    if not S.size:
        return S.copy()
    with np.errstate(all="ignore"):
        P = np.exp(S.T - S.max(axis=1))
        return np.nan_to_num(P / P.sum(axis=0)).T


# safe_softmax: a loop over rows, in fp64, brought back to the dtype
import math


def my_safe_softmax(S):
    rows = []
    for row in S.astype(float).tolist():
        m = max(row, default=0.0)
        terms = [math.exp(x - m) if x > -math.inf else 0.0 for x in row]
        rows.append([t / (sum(terms) or 1.0) for t in terms])
    return np.array(rows, dtype=S.dtype).reshape(S.shape)


# safe_softmax: through log-sum-exp, the least number of the dtype for a start
def my_safe_softmax(S):
    m = S.max(axis=-1, initial=np.finfo(S.dtype).min)[:, None]
    P = np.exp(S - m)
    return P / np.maximum(P.sum(axis=-1, keepdims=True), np.finfo(S.dtype).tiny)


# safe_softmax: einsum, np.divide where there is something to divide by
def my_safe_softmax(S):
    m = np.maximum.reduce(S, axis=1, keepdims=True, initial=-np.inf)
    P = np.exp(np.subtract(S, m, out=np.full_like(S, -np.inf), where=np.isfinite(S)))
    l = np.einsum("ij->i", P)[:, None]
    return np.divide(P, l, out=np.zeros_like(S), where=l > 0)


# safe_softmax: row by row, with the function of the chapter
def my_safe_softmax(S):
    P = np.empty_like(S)
    for r, row in enumerate(S):
        P[r] = safe(row)
    return P


# safe_softmax: exp of the score less log-sum-exp
def my_safe_softmax(S):
    lse = np.logaddexp.reduce(S, axis=1, keepdims=True)
    return np.exp(S - np.where(np.isneginf(lse), 0, lse))
