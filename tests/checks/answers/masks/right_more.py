"""More right answers: promotion by NumPy, lists, loops: see `tests.checks.answers`."""


# window_bounds: a list, and max and min of Python
def my_window_bounds(i, N_q, N_k, B_r, B_c, left, right):
    top = i * B_r + N_k - N_q
    bottom = min(i * B_r + B_r, N_q) - 1 + N_k - N_q
    from_key, to_key = max(top - left, 0), min(bottom + right, N_k - 1)
    all_from, all_to = max(bottom - left, 0), min(top + right, N_k - 1)
    if to_key < from_key:
        return [0, 0, 0, 0]
    whole_end = (all_to + 1 + (B_c - 1 if all_to == N_k - 1 else 0)) // B_c
    return [from_key // B_c, to_key // B_c + 1, (all_from + B_c - 1) // B_c, max(whole_end, 0)]


# block_table: lists of lists
def my_block_table(seen, B_r, B_c):
    T_r, T_c = -(-seen.shape[0] // B_r), -(-seen.shape[1] // B_c)
    lists = [[[], []] for _ in range(T_r)]
    for i in range(T_r):
        for j in range(T_c):
            tile = seen[i * B_r : (i + 1) * B_r, j * B_c : (j + 1) * B_c]
            if np.any(tile):
                lists[i][0 if np.all(tile) else 1].append(j)
    padded = [np.array([row[k] + [-1] * (T_c - len(row[k])) for row in lists]).reshape(T_r, T_c) for k in (0, 1)]
    return [len(row[0]) for row in lists], padded[0], [len(row[1]) for row in lists], padded[1]


# work_of: running sums of row blocks
def my_work_of(p, cu_seqlens, B_r):
    starts = np.array(cu_seqlens)
    ends = np.cumsum(-(-np.diff(starts) // B_r))
    if p >= ends[-1]:
        return -1, 0, 0
    b = int(np.searchsorted(ends, p, side="right"))
    first = starts[b] + (p - (ends[b - 1] if b else 0)) * B_r
    return b, first, min(first + B_r, starts[b + 1])


# alibi_tile: np.subtract.outer, and a matrix product for the penalty
def my_alibi_tile(S_ij, rows, cols, past, slope):
    positions = np.arange(rows.start, rows.stop, dtype=np.float64) + past
    distance = np.abs(np.subtract.outer(positions, np.arange(cols.start, cols.stop)))
    return np.subtract(S_ij, np.multiply(slope, distance))


# capped_gradient: 1 / cosh^2 where it does not overflow, and weights of masked rows set in place
def my_capped_gradient(S_ij, dP_ij, lse_i, delta_i, seen, c):
    t = np.tanh(S_ij / np.float64(c))
    P = np.zeros_like(t)
    rows, cols = np.nonzero(seen & np.isfinite(lse_i)[:, None])
    P[rows, cols] = np.exp(c * t[rows, cols] - lse_i[rows])
    return P * (dP_ij - delta_i.reshape(-1, 1)) * (1 - t) * (1 + t)


# sink: row by row, with the larger subtracted
def my_sink(O, lse, sink):
    O_new, lse_new = O.copy(), np.empty_like(lse)
    for i, x in enumerate(lse):
        top = max(x, sink)
        lse_new[i] = top + np.log(np.exp(x - top) + np.exp(sink - top))
        O_new[i] *= np.exp(x - lse_new[i])
    return O_new, lse_new


# capped: by powers of the size, which never overflow
@triton.jit
def my_capped(S, visible, cap):
    x = S / cap
    e = tl.exp(-2 * tl.abs(x))
    t = (1 - e) / (1 + e)
    return tl.where(visible, tl.where(x < 0, -t, t) * cap, -float("inf"))


# dropout: a mask that multiplies
@triton.jit
def my_dropout(P, dP, delta, seed, head, offs_m, offs_n, N_q, N_k, p):
    first = head.to(tl.int64) * N_q * N_k
    place = first + offs_m[:, None] * N_k + offs_n[None, :]
    kept = (tl.rand(seed, place) >= p).to(tl.float32)
    scale = 1.0 / (1.0 - p)
    return P * kept * scale, P * dP * kept * scale - P * delta[:, None]
