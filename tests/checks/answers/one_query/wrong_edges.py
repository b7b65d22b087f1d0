"""Wrong answers that only particular cases catch: see `tests.checks.answers`."""


# cache_tokens, float: floats
def my_cache_tokens(layers, H_k, d, itemsize, room):
    t = 2 * layers * H_k * d * itemsize
    return t, np.floor(room / t)


# cache_tokens, value: one token at least
def my_cache_tokens(layers, H_k, d, itemsize, room):
    t = 2 * layers * H_k * d * itemsize
    return t, max(1, room // t)


# cache_tokens, value: none without room
def my_cache_tokens(layers, H_k, d, itemsize, room):
    if not room:
        return 0, 0
    t = 2 * layers * H_k * d * itemsize
    return t, room // t


# split_keys, float_bounds: int(k * (n / own))
def my_split_keys(lengths, B_c, parts):
    tiles = [-(-n // B_c) for n in lengths]
    most = max(1, -(-sum(tiles) // parts))
    out = []
    for b, n in enumerate(tiles):
        own = max(1, -(-n // most))
        out += [(b, int(k * (n / own)), int((k + 1) * (n / own))) for k in range(own)]
    return out


# split_keys, value: linspace
def my_split_keys(lengths, B_c, parts):
    tiles = [-(-n // B_c) for n in lengths]
    most = max(1, -(-sum(tiles) // parts))
    out = []
    for b, n in enumerate(tiles):
        own = max(1, -(-n // most))
        e = np.linspace(0, n, own + 1).astype(int)
        out += [(b, int(x), int(y)) for x, y in zip(e[:-1], e[1:])]
    return out


# split_keys, value: step added up
def my_split_keys(lengths, B_c, parts):
    tiles = [-(-n // B_c) for n in lengths]
    most = max(1, -(-sum(tiles) // parts))
    out = []
    for b, n in enumerate(tiles):
        own = max(1, -(-n // most))
        at = 0.0
        for k in range(own):
            out.append((b, int(at), int(at + n / own)))
            at += n / own
    return out


# split_keys, shape: ceil by + 0.999
def my_split_keys(lengths, B_c, parts):
    tiles = [int(n / B_c + 0.999) for n in lengths]
    most = max(1, int(sum(tiles) / parts + 0.999))
    out = []
    for b, n in enumerate(tiles):
        own = max(1, int(n / most + 0.999))
        out += [(b, n * k // own, n * (k + 1) // own) for k in range(own)]
    return out


# split_keys, float: floats
def my_split_keys(lengths, B_c, parts):
    tiles = [np.ceil(n / B_c) for n in lengths]
    most = max(1, np.ceil(sum(tiles) / parts))
    out = []
    for b, n in enumerate(tiles):
        own = int(max(1, np.ceil(n / most)))
        out += [(b, n * k // own, n * (k + 1) // own) for k in range(own)]
    return out


# merge_parts, empty_by_O: empty told by O_acc = 0
def my_merge_parts(m, l, O_acc):
    used = (O_acc != 0).any(axis=1)
    if not used.any():
        return np.zeros(O_acc.shape[1]), -np.inf
    m, l, O_acc = m[used], l[used], O_acc[used]
    M = m.max()
    w = np.exp(m - M)
    L = w @ l
    return w @ O_acc / L, M + np.log(L)


# merge_parts, empty_by_O: all O_acc zero
def my_merge_parts(m, l, O_acc):
    if not O_acc.any():
        return np.zeros(O_acc.shape[1]), -np.inf
    M = m.max()
    w = np.exp(m - M)
    L = w @ l
    return w @ O_acc / L, M + np.log(L)


# merge_parts, low_is_nothing: low m is nothing
def my_merge_parts(m, l, O_acc):
    if m.max() < -1e4:
        return np.zeros(O_acc.shape[1]), -np.inf
    M = m.max()
    w = np.exp(m - M)
    L = w @ l
    return w @ O_acc / L, M + np.log(L)


# merge_parts, l_alone: by l alone
def my_merge_parts(m, l, O_acc):
    if m.max() == -np.inf:
        return np.zeros(O_acc.shape[1]), -np.inf
    O = O_acc / np.where(l == 0, 1, l)[:, None]
    M = m.max()
    return (l[:, None] * O).sum(axis=0) / l.sum(), M + np.log(np.exp(m - M) @ l)


# merge_parts, not_rescaled: by l alone, O_acc
def my_merge_parts(m, l, O_acc):
    M = m.max()
    if M == -np.inf:
        return np.zeros(O_acc.shape[1]), -np.inf
    return O_acc.sum(axis=0) / l.sum(), M + np.log(l.sum())


# merge_parts, inexact: weights in fp32
def my_merge_parts(m, l, O_acc):
    M = m.max()
    if M == -np.inf:
        return np.zeros(O_acc.shape[1]), M
    w = np.exp(m - M).astype(np.float32)
    return w @ O_acc / (w @ l), M + np.log(w @ l)


# merge_parts, shape: squeezed
def my_merge_parts(m, l, O_acc):
    M = m.max()
    if M == -np.inf:
        return np.zeros(O_acc.shape[1]), M
    w = np.exp(m - M)
    O = w @ O_acc / (w @ l)
    return O[O != 0], M + np.log(w @ l)
