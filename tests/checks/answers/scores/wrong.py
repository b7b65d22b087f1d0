"""Wrong answers: see `tests.checks.answers`."""


# alibi_tile, sign: number by number
def my_alibi_tile(S_ij, rows, cols, past, slope):
    return np.array([[s + slope * abs(r + past - c) for s, c in zip(line, range(cols.start, cols.stop))]
                     for line, r in zip(S_ij, range(rows.start, rows.stop))])


# alibi_tile, top_left: meshgrid
def my_alibi_tile(S_ij, rows, cols, past, slope):
    c, r = np.meshgrid(np.arange(cols.start, cols.stop), np.arange(rows.start, rows.stop))
    return S_ij - abs(c - r) * slope


# capped_gradient, no_slope: as in the plain backward pass
def my_capped_gradient(S_ij, dP_ij, lse_i, delta_i, seen, cap):
    P = np.exp(cap * np.tanh(S_ij / cap) - lse_i[:, None], where=seen, out=np.zeros_like(S_ij))
    return P * dP_ij - P * delta_i[:, None]


# capped_gradient, masked_after_exp: the mask last
def my_capped_gradient(S_ij, dP_ij, lse_i, delta_i, seen, cap):
    t = np.tanh(S_ij / cap)
    P = np.exp(cap * t - np.where(np.isinf(lse_i), 0, lse_i)[:, None]) * seen
    return P * (dP_ij - delta_i[:, None]) * (1 - t**2)


# capped_gradient, exp_overflows: weights divided by their sum
def my_capped_gradient(S_ij, dP_ij, lse_i, delta_i, seen, cap):
    t = np.tanh(S_ij / cap)
    l = np.exp(lse_i)[:, None]
    P = np.where(seen, np.exp(cap * t), 0) / np.where(l > 0, l, 1)
    return P * (dP_ij - delta_i[:, None]) * (1 - t**2)


# capped_gradient, P_not_capped: the slope alone knows of the cap
def my_capped_gradient(S_ij, dP_ij, lse_i, delta_i, seen, cap):
    P = np.where(seen & np.isfinite(lse_i)[:, None], np.exp(S_ij - np.where(lse_i > -np.inf, lse_i, 0)[:, None]), 0)
    return P * (dP_ij - delta_i[:, None]) * (1 - np.tanh(S_ij / cap) ** 2)


# sink, one_shift: l is made once for all rows
def my_sink(O, lse, sink):
    m = max(lse.max(), sink)
    e, e_sink = np.exp(lse - m), np.exp(sink - m)
    return O * (e / (e + e_sink))[:, None], m + np.log(e + e_sink)


# sink, shift_by_lse: a row without keys has a case of its own
def my_sink(O, lse, sink):
    m = np.where(lse == -np.inf, sink, lse)
    l_row, l_sink = np.exp(lse - m), np.exp(sink - m)
    return O * (l_row / (l_row + l_sink))[:, None], m + np.log(l_row + l_sink)


# sink, shift_by_sink: a ratio of weights
def my_sink(O, lse, sink):
    e = np.exp(lse - sink)
    return O * (e / (1 + e))[:, None], np.logaddexp(lse, sink)


# sink, overflow: l is made of lse
def my_sink(O, lse, sink):
    l = np.exp(lse)
    total = l + np.exp(sink)
    return O * (l / total)[:, None], np.log(total)


# sink, O_not_scaled: lse alone
def my_sink(O, lse, sink):
    return O.copy(), np.maximum(lse, sink) + np.log1p(np.exp(-abs(lse - sink)))


# capped, plain_global: a number from outside
TWO = 2.0


@triton.jit
def my_capped(S, visible, cap):
    return tl.where(visible, cap * (1 - TWO / (tl.exp(TWO * S / cap) + 1)), -float("inf"))


# capped, plain_global: a number that another kernel uses
HIDDEN = -float("inf")


@triton.jit
def shown(s, visible):
    return tl.where(visible, s, HIDDEN)


@triton.jit
def my_capped(S, visible, cap):
    return shown(cap * (1 - 2 / (tl.exp(2 * S / cap) + 1)), visible)


# capped, plain_function: a function that is not a kernel's
def tanh(x):
    return 1 - 2 / (tl.exp(2 * x) + 1)


@triton.jit
def my_capped(S, visible, cap):
    return tl.where(visible, cap * tanh(S / cap), -float("inf"))


# capped, overflow: a function of its own
@triton.jit
def tanh(x):
    e = tl.exp(2 * x)
    return (e - 1) / (e + 1)


@triton.jit
def my_capped(S, visible, cap):
    return tl.where(visible, cap * tanh(S / cap), -float("inf"))


# capped, cap_after_mask: with tl.sigmoid
@triton.jit
def my_capped(S, visible, cap):
    x = tl.where(visible, S / cap, -float("inf"))
    return cap * (2 * tl.sigmoid(2 * x) - 1)


# dropout, all_dropped: one mask for P and for dS
@triton.jit
def my_dropout(P, dP, delta, seed, head, offs_m, offs_n, N_q, N_k, p):
    place = head * N_q * N_k + offs_m[:, None] * N_k + offs_n[None, :]
    P_kept = tl.where(tl.rand(seed, place) < p, 0.0, P / (1 - p))
    return P_kept, P_kept * (dP - delta[:, None])


# dropout, of_tile: places in the tile
@triton.jit
def my_dropout(P, dP, delta, seed, head, offs_m, offs_n, N_q, N_k, p):
    r, c = tl.arange(0, P.shape[0]), tl.arange(0, P.shape[1])
    Z = tl.where(tl.rand(seed, (head * N_q + r[:, None]) * N_k + c[None, :]) >= p, 1 / (1 - p), 0.0)
    return Z * P, P * (Z * dP - delta[:, None])


# dropout, no_head: one head
@triton.jit
def my_dropout(P, dP, delta, seed, head, offs_m, offs_n, N_q, N_k, p):
    Z = tl.where(tl.rand(seed, offs_n[None, :] + N_k * offs_m[:, None]) < p, 0.0, 1 / (1 - p))
    return Z * P, P * (Z * dP - delta[:, None])
