"""Right answers that a check might refuse by mistake: see `tests.checks.answers`."""


# adapter: 1 / np.sqrt(d), and in place
def my_adapter(query, key, value, scaling):
    scale = 1 / np.sqrt(query.shape[-1]) if scaling is None else scaling
    group = query.shape[1] // key.shape[1]
    O = np.empty((query.shape[0], query.shape[2], query.shape[1], value.shape[3]))
    for h in range(query.shape[1]):
        S = np.matmul(query[:, h], key[:, h // group].transpose(0, 2, 1))
        S *= scale
        S -= np.max(S, axis=-1, keepdims=True)
        np.exp(S, out=S)
        O[:, :, h] = np.matmul(S, value[:, h // group]) / S.sum(axis=-1, keepdims=True)
    return O


# seen: lists of bools
def my_seen(q_length, kv_length, q_offset, sliding_window, present):
    def may_see(i, j):
        inside = sliding_window is None or i - j < sliding_window
        return bool(present[j]) and j <= i and inside

    return [[may_see(q_offset + r, c) for c in range(kv_length)] for r in range(q_length)]


# seen: logical functions
def my_seen(q_length, kv_length, q_offset, sliding_window, present):
    behind = np.subtract.outer(np.arange(q_offset, q_offset + q_length), np.arange(kv_length))
    width = np.inf if sliding_window is None else sliding_window
    return np.logical_and.reduce([behind >= 0, behind < width, np.broadcast_to(present, behind.shape)])


# packs: an array, from cumulative lengths
def my_packs(position_ids):
    new = np.concatenate([[True], position_ids[1:] != position_ids[:-1] + 1, [True]])
    return np.where(new)[0]


# model_scores: S in place, the sink by np.logaddexp
def my_model_scores(S, V, seen, softcap, sink):
    X = np.full(S.shape, -np.inf)
    X[seen] = S[seen] if softcap is None else softcap * np.tanh(S[seen] / softcap)
    m = np.maximum(X.max(axis=1, initial=-np.inf), sink)[:, None]
    P = np.exp(X - m)
    l = P.sum(axis=1, keepdims=True) + np.exp(sink - m)
    P /= l
    return [P @ V, (m + np.log(l)).ravel()]


# model_scores: masked arrays
def my_model_scores(S, V, seen, softcap, sink):
    scores = S if softcap is None else softcap * np.tanh(S / softcap)
    lse = np.array([np.logaddexp.reduce(np.append(row[mask], sink)) for row, mask in zip(scores, seen)])
    weights = np.where(seen, np.exp(np.where(seen, scores, lse[:, None]) - lse[:, None]), 0.0)
    return weights @ V, lse


# cached_step: lists of rows, einsum
def my_cached_step(q, k, v, K_cache, V_cache, position, scaling):
    K, V = np.copy(K_cache), np.copy(V_cache)
    for n in range(len(k)):
        K[position + n] = k[n]
        V[position + n] = v[n]
    rows = []
    for n in range(len(q)):
        end = position + n + 1
        S = np.einsum("d,kd->k", q[n] * scaling, K[:end])
        P = np.exp(S - np.max(S))
        rows.append(P / P.sum() @ V[:end])
    return np.stack(rows), K, V


# agrees: where all are present
def my_agrees(given, eager, exact, present):
    there = np.broadcast_to(present[:, :, None], exact.shape)
    ours, theirs = np.abs(given - exact)[there], np.abs(eager - exact)[there]
    if not np.all(np.isfinite(ours)):
        return False
    return np.max(ours) <= 2 * np.max(theirs) + 1e-7 * np.max(np.abs(exact[there]))


# agrees: in a loop
def my_agrees(given, eager, exact, present):
    ours = theirs = size = 0.0
    for b in range(given.shape[0]):
        for n in range(given.shape[1]):
            if present[b, n]:
                if not np.isfinite(given[b, n]).all():
                    return False
                ours = max(ours, np.abs(given[b, n] - exact[b, n]).max())
                theirs = max(theirs, np.abs(eager[b, n] - exact[b, n]).max())
                size = max(size, np.abs(exact[b, n]).max())
    return bool(ours <= 2 * theirs + 1e-7 * size)


# attention_share: whole numbers, a Fraction at the end
def my_attention_share(N, hidden, intermediate, H_q, H_k, d):
    from fractions import Fraction

    weights = hidden * (2 * (H_q + H_k) * d + 3 * intermediate)
    attention = 2 * d * H_q * N * (N + 1)
    return Fraction(attention, attention + 2 * N * weights)
