"""Right answers in further styles: see `tests.checks.answers`."""


# online_step: logaddexp for l
def my_online_step(m, l, x_j):
    if np.isneginf(x_j):
        return m, l
    if x_j > m:
        return x_j, l * np.exp(m - x_j) + 1
    return m, l + np.exp(x_j - m)


# online_step: a walrus
def my_online_step(m, l, x_j):
    if (n := max(m, x_j)) == -np.inf:
        return m, l
    return n, l * np.exp(m - n) + np.exp(x_j - n)


# stream_lse: by a partial
from functools import partial, reduce


def _add(zero, s, x):
    m, l = s
    if x == zero:
        return s
    n = max(m, x)
    return n, l * np.exp(m - n) + np.exp(x - n)


def my_stream_lse(stream):
    m, l = reduce(partial(_add, -np.inf), stream, (-np.inf, 0.0))
    return m + np.log(l) if l else -np.inf


# weighted_mean: a dataclass
from dataclasses import dataclass


@dataclass
class Acc:
    m: float = -np.inf
    l: float = 0.0
    a: float = 0.0


def my_weighted_mean(x, v):
    s = Acc()
    for j in range(len(x)):
        x_j, v_j = x[j], v[j]
        n = max(s.m, x_j)
        f, p = np.exp(s.m - n), np.exp(x_j - n)
        s = Acc(n, f * s.l + p, f * s.a + p * v_j)
    return s.a / s.l


# merge: by lse, where empty is told by l
def my_merge(a, b):
    m = np.maximum(a.m, b.m)
    with np.errstate(invalid="ignore"):
        fa = np.where(np.equal(a.l, 0), 0, np.exp(a.m - m))
        fb = np.where(np.equal(b.l, 0), 0, np.exp(b.m - m))
    return State(m, a.l * fa + b.l * fb, np.expand_dims(fa, -1) * a.O_acc + np.expand_dims(fb, -1) * b.O_acc)


# merge: nan_to_num of the factors
def my_merge(a, b):
    m = np.maximum(a.m, b.m)
    with np.errstate(invalid="ignore"):
        f, g = (np.nan_to_num(np.exp(np.subtract(s.m, m))) for s in (a, b))
    return State(m=m, l=f * a.l + g * b.l, O_acc=f[..., None] * a.O_acc + g[..., None] * b.O_acc)


# merge_outputs: masked arrays of those that are not -inf
def my_merge_outputs(O, lse):
    match np.flatnonzero(lse > -np.inf):
        case np.ndarray(size=0):
            return np.zeros(O.shape[1]), -np.inf
        case live:
            m = max(lse[live])
            w = np.exp(lse[live] - m)
            return np.average(O[live], axis=0, weights=w), m + np.log(w.sum())


# merge_outputs: logaddexp.reduce
def my_merge_outputs(O, lse):
    total = np.logaddexp.reduce(lse)
    if np.isneginf(total):
        return 0 * O[0], total
    return np.exp(lse - total) @ O, total


# merge_outputs: functools.reduce of pairs
def my_merge_outputs(O, lse):
    import functools

    def pair(a, b):
        (O_a, x), (O_b, y) = a, b
        z = np.logaddexp(x, y)
        if z == -np.inf:
            return O_a, z
        return O_a * np.exp(x - z) + O_b * np.exp(y - z), z

    return functools.reduce(pair, zip(O, lse))


# online_step: both factors at once, nan made 0
def my_online_step(m, l, x_j):
    m_new = np.maximum(m, x_j)
    with np.errstate(invalid="ignore"):
        a, b = np.nan_to_num(np.exp(np.array([m, x_j]) - m_new))
    return m_new, a * l + b


# online_step: a list of two
def my_online_step(m, l, x_j):
    if x_j == -np.inf: return [m, l]
    if x_j > m:
        return [x_j, 1 + l * np.exp(m - x_j)]
    return [m, l + np.exp(x_j - m)]


# stream_lse: reduce
def my_stream_lse(stream):
    from functools import reduce
    return reduce(np.logaddexp, stream, -np.inf)


# merge: both parts stacked
def my_merge(a, b):
    m = np.fmax(a.m, b.m)
    shift = np.maximum(m, -1e300)
    w = np.exp(np.stack([a.m, b.m]) - shift)
    l = (w * np.stack([a.l, b.l])).sum(axis=0)
    O = (w[..., None] * np.stack([a.O_acc, b.O_acc])).sum(axis=0)
    return State(m, l, O)


# merge: nan made 0
def my_merge(a, b):
    m = np.maximum(a.m, b.m)
    with np.errstate(invalid="ignore"):
        fa, fb = np.nan_to_num(np.exp(a.m - m)), np.nan_to_num(np.exp(b.m - m))
    return State(m=m, l=fa * a.l + fb * b.l, O_acc=(fa * np.transpose(a.O_acc) + fb * np.transpose(b.O_acc)).T)


# merge_outputs: one part after the other
def my_merge_outputs(O, lse):
    out, total = np.zeros(O.shape[1]), -np.inf
    for o, x in zip(O, lse):
        new = np.logaddexp(total, x)
        if new > -np.inf:
            out = np.exp(total - new) * out + np.exp(x - new) * o
        total = new
    return out, total


# merge_outputs: a list of two
def my_merge_outputs(O, lse):
    total = np.logaddexp.reduce(lse)
    if np.isneginf(total): return [np.zeros_like(O[0]), total]
    return [(np.exp(lse - total)[:, None] * O).sum(0), total]


# weighted_mean: the mean so far
def my_weighted_mean(x, v):
    m, l, mean = -np.inf, 0.0, 0.0
    for x_j, v_j in zip(x, v):
        n = max(m, x_j); l, p = l * np.exp(m - n), np.exp(x_j - n); m = n
        l += p
        mean += p / l * (v_j - mean)
    return mean


# weighted_mean: lse in place of m and l
def my_weighted_mean(x, v):
    lse, mean = -np.inf, 0.0
    for j in range(len(x)):
        x_j = x[j]
        new = np.logaddexp(lse, x_j)
        mean = mean * np.exp(lse - new) + v[j] * np.exp(x_j - new)
        lse = new
    return mean
