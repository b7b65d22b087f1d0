"""Right answers in other styles: see `tests.checks.answers`."""


# online_step: branches
def my_online_step(m, l, x_j):
    if x_j == -np.inf:
        return m, l
    if x_j > m:
        return x_j, 1.0 + l * np.exp(m - x_j)
    return m, l + np.exp(x_j - m)


# online_step: by the logarithm of the sum
def my_online_step(m, l, x_j):
    new = np.maximum(m, x_j)
    if np.isneginf(new):
        return new, 0.0
    old = -np.inf if l == 0 else m + np.log(l)
    return new, np.exp(np.logaddexp(old, x_j) - new)


# online_step: sorted, with the module math, in a list
def my_online_step(m, l, x_j):
    import math

    low, high = sorted((m, x_j))
    if high == -math.inf:
        return [high, l]
    return [high, l * math.exp(m - high) + math.exp(x_j - high)]


# online_step: nan made 0, and kept
@__import__("functools").cache
def my_online_step(m, l, x_j):
    m_old, m = m, max(m, x_j)
    return m, np.nan_to_num(l * np.exp(m_old - m) + np.exp(x_j - m))


# stream_lse: next in a loop, with math
def my_stream_lse(stream):
    import math

    m, l = -math.inf, 0.0
    while True:
        try:
            s = next(stream)
        except StopIteration:
            break
        if s > m:
            l, m = l * math.exp(m - s) + 1.0, s
        elif s > -math.inf:
            l += math.exp(s - m)
    return m + math.log(l) if l else -math.inf


# stream_lse: sent None
def my_stream_lse(stream):
    lse = -np.inf
    try:
        while True:
            lse = np.logaddexp(lse, stream.send(None))
    except StopIteration:
        return lse


# stream_lse: reduced, in sum
def my_stream_lse(stream):
    import functools

    return functools.reduce(np.logaddexp, (s for s in stream if s != -np.inf), -np.inf)


# stream_lse: exact sums
def my_stream_lse(stream):
    import math
    from fractions import Fraction

    m, l = None, Fraction(0)
    for s in stream:
        if s == -math.inf:
            continue
        if m is not None and s <= m:
            l += Fraction(math.exp(s - m))
        else:
            l = 1 + (l * Fraction(math.exp(m - s)) if m is not None else 0)
            m = s
    return -math.inf if m is None else m + math.log(l)


# stream_lse: starts with the first finite one
def my_stream_lse(stream):
    m = next((s for s in stream if s > -np.inf), None)
    if m is None:
        return -np.inf
    l = np.ones(1)
    for s in filter(np.isfinite, stream):
        m, old = max(m, s), m
        l = l * np.exp(old - m) + np.exp(s - m)
    return np.log(l).item() + m


# weighted_mean: by item
def my_weighted_mean(x, v):
    m, l, acc = -np.inf, 0.0, 0.0
    for j in range(x.size):
        s = x.item(j)
        old, m = m, max(m, s)
        l = l * np.exp(old - m) + np.exp(s - m)
        acc = acc * np.exp(old - m) + np.exp(s - m) * v.item(j)
    return acc / l


# weighted_mean: by take, and the mean so far
def my_weighted_mean(x, v):
    lse, mean = -np.inf, 0.0
    for j in range(len(x)):
        s, u = x.take(j), v.take(j)
        lse = np.logaddexp(lse, s)
        mean += (u - mean) * np.exp(s - lse)
    return mean


# weighted_mean: slices of one
def my_weighted_mean(x, v):
    m, l, acc = np.full(1, -np.inf), np.zeros(1), np.zeros(1)
    for j in range(x.shape[0]):
        s, u = x[j : j + 1], v[j : j + 1]
        m_old, m = m, np.maximum(m, s)
        l = l * np.exp(m_old - m) + np.exp(s - m)
        acc = acc * np.exp(m_old - m) + np.exp(s - m) * u
    return (acc / l)[0]


