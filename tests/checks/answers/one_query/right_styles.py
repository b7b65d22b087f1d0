"""Right answers in further styles: see `tests.checks.answers`."""


# split_keys: divmod
def my_split_keys(lengths, B_c, parts):
    tiles = [(n + B_c - 1) // B_c for n in lengths]
    most = max((sum(tiles) + parts - 1) // parts, 1)
    out = []
    for b, n in enumerate(tiles):
        own = max((n + most - 1) // most, 1)
        ends = [divmod(n * k, own)[0] for k in range(own + 1)]
        out.extend((b, *e) for e in zip(ends, ends[1:]))
    return out


# split_keys: NumPy whole numbers
def my_split_keys(lengths, B_c, parts):
    tiles = -(-np.array(lengths) // B_c)
    most = max(1, -(-tiles.sum() // parts))
    out = []
    for b, n in enumerate(tiles):
        own = max(1, -(-n // most))
        e = np.arange(own + 1) * n // own
        out += list(zip([b] * own, e[:-1], e[1:]))
    return out


# merge_parts: of finished parts
def my_merge_parts(m, l, O_acc):
    live = l > 0
    if not live.any():
        return np.zeros(O_acc.shape[-1]), -np.inf
    lse = m[live] + np.log(l[live])
    total = np.logaddexp.reduce(lse)
    return np.exp(lse - total) @ (O_acc[live] / l[live, None]), total


# merge_parts: a running state
def my_merge_parts(m, l, O_acc):
    M, L, A = -np.inf, 0.0, np.zeros(O_acc.shape[1])
    for a, b, c in zip(m, l, O_acc):
        if a == -np.inf:
            continue
        N = max(M, a)
        f, g = np.exp(M - N), np.exp(a - N)
        M, L, A = N, f * L + g * b, f * A + g * c
    return (A / L, M + np.log(L)) if L else (A, M)
