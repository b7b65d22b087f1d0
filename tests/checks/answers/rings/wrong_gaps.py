"""Wrong answers that only special cases catch: see `gaps.txt`."""


# add_hop, no_key_nan: a guard for the case that all rows are empty
def my_add_hop(O, lse, O_new, lse_new, first, end):
    O, lse = O.copy(), lse.copy()
    old = lse[first:end].copy()
    both = np.logaddexp(old, lse_new)
    if np.all(both == -np.inf):
        return O, lse
    lse[first:end] = both
    O[first:end] = np.exp(old - both)[:, None] * O[first:end] + np.exp(lse_new - both)[:, None] * O_new
    return O, lse


# add_hop, one_row_decides: the hop is skipped if one row saw nothing
def my_add_hop(O, lse, O_new, lse_new, first, end):
    O, lse = O.copy(), lse.copy()
    if np.isneginf(lse_new).any():
        return O, lse
    old = lse[first:end].copy()
    both = np.logaddexp(old, lse_new)
    lse[first:end] = both
    O[first:end] = np.exp(old - both)[:, None] * O[first:end] + np.exp(lse_new - both)[:, None] * O_new
    return O, lse


# add_hop, one_row_decides: the hop replaces all rows if one was empty
def my_add_hop(O, lse, O_new, lse_new, first, end):
    O, lse = O.copy(), lse.copy()
    old = lse[first:end].copy()
    if np.isneginf(old).any():
        O[first:end], lse[first:end] = O_new, lse_new
        return O, lse
    both = np.logaddexp(old, lse_new)
    lse[first:end] = both
    O[first:end] = np.exp(old - both)[:, None] * O[first:end] + np.exp(lse_new - both)[:, None] * O_new
    return O, lse


# add_hop, one_maximum: the largest lse of all rows
def my_add_hop(O, lse, O_new, lse_new, first, end):
    O, lse = O.copy(), lse.copy()
    if first == end:
        return O, lse
    old = lse[first:end].copy()
    m = max(old.max(), lse_new.max())
    m = 0 if m == -np.inf else m
    a, b = np.exp(old - m), np.exp(lse_new - m)
    l = np.where(a + b == 0, 1, a + b)
    O[first:end] = (a[:, None] * O[first:end] + b[:, None] * O_new) / l[:, None]
    lse[first:end] = m + np.log(a + b)
    return O, lse


# add_hop, empty_by_O: a row is empty if its output is
def my_add_hop(O, lse, O_new, lse_new, first, end):
    O, lse = O.copy(), lse.copy()
    for i in range(first, end):
        a, b = lse[i], lse_new[i - first]
        if not O[i].any():
            O[i], lse[i] = O_new[i - first], b
        elif O_new[i - first].any():
            both = np.logaddexp(a, b)
            O[i] = np.exp(a - both) * O[i] + np.exp(b - both) * O_new[i - first]
            lse[i] = both
    return O, lse


# add_hop, empty_by_size: -10000 stands for -inf
def my_add_hop(O, lse, O_new, lse_new, first, end):
    O, lse = O.copy(), lse.copy()
    old = np.maximum(lse[first:end], -1e4)
    new = np.maximum(lse_new, -1e4)
    both = np.logaddexp(old, new)
    O[first:end] = np.exp(old - both)[:, None] * O[first:end] + np.exp(new - both)[:, None] * O_new
    lse[first:end] = np.where(both < -9000, -np.inf, both)
    return O, lse


# add_hop, equal_left_out: larger, or smaller
def my_add_hop(O, lse, O_new, lse_new, first, end):
    O, lse = O.copy(), lse.copy()
    for i in range(first, end):
        a, b, O_b = lse[i], lse_new[i - first], O_new[i - first]
        if a > b:
            w = np.exp(b - a)
            O[i], lse[i] = (O[i] + w * O_b) / (1 + w), a + np.log1p(w)
        elif b > a:
            w = np.exp(a - b)
            O[i], lse[i] = (w * O[i] + O_b) / (1 + w), b + np.log1p(w)
    return O, lse


# add_hop, inexact: half the digits
def my_add_hop(O, lse, O_new, lse_new, first, end):
    O, lse = O.astype(np.float32), lse.astype(np.float32)
    old = lse[first:end].copy()
    both = np.logaddexp(old, lse_new)
    shift = np.where(both == -np.inf, 0, both)
    O[first:end] = np.exp(old - shift)[:, None] * O[first:end] + np.exp(lse_new - shift)[:, None] * O_new
    lse[first:end] = both
    return O, lse