# weighted_mean: exact sums, an exact result
def my_weighted_mean(x, v):
    from fractions import Fraction

    m, l, acc = float("-inf"), Fraction(0), Fraction(0)
    for s, u in zip(map(float, x), map(float, v)):
        new = max(m, s)
        a, p = Fraction(float(np.exp(m - new))), Fraction(float(np.exp(s - new)))
        m, l, acc = new, a * l + p, a * acc + p * Fraction(u)
    return acc / l


# weighted_mean: x[j] asked for where it is needed
def my_weighted_mean(x, v):
    m, l, acc = x[0], 1.0, v[0]
    for j in range(1, len(x)):
        if x[j] > m:
            a, m, p = np.exp(m - x[j]), x[j], 1.0
        else:
            a, p = 1.0, np.exp(x[j] - m)
        l, acc = l * a + p, acc * a + p * v[j]
    return acc / l


# merge: by lse
def my_merge(a, b):
    with np.errstate(divide="ignore"):
        lse = np.logaddexp(a.m + np.log(a.l), b.m + np.log(b.l))
    m = np.maximum(a.m, b.m)
    f, g = (np.where(np.isneginf(s.m), 0.0, np.exp(s.m - np.maximum(m, -1e300))) for s in (a, b))
    l = np.where(np.isneginf(m), 0.0, np.exp(lse - np.maximum(m, -1e300)))
    return State(m, l, np.expand_dims(f, -1) * a.O_acc + np.expand_dims(g, -1) * b.O_acc)


# merge: nan made 0
def my_merge(a, b):
    m = np.maximum(a.m, b.m)
    f = np.nan_to_num(np.exp(a.m - m))
    g = np.nan_to_num(np.exp(b.m - m))
    return State(m, f * a.l + g * b.l, (f * a.O_acc.T).T + (g * b.O_acc.T).T)


# merge: the smaller one rescaled, row by row
def my_merge(a, b):
    if np.ndim(a.m):
        rows = [my_merge(State(*x), State(*y)) for x, y in zip(zip(*a), zip(*b))]
        return State(*(np.array(field) for field in zip(*rows)))
    if a.m < b.m:
        a, b = b, a
    if b.l == 0:
        return State(a.m, a.l, a.O_acc)
    factor = np.exp(b.m - a.m)
    return State(a.m, a.l + factor * b.l, a.O_acc + factor * b.O_acc)


# merge: stacked
def my_merge(a, b):
    ms, ls = np.stack([a.m, b.m]), np.stack([a.l, b.l])
    m = ms.max(axis=0)
    f = np.exp(ms - np.where(np.isinf(m), 0, m))
    return State(m, (f * ls).sum(0), np.einsum("k...,k...d->...d", f, np.stack([a.O_acc, b.O_acc])))


# merge_outputs: one after another
def my_merge_outputs(O, lse):
    out, total = np.zeros(O.shape[1]), -np.inf
    for O_j, lse_j in zip(O, lse):
        if lse_j == -np.inf:
            continue
        new = np.logaddexp(total, lse_j)
        out = out * np.exp(total - new) + O_j * np.exp(lse_j - new)
        total = new
    return out, total


# merge_outputs: weights from the whole lse
def my_merge_outputs(O, lse):
    total = np.logaddexp.reduce(lse)
    if np.isneginf(total):
        return [0.0] * O.shape[1], total
    return np.exp(lse - total) @ O, total


# merge_outputs: only the parts that are not masked
def my_merge_outputs(O, lse):
    O, lse = O[lse > -np.inf], lse[lse > -np.inf]
    if len(lse) == 0:
        return np.zeros(O.shape[-1]), float("-inf")
    m = max(lse.tolist())
    w = {j: np.exp(s - m) for j, s in enumerate(lse)}
    l = sum(w.values())
    return sum(w[j] / l * O[j] for j in w), float(m + np.log(l))
