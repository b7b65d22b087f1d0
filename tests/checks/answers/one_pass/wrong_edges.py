"""Wrong answers that only particular cases catch: see `tests.checks.answers`."""


# normalised, empty_by_O: unseen told by O = 0
def my_normalised(x, V):
    m, l, O = -np.inf, 0.0, np.zeros(V.shape[1])
    out = np.zeros(V.shape)
    for j, (x_j, v_j) in enumerate(zip(x, V)):
        if x_j > -np.inf:
            if not O.any():
                m, l, O = x_j, 1.0, 1.0 * v_j
            else:
                m_old, m = m, max(m, x_j)
                al, p = np.exp(m_old - m), np.exp(x_j - m)
                l_old, l = l, al * l + p
                O = al * l_old / l * O + p / l * v_j
        out[j] = O
    return out


# normalised, m_from_number: -1e9
def my_normalised(x, V):
    m, l, O = -1e9, 0.0, np.zeros(V.shape[1])
    out = np.zeros(V.shape)
    for j, (x_j, v_j) in enumerate(zip(x, V)):
        if x_j > -np.inf:
            m_old, m = m, max(m, x_j)
            al, p = np.exp(m_old - m), np.exp(x_j - m)
            l_old, l = l, al * l + p
            O = al * l_old / l * O + p / l * v_j
        out[j] = O
    return out


# normalised, m_from_number: -1e5
def my_normalised(x, V):
    m, l, O = -1e5, 0.0, np.zeros(V.shape[1])
    out = np.zeros(V.shape)
    for j, (x_j, v_j) in enumerate(zip(x, V)):
        if x_j > -np.inf:
            m_old, m = m, max(m, x_j)
            al, p = np.exp(m_old - m), np.exp(x_j - m)
            l_old, l = l, al * l + p
            O = al * l_old / l * O + p / l * v_j
        out[j] = O
    return out


# block_step, inexact: P in fp16
def my_block_step(Q_i, K_j, V_j, m, l, O_acc, scale):
    S = Q_i @ K_j.T * scale
    new = np.maximum(m, S.max(axis=1))
    a, P = np.exp(m - new), np.exp(S - new[:, None])
    return new, a * l + P.sum(axis=1), a[:, None] * O_acc + P.astype(np.float16) @ V_j


# block_step, O_0_is_nothing: a first block told by O_acc = 0
def my_block_step(Q_i, K_j, V_j, m, l, O_acc, scale):
    S = Q_i @ K_j.T * scale
    if not O_acc.any():
        m, l = np.full_like(m, -np.inf), 0 * l
    new = np.maximum(m, S.max(axis=1))
    a, P = np.exp(m - new), np.exp(S - new[:, None])
    return new, a * l + P.sum(axis=1), a[:, None] * O_acc + P @ V_j


# one_row, m_from_number: -1e6
def my_one_row(q, K, V, B_c, scale):
    m, l, O = -1e6, 0.0, np.zeros(len(q))
    for s in range(0, len(K), B_c):
        x = K[s:s + B_c] @ q * scale
        m_old, m = m, max(m, x.max())
        a, p = np.exp(m_old - m), np.exp(x - m)
        l = a * l + p.sum()
        O = a * O + p @ V[s:s + B_c]
    return O / l


# one_row, inexact: sums in fp32
def my_one_row(q, K, V, B_c, scale):
    m, l, O = -np.inf, np.float32(0), np.zeros(len(q), np.float32)
    for s in range(0, len(K), B_c):
        x = K[s:s + B_c] @ q * scale
        m_old, m = m, max(m, x.max())
        a, p = np.exp(m_old - m), np.exp(x - m)
        l = np.float32(a * l + p.sum())
        O = (a * O + p @ V[s:s + B_c]).astype(np.float32)
    return O / l


# one_row, O_0_is_nothing: a first block told by O = 0
def my_one_row(q, K, V, B_c, scale):
    m, l, O = 0.0, 0.0, np.zeros(len(q))
    for s in range(0, len(K), B_c):
        x = K[s:s + B_c] @ q * scale
        if not O.any():
            m, l = -np.inf, 0.0
        m_old, m = m, max(m, x.max())
        a, p = np.exp(m_old - m), np.exp(x - m)
        l = a * l + p.sum()
        O = a * O + p @ V[s:s + B_c]
    return O / l


# one_row, shape: three columns
def my_one_row(q, K, V, B_c, scale):
    m, l, O = -np.inf, 0.0, np.zeros(3)
    for s in range(0, len(K), B_c):
        x = K[s:s + B_c] @ q * scale
        m_old, m = m, max(m, x.max())
        a, p = np.exp(m_old - m), np.exp(x - m)
        l = a * l + p.sum()
        O = a * O + p @ V[s:s + B_c]
    return O / l


# alpha, low_is_nothing: low is none
def my_alpha(m_old, m):
    return np.where(m_old < -1e4, 0, np.exp(m_old - np.where(m < -1e4, 0, m)))


# alpha, low_is_nothing: both at least -1e6
def my_alpha(m_old, m):
    a = np.maximum(m_old, -1e6)
    b = np.maximum(m, -1e6)
    return np.where(m_old == -np.inf, 0, np.exp(a - b))
