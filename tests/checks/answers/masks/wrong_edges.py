"""Wrong answers that only particular cases catch: see `tests.checks.answers`."""


# block_table, value: int8
def my_block_table(seen, B_r, B_c):
    R, C = -(-seen.shape[0] // B_r), -(-seen.shape[1] // B_c)
    nw, nc = np.zeros(R, np.int8), np.zeros(R, np.int8)
    w, c = np.full((R, C), -1, np.int8), np.full((R, C), -1, np.int8)
    for i in range(R):
        for j in range(C):
            t = seen[i * B_r:(i + 1) * B_r, j * B_c:(j + 1) * B_c]
            if t.all():
                w[i, nw[i]] = np.array(j).astype(np.int8); nw[i] += 1
            elif t.any():
                c[i, nc[i]] = np.array(j).astype(np.int8); nc[i] += 1
    return nw, w, nc, c


# block_table, value: + 0.999
def my_block_table(seen, B_r, B_c):
    R, C = int(seen.shape[0] / B_r + 0.999), int(seen.shape[1] / B_c + 0.999)
    nw, nc = np.zeros(R, int), np.zeros(R, int)
    w, c = np.full((R, C), -1), np.full((R, C), -1)
    for i in range(R):
        for j in range(C):
            t = seen[i * B_r:(i + 1) * B_r, j * B_c:(j + 1) * B_c]
            if t.all():
                w[i, nw[i]] = j; nw[i] += 1
            elif t.any():
                c[i, nc[i]] = j; nc[i] += 1
    return nw, w, nc, c


# work_of, value: + 0.999
def my_work_of(p, cu_seqlens, B_r):
    for b in range(len(cu_seqlens) - 1):
        start, stop = cu_seqlens[b], cu_seqlens[b + 1]
        T = int((stop - start) / B_r + 0.999)
        if p < T:
            return b, start + p * B_r, min(start + (p + 1) * B_r, stop)
        p -= T
    return -1, 0, 0


# work_of, argument_changed: cu_seqlens popped
def my_work_of(p, cu_seqlens, B_r):
    b = 0
    while len(cu_seqlens) > 1:
        start, stop = cu_seqlens.pop(0), cu_seqlens[0]
        T = -(-(stop - start) // B_r)
        if p < T:
            return b, start + p * B_r, min(start + (p + 1) * B_r, stop)
        p -= T
        b += 1
    return -1, 0, 0


# work_of, value: named cu
def my_work_of(p, cu, B_r):
    return 0, 0, 0


# capped_gradient, hidden_number: -1000
def my_capped_gradient(S_ij, dP_ij, lse_i, delta_i, seen, c):
    t = np.tanh(S_ij / c)
    shift = np.where(lse_i == -np.inf, 0, lse_i)
    P = np.exp(np.where(seen, c * t, -1000.0) - shift[:, None])
    return P * (dP_ij - delta_i[:, None]) * (1 - t**2)


# capped_gradient, hidden_number: -3000
def my_capped_gradient(S_ij, dP_ij, lse_i, delta_i, seen, c):
    t = np.tanh(S_ij / c)
    shift = np.where(lse_i == -np.inf, 0, lse_i)
    P = np.exp(np.where(seen, c * t, -3000.0) - shift[:, None])
    return P * (dP_ij - delta_i[:, None]) * (1 - t**2)


# capped_gradient, hidden_number: -1e4
def my_capped_gradient(S_ij, dP_ij, lse_i, delta_i, seen, c):
    t = np.tanh(S_ij / c)
    shift = np.where(lse_i == -np.inf, 0, lse_i)
    P = np.exp(np.where(seen, c * t, -1e4) - shift[:, None])
    return P * (dP_ij - delta_i[:, None]) * (1 - t**2)


# sink, empty_by_O: empty told by O = 0
def my_sink(O, lse, sink):
    seen = (O != 0).any(axis=1)
    new = np.where(seen, np.logaddexp(lse, sink), sink)
    return O * np.exp(lse - new)[:, None], new


# sink, sink_0_ignored: sink of 0 is none
def my_sink(O, lse, sink):
    if not sink:
        return O.copy(), lse.copy()
    new = np.logaddexp(lse, sink)
    return O * np.exp(lse - new)[:, None], new


# sink, low_is_nothing: low lse is none
def my_sink(O, lse, sink):
    new = np.where(lse < -1e4, sink, np.logaddexp(lse, sink))
    return O * np.exp(lse - new)[:, None], new


# sink, O_not_scaled: named s
def my_sink(O, lse, s):
    return O, np.logaddexp(lse, s)


# sink, inexact: the factor in fp32
def my_sink(O, lse, sink):
    new = np.logaddexp(lse, sink)
    return O * np.exp(lse - new).astype(np.float32)[:, None], new


# sink, argument_changed: in place
def my_sink(O, lse, sink):
    new = np.logaddexp(lse, sink)
    O *= np.exp(lse - new)[:, None]
    return O, new


# sink, inexact: lse rows in fp32
def my_sink(O, lse, sink):
    new = np.logaddexp(lse.astype(np.float32), np.float32(sink)).astype(float)
    return O * np.exp(lse - new)[:, None], new
