"""Right answers to the exercises of chapter 05 in further styles: see `tests.checks.answers`."""


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
