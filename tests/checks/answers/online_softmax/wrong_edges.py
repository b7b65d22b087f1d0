"""Wrong answers that only particular cases catch: see `tests.checks.answers`."""


# online_step, low_is_masked: -1e5 is none
def my_online_step(m, l, x_j):
    if x_j <= -1e5:
        return m, l
    n = max(m, x_j)
    return n, l * np.exp(m - n) + np.exp(x_j - n)


# online_step, m_from_number: m floor
def my_online_step(m, l, x_j):
    if x_j == -np.inf:
        return m, l
    n = max(m, x_j, -1e6)
    return n, l * np.exp(m - n) + np.exp(x_j - n)


# online_step, inexact: a far term is dropped
def my_online_step(m, l, x_j):
    if x_j == -np.inf or x_j < m - 15:
        return m, l
    n = max(m, x_j)
    return n, l * np.exp(m - n) + np.exp(x_j - n)


# stream_lse, m_from_number: from -1e12 on
def my_stream_lse(stream):
    m, l = -1e12, 0.0
    for x in stream:
        if x == -np.inf:
            continue
        m_old, m = m, max(m, x)
        l = l * np.exp(m_old - m) + np.exp(x - m)
    return m + np.log(l) if l else -np.inf


# weighted_mean, m_from_number: -1e9
def my_weighted_mean(x, v):
    m, l, acc = -1e9, 0.0, 0.0
    for a, b in zip(x, v):
        m_old, m = m, max(m, a)
        f, p = np.exp(m_old - m), np.exp(a - m)
        l, acc = f * l + p, f * acc + p * b
    return acc / l


# weighted_mean, value_0_skipped: values of 0 skipped
def my_weighted_mean(x, v):
    m, l, acc = -np.inf, 0.0, 0.0
    for a, b in zip(x, v):
        if not b:
            continue
        m_old, m = m, max(m, a)
        f, p = np.exp(m_old - m), np.exp(a - m)
        l, acc = f * l + p, f * acc + p * b
    return acc / l


# weighted_mean, empty_by_acc: first by acc
def my_weighted_mean(x, v):
    m, l, acc = 0.0, 0.0, 0.0
    for a, b in zip(x, v):
        if acc == 0:
            m, l, acc = a, 1.0, b
            continue
        m_old, m = m, max(m, a)
        f, p = np.exp(m_old - m), np.exp(a - m)
        l, acc = f * l + p, f * acc + p * b
    return acc / l


# merge, empty_by_O: empty told by O_acc
def my_merge(a, b):
    ea, eb = (~np.asarray(s.O_acc).any(axis=-1) for s in (a, b))
    m = np.maximum(np.where(ea, -np.inf, a.m), np.where(eb, -np.inf, b.m))
    shift = np.where(m == -np.inf, 0, m)
    fa, fb = np.where(ea, 0, np.exp(a.m - shift)), np.where(eb, 0, np.exp(b.m - shift))
    return State(m, fa * a.l + fb * b.l, fa[..., None] * a.O_acc + fb[..., None] * b.O_acc)


# merge, low_is_nothing: low m is empty
def my_merge(a, b):
    m = np.maximum(a.m, b.m)
    shift = np.where(m < -1e4, 0, m)
    fa, fb = np.exp(a.m - shift), np.exp(b.m - shift)
    return State(m, fa * a.l + fb * b.l, fa[..., None] * a.O_acc + fb[..., None] * b.O_acc)


# merge, low_is_nothing: shift at least -1e6
def my_merge(a, b):
    m = np.maximum(a.m, b.m)
    shift = np.maximum(m, -1e6)
    fa, fb = np.exp(a.m - shift), np.exp(b.m - shift)
    return State(m, fa * a.l + fb * b.l, fa[..., None] * a.O_acc + fb[..., None] * b.O_acc)


# merge, equal_once: a part with equal m counts once
def my_merge(a, b):
    m = np.maximum(a.m, b.m)
    shift = np.where(m == -np.inf, 0, m)
    fa, fb = np.exp(a.m - shift), np.where(np.equal(a.m, b.m), 0, np.exp(b.m - shift))
    return State(m, fa * a.l + fb * b.l, fa[..., None] * a.O_acc + fb[..., None] * b.O_acc)


# merge, inexact: a far part is dropped
def my_merge(a, b):
    m = np.maximum(a.m, b.m)
    shift = np.where(m == -np.inf, 0, m)
    fa, fb = (np.where(s.m < m - 10, 0, np.exp(s.m - shift)) for s in (a, b))
    return State(m, fa * a.l + fb * b.l, fa[..., None] * a.O_acc + fb[..., None] * b.O_acc)


# merge_outputs, empty_by_O: empty told by O = 0
def my_merge_outputs(O, lse):
    used = (O != 0).any(axis=1)
    if not used.any():
        return np.zeros(O.shape[1]), -np.inf
    O, lse = O[used], lse[used]
    m = lse.max()
    w = np.exp(lse - m)
    return w @ O / w.sum(), m + np.log(w.sum())


# merge_outputs, empty_by_O: all zero outputs
def my_merge_outputs(O, lse):
    if not O.any():
        return np.zeros(O.shape[1]), -np.inf
    m = lse.max()
    w = np.exp(lse - m)
    return w @ O / w.sum(), m + np.log(w.sum())


# merge_outputs, inexact: weights in fp32
def my_merge_outputs(O, lse):
    m = lse.max()
    if m == -np.inf:
        return np.zeros(O.shape[1]), m
    w = np.exp(lse - m).astype(np.float32)
    return w @ O / w.sum(), m + np.log(w.sum())
