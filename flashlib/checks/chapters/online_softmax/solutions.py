"""Solutions of this chapter."""

import numpy as np

from flashlib.softmax import State


# exercise: online_step
def my_online_step(m, l, x_j):
    if x_j == -np.inf:
        return m, l
    m_old, m = m, max(m, x_j)
    return m, l * np.exp(m_old - m) + np.exp(x_j - m)


# exercise: merge
def my_merge(a, b):
    m = np.maximum(a.m, b.m)
    shift = np.where(m == -np.inf, 0, m)
    alpha_a, alpha_b = np.exp(a.m - shift), np.exp(b.m - shift)
    l = alpha_a * a.l + alpha_b * b.l
    O_acc = alpha_a[..., None] * a.O_acc + alpha_b[..., None] * b.O_acc
    return State(m, l, O_acc)


# exercise: stream_lse
def my_stream_lse(stream):
    m, l = -np.inf, 0.0
    for x_j in stream:
        if x_j == -np.inf:
            continue
        m_old, m = m, max(m, x_j)
        l = l * np.exp(m_old - m) + np.exp(x_j - m)
    return m + np.log(l) if l else -np.inf


# exercise: merge_outputs
def my_merge_outputs(O, lse):
    m = lse.max()
    if m == -np.inf:
        return np.zeros(O.shape[1]), m
    weights = np.exp(lse - m)
    l = weights.sum()
    return weights @ O / l, m + np.log(l)


# exercise: weighted_mean
def my_weighted_mean(x, v):
    m, l, acc = -np.inf, 0.0, 0.0
    for x_j, v_j in zip(x, v, strict=True):
        m_old, m = m, max(m, x_j)
        alpha, p = np.exp(m_old - m), np.exp(x_j - m)
        l = alpha * l + p
        acc = alpha * acc + p * v_j
    return acc / l
