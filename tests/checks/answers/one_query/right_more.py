"""More right answers: promotion by NumPy, lists, loops: see `tests.checks.answers`."""


# cache_tokens: an array of two whole numbers
def my_cache_tokens(layers, H_k, d, itemsize, room):
    of_token = np.prod([2, layers, H_k, d, itemsize])
    return np.array([of_token, np.floor_divide(room, of_token)])


# split_keys: an array of rows
def my_split_keys(lengths, B_c, parts):
    tiles = -(-np.array(lengths) // B_c)
    most = max(1, -(-tiles.sum() // parts))
    rows = []
    for b, n in enumerate(tiles):
        own = max(1, -(-n // most))
        k = np.arange(own)
        rows.append(np.stack([np.full(own, b), n * k // own, n * (k + 1) // own], axis=1))
    return np.concatenate(rows)


# merge_parts: one part after the other, in fp64 of NumPy
def my_merge_parts(m, l, O_acc):
    total, weight, out = np.float64(-np.inf), 0.0, np.zeros(O_acc.shape[1])
    for m_s, l_s, O_s in zip(m, l, O_acc, strict=True):
        larger = np.maximum(total, m_s)
        if np.isneginf(larger):
            continue
        old, new = np.exp(total - larger), np.exp(m_s - larger)
        weight, out, total = weight * old + l_s * new, out * old + O_s * new, larger
    return (out / weight if weight else out), (total + np.log(weight) if weight else np.float64(-np.inf))
