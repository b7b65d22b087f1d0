"""Solutions of this chapter."""

import numpy as np


# exercise: adapter
def my_adapter(query, key, value, scaling):
    group = query.shape[1] // key.shape[1]
    if scaling is None:
        scaling = query.shape[-1] ** -0.5
    K, V = np.repeat(key, group, axis=1), np.repeat(value, group, axis=1)
    S = query @ K.swapaxes(2, 3) * scaling  # (B, H_q, N_q, N_k)
    P = np.exp(S - S.max(axis=3, keepdims=True))
    O = P / P.sum(axis=3, keepdims=True) @ V
    return O.transpose(0, 2, 1, 3)


# exercise: seen
def my_seen(q_length, kv_length, q_offset, sliding_window, present):
    i = q_offset + np.arange(q_length)[:, None]  # where queries stand
    j = np.arange(kv_length)[None, :]
    seen = j <= i
    if sliding_window is not None:
        seen = seen & (j > i - sliding_window)
    return seen & present[None, :]


# exercise: packs
def my_packs(position_ids):
    begins = np.flatnonzero(np.diff(position_ids) != 1) + 1
    return [0, *begins.tolist(), len(position_ids)]


# exercise: model_scores
def my_model_scores(S, V, seen, softcap, sink):
    if softcap is not None:
        S = softcap * np.tanh(S / softcap)
    S = np.where(seen, S, -np.inf)
    m = np.maximum(S.max(axis=1), sink)  # the sink is finite, so m is
    P = np.exp(S - m[:, None])
    l = P.sum(axis=1) + np.exp(sink - m)
    return P @ V / l[:, None], m + np.log(l)


# exercise: cached_step
def my_cached_step(q, k, v, K_cache, V_cache, position, scaling):
    K, V = K_cache.copy(), V_cache.copy()
    n, end = len(q), position + len(q)
    K[position:end], V[position:end] = k, v
    S = q @ K[:end].T * scaling
    S = np.where(np.arange(end) <= position + np.arange(n)[:, None], S, -np.inf)
    P = np.exp(S - S.max(axis=1, keepdims=True))
    O = P / P.sum(axis=1, keepdims=True) @ V[:end]
    return O, K, V


# exercise: agrees
def my_agrees(given, eager, exact, present):
    error = np.abs(given - exact)[present].max()
    of_eager = np.abs(eager - exact)[present].max()
    largest = np.abs(exact)[present].max()
    return bool(np.isfinite(error) and error <= 2 * of_eager + 1e-7 * largest)  # inf <= inf is True


# exercise: attention_share
def my_attention_share(N, hidden, intermediate, H_q, H_k, d):
    of_heads = 2 * hidden * H_q * d + 2 * hidden * H_k * d  # weights of Q and of the output, of K and V
    of_mlp = 3 * hidden * intermediate
    products = 2 * N * (of_heads + of_mlp)
    attention = 4 * d * H_q * N * (N + 1) / 2
    return attention / (products + attention)
