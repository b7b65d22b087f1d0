"""Wrong answers: see `tests.checks.answers`."""


# causal_row_passes, all_read: reads 3 N
def my_causal_row_passes(x, n, p):
    m, l = -np.inf, 0.0
    for j, x_j in enumerate(x):
        m = max(m, x_j) if j < n else m
    for j, x_j in enumerate(x):
        l = l + (np.exp(x_j - m) if j < n else 0)
    for j, x_j in enumerate(x):
        p[j] = np.exp(x_j - m) / l if j < n else 0.0


# causal_row_passes, no_maximum: two passes
def my_causal_row_passes(x, n, p):
    l = sum(np.exp(x[j]) for j in range(n))
    p[:n] = np.exp(x[:n]) / l
    p[n:] = 0


# causal_row_passes, p_read: p written twice
def my_causal_row_passes(x, n, p):
    m = max((x[j] for j in range(n)), default=-np.inf)
    l = sum(np.exp(x[j] - m) for j in range(n))
    for j in range(n):
        p[j] = np.exp(x[j] - m)
    for j in range(n):
        p[j] = p[j] / l
    p[n:] = 0


# causal_row_passes, x_written: -inf written to x
def my_causal_row_passes(x, n, p):
    x[n:] = -np.inf
    p[:] = safe(x[:])


# causal_row_passes, ties: the largest ones set apart
def my_causal_row_passes(x, n, p):
    m = max((x[j] for j in range(n)), default=0.0)
    l = 1.0
    for j in range(n):
        x_j = x[j]
        if x_j < m:
            l += np.exp(x_j - m)
    for j in range(len(x)):
        p[j] = np.exp(x[j] - m) / l if j < n else 0.0


# causal_row_passes, kept: m and l in one pass
def my_causal_row_passes(x, n, p):
    m, l = -np.inf, 0.0
    for j in range(n):
        x_j = x[j]
        m_old, m = m, max(m, x_j)
        l = l * np.exp(m_old - m) + np.exp(x_j - m)
    for j in range(n):
        p[j] = np.exp(x[j] - m) / l
    p[n:] = 0


# causal_row_passes, kept: a copy
def my_causal_row_passes(x, n, p):
    row = np.array(x[:n])
    m = row.max(initial=-np.inf)
    e = np.exp(row - m)
    p[:n] = e / e.sum()
    p[n:] = 0


# causal_row_passes, hidden_read: np.asarray of all
def my_causal_row_passes(x, n, p):
    row = np.asarray(x)
    p[:n] = safe(row[:n])
    p[n:] = 0


# causal_row_passes, hidden_read: a list of all
def my_causal_row_passes(x, n, p):
    row = x.tolist()[:n]
    m = max(row, default=0.0)
    l = sum(np.exp(s - m) for s in row)
    for j in range(len(p)):
        p[j] = np.exp(row[j] - m) / l if j < n else 0.0


# causal_row_passes, hidden_read: zip with x first
def my_causal_row_passes(x, n, p):
    m, l = -np.inf, 0.0
    for x_j, _ in zip(x, range(n)):
        m = max(m, x_j)
    for j in range(n):
        l += np.exp(x[j] - m)
    for j in range(n):
        p[j] = np.exp(x[j] - m) / l
    p[n:] = 0.0


# causal_row_passes, p_read: the terms kept in p, divided in place
def my_causal_row_passes(x, n, p):
    m = x[:n].max(initial=-np.inf)
    p[:] = 0
    seen = p[:n]
    seen[:] = np.exp(x[:n] - m)
    if n:
        seen /= seen[...].sum()


# causal_row_passes, p_read: the sum of what was written
def my_causal_row_passes(x, n, p):
    m = max([x[j] for j in range(n)] or [0.0])
    for j in range(len(x)):
        p[j] = np.exp(x[j] - m) if j < n else 0.0
    p[:n] = p[:n] / p[:n].sum()


# causal_row_passes, none_visible: np.max of nothing
def my_causal_row_passes(x, n, p):
    m = np.max(x[:n])
    l = np.sum(np.exp(x[:n] - m))
    p[:n] = np.exp(x[:n] - m) / l
    p[n:] = 0


# causal_row_passes, m_from_finite: from -1e4
def my_causal_row_passes(x, n, p):
    m, l = -1e4, 0.0
    for j in range(n):
        m = max(m, x[j])
    for j in range(n):
        l += np.exp(x[j] - m)
    for j in range(n):
        p[j] = np.exp(x[j] - m) / l
    for j in range(n, len(x)):
        p[j] = 0


# causal_row_passes, slightly_off: fp32
def my_causal_row_passes(x, n, p):
    m = x[:n].max(initial=np.float32(-np.inf))
    l = np.float32(np.exp(x[:n] - m).sum())
    p[:n] = np.exp(x[:n] - m).astype(np.float32) / l
    p[n:] = 0


# causal_row_passes, x_written: shifted through a view
def my_causal_row_passes(x, n, p):
    row = x[:n]
    row -= row.max(initial=-np.inf)
    l = np.exp(x[:n]).sum()
    p[:n] = np.exp(x[:n]) / l
    p[n:] = 0


# causal_row_passes, p_written_twice: 0 first, everywhere
def my_causal_row_passes(x, n, p):
    p.fill(0)
    if n > 0:
        m = max(x[j] for j in range(n))
        l = sum(np.exp(x[j] - m) for j in range(n))
        for j in range(n):
            p[j] = np.exp(x[j] - m) / l


# causal_row_passes, one_too_many: the sum alone
def my_causal_row_passes(x, n, p):
    m, l = -np.inf, 0.0
    for j in range(n):
        m = max(m, x[j])
    for j in range(min(n + 1, len(x))):
        l += np.exp(x[j] - m)
    for j in range(len(x)):
        p[j] = np.exp(x[j] - m) / l if j < n else 0.0
