"""Wrong answers: see `tests.checks.answers`."""


# weighted_mean, read_again: read again for the maximum
def my_weighted_mean(x, v):
    m = max(x_j for x_j in x)
    top = bottom = 0.0
    for j in range(len(x)):
        p = np.exp(x[j] - m)
        top, bottom = top + p * v[j], bottom + p
    return top / bottom


# weighted_mean, loaded_at_once: a row of weights
def my_weighted_mean(x, v):
    x, v = x[:], v[:]
    p = np.exp(x - x.max())
    return p @ v / p.sum()


# weighted_mean, no_maximum: no maximum
def my_weighted_mean(x, v):
    num, den = 0.0, 0.0
    for a, b in zip(x, v):
        num += np.exp(a) * b
        den += np.exp(a)
    return num / den


# weighted_mean, loaded_at_once: past the meter
def my_weighted_mean(x, v):
    x, v = np.asarray(x), np.asarray(v)
    p = np.exp(x - x.max())
    return (p * v).sum() / p.sum()


# weighted_mean, kept: lists
def my_weighted_mean(x, v):
    scores, values = list(x), list(v)
    m = max(scores)
    weights = [np.exp(s - m) for s in scores]
    return sum(w * u for w, u in zip(weights, values)) / sum(weights)


# weighted_mean, equal_dropped: branches
def my_weighted_mean(x, v):
    m, l, acc = -np.inf, 0.0, 0.0
    for j in range(len(x)):
        s, u = x[j], v[j]
        if s > m:
            alpha = np.exp(m - s)
            m, l, acc = s, alpha * l + 1, alpha * acc + u
        elif s < m:
            p = np.exp(s - m)
            l, acc = l + p, acc + p * u
    return acc / l


# weighted_mean, first_subtracted: the first score as the shift of all
def my_weighted_mean(x, v):
    scores = iter(zip(x, v))
    m, acc = next(scores)
    l = 1.0
    for s, u in scores:
        w = np.exp(s - m)
        l, acc = l + w, acc + w * u
    return acc / l


# weighted_mean, m_from_number: -1e4 for -inf
def my_weighted_mean(x, v):
    m, l, acc = -1e4, 0.0, 0.0
    for s, u in zip(x, v):
        new = max(m, s)
        l = l * np.exp(m - new) + np.exp(s - new)
        acc = acc * np.exp(m - new) + np.exp(s - new) * u
        m = new
    return acc / l


# weighted_mean, loaded_at_once: np.array of both
def my_weighted_mean(x, v):
    x, v = np.array(x), np.array(v)
    m, l, acc = -np.inf, 0.0, 0.0
    for s, u in zip(x, v):
        new = max(m, s)
        a, p = np.exp(m - new), np.exp(s - new)
        m, l, acc = new, a * l + p, a * acc + p * u
    return acc / l


# weighted_mean, loaded_at_once: v by slices of four
def my_weighted_mean(x, v):
    m, l, acc = -np.inf, 0.0, 0.0
    for start in range(0, len(x), 4):
        for s, u in zip(x[start : start + 4], v[start : start + 4]):
            new = max(m, s)
            a, p = np.exp(m - new), np.exp(s - new)
            m, l, acc = new, a * l + p, a * acc + p * u
    return acc / l


# weighted_mean, loaded_at_once: a view of all, whose numbers are taken one at a time
def my_weighted_mean(x, v):
    x, v = x.view(np.ndarray), v.view(np.ndarray)
    m, l, acc = -np.inf, 0.0, 0.0
    for j in range(x.size):
        new = max(m, x[j])
        a, p = np.exp(m - new), np.exp(x[j] - new)
        m, l, acc = new, a * l + p, a * acc + p * v[j]
    return acc / l


# weighted_mean, kept: weights in an array that grows
def my_weighted_mean(x, v):
    m, weights, values = -np.inf, np.zeros(0), np.zeros(0)
    for s, u in zip(x, v):
        new = max(m, s)
        weights = np.append(weights * np.exp(m - new), np.exp(s - new))
        values, m = np.append(values, u), new
    return float(weights @ values / weights.sum())


# weighted_mean, read_again: x again for the weighted sum
def my_weighted_mean(x, v):
    m, l = -np.inf, 0.0
    for s in x:
        new = max(m, s)
        l, m = l * np.exp(m - new) + np.exp(s - new), new
    return sum(np.exp(x[j] - m) / l * v[j] for j in range(len(x)))


# weighted_mean, inexact: a small number against a division by 0
def my_weighted_mean(x, v):
    m, l, acc = -np.inf, 0.0, 0.0
    for s, u in zip(x, v):
        new = max(m, s)
        a, p = np.exp(m - new), np.exp(s - new)
        m, l, acc = new, a * l + p, a * acc + p * u
    return acc / (l + 1e-8)


# weighted_mean, inexact: sums of fp32
def my_weighted_mean(x, v):
    m, l, acc = -np.inf, np.float32(0), np.float32(0)
    for s, u in zip(x, v):
        new = max(m, s)
        a, p = np.float32(np.exp(m - new)), np.float32(np.exp(s - new))
        m, l, acc = new, a * l + p, a * acc + p * np.float32(u)
    return acc / l
