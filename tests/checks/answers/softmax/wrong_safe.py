"""Wrong answers: see `tests.checks.answers`."""


# softmax_rows, equal_weights: -1e9 written over what is masked
def my_softmax_rows(S, visible):
    S = np.where(visible, S, -1e9)
    P = np.exp(S - S.max(axis=1, keepdims=True, initial=-1e9))
    return P / P.sum(axis=1, keepdims=True)


# softmax_rows, masked_late: safe softmax of all scores, times visible
def my_softmax_rows(S, visible):
    return np.array([safe(row) for row in S]).reshape(S.shape) * visible


# softmax_rows, max_over_masked: only the terms masked
def my_softmax_rows(S, visible):
    P = np.exp(S - S.max(axis=1, keepdims=True, initial=-np.inf)) * visible
    l = P.sum(axis=1, keepdims=True)
    return P / np.where(l == 0, 1, l)


# softmax_rows, nothing_seen: no guard
def my_softmax_rows(S, visible):
    S = np.where(visible, S, -np.inf)
    P = np.exp(S - S.max(axis=1, initial=-np.inf)[:, None])
    return P / P.sum(axis=1)[:, None]


# softmax_rows, all_rows_0: all rows 0 if one sees nothing
def my_softmax_rows(S, visible):
    if not visible.any(axis=1).all():
        return np.zeros(S.shape)
    S = np.where(visible, S, -np.inf)
    P = np.exp(S - S.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


# safe_softmax, no_maximum: row by row
def my_safe_softmax(S):
    P = np.zeros_like(S)
    for r in range(S.shape[0]):
        visible = S[r] > -np.inf
        if visible.any():
            P[r, visible] = np.exp(S[r, visible])
            P[r] /= P[r].sum()
    return P


# safe_softmax, all_rows_0: all rows 0 if one is masked
def my_safe_softmax(S):
    m = S.max(axis=-1, initial=-np.inf)
    if np.isinf(m).any():
        return np.zeros_like(S)
    P = np.exp(S.T - m)
    return (P / P.sum(axis=0)).T


# safe_softmax, equal_weights: -inf replaced
def my_safe_softmax(S):
    S = np.maximum(S, np.asarray(-1e30, S.dtype))
    P = np.exp(S - S.max(axis=1, keepdims=True, initial=-1e30))
    return P / P.sum(axis=1, keepdims=True)


# safe_softmax, largest_size: nan_to_num for all
def my_safe_softmax(S):
    finite = np.where(np.isfinite(S), S, 0)
    P = np.exp(S - np.abs(finite).max(axis=1, keepdims=True, initial=0))
    return np.nan_to_num(P / P.sum(axis=1, keepdims=True))


# safe_softmax, ties: the maxima set apart
def my_safe_softmax(S):
    P = np.zeros_like(S)
    for r, row in enumerate(S):
        if len(row) == 0 or row.max() == -np.inf:
            continue
        m = row.max()
        l = 1 + sum(np.exp(x - m) for x in row if x < m)
        P[r] = np.exp(row - m) / l
    return P


# safe_softmax, guard_of_all: zeros only for a matrix that is wholly masked
def my_safe_softmax(S):
    if not (S > -np.inf).any():
        return np.zeros_like(S)
    P = np.exp(S - S.max(axis=1)[:, None])
    return P / P.sum(axis=1)[:, None]


# safe_softmax, one_score: the first score, no guard
def my_safe_softmax(S):
    P = np.exp(S - S[:, 0:1])
    return P / P.sum(axis=1, keepdims=True)


# safe_softmax, m_from_finite: a running maximum from -1e4
def my_safe_softmax(S):
    m = np.full((len(S), 1), -1e4, S.dtype)
    for j in range(S.shape[1]):
        m = np.maximum(m, S[:, j : j + 1])
    P = np.exp(S - m)
    return P / np.where(P.sum(axis=1, keepdims=True) == 0, 1, P.sum(axis=1, keepdims=True))


# safe_softmax, dtype: rows collected in an array of fp64
def my_safe_softmax(S):
    P = np.zeros(S.shape)
    for r in range(len(S)):
        P[r] = safe(S[r])
    return P


# safe_softmax, dtype: fp64 only for what is wholly masked
def my_safe_softmax(S):
    if S.size == 0 or (S == -np.inf).all():
        return np.zeros(S.shape)
    m = S.max(axis=1, keepdims=True)
    P = np.exp(S - np.where(m == -np.inf, 0, m))
    l = P.sum(axis=1, keepdims=True)
    return P / np.where(l == 0, 1, l)


# safe_softmax, slightly_off: fp32 inside
def my_safe_softmax(S):
    x = S.astype(np.float32)
    m = x.max(axis=1, keepdims=True, initial=-np.inf)
    P = np.exp(x - np.where(m == -np.inf, 0, m)).astype(S.dtype)
    l = P.sum(axis=1, keepdims=True)
    return P / np.where(l == 0, 1, l)


# safe_softmax, too_small_for_fp32: the least number of fp64 in place of -inf
def my_safe_softmax(S):
    m = np.maximum(S.max(axis=1, keepdims=True, initial=-np.inf), -1.7e308)
    P = np.exp(S - m)
    return P / np.maximum(P.sum(axis=1, keepdims=True), 1e-300)


# safe_softmax, max_of_columns: no guard at all
def my_safe_softmax(S):
    P = np.exp(S - S.max(axis=0))
    return P / P.sum(axis=1, keepdims=True)


# safe_softmax, value: rows of 16 scores at most
def my_safe_softmax(S):
    P = np.zeros_like(S)
    for r in range(len(S)):
        x = S[r, :16]
        P[r, :16] = safe(x)
    return P


# safe_softmax, columns: one axis for all
def my_safe_softmax(S):
    if S.shape[1] == 0:
        return S.copy()
    e = np.exp(S - np.max(S, axis=0, keepdims=True))
    return e / np.sum(e, axis=0, keepdims=True)
