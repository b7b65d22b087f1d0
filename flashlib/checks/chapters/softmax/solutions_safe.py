"""Solutions of the exercises on the safe softmax."""

import numpy as np

from flashlib.softmax import logsumexp, naive, safe  # noqa: F401  built in the chapter


# exercise: softmax_rows
def my_softmax_rows(S, visible):
    S = np.where(visible, S, -np.inf)
    m = S.max(axis=1, keepdims=True, initial=-np.inf)  # (N_q, 1)
    shift = np.where(m == -np.inf, 0, m)
    P = np.exp(S - shift)  # (N_q, N_k)
    l = P.sum(axis=1, keepdims=True)
    return P / np.where(l == 0, 1, l)


# exercise: safe_softmax
def my_safe_softmax(S):
    m = S.max(axis=1, keepdims=True, initial=-np.inf)  # (N_q, 1)
    shift = np.where(m == -np.inf, 0, m)
    P = np.exp(S - shift)  # (N_q, N_k)
    l = P.sum(axis=1, keepdims=True)
    return P / np.where(l == 0, 1, l)


# exercise: logsumexp
def my_logsumexp(S):
    m = S.max(axis=1, initial=-np.inf)  # (N_q,)
    shift = np.where(m == -np.inf, 0, m)
    l = np.exp(S - shift[:, None]).sum(axis=1)
    return m + np.log(np.where(l == 0, 1, l))


# exercise: log_softmax
def my_log_softmax(x):
    return x - logsumexp(x)


# exercise: causal_row_passes
def my_causal_row_passes(x, n, p):
    m, l = -np.inf, 0.0
    for j in range(n):  # pass 1: the maximum
        m = max(m, x[j])
    for j in range(n):  # pass 2: the sum
        l = l + np.exp(x[j] - m)
    for j in range(len(x)):  # pass 3: the output
        p[j] = np.exp(x[j] - m) / l if j < n else 0.0
