"""Right answers in further styles: see `tests.checks.answers`."""


# normalised: np.asarray first, and then one pass
def my_normalised(x, V):
    x, V = np.asarray(x), np.asarray(V)
    m, l, O, outputs = -np.inf, 0.0, np.zeros(V.shape[1]), np.zeros(V.shape)
    for j in range(len(x)):
        if x[j] > -np.inf:
            m_old, m = m, max(m, x[j])
            l_old, l = l, l * np.exp(m_old - m) + np.exp(x[j] - m)
            O = np.exp(m_old - m) * l_old / l * O + np.exp(x[j] - m) / l * V[j]
        outputs[j] = O
    return outputs


# normalised: lists
def my_normalised(x, V):
    out, m, l, O = [], -np.inf, 0.0, np.zeros(V.shape[1])
    for x_j, v in zip(x.tolist(), V):
        if x_j != -np.inf:
            new = max(m, x_j)
            old = l * np.exp(m - new)
            l = old + np.exp(x_j - new)
            O = O * (old / l) + v * (np.exp(x_j - new) / l)
            m = new
        out.append(O)
    return np.array(out).reshape(V.shape)


# normalised: tolist of both
def my_normalised(x, V):
    m, l, O = -np.inf, 0.0, np.zeros(V.shape[1])
    rows = []
    for s, v in zip(x.tolist(), np.array(V)):
        if s > -np.inf:
            m_old, m = m, max(m, s)
            alpha, p = np.exp(m_old - m), np.exp(s - m)
            l_old, l = l, alpha * l + p
            O = alpha * l_old / l * O + p / l * v
        rows.append(O)
    return np.reshape(rows, V.shape)


# normalised: a class that keeps the state
class Running:
    def __init__(self, d):
        self.m, self.l, self.O = -np.inf, 0.0, np.zeros(d)

    def __call__(self, s, v):
        if s > -np.inf:
            m = max(self.m, s)
            keep, new = self.l * np.exp(self.m - m), np.exp(s - m)
            self.m, self.l = m, keep + new
            self.O = self.O + new / self.l * (v - self.O)
        return self.O


def my_normalised(x, V):
    run = Running(V.shape[1])
    out = np.zeros(V.shape)
    for j in range(len(x)):
        out[j] = run(x[j], V[j])
    return out


# alpha: only where seen
def my_alpha(m_old, m):
    out = np.zeros(len(m))
    seen = m_old > -np.inf
    out[seen] = np.exp(m_old[seen] - m[seen])
    return out


# alpha: a lambda over pairs
def my_alpha(m_old, m):
    factor = lambda a, b: np.exp(a - b) if a > -np.inf else 0.0
    return np.array([factor(*pair) for pair in zip(m_old, m)])


# normalised: the mean so far, with lse
def my_normalised(x, V):
    lse, o, out = -np.inf, np.zeros(V.shape[1]), np.zeros(V.shape)
    for j, (x_j, v) in enumerate(zip(x, V)):
        lse = np.logaddexp(lse, x_j)
        if lse > -np.inf: o = o + np.exp(x_j - lse) * (v - o)
        out[j] = o
    return out


# normalised: a list of rows
def my_normalised(x, V):
    lse, o, out = -np.inf, np.zeros(V.shape[1]), []
    for x_j, v in zip(x, V):
        lse = np.logaddexp(lse, x_j)
        if lse > -np.inf: o = o + np.exp(x_j - lse) * (v - o)
        out.append(o)
    return np.array(out).reshape(V.shape)


# block_step: einsum, and a list of three
def my_block_step(Q_i, K_j, V_j, m, l, O_acc, scale):
    S = scale * np.einsum("re,ce->rc", Q_i, K_j)
    new = np.max(np.column_stack([m, S]), axis=1)
    P = np.exp(S.T - new).T
    a = np.exp(m - new)
    return [new, a * l + P.sum(1), (O_acc.T * a).T + P @ V_j]


# block_step: key by key, row by row
def my_block_step(Q_i, K_j, V_j, m, l, O_acc, scale):
    rows = []
    for q, m_r, l_r, o in zip(Q_i, m, l, O_acc):
        for k, v in zip(K_j, V_j):
            s = q @ k * scale
            n = max(m_r, s)
            a, p = np.exp(m_r - n), np.exp(s - n)
            m_r, l_r, o = n, a * l_r + p, a * o + p * v
        rows.append((m_r, l_r, o))
    return tuple(np.array(x) for x in zip(*rows))


# alpha: nan made 0
def my_alpha(m_old, m):
    return np.nan_to_num(np.exp(m_old - m))


# alpha: exp where something was seen
def my_alpha(m_old, m):
    out = np.zeros_like(m)
    np.exp(m_old - m, where=m_old > -np.inf, out=out)
    return out


# one_row: values row by row
def my_one_row(q, K, V, B_c, scale):
    m, l, O = -np.inf, 0.0, np.zeros(len(q))
    for c in range(0, len(K), B_c):
        x = K[c : c + B_c] @ q * scale
        n = max(m, x.max())
        a, p = np.exp(m - n), np.exp(x - n)
        m, l = n, a * l + p.sum()
        O = a * O + sum(p_j * v for p_j, v in zip(p, V[c : c + B_c]))
    return O / l
