"""Wrong answers that only special cases catch: see `gaps.txt`."""


# adapter, zero_scaling: scaling or
def my_adapter(query, key, value, scaling):
    scale = scaling or 1 / np.sqrt(query.shape[-1])
    group = query.shape[1] // key.shape[1]
    S = np.einsum("bhqd,bhkd->bhqk", query, key.repeat(group, 1)) * scale
    P = np.exp(S - S.max(-1, keepdims=True))
    return np.einsum("bhqk,bhkd->bqhd", P / P.sum(-1, keepdims=True), value.repeat(group, 1))


# adapter, one_maximum: one for each sequence
def my_adapter(query, key, value, scaling):
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    group = query.shape[1] // key.shape[1]
    out = []
    for q, k, v in zip(query, key, value, strict=True):
        S = q @ np.repeat(k, group, 0).transpose(0, 2, 1) * scale
        P = np.exp(S - S.max())
        out.append(P / P.sum(-1, keepdims=True) @ np.repeat(v, group, 0))
    return np.array(out).transpose(0, 2, 1, 3)


# model_scores, zero_sink: a column only where there is a sink
def my_model_scores(S, V, seen, softcap, sink):
    S = softcap * np.tanh(S / softcap) if softcap else S
    S = np.where(seen, S, -np.inf)
    if sink:
        S = np.hstack([S, np.full((len(S), 1), sink)])
    m = S.max(axis=1, keepdims=True)
    P = np.exp(S - m)
    l = P.sum(axis=1)
    return P[:, : len(V)] @ V / l[:, None], m[:, 0] + np.log(l)


# cached_step, stale: inf is looked for, and not nan
def my_cached_step(q, k, v, K_cache, V_cache, position, scaling):
    K, V = K_cache.copy(), V_cache.copy()
    K[position : position + len(q)], V[position : position + len(q)] = k, v
    keys, values = np.where(np.isinf(K), 0, K), np.where(np.isinf(V), 0, V)
    seen = np.tri(len(q), len(K), position, dtype=bool)
    S = np.where(seen, q @ keys.T * scaling, -np.inf)
    P = np.exp(S - S.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True) @ values, K, V


# agrees, inf_passes: the rule alone
def my_agrees(given, eager, exact, present):
    def error(X):
        return abs(X - exact)[present].max()

    return bool(error(given) <= 2 * error(eager) + 1e-7 * abs(exact[present]).max())


# agrees, inf_passes: nan is found by its name
def my_agrees(given, eager, exact, present):
    if np.isnan(given[present]).any():
        return False
    allowed = 2 * np.abs(eager - exact)[present].max() + 1e-7 * np.abs(exact)[present].max()
    return bool(np.abs(given - exact)[present].max() <= allowed)