# add_hop, last_row_missing: a loop that ends early
def my_add_hop(O, lse, O_new, lse_new, first, end):
    O, lse = O.copy(), lse.copy()
    for i in range(first, end - 1):
        a, b = lse[i], lse_new[i - first]
        both = np.logaddexp(a, b)
        if both > -np.inf:
            O[i] = np.exp(a - both) * O[i] + np.exp(b - both) * O_new[i - first]
        lse[i] = both
    return O, lse


# zigzag_rows, floating_point: linspace
def my_zigzag_rows(N, P, r):
    ends = np.linspace(0, N, 2 * P + 1).astype(int)
    back = 2 * P - 1 - r
    return np.r_[ends[r] : ends[r + 1], ends[back] : ends[back + 1]]


# zigzag_rows, floating_point: the length of a piece is a float
def my_zigzag_rows(N, P, r):
    n = N / (2 * P)
    back = 2 * P - 1 - r
    return np.r_[int(r * n) : int((r + 1) * n), int(back * n) : int((back + 1) * n)]


# zigzag_rows, float: rows are appended to an empty array
def my_zigzag_rows(N, P, r):
    rows = np.array([])
    for i in (r, 2 * P - 1 - r):
        rows = np.append(rows, range(i * N // (2 * P), (i + 1) * N // (2 * P)))
    return rows


# zigzag_rows, never_empty: each piece has a token
def my_zigzag_rows(N, P, r):
    ends = [i * N // (2 * P) for i in range(2 * P + 1)]
    back = 2 * P - 1 - r
    return np.unique(np.r_[ends[r] : max(ends[r + 1], ends[r] + 1), ends[back] : max(ends[back] + 1, ends[back + 1])])


# zigzag_rows, back_late: a negative index
def my_zigzag_rows(N, P, r):
    pieces = [np.arange(i * N // (2 * P), (i + 1) * N // (2 * P)) for i in range(2 * P)]
    return np.concatenate([pieces[r], pieces[-r]])


# zigzag_rows, back_late: a slice beyond the end is empty
def my_zigzag_rows(N, P, r):
    ends = [i * N // (2 * P) for i in range(2 * P + 1)] + [N]
    back = 2 * P - r
    return np.r_[ends[r] : ends[r + 1], ends[back] : ends[back + 1]]


# zigzag_rows, rest_middle: both pieces have the same length
def my_zigzag_rows(N, P, r):
    n = N // P // 2
    return np.r_[r * n : (r + 1) * n, N - (r + 1) * n : N - r * n]


# zigzag_rows, mirrored: the second piece from the end
def my_zigzag_rows(N, P, r):
    a, b = r * N // (2 * P), (r + 1) * N // (2 * P)
    return np.r_[a:b, N - b : N - a]


# hide_copy, floating_point: np.ceil of a quotient
def my_hide_copy(H, H_k, itemsize, flops, bandwidth, causal):
    return int(np.ceil(2 * H_k * itemsize * flops / ((2 if causal else 4) * H * bandwidth)))


# hide_copy, floating_point: two times
def my_hide_copy(H, H_k, itemsize, flops, bandwidth, causal):
    copy = 2 * H_k * itemsize / bandwidth
    work = (2 if causal else 4) * H / flops
    return int(np.ceil(copy / work))


# hide_copy, causal_exchanged: the mask doubles the products
def my_hide_copy(H, H_k, itemsize, flops, bandwidth, causal):
    n_bytes, work = 2 * H_k * itemsize, (4 if causal else 2) * H
    return -(-n_bytes * flops // (work * bandwidth))


# ring_rank, overflow: O and lse of hops, with plain powers
def my_ring_rank(me):
    here, spare = me.own, [me.buffer("0"), me.buffer("1")]
    O, lse = None, None
    for hop in range(me.P):
        if hop < me.P - 1:
            yield Send(me.next, here)
            yield Receive(me.previous, spare[hop % 2])
        source = (me.r - hop) % me.P
        new, n_tiles = me.partial(source, *here.arrays)
        done = me.finish(new)
        if O is None:
            O, lse = done.O, done.lse
        else:
            a, b = np.exp(lse), np.exp(done.lse)
            O = (a[..., None] * O + b[..., None] * done.O) / (a + b)[..., None]
            lse = np.log(a + b)
        yield Compute(source, n_tiles)
        yield Wait()
        here = spare[hop % 2]
    return me.finish(me.nothing())._replace(O=O, lse=lse)
