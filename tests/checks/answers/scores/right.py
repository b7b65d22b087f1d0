"""Right answers in other styles: see `tests.checks.answers`."""


# alibi_tile: outer differences
def my_alibi_tile(S_ij, rows, cols, past, slope):
    c, r = np.meshgrid(range(cols.start, cols.stop), range(rows.start, rows.stop))
    return S_ij + slope * np.minimum(c - (r + past), (r + past) - c)


# alibi_tile: number by number
def my_alibi_tile(S_ij, rows, cols, past, slope):
    out = S_ij.copy()
    for a in range(out.shape[0]):
        for b in range(out.shape[1]):
            out[a, b] -= abs(rows.start + a + past - cols.start - b) * slope
    return out


# capped_gradient: cosh, rows chosen
def my_capped_gradient(S_ij, dP_ij, lse_i, delta_i, seen, cap):
    dS = np.zeros(S_ij.shape)
    for r in range(len(S_ij)):
        for k in range(S_ij.shape[1]):
            if seen[r, k]:
                p = np.exp(cap * np.tanh(S_ij[r, k] / cap) - lse_i[r])
                dS[r, k] = p * (dP_ij[r, k] - delta_i[r]) / np.cosh(min(abs(S_ij[r, k] / cap), 300)) ** 2
    return dS


# capped_gradient: the slope from the capped scores
def my_capped_gradient(S_ij, dP_ij, lse_i, delta_i, seen, cap):
    capped = np.tanh(S_ij / cap) * cap
    P = np.where(seen, np.exp(capped - np.where(np.isinf(lse_i), np.inf, lse_i)[:, None]), 0)
    return (1 - capped / cap) * (1 + capped / cap) * P * (dP_ij - delta_i.reshape(-1, 1))


# sink: m and l, merged
def my_sink(O, lse, sink):
    m = np.maximum(lse, sink)
    l_row, l_sink = np.exp(lse - m), np.exp(sink - m)
    return O * (l_row / (l_row + l_sink))[:, None], m + np.log(l_row + l_sink)


# sink: a sigmoid
def my_sink(O, lse, sink):
    new = np.where(lse > sink, lse, sink) + np.log1p(np.exp(-np.abs(lse - sink)))
    with np.errstate(over="ignore"):
        return O / (1 + np.exp(sink - lse))[:, None], new


# capped: tl.sigmoid
@triton.jit
def my_capped(S, visible, cap):
    t = 2 * tl.sigmoid(2 * S / cap) - 1
    return tl.where(visible, t * cap, float("-inf"))


# capped: numbers that the compiler may read, from outside
TWO = tl.constexpr(2.0)


@triton.jit
def my_capped(S, visible, cap):
    hidden = tl.full(S.shape, -float("inf"), tl.float32)
    return tl.where(visible, cap * (1 - 2 / (tl.exp(S / cap * TWO) + 1)), hidden)


# capped: the negative power, with the sign put back, and another function
@triton.jit
def tanh(x):
    e = tl.exp(-2 * tl.abs(x))
    t = (1 - e) / (1 + e)
    return tl.where(x < 0, -t, t)


@triton.jit
def my_capped(S, visible, cap):
    S = tanh(S / cap) * cap
    return tl.where(visible == 0, -float("inf"), S)


# dropout: weights divided, dP chosen
@triton.jit
def my_dropout(P, dP, delta, seed, head, offs_m, offs_n, N_q, N_k, p):
    place = head.to(tl.int64) * N_q * N_k + offs_m[:, None] * N_k + offs_n[None, :]
    dropped = tl.rand(seed, place) < p
    kept = tl.where(dropped, 0.0, P / (1 - p))
    return kept, kept * dP - P * delta[:, None]


# dropout: a mask of numbers
@triton.jit
def my_dropout(P, dP, delta, seed, head, offs_m, offs_n, N_q, N_k, p):
    row = (head * N_q + offs_m).to(tl.int64) * N_k
    Z = (tl.rand(seed, row[:, None] + offs_n[None, :]) >= p).to(tl.float32) / (1.0 - p)
    dP = dP * Z
    return P * Z, (dP - delta[:, None]) * P
