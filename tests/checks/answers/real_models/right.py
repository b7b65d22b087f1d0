"""Right answers in other styles: see `tests.checks.answers`."""


# adapter: head by head, with loops
def my_adapter(query, key, value, scaling):
    B, H, N, d = query.shape
    group = H // key.shape[1]
    scale = 1 / np.sqrt(d) if scaling is None else scaling
    O = np.zeros((B, N, H, value.shape[-1]))
    for b in range(B):
        for h in range(H):
            S = scale * (query[b, h] @ key[b, h // group].T)
            P = np.exp(S - S.max(1, keepdims=True))
            O[b, :, h] = (P / P.sum(1, keepdims=True)) @ value[b, h // group]
    return O


# adapter: the group as an axis, and einsum
def my_adapter(query, key, value, scaling):
    B, H, N, d = query.shape
    Q = query.reshape(B, key.shape[1], -1, N, d)
    S = np.einsum("bkgnd,bkmd->bkgnm", Q, key) * (d**-0.5 if scaling is None else scaling)
    S -= S.max(-1, keepdims=True)
    P = np.exp(S)
    P /= P.sum(-1, keepdims=True)
    O = np.einsum("bkgnm,bkme->bnkge", P, value)
    return O.reshape(B, N, H, value.shape[3])


# adapter: Q is scaled, and heads are chosen by index
def my_adapter(query, key, value, scaling):
    heads = [h * key.shape[1] // query.shape[1] for h in range(query.shape[1])]
    q = query * (scaling if scaling is not None else query.shape[3] ** -0.5)
    S = np.matmul(q, np.moveaxis(key[:, heads], 3, 2))
    lse = np.logaddexp.reduce(S, axis=3, keepdims=True)
    return np.moveaxis(np.exp(S - lse) @ value[:, heads], 1, 2)


# seen: score by score
def my_seen(q_length, kv_length, q_offset, sliding_window, present):
    seen = np.zeros((q_length, kv_length), dtype=bool)
    for r in range(q_length):
        for c in range(kv_length):
            distance = q_offset + r - c
            near = sliding_window is None or distance < sliding_window
            seen[r, c] = distance >= 0 and near and present[c]
    return seen


# seen: np.tri
def my_seen(q_length, kv_length, q_offset, sliding_window, present):
    table = np.tri(q_length, kv_length, q_offset, dtype=bool)
    if sliding_window is not None:
        table &= ~np.tri(q_length, kv_length, q_offset - sliding_window, dtype=bool)
    table[:, ~present] = False
    return table


# packs: in a loop
def my_packs(position_ids):
    cu_seqlens = [0]
    for n in range(1, len(position_ids)):
        if position_ids[n] != position_ids[n - 1] + 1:
            cu_seqlens.append(n)
    return cu_seqlens + [len(position_ids)]


# packs: tokens of a sequence have the same place less number
def my_packs(position_ids):
    shift = position_ids - np.arange(len(position_ids))
    ends = np.nonzero(shift[1:] != shift[:-1])[0] + 1
    return np.concatenate([[0], ends, [len(position_ids)]])


# model_scores: the sink as a column, without a value
def my_model_scores(S, V, seen, softcap, sink):
    S = S if softcap is None else np.tanh(S / softcap) * softcap
    S = np.hstack([np.where(seen, S, -np.inf), np.full((len(S), 1), sink)])
    m = S.max(1, keepdims=True)
    P = np.exp(S - m)
    l = P.sum(1, keepdims=True)
    return (P / l)[:, :-1] @ V, (m + np.log(l))[:, 0]


# model_scores: lse first, by logaddexp
def my_model_scores(S, V, seen, softcap, sink):
    if softcap is not None:
        S = np.tanh(S / softcap) * softcap
    S = np.where(seen, S, -np.inf)
    lse = np.logaddexp(np.logaddexp.reduce(S, axis=1), sink)
    return np.exp(S - lse[:, None]) @ V, lse


# model_scores: row by row, as a State that the sink begins
def my_model_scores(S, V, seen, softcap, sink):
    O, lse = np.zeros((len(S), V.shape[1])), np.zeros(len(S))
    for r in range(len(S)):
        m, l, O_acc = sink, 1.0, np.zeros(V.shape[1])
        for c in range(len(V)):
            if not seen[r, c]:
                continue
            s = S[r, c] if softcap is None else softcap * np.tanh(S[r, c] / softcap)
            m_old, m = m, max(m, s)
            alpha, p = np.exp(m_old - m), np.exp(s - m)
            l, O_acc = l * alpha + p, O_acc * alpha + p * V[c]
        O[r], lse[r] = O_acc / l, m + np.log(l)
    return O, lse


# cached_step: token by token
def my_cached_step(q, k, v, K_cache, V_cache, position, scaling):
    K, V = np.array(K_cache), np.array(V_cache)
    O = np.zeros((len(q), V.shape[1]))
    for r in range(len(q)):
        K[position + r], V[position + r] = k[r], v[r]
        x = K[: position + r + 1] @ q[r] * scaling
        p = np.exp(x - x.max())
        O[r] = p @ V[: position + r + 1] / p.sum()
    return O, K, V


# cached_step: by concatenating
def my_cached_step(q, k, v, K_cache, V_cache, position, scaling):
    end = position + len(q)
    K = np.concatenate([K_cache[:position], k, K_cache[end:]])
    V = np.concatenate([V_cache[:position], v, V_cache[end:]])
    S = scaling * q @ K[:end].T
    S[~np.tri(len(q), end, position, dtype=bool)] = -np.inf
    S = np.exp(S - S.max(-1)[:, None])
    return (S @ V[:end]) / S.sum(-1)[:, None], K, V


# agrees: in words
def my_agrees(given, eager, exact, present):
    def error(X):
        return np.max(np.abs(X[present] - exact[present]))

    allowed = 2 * error(eager) + 1e-7 * np.max(np.abs(exact[present]))
    return np.isfinite(given[present]).all() and error(given) <= allowed


# agrees: every number
def my_agrees(given, eager, exact, present):
    there = present[..., None] & np.ones(exact.shape, bool)
    bound = 2 * abs(eager - exact)[there].max() + 1e-7 * abs(exact)[there].max()
    return bool(np.all(np.isfinite(given[there]) & (abs(given - exact)[there] <= bound)))


# attention_share: for one token, on average
def my_attention_share(N, hidden, intermediate, H_q, H_k, d):
    linear = 2 * hidden * (2 * (H_q + H_k) * d + 3 * intermediate)
    own = H_q * 2 * d * (N + 1)
    return own / (linear + own)


# attention_share: summed over the queries
def my_attention_share(N, hidden, intermediate, H_q, H_k, d):
    qkv = hidden * (H_q + 2 * H_k) * d
    out = H_q * d * hidden
    linear = 2 * N * (qkv + out + hidden * intermediate * 3)
    scores = sum(range(1, N + 1)) * H_q
    return 1 - linear / (linear + 2 * (scores * d) + 2 * (scores * d))
