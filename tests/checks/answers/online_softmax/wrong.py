"""Wrong answers: see `tests.checks.answers`."""


# online_step, term_rescaled: new term rescaled too
def my_online_step(m, l, x_j):
    if np.isinf(x_j):
        return m, l
    new = np.maximum(m, x_j)
    total = l + np.exp(x_j - new)
    return new, total * np.exp(m - new)


# online_step, exchanged: exchanged
def my_online_step(m, l, x_j):
    if x_j == -np.inf:
        return l, m
    new = max(m, x_j)
    return np.exp(m - new) * l + np.exp(x_j - new), new


# online_step, equal_dropped: two branches, none for equal ones
def my_online_step(m, l, x_j):
    if x_j == -np.inf:
        return m, l
    if x_j > m:
        l = l * np.exp(m - x_j) + 1
        m = x_j
    elif x_j < m:
        l += np.exp(x_j - m)
    return m, l


# online_step, equal_twice: two ifs that both take equal ones
def my_online_step(m, l, x_j):
    if np.isneginf(x_j):
        return m, l
    old = m
    if x_j >= old:
        l, m = l * np.exp(old - x_j) + 1.0, x_j
    if x_j <= old:
        l = l + np.exp(x_j - m)
    return m, l


# online_step, nothing_returned: a return in each branch, none for equal ones
def my_online_step(m, l, x_j):
    if x_j == -np.inf:
        return m, l
    if x_j > m:
        return x_j, l * np.exp(m - x_j) + 1
    elif x_j < m:
        return m, l + np.exp(x_j - m)


# online_step, exchanged: l and m, at the end alone
def my_online_step(m, l, x_j):
    if x_j == -np.inf:
        return m, l
    new = np.maximum(m, x_j)
    l = np.exp(m - new) * l + np.exp(x_j - new)
    return l, new


# online_step, taken_exchanged: l before m in the parameters
def my_online_step(l, m, x):
    if x == -np.inf:
        return m, l
    new_m = max(m, x)
    return new_m, np.exp(m - new_m) * l + np.exp(x - new_m)


# online_step, masked_counts: the first one is taken as it is
def my_online_step(m, l, x_j):
    if l == 0:
        return x_j, 1.0
    if x_j <= m:
        return m, l + np.exp(x_j - m)
    return x_j, 1.0 + l * np.exp(m - x_j)


# online_step, m_of_nothing: -1e30 in place of -inf
def my_online_step(m, l, x_j):
    m_old = max(m, -1e30)
    m = max(m_old, x_j)
    return m, l * np.exp(m_old - m) + np.exp(x_j - m)


# online_step, overflow: undone and done again
def my_online_step(m, l, x_j):
    if x_j == -np.inf:
        return m, l
    total = l * np.exp(m) + np.exp(x_j)
    m = max(m, x_j)
    return m, total / np.exp(m)


# online_step, masked_resets: 0 for a masked score
def my_online_step(m, l, x_j):
    new = max(m, x_j)
    if x_j > -np.inf:
        return new, l * np.exp(m - new) + np.exp(x_j - new)
    return new, 0.0


# stream_lse, no_maximum: no maximum
def my_stream_lse(stream):
    total = 0.0
    for x in stream:
        total += np.exp(x)
    return np.log(total)


# stream_lse, twice: taken twice
def my_stream_lse(stream):
    m = max(stream)
    l = sum(np.exp(x_j - m) for x_j in stream)
    return m + np.log(l)


# stream_lse, equal_dropped: branches
def my_stream_lse(stream):
    m, l = float("-inf"), 0.0
    for s in stream:
        if s > m:
            l = l * np.exp(m - s) + 1
            m = s
        elif s < m:
            l += np.exp(s - m)
    return m + np.log(l) if l > 0 else float("-inf")


# stream_lse, first_subtracted: the first score as the shift of all
def my_stream_lse(stream):
    shift = None
    total = 0.0
    for s in stream:
        if np.isinf(s):
            continue
        if shift is None:
            shift = s
        total += np.exp(s - shift)
    return -np.inf if shift is None else shift + np.log(total)


# stream_lse, m_from_number: -10000 for -inf
def my_stream_lse(stream):
    largest, total = -1e4, 0.0
    for s in stream:
        new = max(largest, s)
        total = total * np.exp(largest - new) + np.exp(s - new)
        largest = new
    return largest + np.log(total) if total else -np.inf


# stream_lse, kept: maximum and sum of a list
def my_stream_lse(stream):
    scores = [s for s in stream if s > -np.inf]
    if not scores:
        return -np.inf
    m = max(scores)
    return m + np.log(sum(np.exp(s - m) for s in scores))


# stream_lse, kept: a second stream, by tee
def my_stream_lse(stream):
    import itertools

    first, second = itertools.tee(stream)
    m = max(first, default=-np.inf)
    if m == -np.inf:
        return m
    return m + np.log(sum(np.exp(s - m) for s in second))


# stream_lse, masked_nan: lse of two, without a guard
def my_stream_lse(stream):
    lse = -np.inf
    for s in stream:
        top = max(lse, s)
        lse = top + np.log(np.exp(lse - top) + np.exp(s - top))
    return lse


# stream_lse, first_lost: starts with the first one, and l with 0
def my_stream_lse(stream):
    m, l = next(stream, -np.inf), 0.0
    for s in stream:
        if s == -np.inf:
            continue
        new = max(m, s)
        l = l * np.exp(m - new) + np.exp(s - new)
        m = new
    return m + np.log(l) if l else -np.inf


# stream_lse, held: blocks of 16
def my_stream_lse(stream):
    from itertools import islice

    m, l = -np.inf, 0.0
    while block := [s for s in islice(stream, 16)]:
        new = max(m, max(block))
        if new > -np.inf:
            l = l * np.exp(m - new) + np.exp(np.array(block) - new).sum()
            m = new
    return m + np.log(l) if l else -np.inf


# stream_lse, inexact: a small number against the logarithm of 0
def my_stream_lse(stream):
    m, l = -np.inf, 0.0
    for s in stream:
        if s == -np.inf:
            continue
        new = max(m, s)
        l, m = l * np.exp(m - new) + np.exp(s - new), new
    return m + np.log(l + 1e-6)
