"""Wrong answers: see `tests.checks.answers`."""


# adapter, scale_twice: Q is scaled, and the attention scales again
def my_adapter(query, key, value, scaling):
    def attention(Q, K, V):
        S = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
        P = np.exp(S - S.max(-1, keepdims=True))
        return P / P.sum(-1, keepdims=True) @ V

    d = query.shape[-1]
    group = query.shape[1] // key.shape[1]
    K, V = key.repeat(group, 1), value.repeat(group, 1)
    return attention(query * (scaling if scaling is not None else d**-0.5), K, V).swapaxes(1, 2)


# adapter, heads_tiled: np.tile
def my_adapter(query, key, value, scaling):
    group = query.shape[1] // key.shape[1]
    K, V = np.tile(key, (1, group, 1, 1)), np.tile(value, (1, group, 1, 1))
    S = np.einsum("bhnd,bhmd->bhnm", query, K) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    P = np.exp(S - S.max(-1, keepdims=True))
    return np.einsum("bhnm,bhmd->bnhd", P / P.sum(-1, keepdims=True), V)


# adapter, reshaped: heads are filled one after the other
def my_adapter(query, key, value, scaling):
    B, H, N, d = query.shape
    group = H // key.shape[1]
    rows = []
    for b in range(B):
        for h in range(H):
            S = query[b, h] @ key[b, h // group].T * (d**-0.5 if scaling is None else scaling)
            P = np.exp(S - S.max(1)[:, None])
            rows.append(P @ value[b, h // group] / P.sum(1)[:, None])
    return np.array(rows).reshape(B, N, H, -1)


# adapter, not_turned: PyTorch's layout
def my_adapter(query, key, value, scaling):
    B, H, N, d = query.shape
    O = np.zeros((B, H, N, value.shape[3]))
    for h in range(H):
        k = h * key.shape[1] // H
        S = query[:, h] @ key[:, k].transpose(0, 2, 1) * (d**-0.5 if scaling is None else scaling)
        P = np.exp(S - S.max(2, keepdims=True))
        O[:, h] = P / P.sum(2, keepdims=True) @ value[:, k]
    return O


# seen, top_left: np.tri without its shift
def my_seen(q_length, kv_length, q_offset, sliding_window, present):
    table = np.tri(q_length, kv_length, dtype=bool)
    if sliding_window is not None:
        table &= ~np.tri(q_length, kv_length, -sliding_window, dtype=bool)
    return table & present


# seen, bottom_right: the keys end with the last query
def my_seen(q_length, kv_length, q_offset, sliding_window, present):
    past = kv_length - q_length
    table = np.tri(q_length, kv_length, past, dtype=bool)
    if sliding_window is not None:
        table &= ~np.tri(q_length, kv_length, past - sliding_window, dtype=bool)
    return table & present


# seen, window_wide: as flash_attn counts
def my_seen(q_length, kv_length, q_offset, sliding_window, present):
    table = np.zeros((q_length, kv_length), bool)
    for r in range(q_length):
        i = q_offset + r
        for c in range(kv_length):
            if c > i or not present[c]:
                continue
            table[r, c] = sliding_window is None or i - c <= sliding_window
    return table


# seen, padding_unused: for all keys
def my_seen(q_length, kv_length, q_offset, sliding_window, present):
    table = np.zeros((q_length, kv_length), bool)
    for r in range(q_length):
        end = q_offset + r + 1
        table[r, 0 if sliding_window is None else max(0, end - sliding_window) : end] = True
    return table


# seen, window_chunks: by floor
def my_seen(q_length, kv_length, q_offset, sliding_window, present):
    table = np.zeros((q_length, kv_length), bool)
    for r in range(q_length):
        i = q_offset + r
        first = 0 if sliding_window is None else i // sliding_window * sliding_window
        table[r, first : i + 1] = True
    return table & present


# packs, zeros: in a loop
def my_packs(position_ids):
    found = [0]
    for n, position in enumerate(position_ids):
        if n and position == 0:
            found.append(n)
    return [*found, len(position_ids)]


# packs, falls: in a loop
def my_packs(position_ids):
    found = [0]
    for n in range(1, len(position_ids)):
        if position_ids[n] < position_ids[n - 1]:
            found.append(n)
    return [*found, len(position_ids)]


# packs, lengths: counted
def my_packs(position_ids):
    lengths = [1]
    for before, position in zip(position_ids, position_ids[1:]):
        if position == before + 1:
            lengths[-1] += 1
        else:
            lengths.append(1)
    return lengths


# model_scores, cap_after_mask: as written
def my_model_scores(S, V, seen, softcap, sink):
    S = np.where(seen, S, -np.inf)
    if softcap is not None:
        S = softcap * np.tanh(S / softcap)
    lse = np.logaddexp(np.logaddexp.reduce(S, axis=1), sink)
    return np.exp(S - lse[:, None]) @ V, lse


# model_scores, sink_in_lse_alone: by logaddexp
def my_model_scores(S, V, seen, softcap, sink):
    S = np.where(seen, S if softcap is None else softcap * np.tanh(S / softcap), -np.inf)
    before = np.logaddexp.reduce(S, axis=1)
    return np.exp(S - before[:, None]) @ V, np.logaddexp(before, sink)


# model_scores, sink_capped: as a column before the cap
def my_model_scores(S, V, seen, softcap, sink):
    S = np.c_[np.where(seen, S, 0), np.full(len(S), sink)]
    if softcap is not None:
        S = softcap * np.tanh(S / softcap)
    S[:, :-1][~seen] = -np.inf
    m = S.max(axis=1, keepdims=True)
    P = np.exp(S - m)
    l = P.sum(axis=1, keepdims=True)
    return P[:, :-1] @ V / l, (m + np.log(l))[:, 0]


# model_scores, sink_missing: a softmax
def my_model_scores(S, V, seen, softcap, sink):
    S = np.where(seen, S if softcap is None else softcap * np.tanh(S / softcap), -np.inf)
    lse = np.logaddexp.reduce(S, axis=1)
    return np.exp(S - lse[:, None]) @ V, lse


# cached_step, whole_cache: no cut and no mask
def my_cached_step(q, k, v, K_cache, V_cache, position, scaling):
    K, V = K_cache.copy(), V_cache.copy()
    K[position : position + len(k)] = k
    V[position : position + len(v)] = v
    S = q @ K.T * scaling
    P = np.exp(S - S.max(1, keepdims=True))
    return P @ V / P.sum(1, keepdims=True), K, V


# cached_step, bottom_right: np.tri of the whole cache
def my_cached_step(q, k, v, K_cache, V_cache, position, scaling):
    K, V = K_cache.copy(), V_cache.copy()
    K[position : position + len(k)] = k
    V[position : position + len(v)] = v
    S = np.where(np.tri(len(q), len(K), len(K) - len(q), dtype=bool), q @ K.T * scaling, -np.inf)
    P = np.exp(S - S.max(1, keepdims=True))
    return P @ V / P.sum(1, keepdims=True), K, V


# cached_step, position_unused: at the beginning
def my_cached_step(q, k, v, K_cache, V_cache, position, scaling):
    K, V, n = K_cache.copy(), V_cache.copy(), len(q)
    K[:n], V[:n] = k, v
    S = np.where(np.tri(n, position + n, position, dtype=bool), q @ K[: position + n].T * scaling, -np.inf)
    P = np.exp(S - S.max(1, keepdims=True))
    return P @ V[: position + n] / P.sum(1, keepdims=True), K, V


# cached_step, argument_changed: the caches themselves are written
def my_cached_step(q, k, v, K_cache, V_cache, position, scaling):
    n, end = len(q), position + len(q)
    K_cache[position:end], V_cache[position:end] = k, v
    S = np.where(np.tri(n, end, position, dtype=bool), q @ K_cache[:end].T * scaling, -np.inf)
    P = np.exp(S - S.max(1, keepdims=True))
    return P @ V_cache[:end] / P.sum(1, keepdims=True), K_cache, V_cache


# agrees, nan_skipped: what is too large is looked for
def my_agrees(given, eager, exact, present):
    bound = 2 * np.abs(eager - exact)[present].max() + 1e-7 * np.abs(exact[present]).max()
    for b, n in np.argwhere(present):
        if (np.abs(given[b, n] - exact[b, n]) > bound).any():
            return False
    return True


# agrees, to_eager: eager is taken for right
def my_agrees(given, eager, exact, present):
    error = np.abs(given[present] - eager[present]).max()
    return bool(error <= 2 * np.abs(eager - exact)[present].max() + 1e-7 * np.abs(exact[present]).max())


# agrees, padding_counts: present is not used
def my_agrees(given, eager, exact, present):
    bound = 2 * np.abs(eager - exact)[present].max() + 1e-7 * np.abs(exact[present]).max()
    return bool((np.abs(given - exact) <= bound).all())


# attention_share, not_causal: N * N
def my_attention_share(N, hidden, intermediate, H_q, H_k, d):
    linear = 2 * hidden * (2 * (H_q + H_k) * d + 3 * intermediate)
    own = H_q * 4 * d * N
    return own / (linear + own)


# attention_share, K_V_as_Q: four square matrices of heads
def my_attention_share(N, hidden, intermediate, H_q, H_k, d):
    linear = 2 * (4 * hidden * H_q * d + 3 * hidden * intermediate)
    own = H_q * 2 * d * (N + 1)
    return own / (linear + own)
