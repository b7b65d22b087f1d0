"""Right answers that a check might refuse by mistake: see `tests.checks.answers`."""


# add_hop: row by row, with math
def my_add_hop(O, lse, O_new, lse_new, first, end):
    import math

    O, lse = np.array(O), np.array(lse)
    for n, i in enumerate(range(first, end)):
        top = max(lse[i], lse_new[n])
        if math.isinf(top):
            continue
        a, b = math.exp(lse[i] - top), math.exp(lse_new[n] - top)
        O[i] = (a * O[i] + b * O_new[n]) / (a + b)
        lse[i] = top + math.log(a + b)
    return [O, lse]


# add_hop: -1e300 in place of -inf
def my_add_hop(O, lse, O_new, lse_new, first, end):
    old, new = np.maximum(lse[first:end], -1e300), np.maximum(lse_new, -1e300)
    m = np.maximum(old, new)
    w = np.exp(np.stack([old, new]) - m)
    w[:, m == -1e300] = 0
    l = np.where(m == -1e300, 1, w.sum(axis=0))
    O_all, lse_all = O.copy(), lse.copy()
    O_all[first:end] = (w[0][:, None] * O[first:end] + w[1][:, None] * O_new) / l[:, None]
    lse_all[first:end] = np.where(m == -1e300, -np.inf, m + np.log(l))
    return O_all, lse_all


# ring_rank: a State for each hop in Compute, and no picture of what was before
def my_ring_rank(me):
    states, here, buffers = [], me.own, (me.buffer("even"), me.buffer("odd"))
    for hop in range(me.P):
        more = hop + 1 < me.P
        if more:
            yield Receive(me.previous, buffers[hop % 2])
            yield Send(me.next, here)
        part, n_tiles = me.partial(me.source(hop), *here.arrays)
        states.append(part)
        yield Compute(me.source(hop), n_tiles)
        if more:
            yield Wait()
            here = buffers[hop % 2]
    state = me.nothing()
    for part in states:
        state = me.merged(state, part)
    return me.finish(state)


# zigzag_rows: np.arange and np.concatenate of whole numbers, empty pieces too
def my_zigzag_rows(N, P, r):
    bounds = np.arange(2 * P + 1) * N // (2 * P)
    pieces = [np.arange(*bounds[p : p + 2]) for p in (r, 2 * P - 1 - r)]
    return np.concatenate(pieces)


# zigzag_rows: a list comprehension
def my_zigzag_rows(N, P, r):
    both = (r, 2 * P - 1 - r)
    return [t for p in both for t in range(p * N // (2 * P), (p + 1) * N // (2 * P))]


# hop_part: an array
def my_hop_part(r, s, n):
    rows = (n // 2, n) if s > r else (0, n)
    keys = (0, n // 2) if s < r else (0, n)
    return [*rows, *keys, bool(r == s)]


# hide_copy: searched for
def my_hide_copy(H, H_k, itemsize, flops, bandwidth, causal):
    def is_hidden(n):
        return 2 * n * H_k * itemsize * flops * (2 if causal else 1) <= 4 * H * n * n * bandwidth

    low, high = 0, 1
    while not is_hidden(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_hidden(middle) else (middle, high)
    return high


# ring_gradients: the library's own, with K and V a hop ahead
def my_ring_gradients(me):
    from flashlib.ring import programs

    return programs.ring_backward(me)


# ring_gradients: K and V go on at once, and gradients follow
def my_ring_gradients(me):
    dQ, delta = np.zeros_like(me.Q), me.delta()
    here, spare = me.own, [me.buffer("KV 0"), me.buffer("KV 1")]
    come, go = me.buffer("dKV in"), me.buffer("dKV out")
    for hop in range(me.P):
        if hop < me.P - 1:
            yield Send(me.next, here)
            yield Receive(me.previous, spare[hop % 2])
        grads, n_tiles = me.gradients(me.source(hop), *here.arrays, delta)
        yield Compute(me.source(hop), n_tiles)
        dQ = dQ + grads.dQ
        dKV = grads.dK, grads.dV
        if hop:
            dKV = tuple(a + b for a, b in zip(come.arrays, dKV))
        yield Wait()
        go.put(dKV)
        yield Send(me.next, go)
        yield Receive(me.previous, come)
        yield Wait()
        here = spare[hop % 2]
    return Grads(dQ, *come.arrays)


# way_bytes: divided first
def my_way_bytes(N, P, H, H_k, d, itemsize):
    rows = N // P
    to_each = rows * (H // P * (2 * d * itemsize + 4) + H_k // P * 2 * d * itemsize)
    return [(P - 1) * rows * 2 * H_k * d * itemsize, (P - 1) * to_each]
