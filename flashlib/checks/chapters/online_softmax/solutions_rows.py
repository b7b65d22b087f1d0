"""Solutions of the exercises on the log-sum-exp, and on what a softmax reads."""

import numpy as np

from flashlib.softmax import logsumexp, safe  # noqa: F401  known in the chapter


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
